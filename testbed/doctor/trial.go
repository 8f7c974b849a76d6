package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// nobody sends: a locally administered address that is given to no host.
var nobody = flowrules.MAC{0x02, 0x6e, 0x73, 0xd0, 0xc7, 0x01}

var every = flowrules.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// trialLife is the hard timeout of trial rules, should nobody remove them.
const trialLife = 10

// trial is one ability with the rules that it needs.
type trial struct {
	name    string
	means   string
	affects []model.Ability
	change  func(*flowrules.Input)
}

var opening = model.Traffic{Proto: "tcp", Opening: true}

// list names what is tried, the simplest first: a rule that is refused is held
// against the first trial that needs it.
func (p *patient) list() []trial {
	gate := uint32(0)
	for _, g := range p.Testbed.Gates {
		if g.Datapath == p.sw.ID() {
			gate = g.Port.Number
		}
	}
	cut := func(only ...model.Traffic) func(*flowrules.Input) {
		return func(in *flowrules.Input) {
			in.Partitions = []flowrules.Desired{{ID: 1, Partition: model.Partition{Shape: model.Complete, Effect: model.Drop,
				Groups: [][]model.NodeID{{"trial1"}, {"trial2"}}, Only: only}}}
		}
	}
	pair := []flowrules.Pair{{A: "trial1", B: "trial2"}}
	out := []trial{
		{"rules of forwarding", "hosts cannot be reached through it: this switch cannot be used as it is set up; its manual says what its tables can match and do", everything, func(*flowrules.Input) {}},
		{"rules of cuts", "no cut is possible: put the hosts on another switch", []model.Ability{model.AbilityCut, model.AbilityPacketIn, model.AbilityPort}, cut()},
		{"rules of the gate, by packet-in", "packets cannot be held by packet-in: give the switch a gate port (gates in the testbed file)", []model.Ability{model.AbilityPacketIn}, func(in *flowrules.Input) { in.Gate = pair }},
		{"rules of cuts of some traffic", "--only is refused there: cut whole hosts", []model.Ability{model.AbilityOnly},
			cut(model.Traffic{Proto: "tcp", Port: 7}, model.Traffic{Proto: "udp", Port: 7}, model.Traffic{Proto: "icmp"}, model.Traffic{Proto: "arp"})},
		{"rules of cuts by who opens connections", "--only tcp-opening is refused there, because the switch cannot match TCP flags (an extension): cut whole hosts, or a port", []model.Ability{model.AbilityOpening}, cut(opening)},
	}
	if gate != 0 {
		out = append(out, trial{"rules of the gate, by port", "the gate port cannot be used: leave it out of the testbed file, to gate by packet-in", []model.Ability{model.AbilityPort},
			func(in *flowrules.Input) { in.Gate, in.GatePort, in.ByPort = pair, gate, true }})
	}
	for _, m := range p.Testbed.Mirrors {
		if m.Datapath == p.sw.ID() && m.Port.Number != 0 {
			out = append(out, trial{"rules of the mirror", "clean runs use the gate: leave the mirror port out of the testbed file", []model.Ability{model.AbilityMirror},
				func(in *flowrules.Input) { in.Mirror, in.MirrorPort = pair, m.Port.Number }})
		}
	}
	return out
}

// trials installs the rules of every kind and looks at what became of them.
func (p *patient) trials(ctx context.Context) {
	defer p.clean()
	tried := map[string]bool{}
	for _, t := range p.list() {
		rules, err := p.rules(t)
		if err != nil {
			p.add(model.CheckFail, t.name, err.Error(), t.means, t.affects...)
			continue
		}
		rules = slices.DeleteFunc(rules, func(r flowrules.Rule) bool {
			had := tried[r.Key()]
			tried[r.Key()] = true
			return had
		})
		if err := p.try(ctx, rules); err != nil {
			means := t.means
			if full(err) {
				means = "its tables are too small for that, or others fill them: make room, or put the hosts on another switch"
			}
			p.add(model.CheckFail, t.name, err.Error(), means, t.affects...)
			continue
		}
		p.add(model.CheckOK, t.name, fmt.Sprintf("%d tried, all installed as requested", len(rules)), "")
	}
}

func (p *patient) rules(t trial) ([]flowrules.Rule, error) {
	in := flowrules.Input{Lab: flowrules.LabID(p.Testbed.Name), HardTimeout: trialLife * time.Second}
	taken := map[uint32]bool{}
	for _, g := range p.Testbed.Gates {
		taken[g.Port.Number] = taken[g.Port.Number] || g.Datapath == p.sw.ID()
	}
	for _, m := range p.Testbed.Mirrors {
		taken[m.Port.Number] = taken[m.Port.Number] || m.Datapath == p.sw.ID()
	}
	for n := uint32(1); len(in.Hosts) < 2; n++ {
		port := n
		if all := p.input().Hosts; int(n) <= len(all) && all[n-1].Via == 0 {
			port = all[n-1].Port
		}
		if taken[port] {
			continue
		}
		taken[port] = true
		i := byte(len(in.Hosts) + 1)
		in.Hosts = append(in.Hosts, flowrules.Host{Name: model.NodeID(fmt.Sprintf("trial%d", i)), Port: port,
			MAC: flowrules.MAC{0x02, 0x6e, 0x73, 0xd0, 0xc7, 0x10 + i}, IP: netip.AddrFrom4([4]byte{192, 0, 2, i})})
	}
	t.change(&in)
	plan, err := flowrules.Compile(in)
	if err != nil {
		return nil, err
	}
	for i := range plan.Rules {
		plan.Rules[i] = harmless(plan.Rules[i], in.Lab)
	}
	return plan.Rules, nil
}

// harmless makes a rule one that no packet fits and that goes by itself.
func harmless(r flowrules.Rule, lab uint16) flowrules.Rule {
	r.Match.EthSrc, r.Match.EthSrcMask = nobody, every
	r.Cookie = flowrules.NewCookie(flowrules.KindTrial, lab, 0)
	r.HardTimeout = trialLife
	return r
}

func (p *patient) try(ctx context.Context, rules []flowrules.Rule) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	var mods []of13.Message
	of := map[of13.Message]flowrules.Rule{}
	for _, r := range rules {
		m := r.Add()
		mods, of[m] = append(mods, m), r
	}
	if err := p.sw.Apply(ctx, mods...); err != nil {
		var e *controller.SwitchError
		if errors.As(err, &e) {
			if r, ok := of[e.Sent]; ok {
				return fmt.Errorf("refused \"%s\": %w", r, said{err})
			}
		}
		return err
	}
	have, err := p.sw.DumpFlows(ctx, uint64(flowrules.NewCookie(flowrules.KindTrial, flowrules.LabID(p.Testbed.Name), 0)), flowrules.MaskKind)
	if err != nil {
		return fmt.Errorf("the rules cannot be read back: %w", err)
	}
	held := map[string]of13.FlowStats{}
	for _, s := range have {
		held[flowrules.KeyOf(s)] = s
	}
	for _, r := range rules {
		s, has := held[r.Key()]
		switch {
		case !has:
			return fmt.Errorf("took \"%s\" without a word, but does not have it", r)
		case !of13.EqualInstructions(s.Instructions, r.Stats().Instructions) || s.HardTimeout != r.Stats().HardTimeout:
			return fmt.Errorf("made something else of \"%s\": %v, for %v", r, s.Instructions, s.HardTimeout)
		}
	}
	return nil
}

func (p *patient) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), p.Limit)
	defer cancel()
	del := of13.NewFlowMod(of13.FlowDelete)
	del.TableID, del.Cookie, del.CookieMask = of13.TableAll, uint64(flowrules.NewCookie(flowrules.KindTrial, flowrules.LabID(p.Testbed.Name), 0)), flowrules.MaskKind
	if err := p.sw.Apply(ctx, del); err != nil {
		p.add(model.CheckWarn, "trial rules", "not removed: "+reason(err), fmt.Sprintf("they match no packets and expire within %d s", trialLife))
	}
}
