package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// settle is how long after a flow-mod Open vSwitch's flow counters are
// complete; without one they lag by a third of a second.
const settle = 30 * time.Millisecond

// DropsBy is how many packets the drop rules of the partition have dropped, by
// link, since it was cut, on all switches. Packets that the gate refused are not
// among them. Traffic that two partitions cut counts for both; what a wider one
// holds back of a pair does not count for one of some traffic only. Call it before
// Heal: the counters go with the rules.
//
// Open vSwitch credits packets to the rule that is in force when it reads its
// cache, up to half a second after they came: packets that passed shortly
// before the cut may be among those counted. It shows that a cut bites, not how
// often.
func (f *Fabric) DropsBy(ctx context.Context, id uint32) (map[model.Link]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cut, err := f.standing(id)
	if err != nil {
		return nil, err
	}
	return f.counts(ctx, dropping(cut, func(r flowrules.Rule) bool { return len(cut.Only) == 0 || r.Only != model.Traffic{} }), settle, f.before[id])
}

// Drops is what the drop rules that take specimens have counted on the links of a
// partition, by link, for each specimen, without waiting: the counters lag. Asking
// makes Open vSwitch bring them up to date soon, and look at its cache.
func (f *Fabric) Drops(ctx context.Context, id uint32, of []model.Specimen) (map[model.Link][]model.Met, error) {
	return f.met(ctx, id, flowrules.KindDrop, of)
}

// Held is what the rules that send specimens to the meters of a partition have
// counted, as Drops.
func (f *Fabric) Held(ctx context.Context, id uint32, of []model.Specimen) (map[model.Link][]model.Met, error) {
	return f.met(ctx, id, flowrules.KindHold, of)
}

// met finds the rule of a kind that takes each specimen, and what it has counted.
func (f *Fabric) met(ctx context.Context, id uint32, kind flowrules.Kind, of []model.Specimen) (map[model.Link][]model.Met, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cut, err := f.standing(id)
	if err != nil {
		return nil, err
	}
	on := linkSet(cut)
	counted, err := f.byRule(ctx, counters{kind, func(r flowrules.Rule) bool { return on[r.Link] }}, 0)
	out, best := map[model.Link][]model.Met{}, map[model.Link][]flowrules.Rule{}
	for l := range on {
		out[l], best[l] = make([]model.Met, len(of)), make([]flowrules.Rule, len(of))
	}
	for key, is := range counted {
		for i, s := range of {
			to, first := &out[is.rule.Link][i], &best[is.rule.Link][i]
			if is.rule.Match.Takes(s) && (to.Rule == "" || is.rule.Before(*first)) {
				*to, *first = model.Met{Rule: key, Packets: is.n}, is.rule
			}
		}
	}
	return out, err
}

// counters are the rules of a kind whose packets are counted.
type counters struct {
	kind flowrules.Kind
	of   func(flowrules.Rule) bool
}

// dropping are the drop rules of what the partition cuts, as far as also says.
func dropping(cut model.Partition, also func(flowrules.Rule) bool) counters {
	on := linkSet(cut)
	return counters{flowrules.KindDrop, func(r flowrules.Rule) bool { return on[r.Link] && r.Drops(cut) && also(r) }}
}

func linkSet(p model.Partition) map[model.Link]bool {
	out := map[model.Link]bool{}
	for _, l := range p.Links() {
		out[l] = true
	}
	return out
}

// standing is the partition with that id; f.mu is held.
func (f *Fabric) standing(id uint32) (model.Partition, error) {
	for _, p := range f.partitions {
		if p.ID == id {
			return p.Partition, nil
		}
	}
	return model.Partition{}, fmt.Errorf("fabric: no partition %d is in force", id)
}

// ruleCount is what one rule of one switch has counted.
type ruleCount struct {
	rule flowrules.Rule
	n    uint64
}

// counts adds up what rules counted, by link, less what they had counted before.
// f.mu is held.
func (f *Fabric) counts(ctx context.Context, c counters, wait time.Duration, before map[string]uint64) (map[model.Link]uint64, error) {
	byRule, err := f.byRule(ctx, c, wait)
	out := map[model.Link]uint64{}
	for rule, is := range byRule {
		out[is.rule.Link] += is.n - min(is.n, before[rule])
	}
	return out, err
}

// already is what the drop rules of others have counted on the partition's links,
// for its own count to begin there. f.mu is held.
func (f *Fabric) already(ctx context.Context, p model.Partition) (map[string]uint64, error) {
	c := dropping(p, func(flowrules.Rule) bool { return true })
	if !slices.ContainsFunc(f.members, func(m *member) bool { return m.has(c) }) {
		return nil, nil
	}
	byRule, err := f.byRule(ctx, c, settle)
	out := map[string]uint64{}
	for rule, is := range byRule {
		out[rule] = is.n
	}
	return out, err
}

// byRule is what the rules have counted, by switch and rule.
func (f *Fabric) byRule(ctx context.Context, c counters, wait time.Duration) (map[string]ruleCount, error) {
	var mu sync.Mutex // guards out
	out := map[string]ruleCount{}
	err := f.each(ctx, func(ctx context.Context, m *member) error {
		counted, err := m.counted(ctx, c, wait)
		mu.Lock()
		defer mu.Unlock()
		for key, is := range counted {
			out[m.id.String()+" "+key] = is
		}
		return err
	})
	return out, err
}

// has says whether the switch has a rule that is counted.
func (m *member) has(c counters) bool {
	m.rules.Lock()
	defer m.rules.Unlock()
	return slices.ContainsFunc(m.plan.Rules, func(r flowrules.Rule) bool { return r.Kind == c.kind && c.of(r) })
}

func (m *member) counted(ctx context.Context, c counters, wait time.Duration) (map[string]ruleCount, error) {
	m.rules.Lock()
	defer m.rules.Unlock()
	out := map[string]ruleCount{} // by the rule's key
	var touch []of13.Message
	for _, r := range m.plan.Rules {
		if r.Kind == c.kind && c.of(r) {
			out[r.Key()] = ruleCount{rule: r}
		}
		if r.Kind == flowrules.KindDefault {
			touch = append(touch, r.Add())
		}
	}
	if len(out) == 0 {
		return nil, nil // whether it is connected or not
	}
	sw, err := m.command()
	if err != nil {
		return nil, err
	}
	if err := sw.Apply(ctx, touch...); err != nil {
		return nil, m.refused(err)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, errors.Join(errors.New("waiting for flow counters"), context.Cause(ctx))
	}
	have, err := sw.DumpFlows(ctx, uint64(flowrules.NewCookie(c.kind, m.f.lab, 0)), flowrules.MaskKind)
	if err != nil {
		return nil, err
	}
	for _, s := range have {
		key := flowrules.KeyOf(s)
		if is, ok := out[key]; ok {
			out[key] = ruleCount{is.rule, is.n + s.Packets}
		}
	}
	return out, nil
}
