package testbed

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestRulesOfOthersAreLeftAlone: others have rules on the bridge, and traffic by
// them. Where theirs are not in the way, a cut and its heal leave them as they
// were, with their traffic; where they are, the daemon leaves the switch alone,
// names the rule, and takes the switch when the rule is gone.
func TestRulesOfOthersAreLeftAlone(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b", "x", "y"})
	x, y := r.hosts[2], r.hosts[3]
	all := r.hosts
	r.hosts = all[:2] // x and y are somebody else's
	r.write("")
	defer func() { r.hosts = all }()
	r.connect("127.0.0.1:6653")
	for _, rule := range []string{"table=0,priority=300,in_port=13,actions=output:14", "table=0,priority=9,in_port=14,actions=goto_table:9",
		"table=9,priority=1,actions=output:13", "table=0,priority=1000,in_port=13,tcp,tp_dst=23,actions=drop"} {
		r.OFCtl("rk1", "add-flow", rule)
	}
	before := r.foreign("rk1")
	if !r.ping(x, y) {
		t.Fatal("the others do not reach one another to begin with")
	}
	const inTheWay = "table=0,priority=700,in_port=11,actions=output:12"
	r.OFCtl("rk1", "add-flow", inTheWay)

	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	harness.Until(t, time.Minute, "the daemon names the rule", func() error {
		_, b := d.try("GET", "/healthz", nil)
		if s := string(b); !strings.Contains(s, "priority=700") || !strings.Contains(s, "past netsplit's rules") {
			return fmt.Errorf("%s", s)
		}
		return nil
	})
	if n := r.ours("rk1"); n != 0 {
		t.Errorf("%d rules of ours on a switch that was refused", n)
	}
	cut := wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}
	if status, b := d.try("POST", "/v1/partitions", cut); status != 503 || !strings.Contains(string(b), "priority=700") {
		t.Errorf("a cut on a switch that was refused: %d %s", status, b)
	}
	harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", "unix:"+r.Path("rk1.mgmt"), "table=0,priority=700,in_port=11")
	d.Healthy()

	// Steady traffic of the others, all the while.
	pings := harness.StartCommand(t, exec.Command("ip", "netns", "exec", x.netns(), "ping", "-n", "-q", "-i", "0.1", "-c", "100", "-W", "1", y.ip))
	cut.Name = "two"
	d.Call("POST", "/v1/partitions", cut, nil)
	d.State("two", "in_force")
	if r.ping(all[0], all[1]) {
		t.Error("a reaches b through the cut")
	}
	if after := r.foreign("rk1"); after != before {
		t.Errorf("rules of others before:\n%s\nduring:\n%s", before, after)
	}
	d.Heal("two")
	if !r.ping(all[0], all[1]) {
		t.Error("a does not reach b after the heal")
	}
	if res := pings.Wait(t, time.Minute); !strings.Contains(res.Stdout, " 0% packet loss") {
		t.Errorf("traffic of others: %s", res)
	}
	d.Signal(t, syscall.SIGTERM)
	d.Wait(t, time.Minute)
	if after := r.foreign("rk1"); after != before || r.ours("rk1") != 0 || !r.ping(x, y) {
		t.Errorf("when the daemon is gone, %d rules of ours; rules of others before:\n%s\nafter:\n%s", r.ours("rk1"), before, after)
	}
}

// TestARuleThatComesLater goes round what is cut, or is to be: no packet of the proof
// meets the first one, the second one takes some of them. The partition is not in force
// while it is there, and names it.
func TestARuleThatComesLater(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"a", "b"})
	for i, h := range r.hosts { // what is cut of ARP hinders nobody
		o := r.hosts[1-i]
		r.in(h, "ip", "neigh", "replace", o.ip, "lladdr", o.mac, "dev", "eth0", "nud", "permanent")
	}
	r.connect("127.0.0.1:6653")
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	d.Healthy()
	behind := "table=2,priority=201,dl_dst=" + r.hosts[1].mac // what it takes has gone by all that cuts
	r.OFCtl("rk1", "add-flow", behind+",actions=output:"+strconv.Itoa(r.hosts[1].port))
	for _, what := range []string{"icmp", "ip"} {
		add := func() { r.OFCtl("rk1", "add-flow", "table=0,priority=60000,"+what+",actions=NORMAL") }
		remove := func() {
			harness.Output(t, "ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", "unix:"+r.Path("rk1.mgmt"), "table=0,priority=60000,"+what)
		}
		named := func(when string) {
			t.Helper()
			harness.Until(t, time.Minute, "the partition names the rule that came "+when, func() error {
				_, b := d.try("GET", "/v1/partitions/"+what, nil)
				if s := string(b); !strings.Contains(s, `"requested"`) || !strings.Contains(s, "priority=60000") || strings.Contains(s, "left as it is") {
					return errors.New(s)
				}
				return nil
			})
			if !r.ping(r.hosts[0], r.hosts[1]) {
				t.Errorf("%s, %s: the rule lets nothing pass: this shows nothing", what, when)
			}
		}
		add()
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: what, Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}, nil)
		named("before it")
		remove()
		d.State(what, "in_force")
		if r.ping(r.hosts[0], r.hosts[1]) {
			t.Errorf("%s: a reaches b through the cut", what)
		}
		add()
		named("while it stood")
		remove()
		d.State(what, "in_force")
		d.Heal(what)
	}
}

// TestASwitchThatIsLeftAloneHindersNoOther: what another switch does alone is cut and
// healed beside one where rules of others are in the way.
func TestASwitchThatIsLeftAloneHindersNoOther(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c", "d"})
	r.connect("127.0.0.1:6653")
	r.OFCtl("rk2", "add-flow", "table=0,priority=700,in_port=11,actions=output:12")
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	harness.Until(t, time.Minute, "the daemon names the rule, and has the other switch", func() error {
		_, b := d.try("GET", "/healthz", nil)
		if s := string(b); !strings.Contains(s, "priority=700") || r.ours("rk1") == 0 {
			return fmt.Errorf("%d rules on rk1: %s", r.ours("rk1"), s)
		}
		return nil
	})
	far := wire.PartitionSpec{Name: "far", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"c"}, {"d"}}}}
	if status, b := d.try("POST", "/v1/partitions", far); status != 503 || !strings.Contains(string(b), "priority=700") {
		t.Errorf("a cut on the switch that is left alone: %d %s", status, b)
	}
	near := wire.PartitionSpec{Name: "near", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}
	d.Call("POST", "/v1/partitions", near, nil)
	d.State("near", "in_force")
	if r.ping(r.hosts[0], r.hosts[1]) {
		t.Error("a reaches b through the cut")
	}
	d.Heal("near")
	if !r.ping(r.hosts[0], r.hosts[1]) || r.ours("rk2") != 0 {
		t.Errorf("a does not reach b after the heal, or %d rules of ours are on rk2", r.ours("rk2"))
	}
}
