package service

import (
	"fmt"
	"os/exec"
	"testing"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestNothingPassesOnceInForce: while packets come all the time, none arrives
// from the moment on at which a partition is said to be in force.
func TestNothingPassesOnceInForce(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.openflow)
	d.healthy()
	flood := harness.StartCommand(t, exec.Command("ip", "netns", "exec", "hand-a", "ping", "-q", "-i", "0.002", "-s", "1000", b.ip["b"]))
	defer flood.Kill()
	for i := range 12 {
		p := wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}
		if i%2 == 1 {
			p.Only = []wire.Traffic{{Proto: "icmp"}}
		}
		name := fmt.Sprintf("cut%d", i)
		by := "meters, then drop rules"
		if len(p.Only) > 0 {
			by = "drop rules alone: a meter holds back all of a pair, this cuts some traffic"
		}
		if got := d.partition(wire.PartitionSpec{Name: name, Partition: p}); got.CutBy != by {
			t.Errorf("cut %d is by %q, want %q", i, got.CutBy, by)
		}
		if got := d.heal(name); got.Leaked != 0 || !got.LeakKnown || got.Dropped <= got.Probes/2 || got.Reason != "" {
			t.Errorf("cut %d: %+v", i, got)
		}
	}
}
