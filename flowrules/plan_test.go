package flowrules_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

// seeds is how many of them are tried: a quarter in make check.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 4
	}
	return n
}

// TestWhatPassesIsWhatThePartitionSays is the matrix: random hosts, partitions
// and taps, every pair, every kind of frame; reached from an empty switch, from
// the rules of another random input, and with every change made twice.
func TestWhatPassesIsWhatThePartitionSays(t *testing.T) {
	for seed := range seeds(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		hosts := randomHosts(r)
		w := randomWorld(r, hosts)
		plan := w.plan(t)

		fresh := newSwitch(hosts)
		turn(t, fresh, plan, 1, nil)
		w.check(t, fresh)

		before := randomWorld(r, hosts)
		sw := newSwitch(hosts)
		turn(t, sw, before.plan(t), 1, nil)
		turn(t, sw, plan, 1+r.IntN(2), func() {
			// What is closed before and after is closed in between.
			for a, src := range hosts {
				for b, dst := range hosts {
					if a == b || !w.closed(a, b) || !before.closed(a, b) {
						continue
					}
					for _, k := range []string{"tcp", "arp request", "multicast"} {
						for _, o := range sw.Inject(src.Port, frame(k, src, dst)) {
							if o.Port == dst.Port {
								t.Fatalf("seed %d: %s %s>%s gets through while rules change", seed, k, src.Name, dst.Name)
							}
						}
					}
				}
			}
		})
		if diff := cmp.Diff(normal(fresh), normal(sw)); diff != "" {
			t.Fatalf("seed %d: rules differ from those of an empty switch (-empty +changed):\n%s", seed, diff)
		}
		w.check(t, sw)
	}
}

// TestAPortComesAndGoes: while a host, whose port or link comes or goes, is put into
// the rules or taken out of them, nothing is open for it that is closed while it is
// there. The others are admitted all the time.
func TestAPortComesAndGoes(t *testing.T) {
	for seed := range seeds(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		hosts := randomHosts(r)
		w := randomWorld(r, hosts)
		there, gone := w.plan(t), w
		left := hosts[r.IntN(len(hosts))].Name
		gone.in.Hosts = slices.DeleteFunc(slices.Clone(hosts), func(h flowrules.Host) bool { return h.Name == left })
		gone.in.Elsewhere = []model.NodeID{left}
		sw := newSwitch(hosts)
		closed := func(when string) func() {
			return func() {
				for a, src := range hosts {
					for b, dst := range hosts {
						if a == b || !w.closed(a, b) && !w.behind[[2]int{a, b}] {
							continue
						}
						for _, k := range []string{"tcp", "arp request", "multicast"} {
							for _, o := range sw.Inject(src.Port, frame(k, src, dst)) {
								if o.Port == dst.Port {
									t.Fatalf("seed %d: %s %s>%s gets through while %s %s", seed, k, src.Name, dst.Name, left, when)
								}
							}
						}
					}
				}
			}
		}
		turn(t, sw, gone.plan(t), 1, nil)
		turn(t, sw, there, 1, closed("comes"))
		w.check(t, sw)
		turn(t, sw, gone.plan(t), 1, closed("goes"))
	}
}

// TestARuleThatUncutsIsTold: where a rule of somebody else, put beside ours, lets
// something pass of what is cut or gated, it is told as one that does.
func TestARuleThatUncutsIsTold(t *testing.T) {
	leaks := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 3))
		hosts := randomHosts(r)
		w := randomWorld(r, hosts)
		sw := newSwitch(hosts)
		turn(t, sw, w.plan(t), 1, nil)
		src, dst := hosts[r.IntN(len(hosts))], hosts[r.IntN(len(hosts))]
		match := [][]of13.OXM{{of13.InPort(of13.PortNo(src.Port))}, {of13.EthDst(dst.MAC)}, {of13.EthType(0x0806)}, nil}[r.IntN(4)]
		priorities := []uint16{40, 60, 90, 150, 205, 250, 295, 350, 405, 500}
		theirs := of13.NewFlowMod(of13.FlowAdd)
		theirs.TableID, theirs.Priority, theirs.Cookie, theirs.Match = of13.TableID(r.IntN(3)), priorities[r.IntN(len(priorities))], 0xbad, match
		theirs.Instructions = []of13.Instruction{of13.ApplyActions{Actions: []of13.Action{of13.Output{Port: of13.PortNo(dst.Port)}}}}
		do(t, sw, theirs)
		reported := slices.ContainsFunc(flowrules.InTheWay(sw.Flows(), w.in), flowrules.Foreign.Uncuts)
		for a, from := range hosts {
			for b, to := range hosts {
				if a == b {
					continue
				}
				var held []string
				if w.closed(a, b) {
					held = append(held, "tcp", "arp request", "multicast")
				}
				for _, k := range held {
					for _, o := range sw.Inject(from.Port, frame(k, from, to)) {
						if o.Port != to.Port {
							continue
						}
						if leaks++; !reported {
							t.Fatalf("seed %d: %s %s>%s gets through beside %v, which is not told", seed, k, from.Name, to.Name, sw.Flows())
						}
					}
				}
			}
		}
	}
	if leaks < 100 {
		t.Errorf("%d packets got through: this shows nothing", leaks)
	}
	for priority, uncuts := range map[uint16]bool{289: false, 290: true} { // what is cut behind the gate is cut in table 2
		f := flowrules.Foreign{Flow: of13.FlowStats{TableID: of13.TableID(flowrules.TableForward), Priority: priority}}
		if f.Uncuts() != uncuts {
			t.Errorf("in table 2 with priority %d: %v", priority, !uncuts)
		}
	}
}

// TestWhatComesBackFromTheGateGoesToOneHost: whatever is cut, gated or mirrored
// and whomever a frame is addressed to, from the gate port it leaves by the port
// that its tag names and by no other; it never goes to the gate port again.
func TestWhatComesBackFromTheGateGoesToOneHost(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 8))
		hosts := randomHosts(r)
		w := randomWorld(r, hosts)
		w.in.GatePort = gatePort
		sw := newSwitch(hosts)
		turn(t, sw, w.plan(t), 1, nil)
		at := map[uint16]flowrules.Host{}
		for _, h := range hosts {
			at[uint16(h.Port)] = h
		}
		for _, src := range hosts {
			for _, dst := range hosts {
				for _, k := range kinds {
					f := frame(k, src, dst)
					for _, vid := range []uint16{0, 1, 2, 5, 10, 15, 20, 42, mirrorPort, gatePort, 4093, flowrules.GateFence, 4095} {
						out := sw.Inject(gatePort, tag(vid, f))
						h, isHost := at[vid]
						switch {
						case vid == flowrules.GateFence:
							if len(out) != 1 || out[0].Port != gatePort || !slices.Equal(out[0].Frame, tag(vid, f)) {
								t.Fatalf("seed %d: a fence is turned back as %v", seed, out)
							}
						case isHost && (len(out) != 1 || out[0].Port != h.Port || !slices.Equal(out[0].Frame, f)):
							t.Fatalf("seed %d: %s %s>%s for port %d leaves as %v", seed, k, src.Name, dst.Name, vid, out)
						case !isHost && len(out) > 0:
							t.Fatalf("seed %d: %s %s>%s with tag %d leaves by %v", seed, k, src.Name, dst.Name, vid, ports(out))
						}
					}
					if out := sw.Inject(gatePort, f); len(out) > 0 && !strings.HasPrefix(k, "tagged") {
						t.Fatalf("seed %d: %s without a tag of the gate leaves by %v", seed, k, ports(out))
					}
				}
			}
		}
	}
}

// putMeters adds the meters of a plan, and no rule.
func putMeters(t *testing.T, sw *switchtest.Switch, p flowrules.Plan) {
	t.Helper()
	turn(t, sw, flowrules.Plan{Lab: p.Lab, Meters: p.Meters}, 1, nil)
}

// normal lists the meters and rules of a switch, sorted, without counters.
func normal(sw *switchtest.Switch) []string {
	var out []string
	for _, m := range sw.Meters() {
		out = append(out, fmt.Sprint(m))
	}
	for _, s := range sw.Flows() {
		s.Packets, s.Bytes = 0, 0
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}

// TestDiffAgainstApplyEverything compares the diff with the dumb way: delete
// all that is ours, add all of the plan. Rules of others stay both times.
func TestDiffAgainstApplyEverything(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		hosts := randomHosts(r)
		old, want := randomWorld(r, hosts).plan(t), randomWorld(r, hosts).plan(t)
		clever, dumb := newSwitch(hosts), newSwitch(hosts)
		for _, sw := range []*switchtest.Switch{clever, dumb} {
			putMeters(t, sw, old)
			for _, rule := range old.Rules {
				if rr := rand.New(rand.NewPCG(seed, uint64(len(rule.Key())))); rr.IntN(5) > 0 { // some went missing
					do(t, sw, rule.Add())
				}
			}
			foreign := of13.NewFlowMod(of13.FlowAdd)
			foreign.Cookie, foreign.Priority, foreign.TableID = 0xbad, 150, 1
			do(t, sw, foreign)
		}
		turn(t, clever, want, 1, nil)
		do(t, dumb, flowrules.RemoveAll(want.Lab))
		for _, m := range old.RemoveMeters() {
			do(t, dumb, m)
		}
		putMeters(t, dumb, want)
		for _, rule := range want.Rules {
			do(t, dumb, rule.Add())
		}
		if diff := cmp.Diff(normal(dumb), normal(clever)); diff != "" {
			t.Fatalf("seed %d (-everything +diff):\n%s", seed, diff)
		}
	}
}

func TestPlanDoesNotDependOnTheOrderOfItsInput(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := randomWorld(r, randomHosts(r))
		first := w.plan(t).String()
		in := w.in
		in.Hosts, in.Gate, in.Mirror, in.Partitions = slices.Clone(in.Hosts), slices.Clone(in.Gate), slices.Clone(in.Mirror), slices.Clone(in.Partitions)
		for _, n := range []struct {
			len  int
			swap func(i, j int)
		}{
			{len(in.Hosts), func(i, j int) { in.Hosts[i], in.Hosts[j] = in.Hosts[j], in.Hosts[i] }},
			{len(in.Gate), func(i, j int) { in.Gate[i], in.Gate[j] = in.Gate[j], in.Gate[i] }},
			{len(in.Mirror), func(i, j int) { in.Mirror[i], in.Mirror[j] = in.Mirror[j], in.Mirror[i] }},
			{len(in.Partitions), func(i, j int) { in.Partitions[i], in.Partitions[j] = in.Partitions[j], in.Partitions[i] }},
		} {
			r.Shuffle(n.len, n.swap)
		}
		second, err := flowrules.Compile(in)
		if err != nil || second.String() != first {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, first, second)
		}
	}
}

// TestDeadDaemonMeansHealedNetwork: when what expires has expired, everything
// passes.
func TestDeadDaemonMeansHealedNetwork(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		w := randomWorld(r, randomHosts(r))
		now := time.Unix(0, 0)
		ports := []uint32{mirrorPort, gatePort}
		for _, h := range w.in.Hosts {
			ports = append(ports, h.Port)
		}
		sw := switchtest.New(switchtest.Config{Ports: ports, Meters: topMeter, Now: func() time.Time { return now }})
		turn(t, sw, w.plan(t), 1, nil)
		now = now.Add(w.in.HardTimeout)
		for a, src := range w.in.Hosts {
			for b, dst := range w.in.Hosts {
				for _, k := range kinds {
					if a != b && !slices.ContainsFunc(sw.Inject(src.Port, frame(k, src, dst)), func(o switchtest.Output) bool { return o.Port == dst.Port }) {
						t.Fatalf("seed %d: %s %s>%s does not pass", seed, k, src.Name, dst.Name)
					}
				}
			}
		}
	}
}

func TestRenewKeepsRulesAliveAndCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	hosts := randomHosts(r)
	w := randomWorld(r, hosts)
	w.in.Partitions = []flowrules.Desired{{ID: 9, Partition: model.Partition{Shape: model.Partial, Effect: model.Drop,
		Groups: [][]model.NodeID{{hosts[0].Name}, {hosts[1].Name}}}}}
	plan := w.plan(t)
	now := time.Unix(0, 0)
	sw := switchtest.New(switchtest.Config{Meters: topMeter, Now: func() time.Time { return now }})
	turn(t, sw, plan, 1, nil)
	sw.Inject(hosts[0].Port, frame("tcp", hosts[0], hosts[1]))
	for range 5 {
		now = now.Add(4 * time.Second)
		for _, m := range plan.Expiring(plan.State()).Renew() {
			do(t, sw, m)
		}
	}
	if d := flowrules.Diff(state(sw), plan); !d.Empty() {
		t.Errorf("after renewals: %+v", d)
	}
	var n uint64
	for _, s := range sw.Flows() {
		if c := flowrules.Cookie(s.Cookie); c.Kind() == flowrules.KindDrop && c.Partition() == 9 {
			n += s.Packets
		}
	}
	if n != 1 {
		t.Errorf("drop rules counted %d packets, want 1", n)
	}
}

func TestForeignRulesAreReportedAndLeftAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 6))
	hosts := randomHosts(r)
	w := randomWorld(r, hosts)
	w.in.Gate, w.in.Mirror = nil, nil
	w.in.Partitions = []flowrules.Desired{{ID: 1, Partition: model.Partition{Shape: model.Partial, Effect: model.Drop,
		Groups: [][]model.NodeID{{hosts[0].Name}, {hosts[1].Name}}}}}
	plan := w.plan(t)
	sw := newSwitch(hosts)
	turn(t, sw, plan, 1, nil)
	add := func(table of13.TableID, prio uint16, m of13.Match) {
		f := of13.NewFlowMod(of13.FlowAdd)
		f.TableID, f.Priority, f.Match = table, prio, m
		f.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}
		do(t, sw, f)
	}
	var drop flowrules.Rule
	for _, rule := range plan.Rules {
		if rule.Kind == flowrules.KindDrop {
			drop = rule
		}
	}
	add(0, 250, nil)                         // defeats admission, in_port=CONTROLLER excepted
	add(1, 400, of13.Match{of13.InPort(77)}) // nobody's port
	add(1, drop.Priority, drop.Match.OXMs()) // in the place of a drop rule
	add(50, 1000, nil)                       // a table we do not use
	d := flowrules.Diff(state(sw), plan)
	if len(d.Conflicts) != 3 || len(d.Steps) != 0 {
		t.Fatalf("%d conflicts, %d steps, want 3 and none: %v", len(d.Conflicts), len(d.Steps), d)
	}
	if c := d.Conflicts[0]; len(c.Defeats) != 2*len(hosts) || c.InPlace {
		t.Errorf("the rule in table 0 defeats %d, want %d: %v", len(c.Defeats), 2*len(hosts), c)
	}
	inPlace, harmless := d.Conflicts[1], d.Conflicts[2]
	if harmless.InPlace {
		inPlace, harmless = harmless, inPlace
	}
	if !inPlace.InPlace || inPlace.Defeats[0].Key() != drop.Key() || len(harmless.Defeats) != 1 || harmless.Defeats[0].Kind != flowrules.KindDefault {
		t.Errorf("in table 1: %v and %v", inPlace, harmless)
	}
	for _, c := range d.Conflicts {
		if !strings.Contains(c.String(), "remove it") {
			t.Errorf("%q does not say what to do", c)
		}
	}
}

func TestCookies(t *testing.T) {
	c := flowrules.NewCookie(flowrules.KindDrop, 0xabcd, 0x12345678)
	if uint64(c) != 0x4e07abcd12345678 || c.Kind() != flowrules.KindDrop || c.Lab() != 0xabcd || c.Partition() != 0x12345678 {
		t.Errorf("cookie %v", c)
	}
	if !c.Ours(0xabcd) || c.Ours(0xabce) || flowrules.Cookie(0x4f07abcd12345678).Ours(0xabcd) {
		t.Error("ownership is by tag and lab")
	}
}

func TestCompileRefuses(t *testing.T) {
	good := func() flowrules.Input {
		r := rand.New(rand.NewPCG(3, 7))
		return flowrules.Input{Hosts: randomHosts(r), HardTimeout: 5 * time.Second}
	}
	for _, c := range []struct {
		says  string
		spoil func(*flowrules.Input)
	}{
		{"both on port", func(in *flowrules.Input) { in.Hosts[1].Port = in.Hosts[0].Port }},
		{"the same MAC", func(in *flowrules.Input) { in.Hosts[1].MAC = in.Hosts[0].MAC }},
		{"unicast address", func(in *flowrules.Input) { in.Hosts[1].MAC[0] = 1 }},
		{"the same address", func(in *flowrules.Input) { in.Hosts[1].IP = in.Hosts[0].IP }},
		{"IPv4", func(in *flowrules.Input) { in.Hosts[1].IP = netip.IPv6Loopback() }},
		{"called", func(in *flowrules.Input) { in.Hosts[1].Name = in.Hosts[0].Name }},
		{"ports go from 1", func(in *flowrules.Input) { in.Hosts[1].Port = 0 }},
		{"whole seconds", func(in *flowrules.Input) { in.HardTimeout = 1500 * time.Millisecond }},
		{"does not have", func(in *flowrules.Input) { in.Gate = []flowrules.Pair{{A: "h0", B: "nobody"}} }},
		{"two different", func(in *flowrules.Input) { in.Gate = []flowrules.Pair{{A: "h0", B: "h0"}} }},
		{"name a port", func(in *flowrules.Input) { in.Mirror = []flowrules.Pair{{A: "h0", B: "h1"}} }},
		{"port of its own", func(in *flowrules.Input) {
			in.Mirror, in.MirrorPort = []flowrules.Pair{{A: "h0", B: "h1"}}, in.Hosts[0].Port
		}},
		{"give the gate a port", func(in *flowrules.Input) { in.GatePort = in.Hosts[0].Port }},
		{"name a port of the switch in the testbed's gates", func(in *flowrules.Input) { in.ByPort = true }},
		{"both gate and mirror", func(in *flowrules.Input) { in.GatePort, in.MirrorPort = 50, 50 }},
		{"gate port 4294967293: ports go", func(in *flowrules.Input) { in.GatePort = 0xfffffffd }},
		{"gate by packet-in", func(in *flowrules.Input) { in.GatePort, in.Hosts[1].Port = 50, 4094 }},
		{"ids start at 1", func(in *flowrules.Input) { in.Partitions = []flowrules.Desired{{}} }},
		{"unknown shape", func(in *flowrules.Input) { in.Partitions = []flowrules.Desired{{ID: 1}} }},
	} {
		in := good()
		c.spoil(&in)
		if _, err := flowrules.Compile(in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
	}
}

// TestAHealIsFewMessages: however many hosts a partition cuts, all its rules go by
// one message for each of their kinds, and nothing else does.
func TestAHealIsFewMessages(t *testing.T) {
	var w world
	for i := range 12 {
		w.in.Hosts = append(w.in.Hosts, flowrules.Host{Name: model.NodeID(fmt.Sprintf("h%d", i)), Port: uint32(i + 1),
			MAC: flowrules.MAC{2, 0, 0, 0, 0, byte(i + 1)}, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	w.in.Lab, w.in.HardTimeout = 7, 5*time.Second
	half := func(from, to int) (g []model.NodeID) {
		for i := from; i < to; i++ {
			g = append(g, w.in.Hosts[i].Name)
		}
		return g
	}
	whole := model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{half(0, 6), half(6, 12)}}
	pair := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{half(0, 1), half(1, 2)}}
	stays := flowrules.Desired{ID: 2, Partition: pair}
	w.in.Partitions = []flowrules.Desired{{ID: 1, Partition: whole}, stays}
	sw := newSwitch(w.in.Hosts)
	turn(t, sw, w.plan(t), 1, nil)
	before := len(sw.Flows())

	w.in.Partitions = []flowrules.Desired{stays}
	for _, s := range turn(t, sw, w.plan(t), 1, nil).Steps {
		if s.Name == "heal" && len(s.Mods) > 2 {
			t.Errorf("%d messages heal it, want one for its drop rules and one for what it floods less", len(s.Mods))
		}
	}
	if gone := before - len(sw.Flows()); gone < 2*6*6*2 {
		t.Errorf("%d rules went, want at least two for each of 72 links", gone)
	}
}

// TestRulesOfAnotherTestbedAreNamedAsOurs: what netsplit itself left is not called
// somebody else's, and one command removes it.
func TestRulesOfAnotherTestbedAreNamedAsOurs(t *testing.T) {
	left := of13.FlowStats{Cookie: uint64(flowrules.NewCookie(flowrules.KindDrop, 99, 1)), Priority: 1000}
	for _, text := range []string{flowrules.Conflict{Flow: left}.String(), flowrules.Foreign{Flow: left, Host: "n1"}.String()} {
		if !strings.Contains(text, "netsplit left") || !strings.Contains(text, "del-flows BRIDGE cookie=0x4e00000000000000/0xff00000000000000") || strings.Contains(text, "somebody else") {
			t.Error(text)
		}
	}
	left.Cookie = 0x1234
	if text := (flowrules.Foreign{Flow: left, Host: "n1"}).String(); !strings.Contains(text, "somebody else") || strings.Contains(text, "netsplit left") {
		t.Error(text)
	}
}

// TestEveryProbePacketMeetsARule: of what a partition cuts of a link each probe packet meets
// a drop rule, and each drop rule is met by one; of neighbour discovery, one of its
// rules is.
func TestEveryProbePacketMeetsARule(t *testing.T) {
	hosts := randomHosts(rand.New(rand.NewPCG(1, 9)))
	l := model.Link{Src: hosts[0].Name, Dst: hosts[1].Name}
	for _, only := range [][]string{nil, {"tcp"}, {"tcp/80"}, {"tcp-opening"}, {"tcp/80-opening", "udp/53"}, {"udp"}, {"icmp"}, {"arp"}, {"icmp", "arp", "udp"}} {
		for _, effect := range []model.Effect{model.Drop, model.Reset} {
			p := model.Partition{Shape: model.Partial, Effect: effect, Groups: [][]model.NodeID{{l.Src}, {l.Dst}}}
			for _, w := range only {
				tr, err := model.ParseTraffic(w)
				if err != nil {
					t.Fatal(err)
				}
				p.Only = append(p.Only, tr)
			}
			if effect == model.Reset && p.Validate([]model.NodeID{l.Src, l.Dst}) != nil {
				continue
			}
			plan, err := flowrules.Compile(flowrules.Input{Lab: 7, Hosts: hosts, HardTimeout: time.Second, Partitions: []flowrules.Desired{{ID: 1, Partition: p}}})
			if err != nil {
				t.Fatal(err)
			}
			drops := slices.DeleteFunc(plan.Rules, func(r flowrules.Rule) bool { return r.Kind != flowrules.KindDrop || r.Link != l })
			met := map[string]bool{}
			for _, s := range p.ProbePackets() {
				i := slices.IndexFunc(drops, func(r flowrules.Rule) bool { return r.Match.Takes(s) })
				if i < 0 {
					t.Errorf("%s: %+v meets no rule", p, s)
					continue
				}
				met[drops[i].Key()] = true
			}
			for _, r := range drops {
				shadowed := r.Priority == 390 && slices.ContainsFunc(drops, func(o flowrules.Rule) bool { return o.Priority == 410 && o.Match == r.Match })
				if !met[r.Key()] && !shadowed && (r.Match.ICMPv6 == 0 || r.Match.ICMPv6 == model.ProbePacketND) {
					t.Errorf("%s: no probe packet meets %s", p, r)
				}
			}
		}
	}
}
