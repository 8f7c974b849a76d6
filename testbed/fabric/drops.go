package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// settle is how long after a flow-mod Open vSwitch's flow counters are
// complete; without one they lag by a third of a second.
const settle = 30 * time.Millisecond

// DropsBy is how many packets the partition's drop rules have dropped since it was cut, by
// rule, on all switches. Packets that the gate refused are not among them. If two
// partitions cut the same traffic, it counts for both. But what a partition of all traffic
// drops does not count for one of some traffic. If rules of another partition dropped
// packets for this one and have gone, DropsBy includes those packets if their switch could
// tell. Call it before Heal: the counters go with the rules.
//
// Open vSwitch credits packets to the rule in force when it reads its cache, up to half a
// second after they came. So packets that passed shortly before the cut may be counted.
// The count shows that a cut drops packets, not how many exactly.
func (f *Fabric) DropsBy(ctx context.Context, id uint32) ([]model.RuleDrops, error) {
	read, err := f.dropsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	byRule, err := read.counted(ctx, settle)
	var out []model.RuleDrops
	for rule, is := range byRule {
		out = append(out, model.RuleDrops{Rule: rule, Link: is.rule.Link, Packets: read.gone[rule].Packets + is.n - min(is.n, read.before[rule]),
			Shared: older(read.all, id, is.rule)})
	}
	for rule, d := range read.gone {
		if _, is := byRule[rule]; !is && !read.has[rule] {
			out = append(out, d)
		}
	}
	return out, err
}

// dropsRead is a copy of what reading the drops of a partition needs. Reading waits for the
// switches; meanwhile other partitions can be cut and healed.
type dropsRead struct {
	*reading
	all    []counting
	gone   map[string]model.RuleDrops
	before map[string]uint64
	has    map[string]bool // rules of the plan
}

func (f *Fabric) dropsOf(ctx context.Context, id uint32) (*dropsRead, error) {
	if err := f.mu.take(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if _, err := f.standing(id); err != nil {
		return nil, err
	}
	all := f.counting()
	c := all[slices.IndexFunc(all, func(c counting) bool { return c.id == id })]
	r := &dropsRead{all: all, gone: maps.Clone(f.gone[id]), before: maps.Clone(f.before[id]), has: map[string]bool{},
		reading: f.reading(counters{flowrules.KindDrop, func(_ *member, r flowrules.Rule) bool { return c.counts(r) }})}
	for _, m := range f.members {
		for _, rule := range m.intended.Load().Rules {
			r.has[m.rule(rule)] = true
		}
	}
	return r, nil
}

// counting is a partition in force, and which rules count for it.
type counting struct {
	id     uint32
	lifted bool
	counts func(flowrules.Rule) bool
}

// counting lists the partitions in force; f.mu is held.
func (f *Fabric) counting() []counting {
	var out []counting
	for _, p := range f.partitions {
		on := linkSet(p.Partition)
		out = append(out, counting{p.ID, p.Lifted, func(r flowrules.Rule) bool {
			return on[r.Link] && r.Drops(p.Partition) && (len(p.Partition.Only) == 0 || r.Only != model.Traffic{})
		}})
	}
	return out
}

// older says whether a partition with a lower id counts the rule, too.
func older(all []counting, id uint32, r flowrules.Rule) bool {
	return slices.ContainsFunc(all, func(o counting) bool { return o.id < id && !o.lifted && o.counts(r) })
}

// CountedFor lists, by link and for each probe packet sent there now, the ids of the
// partitions whose DropsBy counts it.
func (f *Fabric) CountedFor(links []model.Link, of []model.ProbePacket) map[model.Link][][]uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := map[model.Link][]flowrules.Rule{} // the rule that takes each probe packet; zero: none
	for _, l := range links {
		first[l] = make([]flowrules.Rule, len(of))
	}
	for _, m := range f.members {
		for _, r := range m.intended.Load().Rules {
			by := first[r.Link]
			if r.Kind != flowrules.KindDrop || by == nil {
				continue
			}
			for i, s := range of {
				if r.Match.Takes(s) && (by[i].Kind == 0 || r.Before(by[i])) {
					by[i] = r
				}
			}
		}
	}
	out, all := map[model.Link][][]uint32{}, f.counting()
	for l, by := range first {
		out[l] = make([][]uint32, len(of))
		for i, r := range by {
			for _, c := range all {
				if c.counts(r) { // none counts the zero rule
					out[l][i] = append(out[l][i], c.id)
				}
			}
		}
	}
	return out
}

// Drops is what the drop rules have counted that take the probe packets on the links of a
// partition: by link, for each probe packet. It does not wait for the counters, which lag.
// The call makes Open vSwitch update them soon, and look at its cache.
func (f *Fabric) Drops(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	return f.met(ctx, id, flowrules.KindDrop, of)
}

// Held is what the rules that send probe packets to the meters of a partition have
// counted, as Drops.
func (f *Fabric) Held(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	return f.met(ctx, id, flowrules.KindHold, of)
}

// Gated is what the rules that send probe packets to the gate have counted on links, as
// Drops.
func (f *Fabric) Gated(ctx context.Context, links []model.Link, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	if err := f.mu.take(ctx); err != nil {
		return nil, err
	}
	on := map[model.Link]bool{}
	for _, l := range links {
		on[l] = true
	}
	return f.metOn(ctx, on, flowrules.KindGate, of)
}

// met finds the rule of a kind that takes each probe packet, and what it has counted.
func (f *Fabric) met(ctx context.Context, id uint32, kind flowrules.Kind, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	if err := f.mu.take(ctx); err != nil {
		return nil, err
	}
	cut, err := f.standing(id)
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	return f.metOn(ctx, linkSet(cut), kind, of)
}

// metOn is met on links; f.mu is held and left.
func (f *Fabric) metOn(ctx context.Context, on map[model.Link]bool, kind flowrules.Kind, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	read := f.reading(counters{kind, func(_ *member, r flowrules.Rule) bool { return on[r.Link] }})
	f.mu.Unlock()
	counted, err := read.counted(ctx, 0)
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
	of   func(*member, flowrules.Rule) bool
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

// already is what drop rules of other partitions have counted so far on the partition's
// links: its own count begins there. f.mu is held.
func (f *Fabric) already(ctx context.Context, p model.Partition) (map[string]uint64, error) {
	on := linkSet(p)
	c := counters{flowrules.KindDrop, func(_ *member, r flowrules.Rule) bool { return on[r.Link] && r.Drops(p) }}
	if !slices.ContainsFunc(f.members, func(m *member) bool { return m.has(c) }) {
		return nil, nil
	}
	byRule, err := f.reading(c).counted(ctx, settle)
	out := map[string]uint64{}
	for rule, is := range byRule {
		out[rule] = is.n
	}
	return out, err
}

// bookLimit is how long a switch may take to report the counts of rules that will go.
const bookLimit = time.Second

// book saves what rules that will go have dropped for the partitions that stay. If a switch
// does not answer in time, what its rules dropped since the last DropsBy is lost. f.mu is
// held.
func (f *Fabric) book(ctx context.Context) {
	all, going := slices.DeleteFunc(f.counting(), func(c counting) bool { return c.lifted }), map[string]bool{}
	if len(all) == 0 {
		return
	}
	for _, m := range f.members {
		plan, err := flowrules.Compile(m.input(f))
		if err != nil {
			return
		}
		stays := map[string]bool{}
		for _, r := range plan.Rules {
			stays[r.Key()] = true
		}
		for _, r := range m.intended.Load().Rules {
			if !stays[r.Key()] && slices.ContainsFunc(all, func(c counting) bool { return c.counts(r) }) {
				going[m.rule(r)] = true
			}
		}
	}
	if len(going) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bookLimit)
	defer cancel()
	byRule, _ := f.reading(counters{flowrules.KindDrop, func(m *member, r flowrules.Rule) bool { return going[m.rule(r)] }}).counted(ctx, settle)
	for rule, is := range byRule {
		for _, c := range all {
			if !c.counts(is.rule) {
				continue
			}
			if f.gone[c.id] == nil {
				f.gone[c.id] = map[string]model.RuleDrops{}
			}
			n := f.gone[c.id][rule].Packets + is.n - min(is.n, f.before[c.id][rule])
			f.gone[c.id][rule] = model.RuleDrops{Rule: rule, Link: is.rule.Link, Packets: n, Shared: older(all, c.id, is.rule)}
			delete(f.before[c.id], rule) // if the rule comes back, it counts from 0
		}
	}
}

// rule names a rule among those of all switches. Rules of two switches may have the same
// key: for hosts on ports of the same number, towards the same host.
func (m *member) rule(r flowrules.Rule) string { return m.id.String() + " " + r.Key() }

// reading are the rules whose counts to read, by switch. Reading them does not need f.mu.
type reading struct {
	f    *Fabric
	kind flowrules.Kind
	of   map[*member]map[string]flowrules.Rule // by key
}

// reading takes the rules that are desired now; f.mu is held.
func (f *Fabric) reading(c counters) *reading {
	r := &reading{f: f, kind: c.kind, of: map[*member]map[string]flowrules.Rule{}}
	for _, m := range f.members {
		for _, rule := range m.intended.Load().Rules {
			if rule.Kind != c.kind || !c.of(m, rule) {
				continue
			}
			if r.of[m] == nil {
				r.of[m] = map[string]flowrules.Rule{}
			}
			r.of[m][rule.Key()] = rule
		}
	}
	return r
}

func (r *reading) counted(ctx context.Context, wait time.Duration) (map[string]ruleCount, error) {
	var mu sync.Mutex // guards out
	out := map[string]ruleCount{}
	err := r.f.each(ctx, func(ctx context.Context, m *member) error {
		if len(r.of[m]) == 0 {
			return nil // even if it is not connected
		}
		counted, err := m.counted(ctx, r.kind, r.of[m], wait)
		mu.Lock()
		defer mu.Unlock()
		for _, is := range counted {
			out[m.rule(is.rule)] = is
		}
		return err
	})
	return out, err
}

// has says whether the switch has a rule that is counted.
func (m *member) has(c counters) bool {
	return slices.ContainsFunc(m.intended.Load().Rules, func(r flowrules.Rule) bool { return r.Kind == c.kind && c.of(m, r) })
}

// touch sends Open vSwitch its default rules again, which makes it update its counters.
func (m *member) touch(ctx context.Context, sw *controller.Switch) error {
	if err := m.rules.take(ctx); err != nil {
		return err
	}
	defer m.rules.Unlock()
	var ms []of13.Message
	for _, r := range m.plan.Rules {
		if r.Kind == flowrules.KindDefault {
			ms = append(ms, r.Add())
		}
	}
	return sw.Send(ms...) // they replace themselves, so a full table cannot refuse them
}

// counted reads what rules have counted. It does not hold m.rules while it waits.
func (m *member) counted(ctx context.Context, kind flowrules.Kind, of map[string]flowrules.Rule, wait time.Duration) (map[string]ruleCount, error) {
	sw, err := m.command()
	if err != nil {
		return nil, err
	}
	if err := m.touch(ctx, sw); err != nil {
		return nil, err
	}
	if err := sw.Barrier(ctx); err != nil {
		return nil, err
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, errors.Join(errors.New("waiting for flow counters"), context.Cause(ctx))
	}
	have, err := sw.DumpFlows(ctx, uint64(flowrules.NewCookie(kind, m.f.lab, 0)), flowrules.MaskKind)
	if err != nil {
		return nil, err
	}
	out := map[string]ruleCount{} // by the rule's key
	for key, rule := range of {
		out[key] = ruleCount{rule: rule}
	}
	for _, s := range have {
		key := flowrules.KeyOf(s)
		if is, ok := out[key]; ok {
			out[key] = ruleCount{is.rule, is.n + s.Packets}
		}
	}
	return out, nil
}
