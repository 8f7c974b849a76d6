package testbed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestAHealSaysWhatHindersIt and nothing else, and goes on when that is over: a host's
// link, a rule of others, then a switch that died, with a gate port.
func TestAHealSaysWhatHindersIt(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b", "c"})
	r.cable("rkg", 60, "rk1")
	r.write(fmt.Sprintf("gates:\n  - {datapath: %q, port: 60, interface: rkgr}\n", dpid("rk1")))
	r.connect("127.0.0.1:6653")
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	d.Healthy()
	cut := func(name string) {
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "isolate", Groups: [][]string{{"a"}}}}, nil)
		d.State(name, "in_force")
	}
	hindered := func(name, by string) {
		t.Helper()
		d.try("DELETE", "/v1/partitions/"+name, nil)
		harness.Until(t, time.Minute, "the heal says what hinders it", func() error {
			_, b := d.try("GET", "/v1/partitions/"+name, nil)
			if s := string(b); !strings.Contains(s, by) {
				return fmt.Errorf("%s: want %q", s, by)
			}
			return nil
		})
		if p := d.State(name, "healing"); !strings.Contains(p.Reason, by) || strings.Contains(p.Reason, "deadline") || strings.Contains(p.Reason, "turn a frame") {
			t.Errorf("%s: %q", name, p.Reason)
		}
	}
	cut("one")
	r.in(r.hosts[1], "ip", "link", "set", "eth0", "down")
	hindered("one", "host b: port 12 (rack-b) has no link")
	r.in(r.hosts[1], "ip", "link", "set", "eth0", "up")
	if p := d.State("one", "healed"); p.Reason != "" {
		t.Errorf("healed: %q", p.Reason)
	}
	cut("theirs")
	r.OFCtl("rk1", "add-flow", "cookie=0xbad,table=0,priority=60000,in_port=12,actions=drop")
	hindered("theirs", "drops packets of host b before netsplit's rules see them")
	r.OFCtl("rk1", "del-flows", "cookie=0xbad/-1")
	if p := d.State("theirs", "healed"); p.Reason != "" {
		t.Errorf("healed: %q", p.Reason)
	}
	cut("two")
	r.Switch.Kill()
	hindered("two", "switch is not connected")
	if status, b := d.try("POST", "/v1/partitions", wire.PartitionSpec{Name: "three", Partition: wire.Partition{Shape: "isolate", Groups: [][]string{{"c"}}}}); status != 503 || strings.Contains(string(b), "turn a frame") {
		t.Errorf("a cut on a dead switch: %d %s", status, b)
	}
	r.StartSwitch()
	if p := d.State("two", "healed"); p.Reason != "" {
		t.Errorf("healed: %q", p.Reason)
	}
	if log := d.Stderr(); strings.Contains(log, "turn a frame") || strings.Contains(log, "gave up waiting") {
		t.Errorf("it logged:\n%s", log)
	}
}
