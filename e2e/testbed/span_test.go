package testbed

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// nobody is where no controller listens.
const nobody = "tcp:127.0.0.1:1"

// TestAPartitionSpansSwitches: hosts on two bridges with a link between reach one
// another; a cut between hosts of different bridges is proved and effective there
// only. Where a bridge loses its controller, the rules there expire and packets
// pass: what is cut there is not said to be in force, and what passes has leaked,
// until it is proved again.
func TestAPartitionSpansSwitches(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c", "d"})
	a, b, c, e := r.hosts[0], r.hosts[1], r.hosts[2], r.hosts[3]
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	r.passing(30 * time.Second)
	// c's pings to a leave whether or not anybody answers.
	r.in(c, "ip", "neigh", "replace", a.ip, "lladdr", a.mac, "dev", "eth0", "nud", "permanent")

	began := map[string]time.Time{}
	for name, pair := range map[string][2]string{"near": {"a", "b"}, "across": {"a", "c"}, "far": {"c", "d"}} {
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{pair[0]}, {pair[1]}}}}, nil)
		began[name] = *d.State(name, "in_force").InForce
	}
	cut := func(x, y string) bool { return x+y != "ab" && x+y != "ac" && x+y != "cd" }
	r.expect("cut", cut)
	if n := r.observed(a, c); n != 0 {
		t.Errorf("%d pings of c arrived at a, which is cut off from it", n)
	}

	// The switch of c and d loses its controller: the rules there expire, those at
	// the other one stay.
	r.VSCtl("set-controller", "rk2", nobody, "--", "set", "controller", "rk2", "connection_mode=out-of-band")
	gone := "switch " + dpid("rk2") + " is not connected"
	for _, name := range []string{"across", "far"} {
		if p := d.State(name, "requested"); !strings.Contains(p.Reason, gone) || !p.InForce.Equal(began[name]) {
			t.Errorf("with a switch away: %+v", p)
		}
	}
	harness.Until(t, time.Minute, "packets pass where the rules expired", func() error {
		if n := r.observed(a, c); !r.ping(c, e) || n == 0 {
			return fmt.Errorf("%d pings of c arrived at a, or none of c at d", n)
		}
		return nil
	})
	for _, name := range []string{"across", "far"} {
		harness.Until(t, time.Minute, name+" is told to leak", func() error {
			if p := d.State(name, "requested"); p.Leaked == 0 || !p.LeakKnown || !strings.Contains(p.Reason, gone) {
				return fmt.Errorf("%+v", p)
			}
			return nil
		})
	}
	if list := harness.Run(t, "partition", "list", "--api", d.API); list.Code != 0 || strings.Count(list.Stdout, gone) != 2 {
		t.Errorf("partition list: %s", list)
	}
	if p := d.State("near", "in_force"); p.Leaked != 0 || p.Reason != "" {
		t.Errorf("what the switch that is there cuts alone: %+v", p)
	}
	if r.ping(a, b) || r.observed(c, a) != 0 {
		t.Error("what the switch that is there cuts passes")
	}
	// What the switch that is there does alone needs the other one for nothing.
	d.Heal("near")
	d.State("near", "healed")
	if !r.ping(a, b) {
		t.Error("a does not reach b, healed while the other switch is away")
	}
	d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "near", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}, nil)
	began["near"] = *d.State("near", "in_force").InForce
	if r.ping(a, b) {
		t.Error("a reaches b, cut off while the other switch is away")
	}

	r.connect(d.OpenFlow)
	d.Healthy()
	leaked := map[string]uint64{}
	for name, at := range began {
		p := d.State(name, "in_force")
		if !p.InForce.Equal(at) || p.Reason != "" || !p.LeakKnown {
			t.Errorf("proved again: %+v", p)
		}
		leaked[name] = p.Leaked
	}
	harness.Until(t, time.Minute, "the rest passes again", func() error {
		if !r.ping(b, c) || !r.ping(b, e) {
			return fmt.Errorf("b reaches c: %v, d: %v", r.ping(b, c), r.ping(b, e))
		}
		return nil
	})
	before := map[string]uint64{}
	for name := range began { // all that leaked has been counted now
		before[name] = d.State(name, "in_force").Leaked
	}
	r.expect("cut again", cut)
	if n := r.observed(a, c); n != 0 {
		t.Errorf("%d pings of c arrived at a, which is cut off from it again", n)
	}
	for name := range began {
		d.Heal(name)
		if p := d.State(name, "healed"); p.Leaked != before[name] || !p.LeakKnown || (p.Leaked > 0) != (name != "near") || p.Leaked < leaked[name] {
			t.Errorf("%s: %d had leaked when it was in force again, %d a while later: %+v", name, leaked[name], before[name], p)
		}
	}
	r.expect("healed", func(string, string) bool { return true })
}

// TestWhatIsLostOnOneSwitchIsLostThere: another daemon becomes master of one of two
// switches. What is cut there has failed, with the reason; what the other one cuts
// stands, proved as before.
func TestWhatIsLostOnOneSwitchIsLostThere(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c", "d"})
	a, b := r.hosts[0], r.hosts[1]
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	for name, pair := range map[string][2]string{"near": {"a", "b"}, "across": {"a", "c"}, "far": {"c", "d"}} {
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{pair[0]}, {pair[1]}}}}, nil)
	}
	began := d.State("near", "in_force").InForce
	d.State("across", "in_force")
	d.State("far", "in_force")

	theirs := r.Path("theirs.yaml")
	y := "name: theirs\nhosts:\n"
	for _, h := range r.hosts[2:] {
		y += fmt.Sprintf("  - {name: %s, datapath: %q, port: %d, mac: %q, ip: %s, exec: %s}\n", h.name, dpid(h.bridge), h.port, h.mac, h.ip, h.exec)
	}
	if err := os.WriteFile(theirs, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	taker := serve(t, "--testbed", theirs, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6655")
	r.VSCtl("set-controller", "rk2", "tcp:"+d.OpenFlow, "tcp:"+taker.OpenFlow, "--", "set", "bridge", "rk2", "fail-mode=secure")

	const why = "another controller is master of the switch"
	for _, name := range []string{"across", "far"} {
		if p := d.State(name, "failed"); !strings.Contains(p.Reason, why) || !strings.Contains(p.Reason, dpid("rk2")) {
			t.Errorf("on the switch that was taken: %+v", p)
		}
	}
	if p := d.State("near", "in_force"); !p.InForce.Equal(*began) || p.Reason != "" || p.Leaked != 0 {
		t.Errorf("on the other switch: %+v", p)
	}
	if r.ping(a, b) {
		t.Error("a reaches b, whose switch nobody took")
	}
	d.Heal("near")
	if !r.ping(a, b) {
		t.Error("a does not reach b, healed")
	}
}

var echoes = regexp.MustCompile(`(?m)^IcmpInEchos\s+(\d+)`)

// observed is how many pings of one host arrive at another while it sends a few,
// whether or not an answer comes back.
func (r *rack) observed(at, from *host) int {
	r.t.Helper()
	count := func() int {
		m := echoes.FindStringSubmatch(r.in(at, "nstat", "-asz", "IcmpInEchos"))
		if m == nil {
			r.t.Fatal("nstat does not tell IcmpInEchos")
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	before := count()
	r.ping(from, at)
	return count() - before
}
