package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ovs is one running Open vSwitch.
type ovs struct {
	runDir string
	own    bool
}

const (
	schemaPath = "/usr/share/openvswitch/vswitch.ovsschema"
	// vsctlSeconds bounds every ovs-vsctl, which otherwise waits for
	// ovs-vswitchd for ever.
	vsctlSeconds = "20"
)

func (m *Manager) ownOVSDir() string { return filepath.Join(m.RunDir, "ovs") }
func (m *Manager) ownOVS() *ovs      { return &ovs{runDir: filepath.Join(m.ownOVSDir(), "run"), own: true} }
func (m *Manager) systemOVS() *ovs   { return &ovs{runDir: m.SystemOVS} }

func (o *ovs) socket() string { return filepath.Join(o.runDir, "db.sock") }

// vsctl runs ovs-vsctl and waits until the switch has taken the change over.
func (o *ovs) vsctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + o.socket(), "--timeout=" + vsctlSeconds}, args...)...)
}

// vsctlNoWait changes or reads the database only.
func (o *ovs) vsctlNoWait(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + o.socket(), "--timeout=5", "--no-wait"}, args...)...)
}

// listens says whether a server accepts connections on the socket. After a
// server was killed the socket is there, but refuses.
func (o *ovs) listens() bool {
	c, err := net.DialTimeout("unix", o.socket(), time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// answers says whether a database answers on the socket.
func (o *ovs) answers(ctx context.Context) bool {
	if !o.listens() {
		return false
	}
	_, err := o.vsctlNoWait(ctx, "--columns=_uuid", "list", "Open_vSwitch")
	return err == nil
}

// useOVS returns the switch for a new lab: our own if labs are on it already
// (two userspace switches in one namespace want the same tap device), else the
// machine's if it runs, else our own, which it starts.
func (m *Manager) useOVS(ctx context.Context) (*ovs, error) {
	own := m.ownOVS()
	if len(m.ownDaemons()) == 0 && m.systemOVS().answers(ctx) {
		return m.systemOVS(), nil
	}
	if err := m.startOVS(ctx, own); err != nil {
		return nil, err
	}
	return own, nil
}

// startOVS starts those of our own Open vSwitch's daemons that do not run.
// Bridges of labs that were on it when it was killed come back, without rules.
func (m *Manager) startOVS(ctx context.Context, o *ovs) error {
	if _, err := os.Stat(schemaPath); err != nil {
		return fmt.Errorf("lab: no Open vSwitch database schema (%w); run: apt-get install openvswitch-switch", err)
	}
	for _, p := range []string{"ovsdb-server", "ovs-vswitchd", "ovsdb-tool"} {
		if _, err := lookDaemon(p); err != nil {
			return fmt.Errorf("lab: %w; run: apt-get install openvswitch-switch", err)
		}
	}
	for _, d := range []string{"run", "db", "log"} {
		if err := os.MkdirAll(filepath.Join(m.ownOVSDir(), d), 0o755); err != nil {
			return fmt.Errorf("lab: cannot make Open vSwitch's directories: %w", err)
		}
	}
	running := map[string]bool{}
	for _, d := range m.ownDaemons() {
		running[d.name] = true
	}
	if running["ovsdb-server"] && !o.answers(ctx) { // a server that hangs, or lost its socket
		if err := m.killDaemons("ovsdb-server", nil); err != nil {
			return err
		}
		running["ovsdb-server"] = false
	}
	if !running["ovsdb-server"] {
		db := filepath.Join(m.ownOVSDir(), "db", "conf.db")
		if _, err := os.Stat(db); err != nil {
			os.Remove(db + ".new")
			if _, err := run(ctx, "ovsdb-tool", "create", db+".new", schemaPath); err != nil {
				return fmt.Errorf("lab: %w", err)
			}
			if err := os.Rename(db+".new", db); err != nil {
				return fmt.Errorf("lab: %w", err)
			}
		}
		for _, f := range []string{"ovsdb-server.pid", "db.sock", "db.ctl"} { // of a killed one
			os.Remove(filepath.Join(o.runDir, f))
		}
		if err := m.daemon(ctx, "ovsdb-server", db, "--remote=punix:"+o.socket(), "--unixctl="+filepath.Join(o.runDir, "db.ctl")); err != nil {
			return err
		}
		if _, err := o.vsctlNoWait(ctx, "init"); err != nil {
			return fmt.Errorf("lab: Open vSwitch's database does not answer: %w", err)
		}
	}
	if !running["ovs-vswitchd"] {
		for _, f := range []string{"ovs-vswitchd.pid", "vs.ctl"} {
			os.Remove(filepath.Join(o.runDir, f))
		}
		if err := m.daemon(ctx, "ovs-vswitchd", "unix:"+o.socket(), "--unixctl="+filepath.Join(o.runDir, "vs.ctl"), "--monitor"); err != nil {
			return err
		}
	}
	return nil
}

// lockTime is how long a killed database may take to give its lock back.
const lockTime = 5 * time.Second

func (m *Manager) daemon(ctx context.Context, name string, args ...string) error {
	dir := m.ownOVSDir()
	path, err := lookDaemon(name)
	if err != nil {
		return err
	}
	args = append(args, "--pidfile="+filepath.Join(dir, "run", name+".pid"), "--log-file="+filepath.Join(dir, "log", name+".log"),
		"--detach", "-vconsole:off", "-vsyslog:off")
	// Through env(1) for the variables by which ownDaemons knows them again.
	args = append([]string{"OVS_RUNDIR=" + filepath.Join(dir, "run"), "OVS_DBDIR=" + filepath.Join(dir, "db"), "OVS_LOGDIR=" + filepath.Join(dir, "log"), path}, args...)
	// A process that was killed shows no environment any more, by which ownDaemons knows it,
	// some time before it gives its lock back.
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err = run(ctx, "env", args...)
		if err == nil || !strings.Contains(err.Error(), "failed to lock") || time.Since(start) > lockTime || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lab: cannot start Open vSwitch (log in %s): %w", filepath.Join(dir, "log"), err)
	}
	return nil
}

// lookDaemon finds a program of Open vSwitch; sbin is not in every PATH.
func lookDaemon(name string) (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin") {
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// ovsDaemon is a running daemon, or the monitor process of one.
type ovsDaemon struct {
	process
	name string
}

// ownDaemons lists the daemons of our own Open vSwitch by what is in their
// environment. Pid files outlive what they name, and monitor processes have
// none and rewrite their command line. Those of other network namespaces are
// not ours: in a container the same path is another directory.
func (m *Manager) ownDaemons() []ovsDaemon {
	own, _ := ownNetns()
	want := []byte("OVS_RUNDIR=" + m.ownOVS().runDir)
	var out []ovsDaemon
	for _, pid := range pids() {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		name := strings.TrimSpace(string(comm))
		if err != nil || name != "ovs-vswitchd" && name != "ovsdb-server" {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if link, lerr := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil || lerr != nil || link != own {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if !bytes.Equal(v, want) {
				continue
			}
			if p, err := findProcess(pid); err == nil {
				out = append(out, ovsDaemon{p, name})
			}
		}
	}
	return out
}

// killDaemons ends our own daemons of the name ("" for all): SIGTERM, and
// SIGKILL after 3 s. One that ends has no environment any more, and its taps still: it is
// awaited until the kernel has closed them.
func (m *Manager) killDaemons(name string, known []ovsDaemon) error {
	start := time.Now()
	signal := unix.SIGTERM
	seen := map[process]bool{}
	for {
		for _, d := range append(m.ownDaemons(), known...) {
			if name != "" && d.name != name || d.ended() {
				continue
			}
			seen[d.process] = true
			if err := unix.Kill(d.PID, signal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("lab: cannot end our %s (process %d): %w", d.name, d.PID, err)
			}
		}
		maps.DeleteFunc(seen, func(p process, _ bool) bool { return p.ended() })
		switch took := time.Since(start); {
		case len(seen) == 0:
			return nil
		case took > 8*time.Second:
			return fmt.Errorf("lab: %d processes of our Open vSwitch do not end; see %s", len(seen), filepath.Join(m.ownOVSDir(), "log"))
		case took > 3*time.Second:
			signal = unix.SIGKILL
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stopOVS ends our own Open vSwitch, if there is one, and removes its files.
// Bridges that somebody else made on it go with it.
func (m *Manager) stopOVS(ctx context.Context) error {
	if _, err := os.Stat(m.ownOVSDir()); err != nil {
		return nil
	}
	// Its tap devices are persistent. It removes those of bridges that are
	// deleted; it may be dead, or hang, so what is left is removed below.
	o, daemons := m.ownOVS(), m.ownDaemons()
	taps := []string{datapathTap}
	if o.listens() {
		rows, _ := o.table(ctx, "bridge", []string{"name"})
		for _, row := range rows {
			taps = append(taps, row[0])
			_, _ = run(ctx, "ovs-vsctl", "--db=unix:"+o.socket(), "--timeout=5", "--if-exists", "del-br", row[0])
		}
	}
	ctl := filepath.Join(o.runDir, "vs.ctl")
	if _, err := os.Stat(ctl); err == nil {
		_, _ = run(ctx, "ovs-appctl", "-t", ctl, "--timeout=5", "exit", "--cleanup")
	}
	if err := m.killDaemons("ovs-vswitchd", daemons); err != nil {
		return err
	}
	if err := m.killDaemons("", daemons); err != nil {
		return err
	}
	var errs []error
	if !switchRunsHere() {
		for _, name := range taps {
			errs = append(errs, removeTap(name))
		}
	}
	if err := os.RemoveAll(m.ownOVSDir()); err != nil {
		errs = append(errs, fmt.Errorf("lab: cannot remove Open vSwitch's files: %w", err))
	}
	return errors.Join(errs...)
}

// datapathTap is the tap device of the userspace datapath, which all bridges
// of a network namespace share.
const datapathTap = "ovs-netdev"

// switchRunsHere says whether any ovs-vswitchd, also somebody else's, runs in
// our network namespace.
func switchRunsHere() bool {
	own, _ := ownNetns()
	for _, pid := range pids() {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil && link == own && strings.TrimSpace(string(comm)) == "ovs-vswitchd" {
			return true
		}
	}
	return false
}

func (m *Manager) addBridge(ctx context.Context, o *ovs, s *state) error {
	args := []string{
		"add-br", s.Bridge, "--",
		"set", "bridge", s.Bridge, "datapath_type=netdev", "protocols=OpenFlow13", "fail-mode=secure",
		"other-config:datapath-id=" + s.Datapath.String(), "other-config:hwaddr=\"" + bridgeMAC(s.Index) + "\"",
		"external-ids:netsplit-lab=" + s.Name, "external-ids:netsplit-owner=\"" + s.Owner.String() + "\"",
		"external-ids:netsplit-run=\"" + m.RunDir + "\"",
	}
	want := map[string]string{}
	add := func(link string, port uint32) {
		n := fmt.Sprint(port)
		args = append(args, "--", "add-port", s.Bridge, link, "--", "set", "interface", link, "ofport_request="+n)
		want[link] = n
	}
	for _, h := range s.Hosts {
		add(h.Link, h.Port)
	}
	add(s.MirrorSwitch, MirrorPort)
	if s.GateSwitch != "" {
		add(s.GateSwitch, GatePort)
	}
	if s.Controller != "" {
		args = append(args, "--")
		args = append(args, controllerArgs(s)...)
	}
	if _, err := o.vsctl(ctx, args...); err != nil {
		return o.explain(err)
	}
	got, err := o.table(ctx, "interface", []string{"name", "ofport", "error"}, s.ports()...)
	if err != nil {
		return err
	}
	for _, row := range got {
		if want[row[0]] != row[1] {
			return fmt.Errorf("bridge %s: port %s got number %s instead of %s: %s", s.Bridge, row[0], row[1], want[row[0]], row[2])
		}
	}
	// The bridge's own tap device outlives a switch that is killed.
	l, err := netlink.LinkByName(s.Bridge)
	if err == nil {
		err = netlink.LinkSetAlias(l, m.markOf(s).String())
	}
	if err != nil {
		return fmt.Errorf("bridge %s: cannot mark its device: %w", s.Bridge, err)
	}
	return nil
}

func controllerArgs(s *state) []string {
	return []string{"set-controller", s.Bridge, s.Controller, "--", "set", "controller", s.Bridge, "connection_mode=out-of-band"}
}

func (o *ovs) explain(err error) error {
	if o.own {
		return err
	}
	return fmt.Errorf("%w (the Open vSwitch at %s is not ours: check that ovs-vswitchd runs, e.g. systemctl restart openvswitch-switch)", err, o.runDir)
}

func (o *ovs) table(ctx context.Context, table string, columns []string, records ...string) ([][]string, error) {
	args := append([]string{"--format=csv", "--data=bare", "--no-headings", "--columns=" + strings.Join(columns, ","), "list", table}, records...)
	out, err := o.vsctlNoWait(ctx, args...)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(out))
	r.FieldsPerRecord = len(columns)
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("ovs-vsctl list %s: unexpected answer: %w", table, err)
	}
	return rows, nil
}

func (o *ovs) bridges(ctx context.Context) (map[string]mark, error) {
	rows, err := o.table(ctx, "bridge", []string{"name", "external_ids"})
	if err != nil {
		return nil, err
	}
	out := map[string]mark{}
	for _, row := range rows {
		ids := map[string]string{}
		for pair := range strings.FieldsSeq(row[1]) {
			k, v, _ := strings.Cut(pair, "=")
			ids[k] = strings.Trim(v, `"`)
		}
		owner, err := parseProcess(ids["netsplit-owner"])
		if ids["netsplit-lab"] != "" && err == nil {
			out[row[0]] = mark{Lab: ids["netsplit-lab"], RunDir: ids["netsplit-run"], Owner: owner}
		}
	}
	return out, nil
}

// removeBridge deletes a bridge if it is there. The database is changed even
// if the switch does not answer.
func (o *ovs) removeBridge(ctx context.Context, name string) error {
	args := []string{"--if-exists", "del-br", name}
	if o.own {
		if _, err := o.vsctlNoWait(ctx, args...); err != nil {
			return err
		}
		// Wait for the switch, if it lives, to let go of the ports.
		_, _ = run(ctx, "ovs-vsctl", "--db=unix:"+o.socket(), "--timeout=5", "set", "Open_vSwitch", ".", "external-ids:netsplit=own")
		return nil
	}
	if _, err := o.vsctl(ctx, args...); err == nil {
		return nil
	}
	_, err := o.vsctlNoWait(ctx, args...)
	return err
}
