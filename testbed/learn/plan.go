package learn

import (
	"fmt"
	"slices"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/testbed/learn/sketch"
)

// Our rules by their cookies: those that copy, and the one that forwards.
var (
	owner   = flowrules.LabID("netsplit testbed learn")
	copies  = uint64(flowrules.NewCookie(flowrules.KindTrial, owner, 1))
	forward = uint64(flowrules.NewCookie(flowrules.KindTrial, owner, 2))
)

const typeLLDP uint16 = 0x88cc

// Limits on what is installed.
const (
	maxPriority = 65535
	maxCopies   = 1000
)

// rule is one rule of ours, in table 0.
type rule struct {
	cookie   uint64
	priority uint16
	match    of13.Match
	do       []of13.Instruction
}

func (r rule) key() string { return fmt.Sprintf("%d %s", r.priority, r.match.Key()) }

// wanted are the packets that tell of hosts, and LLDP.
func wanted(sample []uint32) []of13.Match {
	out := []of13.Match{{of13.EthType(of13.EthTypeARP)}, {of13.EthType(typeLLDP)}}
	for kind := uint8(133); kind <= 136; kind++ { // RFC 4861 §4.1 to §4.4
		out = append(out, of13.Match{of13.EthType(of13.EthTypeIPv6), of13.IPProto(of13.ProtoICMPv6), of13.ICMPv6Type(kind)})
	}
	for _, port := range sample {
		for _, typ := range []uint16{of13.EthTypeIPv4, of13.EthTypeIPv6} {
			out = append(out, of13.Match{of13.InPort(of13.PortNo(port)), of13.EthType(typ)})
		}
	}
	return out
}

// plan returns the rules that copy the packets we want to the controller and otherwise do
// what the rules of others do. have are the switch's rules; sample are ports of which any
// IP packet is wanted. If there are no rules of others and normal is set, one more rule has
// the switch forward as it does by itself. deaf names rules of others whose packets we do
// not see, because a copy could change what happens to them.
func plan(have []of13.FlowStats, normal bool, sample []uint32) (rules []rule, deaf []string) {
	var base []of13.FlowStats
	for _, s := range have {
		if others(s) {
			base = append(base, s)
		}
	}
	// Our own LLDP frames, from another switch: nobody else wants them.
	rules = append(rules, rule{copies, maxPriority, of13.Match{of13.EthSrc(sketch.Source), of13.EthType(typeLLDP)}, []of13.Instruction{of13.Apply(of13.ToController())}})
	if len(base) == 0 && normal {
		f := of13.FlowStats{Instructions: []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}}
		rules = append(rules, rule{forward, f.Priority, f.Match, f.Instructions})
		base = append(base, f)
	}
	taken := map[string]int{}
	add := func(priority int, over of13.FlowStats, why func(string)) {
		for _, want := range wanted(sample) {
			m, meet := merge(over.Match, want)
			if !meet {
				continue
			}
			if priority > maxPriority {
				why("has the highest priority")
				return
			}
			if i := slices.IndexFunc(base, func(o of13.FlowStats) bool { return int(o.Priority) == priority && !apart(o.Match, m) }); i >= 0 {
				if priority > 0 || !within(m, base[i].Match) {
					why(fmt.Sprintf("leaves no room below the rule \"priority %d, %s\"", priority, base[i].Match))
				}
				continue
			}
			r := rule{copies, uint16(priority), m, beside(over.Instructions)}
			if taken[r.key()]++; taken[r.key()] > 1 { // of two rules that fit, the switch chooses
				why("is not the only one of its priority")
				continue
			}
			rules = append(rules, r)
		}
	}
	say := func(name, text string) {
		if text = name + " " + text; !slices.Contains(deaf, text) {
			deaf = append(deaf, text)
		}
	}
	for _, s := range base {
		why := func(text string) { say(fmt.Sprintf("the rule \"priority %d, %s\"", s.Priority, s.Match), text) }
		switch {
		case handsUs(s.Instructions):
			continue
		case s.IdleTimeout > 0 || s.HardTimeout > 0:
			why("has a timeout")
		case foreign(s.Match):
			why("matches fields that are not OpenFlow's own")
		case len(rules) > maxCopies:
			why("is one of too many")
		default:
			add(int(s.Priority)+1, s, why)
		}
	}
	// Packets that match no rule are dropped, as by a rule below priority 0.
	add(0, of13.FlowStats{}, func(text string) { say("that packets which no rule fits are dropped", text) })
	return slices.DeleteFunc(rules, func(r rule) bool { return taken[r.key()] > 1 }), deaf
}

// others says whether a rule of table 0 is somebody else's.
func others(s of13.FlowStats) bool {
	return s.TableID == 0 && s.Cookie != copies && s.Cookie != forward
}

// beside does what the instructions do, and hands the packet to us.
func beside(do []of13.Instruction) []of13.Instruction {
	out := slices.Clone(do)
	for i, in := range out {
		if a, is := in.(of13.ApplyActions); is {
			out[i] = of13.Apply(append([]of13.Action{of13.ToController()}, a.Actions...)...)
			return out
		}
	}
	return append(out, of13.Apply(of13.ToController()))
}

// handsUs says whether a rule hands us its packets already.
func handsUs(do []of13.Instruction) bool {
	for _, in := range do {
		if a, is := in.(of13.ApplyActions); is && slices.ContainsFunc(a.Actions, func(x of13.Action) bool {
			o, is := x.(of13.Output)
			return is && o.Port == of13.PortController
		}) {
			return true
		}
	}
	return false
}

// foreign says whether a match has fields that are not OpenFlow's own. Their prerequisites
// are not known here.
func foreign(m of13.Match) bool {
	return slices.ContainsFunc(m, func(o of13.OXM) bool { return o.Class != of13.ClassBasic })
}

// merge is the match of the packets that both fit; want has no masks. false:
// there are none.
func merge(rule, want of13.Match) (of13.Match, bool) {
	if apart(rule, want) {
		return nil, false
	}
	out := slices.Clone(want)
	for _, o := range rule {
		if _, has := want.Get(o.Class, o.Field); !has {
			out = append(out, o)
		}
	}
	out = out.Normalize()
	// A field whose protocol is another's: no packet has both.
	return out, out.Validate() == nil
}

// apart says whether a field tells that no packet fits both.
func apart(a, b of13.Match) bool {
	for _, x := range a {
		y, both := b.Get(x.Class, x.Field)
		if !both || len(x.Value) != len(y.Value) || x.Class != of13.ClassBasic {
			continue
		}
		for i := range x.Value {
			if (x.Value[i]^y.Value[i])&bits(x, i)&bits(y, i) != 0 {
				return true
			}
		}
	}
	return false
}

// within says whether all packets of m fit the rule too.
func within(m, rule of13.Match) bool {
	for _, r := range rule {
		o, has := m.Get(r.Class, r.Field)
		if !has {
			return false
		}
		for i := range r.Value {
			if bits(r, i)&^bits(o, i) != 0 {
				return false
			}
		}
	}
	return !apart(m, rule)
}

func bits(o of13.OXM, i int) byte {
	if !o.HasMask {
		return 0xff
	}
	return o.Mask[i]
}
