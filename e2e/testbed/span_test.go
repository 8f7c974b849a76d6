package testbed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestAPartitionSpansSwitches: hosts on two bridges with a link between reach one
// another; a cut between hosts of different bridges is proved and bites there
// only; a bridge that loses its controller is told, and repaired when it is back.
func TestAPartitionSpansSwitches(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b"}, []string{"c"})
	// One veth, an end on each bridge.
	r.veth("rkt1", 50, "rk1", "peer", "name", "rkt2")
	harness.Output(t, "ethtool", "-K", "rkt2", "tx", "off")
	harness.Output(t, "ip", "link", "set", "rkt2", "up")
	r.vsctl("add-port", "rk2", "rkt2", "--", "set", "interface", "rkt2", "ofport_request=51")
	r.write(fmt.Sprintf("links:\n  - {a: {datapath: %q, port: 50}, b: {datapath: %q, port: 51}}\n", dpid("rk1"), dpid("rk2")))
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.openflow)
	d.healthy()
	r.passing(30 * time.Second)

	d.call("POST", "/v1/partitions", wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"c"}}}}, nil)
	d.state("one", "in_force")
	cut := func(x, y string) bool { return x+y != "ac" }
	r.expect("a and c cut", cut)

	// The switch of c loses its controller: the rules there expire, those at a's
	// switch stay, and all is repaired when it is back.
	r.vsctl("del-controller", "rk2")
	harness.Until(t, 30*time.Second, "the daemon says that a switch is gone", func() error {
		_, b := d.try("GET", "/healthz", nil)
		if !strings.Contains(string(b), "1 of 2 switches") {
			return fmt.Errorf("%s", b)
		}
		return nil
	})
	var p wire.PartitionStatus
	d.call("GET", "/v1/partitions/one", nil, &p)
	if p.State != "in_force" || !strings.Contains(p.Reason, "switch "+dpid("rk2")+" is not connected") {
		t.Errorf("with a switch away: %+v", p)
	}
	r.vsctl("set-controller", "rk2", "tcp:"+d.openflow, "--", "set", "controller", "rk2", "connection_mode=out-of-band", "max_backoff=1000")
	d.healthy()
	harness.Until(t, 30*time.Second, "c is reached again, by b only", func() error {
		if !r.ping(r.hosts[1], r.hosts[2]) || r.ping(r.hosts[0], r.hosts[2]) {
			return fmt.Errorf("b reaches c: %v, a reaches c: %v", r.ping(r.hosts[1], r.hosts[2]), r.ping(r.hosts[0], r.hosts[2]))
		}
		return nil
	})
	d.heal("one")
	r.expect("healed", func(string, string) bool { return true })
}
