package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// OVS is an Open vSwitch of a test's own, as a user may have one: a database and
// a switch in the userspace, with their sockets and logs in a folder.
type OVS struct {
	Switch *Process // ovs-vswitchd
	tb     testing.TB
	dir    string
}

// StartOVS starts one. Bridges are made with VSCtl; their devices, which outlive a
// switch that is killed, are removed when the test ends.
func StartOVS(tb testing.TB, bridges ...string) *OVS {
	tb.Helper()
	dir, err := os.MkdirTemp("", "netsplit-ovs-") // the paths of sockets are short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	o := &OVS{tb: tb, dir: dir}
	tb.Cleanup(func() {
		for _, l := range append(bridges, "ovs-netdev") {
			_ = exec.Command("ip", "link", "del", l).Run()
		}
	})
	Output(tb, "ovsdb-tool", "create", o.Path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	o.daemon("ovsdb-server", o.Path("conf.db"), "--remote=punix:"+o.Path("db.sock"), "--unixctl="+o.Path("db.ctl"))
	Until(tb, 30*time.Second, "ovsdb-server answers", func() error {
		return exec.Command("ovs-vsctl", "--db=unix:"+o.Path("db.sock"), "--no-wait", "--timeout=2", "init").Run()
	})
	o.StartSwitch()
	return o
}

// Path is that of a file in the folder.
func (o *OVS) Path(name string) string { return filepath.Join(o.dir, name) }

func (o *OVS) daemon(name string, args ...string) *Process {
	o.tb.Helper()
	cmd := exec.Command(name, append(args, "--pidfile="+o.Path(name+".pid"), "--log-file="+o.Path(name+".log"), "-vconsole:off", "-vsyslog:off")...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_LOGDIR="+o.dir, "PATH="+os.Getenv("PATH")+":/usr/sbin")
	if cmd.Err != nil { // sbin is not in every PATH
		cmd.Path, cmd.Err = "/usr/sbin/"+name, nil
	}
	return StartCommand(o.tb, cmd)
}

// StartSwitch starts ovs-vswitchd, again if it was killed.
func (o *OVS) StartSwitch() {
	o.tb.Helper()
	o.Switch = o.daemon("ovs-vswitchd", "unix:"+o.Path("db.sock"), "--unixctl="+o.Path("vs.ctl"))
}

// VSCtl runs ovs-vsctl and returns what it prints.
func (o *OVS) VSCtl(args ...string) string {
	o.tb.Helper()
	return Output(o.tb, "ovs-vsctl", append([]string{"--db=unix:" + o.Path("db.sock"), "--timeout=40"}, args...)...)
}

// OFCtl runs a command of ovs-ofctl on a bridge and returns what it prints.
func (o *OVS) OFCtl(bridge, command string, args ...string) string {
	o.tb.Helper()
	return Output(o.tb, "ovs-ofctl", append([]string{"-O", "OpenFlow13", "--no-names", command, "unix:" + o.Path(bridge+".mgmt")}, args...)...)
}
