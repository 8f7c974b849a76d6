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

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

const (
	mirrorPort = 99
	gatePort   = 88
	topMeter   = 100
)

// world is a random input and what follows from it.
type world struct {
	in                       flowrules.Input
	cut, behind, gate, mirro map[[2]int]bool
	// some is the traffic cut of a pair, someBehind that cut behind the gate.
	some, someBehind map[[2]int][]model.Traffic
	resets           map[[2]int][]model.Traffic // TCP that the controller answers
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

// randomPartition draws a resolved one, of any shape.
func randomPartition(r *rand.Rand, names []model.NodeID) model.Partition {
	var shapes []model.Shape
	for _, s := range model.Shapes() {
		if !(s == model.Ring && len(names) < 4 || s == model.Bridge && len(names) < 3) {
			shapes = append(shapes, s)
		}
	}
	shape := shapes[r.IntN(len(shapes))]
	groups, places := 2, true // every host
	switch shape {
	case model.Complete:
		groups += min(r.IntN(2), len(names)-2)
	case model.Partial, model.Simplex:
		places = false
	case model.Split:
		groups, places = groups+min(r.IntN(2), len(names)-2), false
	case model.Bridge:
		groups = 3
	case model.Ring:
		groups = 1
	}
	out := make([][]model.NodeID, groups)
	for i, k := range r.Perm(len(names)) {
		g := i
		if i >= groups {
			if !places && r.IntN(2) == 0 {
				continue // in no group: stays connected
			}
			g = r.IntN(groups)
		}
		out[g] = append(out[g], names[k])
	}
	p := model.Partition{Shape: shape, Effect: []model.Effect{model.Drop, model.Reset}[r.IntN(2)], Groups: out}
	if r.IntN(2) == 0 {
		for range 1 + r.IntN(2) {
			p.Only = append(p.Only, traffic[r.IntN(len(traffic))])
		}
		if !slices.ContainsFunc(p.Only, func(t model.Traffic) bool { return t.Proto == "tcp" }) {
			p.Effect = model.Drop // nothing there to reset
		}
	}
	return p
}

// traffic is what partitions are narrowed to.
var traffic = []model.Traffic{{Proto: "tcp"}, {Proto: "tcp", Port: 7000}, {Proto: "tcp", Port: 7000, Opening: true}, {Proto: "tcp", Opening: true},
	{Proto: "udp"}, {Proto: "udp", Port: 53}, {Proto: "udp", Port: 67}, {Proto: "udp", Port: 68}, {Proto: "icmp"}, {Proto: "arp"}}

// randomWorld draws partitions and taps over the hosts.
func randomWorld(r *rand.Rand, hosts []flowrules.Host) world {
	w := world{in: flowrules.Input{Lab: 7, Hosts: hosts, MirrorPort: mirrorPort, HardTimeout: 5 * time.Second},
		cut: map[[2]int]bool{}, behind: map[[2]int]bool{}, gate: map[[2]int]bool{}, mirro: map[[2]int]bool{},
		some: map[[2]int][]model.Traffic{}, someBehind: map[[2]int][]model.Traffic{}, resets: map[[2]int][]model.Traffic{}}
	if r.IntN(3) > 0 {
		w.in.TopMeter = topMeter
	}
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
	for id := range r.IntN(4) {
		of := names
		if len(names) > 2 && r.IntN(3) == 0 { // a target that does not use them all
			of = names[1:]
		}
		p := flowrules.Desired{ID: uint32(id + 1), Partition: randomPartition(r, of), Behind: r.IntN(2) == 0}
		w.in.Partitions = append(w.in.Partitions, p)
		for _, l := range p.Partition.Links() {
			k, only := [2]int{at[l.Src], at[l.Dst]}, p.Partition.Only
			if p.Partition.Effect == model.Reset && !p.Behind {
				if w.resets[k] = append(w.resets[k], only...); len(only) == 0 {
					w.resets[k] = append(w.resets[k], model.Traffic{Proto: "tcp"})
				}
			}
			switch behind := p.Behind && w.gate[k]; {
			case behind && len(only) > 0:
				w.someBehind[k] = append(w.someBehind[k], only...)
			case behind:
				w.behind[k] = true
			case len(only) > 0:
				w.some[k] = append(w.some[k], only...)
			default:
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
	"tcp to 7000", "tcp from 7000", "open 7000", "open 80", "tcp6 to 7000", "open6 7000", "udp to 53", "udp from 53", "udp6 to 53", "echo6", "who is", "dns to all", "echo to all",
	"dhcp asks all", "dhcp answers all", "dhcp asks", "neighbour advert", "router redirect", "report of groups", "report to one", "private6", "piece of udp6 to 53", "later6",
	"tagged tcp", "tagged arp request", "tagged multicast", "tagged udp to 53", "tagged dhcp asks all", "tagged report of groups", "tagged neighbour advert"}

// is says whether a frame of the kind is traffic of that sort: the plain reading
// of model.Traffic.
func is(kind string, t model.Traffic) bool {
	proto := map[string]string{"tcp": "tcp", "open": "tcp", "tcp6": "tcp", "open6": "tcp", "udp": "udp", "udp6": "udp", "multicast": "udp", "dns": "udp",
		"icmp": "icmp", "echo6": "icmp", "echo": "icmp", "arp": "arp", "gratuitous": "arp", "who": "arp",
		"dhcp": "udp", "neighbour": "arp", "router": "arp", "report": "icmp", "private6": "icmp", "piece": "udp"}[strings.Fields(strings.TrimPrefix(kind, "tagged "))[0]]
	return proto == t.Proto &&
		(t.Port == 0 || t.Port == 7000 && strings.HasSuffix(kind, "7000") || t.Port == 53 && (strings.HasSuffix(kind, "53") || kind == "dns to all") ||
			(t.Port == 67 || t.Port == 68) && strings.HasPrefix(strings.TrimPrefix(kind, "tagged "), "dhcp")) &&
		(!t.Opening || strings.HasPrefix(kind, "open"))
}

func lost(kind string, cut []model.Traffic) bool {
	return slices.ContainsFunc(cut, func(t model.Traffic) bool { return is(kind, t) })
}

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
	segment := func(src, dst uint16, flags byte) []byte {
		b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst)
		return append(b, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0)
	}
	datagram := func(src, dst uint16) []byte {
		return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst), 0, 8, 0, 0)
	}
	v4 := func(to flowrules.MAC, proto byte, body []byte) []byte {
		return append(ip(to, proto, dst.IP)[:34], body...)
	}
	v6 := func(to flowrules.MAC, proto byte, body []byte) []byte {
		b := append(append([]byte{0x60, 0, 0, 0, 0, byte(len(body)), proto, 64}, make([]byte, 32)...), body...)
		return eth(to, 0x86dd, b...)
	}
	const ack, syn = 0x10, 0x02
	switch kind {
	case "tcp to 7000":
		return v4(dst.MAC, 6, segment(40000, 7000, ack))
	case "tcp from 7000": // the answer to an opening, too, comes from there
		return v4(dst.MAC, 6, segment(7000, 40000, syn|ack))
	case "open 7000":
		return v4(dst.MAC, 6, segment(40000, 7000, syn))
	case "open 80":
		return v4(dst.MAC, 6, segment(7001, 80, syn))
	case "tcp6 to 7000":
		return v6(dst.MAC, 6, segment(40000, 7000, ack))
	case "open6 7000":
		return v6(dst.MAC, 6, segment(40000, 7000, syn))
	case "udp to 53":
		return v4(dst.MAC, 17, datagram(40000, 53))
	case "udp from 53":
		return v4(dst.MAC, 17, datagram(53, 40000))
	case "udp6 to 53":
		return v6(dst.MAC, 17, datagram(40000, 53))
	case "echo6":
		return v6(dst.MAC, 58, []byte{128, 0, 0, 0, 0, 1, 0, 1})
	case "who is": // a neighbour solicitation to the solicited-node address
		return v6(flowrules.MAC{0x33, 0x33, 0xff, 0, 0, 1}, 58, append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...))
	case "dhcp asks all":
		return v4(all, 17, datagram(68, 67))
	case "dhcp answers all":
		return v4(all, 17, datagram(67, 68))
	case "dhcp asks":
		return v4(dst.MAC, 17, datagram(68, 67))
	case "neighbour advert":
		return v6(dst.MAC, 58, append([]byte{136, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...))
	case "router redirect":
		return v6(dst.MAC, 58, append([]byte{137, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 32)...))
	case "report of groups": // RFC 3810 §5.2, behind a router alert
		return v6(flowrules.MAC{0x33, 0x33, 0, 0, 0, 0x16}, 0, []byte{58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0})
	case "report to one":
		return v6(dst.MAC, 0, []byte{58, 0, 5, 2, 0, 0, 1, 0, 131, 0, 0, 0, 0, 0, 0, 0})
	case "private6":
		return v6(dst.MAC, 58, []byte{200, 0, 0, 0, 0, 0, 0, 0})
	case "piece of udp6 to 53":
		return v6(dst.MAC, 44, append([]byte{17, 0, 0, 1, 0, 0, 0, 7}, datagram(40000, 53)...))
	case "later6": // nobody sees what it is a part of
		return v6(dst.MAC, 44, append([]byte{17, 0, 1, 0, 0, 0, 0, 7}, datagram(40000, 53)...))
	case "dns to all":
		return v4(all, 17, datagram(40000, 53))
	case "echo to all":
		return v4(all, 1, []byte{8, 0, 0, 0, 0, 1, 0, 1})
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
	var flood []uint32 // without who is behind the gate
	held, copied := false, false
	for i, h := range hosts {
		o := [2]int{a, i}
		if i == a || w.cut[o] || lost(kind, w.some[o]) {
			continue
		}
		switch {
		case w.gate[o]:
			held = true
			continue
		case w.mirro[o]:
			copied = true
		}
		flood = append(flood, h.Port)
	}
	gate := []uint32{0}
	if w.in.ByPort {
		gate[0] = gatePort
	}
	var out []uint32
	switch kind {
	case "gratuitous", "multicast", "who is", "dns to all", "echo to all", "dhcp asks all", "dhcp answers all", "report of groups":
		if out = flood; held {
			out = append(out, gate...)
		}
		if copied {
			out = append(out, mirrorPort)
		}
	default:
		switch {
		case is(kind, model.Traffic{Proto: "tcp"}) && lost(kind, w.resets[k]):
			return []uint32{0}
		case w.cut[k], lost(kind, w.some[k]):
			return nil
		case w.gate[k]:
			return gate
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
	return switchtest.New(switchtest.Config{Ports: ports, Meters: topMeter, Now: func() time.Time { return time.Unix(0, 0) }})
}

// state is what the switch holds.
func state(sw *switchtest.Switch) flowrules.State {
	return flowrules.State{Flows: sw.Flows(), Meters: sw.Meters()}
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
	d := flowrules.Diff(state(sw), p)
	for i := range times {
		for _, s := range d.Steps {
			for _, m := range s.Mods {
				if mod, is := m.(*of13.MeterMod); is && mod.Command == of13.MeterAdd && i > 0 {
					continue // the one message that does not bear repeating
				}
				do(t, sw, m)
				if between != nil {
					between()
				}
			}
		}
	}
	if again := flowrules.Diff(state(sw), p); !again.Empty() {
		t.Fatalf("diff of what was just installed is not empty: %+v", again)
	}
	return d
}

func ports(out []switchtest.Output) []uint32 {
	var p []uint32
	for _, o := range out {
		if o.Port == uint32(of13.PortController) {
			if c := flowrules.Cookie(o.Cookie); c.Kind() != flowrules.KindGate && c.Kind() != flowrules.KindDrop || !c.Ours(7) {
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
				if or := sw.Undefined(); len(or) > 0 {
					t.Fatalf("%s %s>%s is taken by one rule or the other: %v\ninput %+v", k, src.Name, dst.Name, or, w.in)
				}
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
