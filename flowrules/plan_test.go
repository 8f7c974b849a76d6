package flowrules_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/controller/of13"
	"netsplit/controller/switchtest"
	"netsplit/flowrules"
	"netsplit/model"
)

const (
	mirrorPort = 99
	gatePort   = 88
)

// world is a random input and what follows from it.
type world struct {
	in                       flowrules.Input
	cut, behind, gate, mirro map[[2]int]bool
}

func randomHosts(r *rand.Rand) []flowrules.Host {
	n := 2 + r.IntN(4)
	var out []flowrules.Host
	for i, p := range r.Perm(20)[:n] {
		out = append(out, flowrules.Host{Name: model.NodeID(fmt.Sprintf("h%d", i)), Port: uint32(p + 1),
			MAC: flowrules.MAC{2, 0, 0, 0, byte(r.IntN(256)), byte(i)}, IP: netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(256)), byte(i)})})
	}
	return out
}

func randomPartition(r *rand.Rand, names []model.NodeID) model.Partition {
	shape := []model.Shape{model.Complete, model.Partial, model.Simplex}[r.IntN(3)]
	groups := 2
	if shape == model.Complete && len(names) > 2 {
		groups += r.IntN(2)
	}
	out := make([][]model.NodeID, groups)
	for i, k := range r.Perm(len(names)) {
		g := i
		if i >= groups {
			if shape != model.Complete && r.IntN(2) == 0 {
				continue // in no group: stays connected
			}
			g = r.IntN(groups)
		}
		out[g] = append(out[g], names[k])
	}
	return model.Partition{Shape: shape, Effect: model.Drop, Groups: out}
}

// randomWorld draws partitions and taps over the hosts.
func randomWorld(r *rand.Rand, hosts []flowrules.Host) world {
	w := world{in: flowrules.Input{Lab: 7, Hosts: hosts, MirrorPort: mirrorPort, HardTimeout: 5 * time.Second},
		cut: map[[2]int]bool{}, behind: map[[2]int]bool{}, gate: map[[2]int]bool{}, mirro: map[[2]int]bool{}}
	if r.IntN(2) == 0 {
		w.in.GatePort, w.in.ByPort = gatePort, r.IntN(2) == 0
	}
	var names []model.NodeID
	at := map[model.NodeID]int{}
	for i, h := range hosts {
		names = append(names, h.Name)
		at[h.Name] = i
	}
	for a := range hosts {
		for b := a + 1; b < len(hosts); b++ {
			p := flowrules.Pair{A: names[a], B: names[b]}
			switch r.IntN(4) {
			case 0:
				w.in.Gate = append(w.in.Gate, p)
				w.gate[[2]int{a, b}], w.gate[[2]int{b, a}] = true, true
			case 1:
				w.in.Mirror = append(w.in.Mirror, p)
				w.mirro[[2]int{a, b}], w.mirro[[2]int{b, a}] = true, true
			case 2: // both: the gate wins
				w.in.Gate, w.in.Mirror = append(w.in.Gate, p), append(w.in.Mirror, p)
				w.gate[[2]int{a, b}], w.gate[[2]int{b, a}] = true, true
			}
		}
	}
	for id := range r.IntN(3) {
		p := flowrules.InForce{ID: uint32(id + 1), Partition: randomPartition(r, names), Behind: r.IntN(2) == 0}
		w.in.Partitions = append(w.in.Partitions, p)
		for _, l := range p.Partition.Links() {
			k := [2]int{at[l.Src], at[l.Dst]}
			if p.Behind && w.gate[k] {
				w.behind[k] = true
			} else {
				w.cut[k] = true
			}
		}
	}
	return w
}

func (w world) plan(t *testing.T) flowrules.Plan {
	t.Helper()
	p, err := flowrules.Compile(w.in)
	if err != nil {
		t.Fatalf("compile %+v: %v", w.in, err)
	}
	return p
}

// closed says that nothing may get from a to b without the controller.
func (w world) closed(a, b int) bool {
	k := [2]int{a, b}
	return w.cut[k] || w.gate[k]
}

// kinds of frames; "other" has an Ethernet type nobody knows, "multicast" and
// "gratuitous" go to a group address; "tagged …" have a VLAN tag of their own.
var kinds = []string{"tcp", "udp", "icmp", "arp reply", "other", "arp request", "gratuitous", "multicast",
	"tagged tcp", "tagged arp request", "tagged multicast"}

func frame(kind string, src, dst flowrules.Host) []byte {
	if of, ok := strings.CutPrefix(kind, "tagged "); ok {
		return tag(42, frame(of, src, dst))
	}
	eth := func(to flowrules.MAC, typ uint16, body ...byte) []byte {
		f := append(append([]byte{}, to[:]...), src.MAC[:]...)
		return append(binary.BigEndian.AppendUint16(f, typ), body...)
	}
	ip := func(to flowrules.MAC, proto byte, dst netip.Addr) []byte {
		b := append([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, proto, 0, 0}, src.IP.AsSlice()...)
		return eth(to, 0x0800, append(append(b, dst.AsSlice()...), 1, 2, 3, 4, 0, 8, 0, 0)...)
	}
	arp := func(to flowrules.MAC, op byte, target netip.Addr) []byte {
		b := append(append([]byte{0, 1, 8, 0, 6, 4, 0, op}, src.MAC[:]...), src.IP.AsSlice()...)
		return eth(to, 0x0806, append(append(b, 0, 0, 0, 0, 0, 0), target.AsSlice()...)...)
	}
	all := flowrules.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	switch kind {
	case "tcp":
		return ip(dst.MAC, 6, dst.IP)
	case "udp":
		return ip(dst.MAC, 17, dst.IP)
	case "icmp":
		return ip(dst.MAC, 1, dst.IP)
	case "arp reply":
		return arp(dst.MAC, 2, dst.IP)
	case "arp request":
		return arp(all, 1, dst.IP)
	case "gratuitous":
		return arp(all, 1, src.IP)
	case "multicast":
		return ip(flowrules.MAC{1, 0, 0x5e, 0, 0, 1}, 17, netip.AddrFrom4([4]byte{224, 0, 0, 1}))
	}
	return eth(dst.MAC, 0x1234, 1, 2, 3)
}

// tag puts a VLAN tag on top of a frame.
func tag(vid uint16, f []byte) []byte {
	out := binary.BigEndian.AppendUint16(slices.Clone(f[:12]), 0x8100)
	return append(binary.BigEndian.AppendUint16(out, vid), f[12:]...)
}

// oracle says where a frame must leave, as sorted port numbers; the controller
// is port 0.
func (w world) oracle(kind string, a, b int) []uint32 {
	kind = strings.TrimPrefix(kind, "tagged ")
	hosts, k := w.in.Hosts, [2]int{a, b}
	var flood []uint32
	for i, h := range hosts {
		if i != a && !w.cut[[2]int{a, i}] && !w.behind[[2]int{a, i}] {
			flood = append(flood, h.Port)
		}
	}
	var out []uint32
	switch kind {
	case "gratuitous", "multicast":
		out = flood
	default:
		switch {
		case w.cut[k]:
			return nil
		case w.gate[k]:
			if w.in.ByPort {
				return []uint32{gatePort}
			}
			return []uint32{0}
		case kind == "arp request":
			out = flood
		default:
			out = []uint32{hosts[b].Port}
		}
		if w.mirro[k] {
			out = append(out, mirrorPort)
		}
	}
	slices.Sort(out)
	return out
}

func newSwitch(hosts []flowrules.Host) *switchtest.Switch {
	ports := []uint32{mirrorPort, gatePort}
	for _, h := range hosts {
		ports = append(ports, h.Port)
	}
	return switchtest.New(switchtest.Config{Ports: ports, Now: func() time.Time { return time.Unix(0, 0) }})
}

func do(t *testing.T, sw *switchtest.Switch, m of13.Message) {
	t.Helper()
	for _, a := range sw.Do(m) {
		t.Fatalf("the switch answers %v to %v", a, m)
	}
}

// turn brings the switch to the plan by a diff; between is called after each
// flow-mod.
func turn(t *testing.T, sw *switchtest.Switch, p flowrules.Plan, times int, between func()) flowrules.Delta {
	t.Helper()
	d := flowrules.Diff(sw.Flows(), p)
	for range times {
		for _, s := range d.Steps {
			for _, m := range s.Mods {
				do(t, sw, m)
				if between != nil {
					between()
				}
			}
		}
	}
	if again := flowrules.Diff(sw.Flows(), p); !again.Empty() {
		t.Fatalf("diff of what was just installed is not empty: %+v", again)
	}
	return d
}

func ports(out []switchtest.Output) []uint32 {
	var p []uint32
	for _, o := range out {
		if o.Port == uint32(of13.PortController) {
			if c := flowrules.Cookie(o.Cookie); c.Kind() != flowrules.KindGate || !c.Ours(7) {
				p = append(p, 12345678) // to the controller by a wrong rule
			}
			o.Port = 0
		}
		p = append(p, o.Port)
	}
	slices.Sort(p)
	return p
}

func (w world) check(t *testing.T, sw *switchtest.Switch) {
	t.Helper()
	for a, src := range w.in.Hosts {
		for b, dst := range w.in.Hosts {
			if a == b {
				continue
			}
			for _, k := range kinds {
				f := frame(k, src, dst)
				out := sw.Inject(src.Port, f)
				got, want := ports(out), w.oracle(k, a, b)
				if !slices.Equal(got, want) {
					t.Fatalf("%s %s>%s leaves by %v, want %v\ninput %+v", k, src.Name, dst.Name, got, want, w.in)
				}
				for _, o := range out {
					left := f
					if o.Port == gatePort {
						left = tag(uint16(src.Port), f)
					}
					if !slices.Equal(o.Frame, left) {
						t.Fatalf("%s %s>%s leaves by %d as\n%x, came as\n%x", k, src.Name, dst.Name, o.Port, o.Frame, f)
					}
				}
			}
		}
	}
}

// TestWhatPassesIsWhatThePartitionSays is the matrix: random hosts, partitions
// and taps, every pair, every kind of frame; reached from an empty switch, from
// the rules of another random input, and with every change made twice.
func TestWhatPassesIsWhatThePartitionSays(t *testing.T) {
	for seed := range uint64(300) {
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
					for _, k := range []string{"tcp", "arp request"} {
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

// normal lists the rules of a switch, sorted, without counters.
func normal(sw *switchtest.Switch) []string {
	var out []string
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
		sw := switchtest.New(switchtest.Config{Ports: ports, Now: func() time.Time { return now }})
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
	w.in.Partitions = []flowrules.InForce{{ID: 9, Partition: model.Partition{Shape: model.Partial, Effect: model.Drop,
		Groups: [][]model.NodeID{{hosts[0].Name}, {hosts[1].Name}}}}}
	plan := w.plan(t)
	now := time.Unix(0, 0)
	sw := switchtest.New(switchtest.Config{Now: func() time.Time { return now }})
	turn(t, sw, plan, 1, nil)
	sw.Inject(hosts[0].Port, frame("tcp", hosts[0], hosts[1]))
	for range 5 {
		now = now.Add(4 * time.Second)
		for _, m := range plan.Renew() {
			do(t, sw, m)
		}
	}
	if d := flowrules.Diff(sw.Flows(), plan); !d.Empty() {
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
	w.in.Partitions = []flowrules.InForce{{ID: 1, Partition: model.Partition{Shape: model.Partial, Effect: model.Drop,
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
	d := flowrules.Diff(sw.Flows(), plan)
	if len(d.Conflicts) != 3 || len(d.Steps) != 0 {
		t.Fatalf("%d conflicts, %d steps, want 3 and none: %v", len(d.Conflicts), len(d.Steps), d)
	}
	if c := d.Conflicts[0]; len(c.Defeats) != len(hosts) || c.InPlace {
		t.Errorf("the rule in table 0 defeats %d, want %d: %v", len(c.Defeats), len(hosts), c)
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
		{"ids start at 1", func(in *flowrules.Input) { in.Partitions = []flowrules.InForce{{}} }},
		{"unknown shape", func(in *flowrules.Input) { in.Partitions = []flowrules.InForce{{ID: 1}} }},
	} {
		in := good()
		c.spoil(&in)
		if _, err := flowrules.Compile(in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
	}
}
