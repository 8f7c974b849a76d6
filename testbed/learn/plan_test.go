package learn

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
	"netsplit/testbed/learn/sketch"
)

func add(t *testing.T, sw *switchtest.Switch, r rule) {
	t.Helper()
	m := of13.NewFlowMod(of13.FlowAdd)
	m.Cookie, m.Priority, m.Match, m.Instructions = r.cookie, r.priority, r.match, r.do
	for _, a := range sw.Do(m) {
		t.Fatalf("%d %v %v: %v", r.priority, r.match, r.do, a)
	}
}

// frame of a type, with an IP protocol and an ICMPv6 type where it has one.
func frame(src byte, typ uint16, proto, icmp byte) []byte {
	b := make([]byte, 80)
	b[5], b[6], b[11], b[12], b[13] = 9, 2, src, byte(typ>>8), byte(typ)
	switch typ {
	case of13.EthTypeIPv4:
		b[14], b[23] = 0x45, proto
	case of13.EthTypeIPv6:
		b[14], b[20], b[54] = 0x60, proto, icmp
	}
	return b
}

// TestCopiesLeaveTrafficAsItIs: under any rules of others, what becomes of a
// packet is the same with our rules as without; and where no rule kept packets
// from us, all ARP, ND and LLDP is heard.
func TestCopiesLeaveTrafficAsItIs(t *testing.T) {
	matches := []of13.Match{{}, {of13.InPort(1)}, {of13.InPort(2)}, {of13.EthType(of13.EthTypeARP)}, {of13.EthType(of13.EthTypeIPv4)}, {of13.EthType(of13.EthTypeIPv6)},
		{of13.EthType(of13.EthTypeIPv6), of13.IPProto(of13.ProtoICMPv6)}, {of13.InPort(1), of13.EthType(of13.EthTypeIPv6), of13.IPProto(of13.ProtoICMPv6), of13.ICMPv6Type(135)},
		{of13.EthType(of13.EthTypeIPv4), of13.IPProto(of13.ProtoTCP)}, {of13.EthSrcMasked([6]byte{2, 0, 0, 0, 0, 2}, [6]byte{0, 0, 0, 0, 0, 2})}, {of13.EthType(typeLLDP)}}
	does := [][]of13.Instruction{nil, {of13.Apply(of13.Output{Port: of13.PortNormal})}, {of13.Apply(of13.Output{Port: 3})}, {of13.GotoTable{Table: 3}},
		{of13.Apply(of13.Output{Port: 3}), of13.GotoTable{Table: 3}}, {of13.Apply(of13.ToController())}}
	var frames [][]byte
	for src := range byte(4) {
		for _, typ := range []uint16{of13.EthTypeARP, of13.EthTypeIPv4, of13.EthTypeIPv6, typeLLDP, 0x1234} {
			for _, proto := range []byte{of13.ProtoTCP, of13.ProtoICMPv6} {
				frames = append(frames, frame(src, typ, proto, 135), frame(src, typ, proto, 128))
			}
		}
	}
	observed, kept := 0, 0
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		sw := switchtest.New(switchtest.Config{Ports: []uint32{1, 2, 3}, PartSize: 100})
		for _, prio := range chance.Perm(8)[:chance.IntN(6)] {
			add(t, sw, rule{7, uint16(prio), matches[chance.IntN(len(matches))], does[chance.IntN(len(does))]})
		}
		later := of13.NewFlowMod(of13.FlowAdd)
		later.TableID, later.Instructions = 3, []of13.Instruction{of13.Apply(of13.Output{Port: 2})}
		sw.Do(later)
		send := func(sw *switchtest.Switch) (out []string, copied map[string]bool) {
			copied = map[string]bool{}
			for port := uint32(1); port <= 2; port++ {
				for i, f := range frames {
					for _, o := range sw.Inject(port, f) {
						toUs := o.Port == uint32(of13.PortController)
						if toUs && !bytes.Equal(o.Frame, f) {
							t.Errorf("seed %d: a copy differs", seed)
						}
						if toUs {
							copied[fmt.Sprint(port, i)] = true
						}
						if !toUs || o.Cookie != copies {
							out = append(out, fmt.Sprintf("%d: frame %d to %d", port, i, int32(o.Port)))
						}
					}
				}
			}
			return out, copied
		}
		before, _ := send(sw)
		theirs := sw.Flows()
		rules, deaf := plan(theirs, false, []uint32{2})
		// Of rules of one priority that fit, a switch takes any, the model the one
		// that was there first: so ours come last once, and first once.
		first := switchtest.New(switchtest.Config{Ports: []uint32{1, 2, 3}})
		for _, r := range rules {
			add(t, sw, r)
			add(t, first, r)
		}
		first.Do(later)
		for _, f := range theirs {
			if f.TableID == 0 {
				add(t, first, rule{f.Cookie, f.Priority, f.Match, f.Instructions})
			}
		}
		after, copied := send(sw)
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("seed %d: traffic changed by %v", seed, rules)
		}
		if after, _ = send(first); !reflect.DeepEqual(before, after) {
			t.Fatalf("seed %d: traffic changed by %v, which came first", seed, rules)
		}
		if kept += len(deaf); len(deaf) > 0 {
			continue
		}
		for port := 1; port <= 2; port++ {
			for i, f := range frames {
				typ := uint16(f[12])<<8 | uint16(f[13])
				nd := typ == of13.EthTypeIPv6 && f[20] == of13.ProtoICMPv6 && f[54] == 135
				sampled := port == 2 && (typ == of13.EthTypeIPv4 || typ == of13.EthTypeIPv6)
				if want := typ == of13.EthTypeARP || typ == typeLLDP || nd || sampled; want && !copied[fmt.Sprint(port, i)] {
					t.Fatalf("seed %d: frame %d of type %#x at port %d was not heard", seed, i, typ, port)
				} else if want {
					observed++
				}
			}
		}
	}
	if observed < 1000 || kept == 0 {
		t.Errorf("%d heard, %d rules kept packets from us: the test tries too little", observed, kept)
	}
}

// TestWhereNothingForwards: an empty switch forwards if it is to, and is heard
// either way; rules that cannot be copied are named.
func TestWhereNothingForwards(t *testing.T) {
	for _, normal := range []bool{true, false} {
		sw := switchtest.New(switchtest.Config{Ports: []uint32{1, 2}})
		rules, deaf := plan(nil, normal, nil)
		for _, r := range rules {
			add(t, sw, r)
		}
		var to []uint32
		for _, o := range sw.Inject(1, frame(1, of13.EthTypeARP, 0, 0)) {
			to = append(to, o.Port)
		}
		want := []uint32{uint32(of13.PortController)}
		if normal {
			want = append(want, uint32(of13.PortNormal))
		}
		if !reflect.DeepEqual(to, want) || len(deaf) > 0 {
			t.Errorf("normal %v: to %v, %v", normal, to, deaf)
		}
		// Our own LLDP goes to us and nowhere else.
		ours := frame(0, typeLLDP, 0, 0)
		copy(ours[6:], sketch.Source[:])
		if out := sw.Inject(1, ours); len(out) != 1 || out[0].Port != uint32(of13.PortController) {
			t.Errorf("our own frame went to %v", out)
		}
	}
	base := func(change func(*of13.FlowStats)) []of13.FlowStats {
		s := of13.FlowStats{Priority: 5, Instructions: []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}}
		change(&s)
		return []of13.FlowStats{s, {Priority: 6, Match: of13.Match{of13.InPort(1), of13.EthType(of13.EthTypeIPv4)}}}
	}
	for want, change := range map[string]func(*of13.FlowStats){
		"has a timeout": func(s *of13.FlowStats) { s.HardTimeout = 1e9 }, "has the highest priority": func(s *of13.FlowStats) { s.Priority = 65535 },
		"fields that are not OpenFlow's own": func(s *of13.FlowStats) {
			s.Match = of13.Match{{Class: of13.ClassNXM1, Field: 0, Value: []byte{0, 0, 0, 1}}}
		}, "": func(*of13.FlowStats) {},
	} {
		_, deaf := plan(base(change), true, nil)
		if text := strings.Join(deaf, "; "); !strings.Contains(text, want) || (want == "") != (text == "") {
			t.Errorf("want %q: %q", want, text)
		}
	}
}
