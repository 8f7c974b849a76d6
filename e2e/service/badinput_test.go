package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestBadInput gives netsplit what it cannot use. Each must end at once, with
// an exit status other than 0 and a message that says what to do.
func TestBadInput(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, err := os.ReadFile(gossip(t))
	if err != nil {
		t.Fatal(err)
	}
	edited := func(name, old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("the target file has no %q to spoil", old)
		}
		return file(name, strings.Replace(string(good), old, new, 1))
	}
	host := func(name, port string) string {
		return "  - {name: " + name + ", datapath: \"a7\", port: " + port + ", mac: \"02:00:00:00:00:0" + port + "\", ip: 10.0.0." + port + ", exec: [env]}\n"
	}
	testbeds := map[string]string{
		"whole":    file("whole.yaml", "name: t\nhosts:\n"+host("n1", "1")+host("n2", "2")+host("n3", "3")+host("c1", "4")),
		"few":      file("few.yaml", "name: t\nhosts:\n"+host("n1", "1")+host("n2", "2")),
		"key":      file("key.yaml", "name: t\nhsots:\n"+host("n1", "1")),
		"type":     file("type.yaml", "name: t\nhosts:\n"+strings.Replace(host("n1", "1"), "port: 1", "port: [1]", 1)),
		"twice":    file("twice.yaml", "name: t\nhosts:\n"+host("n1", "1")+host("n1", "2")),
		"datapath": file("datapath.yaml", "name: t\nhosts:\n"+strings.Replace(host("n1", "1"), "a7", "zz", 1)),
	}
	runs := filepath.Join(dir, "runs")
	free := []string{"--listen", "127.0.0.1:0", "--openflow", "127.0.0.1:0", "--runs-dir", runs}
	withTestbed := func(name string) []string { return append([]string{"serve", "--testbed", testbeds[name]}, free...) }

	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"unknown command", []string{"frobnicate"}, []string{"frobnicate"}},
		{"unknown flag", []string{"campaign", "redis-sentinel", "--faluts", "3"}, []string{"faluts", "--help"}},
		{"no target", []string{"campaign"}, []string{"target", "--help"}},
		{"unknown target", []string{"campaign", "postgres", "--runs-dir", runs}, []string{"postgres", "redis-sentinel"}},
		{"unknown key in a target", []string{"target", "check", edited("t1.yaml", "title:", "tilte:")}, []string{"tilte", "t1.yaml:4", "title"}},
		{"wrong type in a target", []string{"target", "check", edited("t2.yaml", "max_cut: 2200ms", "max_cut: [1, 2]")}, []string{"t2.yaml:80", "max_cut", "duration"}},
		{"a duration without a unit", []string{"target", "check", edited("t3.yaml", "settle: 5s", "settle: soon")}, []string{"soon", "t3.yaml:78", "unit"}},
		{"unknown host in a target", []string{"target", "check", edited("t4.yaml", "host: c1", "host: c9")}, []string{"c9"}},
		{"unknown check", []string{"target", "check", edited("t5.yaml", "name: resurrected", "name: ressurected")}, []string{"ressurected"}},
		{"unknown setting", []string{"campaign", gossip(t), "--set", "bgu=true", "--runs-dir", runs}, []string{"bgu", "bug"}},
		{"unknown strategy", []string{"campaign", gossip(t), "--strategy", "magic", "--runs-dir", runs}, []string{"strategy", "cofi"}},
		{"too few clean runs", []string{"campaign", gossip(t), "--clean", "1", "--runs-dir", runs}, []string{"3"}},
		{"too many labs", []string{"campaign", gossip(t), "--labs", "1000", "--runs-dir", runs}, []string{"labs", "64"}},
		{"no fault runs", []string{"campaign", gossip(t), "--faults", "0", "--runs-dir", runs}, []string{"--faults 0", "1 or more"}},
		{"no replays", []string{"replay", "c-1-r0001", "-n", "0", "--runs-dir", runs}, []string{"--times 0", "1 or more"}},
		{"unknown run to replay", []string{"replay", "c-1-r0001", "--runs-dir", runs}, []string{"c-1-r0001"}},
		{"unknown run to judge", []string{"judge", "c-1-r0001", "--runs-dir", runs}, []string{"c-1-r0001", "--runs-dir"}},
		{"unknown invariant", []string{"invariants", "pin", "inv-none", "--target", "gossip", "--runs-dir", runs}, []string{"inv-none"}},
		{"no testbed file", append([]string{"serve", "--testbed", filepath.Join(dir, "none.yaml")}, free...), []string{"none.yaml", "lab up"}},
		{"unknown key in a testbed", withTestbed("key"), []string{"hsots", "line 2", "hosts"}},
		{"wrong type in a testbed", withTestbed("type"), []string{"line 3", "unmarshal"}},
		{"host twice in a testbed", withTestbed("twice"), []string{"n1", "twice"}},
		{"bad datapath in a testbed", withTestbed("datapath"), []string{"zz", "ovs-vsctl"}},
		{"no daemon there", []string{"campaign", gossip(t), "--api", "127.0.0.1:1"}, []string{"127.0.0.1:1", "netsplit serve"}},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, harness.Start(t, c.args...), c.says...) })
	}

	t.Run("host missing in the testbed", func(t *testing.T) {
		d := serve(t, withTestbed("few")[1:]...)
		status, b, err := d.Try("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(gossip(t))})
		if err != nil || status != 400 && status != 422 || !strings.Contains(string(b), "n3") || !strings.Contains(string(b), "few.yaml") && !strings.Contains(string(b), "testbed t") {
			t.Errorf("%d %s %v", status, b, err)
		}
		// Its ports are taken now.
		refused(t, harness.Start(t, "serve", "--listen", d.API, "--openflow", "127.0.0.1:0", "--runs-dir", t.TempDir()), d.API, "in use", "--listen")
		refused(t, harness.Start(t, "serve", "--listen", "127.0.0.1:0", "--openflow", d.OpenFlow, "--runs-dir", t.TempDir()), d.OpenFlow, "in use", "another address")
	})
	t.Run("no root", func(t *testing.T) {
		open := openDir(t)
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		t.Setenv("NETSPLIT_CACHE", filepath.Join(open, "cache")) // the caller's may be nobody else's
		target := filepath.Join(open, "target.yaml")
		if err := os.WriteFile(target, good, 0o644); err != nil {
			t.Fatal(err)
		}
		p := harness.StartCommand(t, exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
			harness.Bin("netsplit"), "campaign", target, "--runs-dir", filepath.Join(open, "runs"), "--progress", "plain"))
		refused(t, p, "root")
	})
	t.Run("no Open vSwitch", func(t *testing.T) {
		// The programs that a lab needs before it asks for Open vSwitch, and
		// nothing else; and not what lies in /usr/sbin.
		bin := t.TempDir()
		for _, prog := range []string{"ip", "nsenter", "sh", "env", "ethtool"} {
			if path, err := exec.LookPath(prog); err == nil {
				if err := os.Symlink(path, filepath.Join(bin, prog)); err != nil {
					t.Fatal(err)
				}
			}
		}
		script := `mount -t tmpfs none /usr/sbin && mount -t tmpfs none /usr/share/openvswitch && PATH=$2 exec "$1" campaign "$3" --runs-dir "$4" --progress plain`
		p := harness.StartCommand(t, exec.Command("unshare", "--mount", "sh", "-c", script, "sh", harness.Bin("netsplit"), bin, gossip(t), t.TempDir()))
		refused(t, p, "apt-get install openvswitch-switch")
	})
}

// refused checks that netsplit ends soon, says all of says, and does not just
// print where it was in its own code.
func refused(t *testing.T, p *harness.Process, says ...string) {
	t.Helper()
	r := p.Wait(t, time.Minute)
	if r.Code == 0 || strings.Contains(r.Stderr, "goroutine ") || strings.Contains(r.Stderr, "Usage:") {
		t.Errorf("want a refusal: %s", r)
	}
	for _, s := range says {
		if !strings.Contains(r.Stderr+r.Stdout, s) {
			t.Errorf("it does not say %q: %s", s, r)
		}
	}
}

// TestSwitchThatSpeaksOnlyOpenFlow10 checks that the daemon says what to do,
// and that the switch is taken once it was done.
func TestSwitchThatSpeaksOnlyOpenFlow10(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b")
	b.VSCtl("set", "bridge", bridge, "protocols=OpenFlow10")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	harness.Until(t, time.Minute, "the daemon says what to do", func() error {
		if s := d.Stderr(); !strings.Contains(s, "protocols=OpenFlow13") || !strings.Contains(s, "ovs-vsctl") {
			return os.ErrNotExist
		}
		return nil
	})
	status, body, err := d.Try("GET", "/healthz", nil)
	if err != nil || status != 503 {
		t.Errorf("without its switch the daemon is well: %d %s %v", status, body, err)
	}
	b.VSCtl("set", "bridge", bridge, "protocols=OpenFlow13")
	d.Healthy()
	b.expect("with OpenFlow 1.3", everything)
}
