package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

const (
	atOnce    = 50   // rules in one go
	slowRules = 100  // rules a second
	maxRules  = 2000 // that are tried at once
)

// said is an error as reason has it.
type said struct{ error }

func (e said) Error() string { return reason(e.error) }
func (e said) Unwrap() error { return e.error }

// full says whether a switch refused a rule since its table is full (OpenFlow
// 1.3 §7.4.4.6).
func full(err error) bool {
	return errors.Is(err, &of13.Error{Type: of13.ErrTypeFlowModFailed, Code: of13.FlowModFailedTableFull})
}

// need is how many rules the largest cut takes in one table: half of the hosts
// from the others.
func (p *patient) need() int {
	in := flowrules.Input{Lab: flowrules.LabID(p.Testbed.Name), HardTimeout: trialLife * time.Second}
	groups := make([][]model.NodeID, 2)
	for i := range p.Testbed.Hosts {
		name := model.NodeID(fmt.Sprintf("h%d", i))
		in.Hosts = append(in.Hosts, flowrules.Host{Name: name, Port: uint32(i + 1), MAC: flowrules.MAC{0x02, 0x6e, 0x73, 0xd1, byte(i >> 8), byte(i)},
			IP: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})})
		groups[i%2] = append(groups[i%2], name)
	}
	if len(in.Hosts) > 1 {
		in.Partitions = []flowrules.Desired{{ID: 1, Partition: model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: groups}}}
	}
	plan, err := flowrules.Compile(in)
	if err != nil {
		return 0
	}
	n := 0
	for _, r := range plan.Rules {
		if r.Table == flowrules.TablePolicy {
			n++
		}
	}
	return n
}

// installs measures how fast rules are taken, in batches with a barrier each,
// and how many where the table is small.
func (p *patient) installs(ctx context.Context) {
	const name = "room for rules"
	defer p.clean()
	lab := flowrules.LabID(p.Testbed.Name)
	need := p.need()
	n, took, began := 0, 0, time.Now()
	for d := time.Duration(0); (d < time.Second || n < need && d < trialLife*time.Second/2) && n < max(maxRules, need); d = time.Since(began) {
		var mods []of13.Message
		for range atOnce {
			r := flowrules.Rule{Table: flowrules.TablePolicy, Priority: 400, Match: flowrules.Match{EthDstMask: every,
				EthDst: flowrules.MAC{0x02, 0x6e, 0x73, 0xd0, byte(n >> 8), byte(n)}}}
			mods = append(mods, harmless(r, lab).Add())
			n++
		}
		err := p.sw.Apply(ctx, mods...)
		took = n
		if err == nil {
			continue
		}
		if !full(err) {
			p.add(model.CheckWarn, name, fmt.Sprintf("after %d rules: %s", n-atOnce, reason(err)), "large cuts may fail: cut fewer hosts at once", model.AbilityCut)
			return
		}
		have, derr := p.sw.DumpFlows(ctx, uint64(flowrules.NewCookie(flowrules.KindTrial, lab, 0)), flowrules.MaskKind)
		if derr != nil {
			have = nil
		}
		took = len(have)
		found := fmt.Sprintf("its table takes %d rules more and is full then; the largest cut of the testbed takes up to %d", took, need)
		if took < need {
			p.add(model.CheckFail, name, found, "cuts that are larger than that fail: give the switch larger tables, make room, or use fewer hosts", model.AbilityCut)
			return
		}
		p.add(model.CheckWarn, name, found, "one cut fits; several at once, or of some traffic only, may not", model.AbilityCut)
		return
	}
	rate := float64(took) / time.Since(began).Seconds()
	found := fmt.Sprintf("%d at least, where the largest cut takes up to %d; %.0f a second", took, need, rate)
	if rate < slowRules || took < need {
		p.add(model.CheckWarn, name, found, "large cuts take long to be in force: cut fewer hosts at once, or use the gate", model.AbilityCut)
		return
	}
	p.add(model.CheckOK, name, found, "")
}
