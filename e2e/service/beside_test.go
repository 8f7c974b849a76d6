package service

import (
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestHealsBesideANarrowerPartition: two partitions of one pair that cut different
// traffic. The heal of one is proved by all that the other lets pass, says what of it
// is still cut and by whom, and each packet is counted once.
func TestHealsBesideANarrowerPartition(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	b.expect("plain forwarding", everything)
	pair := func(name string, only ...wire.Traffic) wire.PartitionSpec {
		return wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}, Only: only}}
	}
	tcp7000, udp, arp := wire.Traffic{Proto: "tcp", Port: 7000}, wire.Traffic{Proto: "udp"}, wire.Traffic{Proto: "arp"}
	for _, c := range []struct {
		name         string
		first, other wire.PartitionSpec // cut in this order
		heals        int                // which of them is healed first
		reason       string
		blocked      string // by somebody, a>b
	}{
		{"all beside arp", pair("all"), pair("arp", arp), 0, "some of its links are still cut, by arp (only arp)", "tcp"},
		{"all after arp", pair("arp", arp), pair("all"), 1, "some of its links are still cut, by arp (only arp)", "tcp6"},
		{"arp beside all", pair("all"), pair("arp", arp), 1, "some of its links are still cut, by all", ""},
		{"tcp/7000 beside udp", pair("tcp", tcp7000), pair("udp", udp), 0, "", "tcp,tp_src=7000"},
		{"udp beside tcp/7000", pair("tcp", tcp7000), pair("udp", udp), 1, "", "udp6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t, b.t = t, t
			before := d.dropped()
			both := []string{c.first.Name, c.other.Name}
			for _, s := range []wire.PartitionSpec{c.first, c.other} {
				if p := d.partition(s); p.Reason != "" {
					t.Errorf("%+v", p)
				}
			}
			if c.blocked != "" {
				rule := "table=1,priority=65000,in_port=11,dl_dst=02:77:00:00:00:02," + c.blocked
				harness.Output(t, "ovs-ofctl", "-OOpenFlow13", "add-flow", "unix:"+b.Path(bridge+".mgmt"), rule+",actions=drop")
				status := make(chan int, 1)
				go func() {
					is, _, _ := d.Try("DELETE", "/v1/partitions/"+both[c.heals], nil)
					status <- is
				}()
				select {
				case is := <-status:
					t.Errorf("healed, with status %d, though %s does not pass", is, c.blocked)
					status <- is
				case <-time.After(3 * time.Second):
				}
				var p wire.PartitionStatus
				if d.Call("GET", "/v1/partitions/"+both[c.heals], nil, &p); p.State != "healing" {
					t.Errorf("%s: %s though %s does not pass", p.State, p.Reason, c.blocked)
				}
				harness.Output(t, "ovs-ofctl", "-OOpenFlow13", "--strict", "del-flows", "unix:"+b.Path(bridge+".mgmt"), rule)
				if is := <-status; is/100 != 2 {
					t.Errorf("healed with status %d", is)
				}
			}
			one := d.Heal(both[c.heals])
			if one.Reason != c.reason || one.Leaked != 0 || !one.LeakKnown || one.Probes > one.Wanted {
				t.Errorf("%+v, want reason %q", one, c.reason)
			}
			two := d.Heal(both[1-c.heals])
			if two.Reason != "" || two.Leaked != 0 || two.Probes > two.Wanted {
				t.Errorf("%+v", two)
			}
			// What a wider one holds back does not count for a narrower one.
			for _, p := range []wire.PartitionStatus{one, two} {
				if p.Dropped == 0 && !strings.HasPrefix(p.Name, "arp") {
					t.Errorf("%+v dropped nothing", p)
				}
			}
			if now := d.dropped() - before; now != float64(one.Dropped+two.Dropped) {
				t.Errorf("the metrics have %v more dropped packets, the partitions %d and %d", now, one.Dropped, two.Dropped)
			}
			b.expect("both healed", everything)
		})
	}
}
