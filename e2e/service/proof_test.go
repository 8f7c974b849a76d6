package service

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestNothingPassesOnceInForce: while packets come all the time, none arrives
// from the moment on at which a partition is said to be in force.
func TestNothingPassesOnceInForce(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
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
		if got := d.Heal(name); got.Leaked != 0 || !got.LeakKnown || got.Dropped <= got.Probes/2 || got.Reason != "" {
			t.Errorf("cut %d: %+v", i, got)
		}
	}
}

// TestWhatIsDroppedLastIsCounted: packets that are dropped right before the heal, whose
// rules go with it, are among what was dropped.
func TestWhatIsDroppedLastIsCounted(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	for i, only := range [][]wire.Traffic{nil, {{Proto: "icmp"}}} {
		b.expect("open", everything) // and they know each other's addresses
		name := fmt.Sprintf("last%d", i)
		d.partition(wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}, Only: only}})
		const n = 150 // more at once do not fit into the queue of the switch's port
		sent := func() (n int) {
			out := harness.Output(t, "ip", "netns", "exec", "hand-a", "cat", "/proc/net/dev") // of the namespace
			m := regexp.MustCompile(`eth0:(?:\s+\d+){9}\s+(\d+)`).FindStringSubmatch(out)
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return n
		}
		// Of the proof's own packets not all need be counted: what was dropped before is.
		var inForce wire.PartitionStatus
		d.Call("GET", "/v1/partitions/"+name, nil, &inForce)
		before := sent()
		ping := harness.StartCommand(t, exec.Command("ip", "netns", "exec", "hand-a", "ping", "-q", "-l", fmt.Sprint(n), "-c", fmt.Sprint(n), "-W", "5", b.ip["b"]))
		harness.Until(t, time.Minute, "all is sent", func() error { // at once; it waits for answers
			if got := sent() - before; got < n {
				return fmt.Errorf("%d of %d", got, n)
			}
			return nil
		})
		p := d.Heal(name)
		ping.Kill()
		if got := p.Dropped - inForce.Dropped; got < n || got > n+50 || p.Wanted != p.Dropped+p.Leaked {
			t.Errorf("%s: %d packets were dropped of %d that were sent: %+v, before that %+v", name, got, n, p, inForce)
		}
	}
}

// TestTheProofMeetsEveryRule: on a network where nothing else happens, every rule that
// drops has counted, when a cut is said to be in force.
func TestTheProofMeetsEveryRule(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	pair := wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}
	some := pair
	some.Only = []wire.Traffic{{Proto: "tcp", Port: 7000}, {Proto: "udp"}, {Proto: "icmp"}}
	for i, p := range []wire.Partition{pair, some} {
		name := fmt.Sprintf("idle%d", i)
		d.partition(wire.PartitionSpec{Name: name, Partition: p})
		drops := 0
		for _, rule := range strings.Split(harness.Output(t, "ovs-ofctl", "-OOpenFlow13", "dump-flows", "unix:"+b.Path(bridge+".mgmt"), "table=1"), "\n") {
			m := regexp.MustCompile(` n_packets=(\d+),.*actions=drop`).FindStringSubmatch(rule)
			if m == nil {
				continue
			}
			if drops++; len(m[1]) == 1 && m[1] < "3" {
				t.Errorf("%s: met %s times, want 3 at least: %s", name, m[1], rule)
			}
		}
		if want := []int{4, 16}[i]; drops != want { // a>b and b>a: ARP and all else; TCP to and from 7000, UDP and ICMP, over IPv4 and IPv6
			t.Errorf("%s: %d rules drop, want %d", name, drops, want)
		}
		if got := d.Heal(name); got.Leaked != 0 || got.Reason != "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestBroadcastsThatLeakAreCounted: a host that is cut off sends to all. None of it
// arrives and none is counted, until somebody's rule takes it round ours. What is
// sent to a multicast address that is not cut, and ARP, are no leak.
func TestBroadcastsThatLeakAreCounted(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	b.expect("plain forwarding", everything)
	shout := func() {
		t.Helper()
		for _, to := range []string{"10.77.0.255", "224.0.0.1"} {
			_ = exec.Command("ip", "netns", "exec", "hand-a", "ping", "-b", "-I", "eth0", "-n", "-q", "-i", "0.05", "-c", "4", "-W", "0.2", to).Run() // nobody answers
		}
		_ = exec.Command("ip", "netns", "exec", "hand-a", "ping", "-n", "-q", "-c", "1", "-W", "0.2", "10.77.0.99").Run() // who has 99
	}
	leaked := func(name string) uint64 {
		t.Helper()
		var p wire.PartitionStatus
		d.Call("GET", "/v1/partitions/"+name, nil, &p)
		if !p.LeakKnown {
			t.Fatalf("%+v", p)
		}
		return p.Leaked
	}
	pair := wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}
	tcp := pair
	tcp.Only = []wire.Traffic{{Proto: "tcp"}}
	d.partition(wire.PartitionSpec{Name: "all", Partition: pair})
	shout()
	if n := leaked("all"); n != 0 {
		t.Errorf("%d leaked where the flood rule holds", n)
	}
	d.Heal("all")
	d.partition(wire.PartitionSpec{Name: "tcp", Partition: tcp})
	shout()
	if n := leaked("tcp"); n != 0 {
		t.Errorf("%d leaked of a cut of TCP, which nobody broadcasts", n)
	}
	d.Heal("tcp")

	d.partition(wire.PartitionSpec{Name: "round", Partition: pair})
	harness.Output(t, "ovs-ofctl", "-OOpenFlow13", "add-flow", "unix:"+b.Path(bridge+".mgmt"),
		"table=1,priority=65000,in_port=11,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=output:12")
	harness.Until(t, time.Minute, "what goes round the flood rule is counted", func() error {
		shout()
		if n := leaked("round"); n < 8 {
			return fmt.Errorf("%d leaked", n)
		}
		return nil
	})
	harness.Output(t, "ovs-ofctl", "-OOpenFlow13", "--strict", "del-flows", "unix:"+b.Path(bridge+".mgmt"),
		"table=1,priority=65000,in_port=11,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00")
	if p := d.Heal("round"); p.Leaked < 8 || p.Reason != "" {
		t.Errorf("%+v", p)
	}
}
