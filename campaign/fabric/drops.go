package fabric

import (
	"context"
	"errors"
	"fmt"
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
// link, since they were installed, on all switches. Packets that the gate refused
// are not among them. A pair that two partitions cut counts for both. Call it
// before Heal: the counters go with the rules.
//
// Open vSwitch credits packets to the rule that is in force when it reads its
// cache, up to half a second after they came: packets that passed shortly
// before the cut may be among those counted. It shows that a cut bites, not how
// often.
func (f *Fabric) DropsBy(ctx context.Context, id uint32) (map[model.Link]uint64, error) {
	return f.counts(ctx, id, flowrules.KindDrop, settle)
}

// Drops is DropsBy without waiting: the counters lag. Asking makes
// Open vSwitch bring them up to date soon, and look at its cache.
func (f *Fabric) Drops(ctx context.Context, id uint32) (map[model.Link]uint64, error) {
	return f.counts(ctx, id, flowrules.KindDrop, 0)
}

// Held is how many packets came to the meters of a partition, by link, as Drops.
func (f *Fabric) Held(ctx context.Context, id uint32) (map[model.Link]uint64, error) {
	return f.counts(ctx, id, flowrules.KindHold, 0)
}

func (f *Fabric) counts(ctx context.Context, id uint32, kind flowrules.Kind, wait time.Duration) (map[model.Link]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var cut *model.Partition
	for i := range f.partitions {
		if f.partitions[i].ID == id {
			cut = &f.partitions[i].Partition
		}
	}
	if cut == nil {
		return nil, fmt.Errorf("fabric: no partition %d is in force", id)
	}
	var mu sync.Mutex // guards out
	out := map[model.Link]uint64{}
	err := f.each(ctx, func(ctx context.Context, m *member) error {
		byLink, err := m.counted(ctx, *cut, kind, wait)
		mu.Lock()
		defer mu.Unlock()
		for l, n := range byLink {
			out[l] += n
		}
		return err
	})
	return out, err
}

func (m *member) counted(ctx context.Context, p model.Partition, kind flowrules.Kind, wait time.Duration) (map[model.Link]uint64, error) {
	m.rules.Lock()
	defer m.rules.Unlock()
	sw, err := m.command()
	if err != nil {
		return nil, err
	}
	links := map[model.Link]bool{}
	for _, l := range p.Links() {
		links[l] = true
	}
	of := map[string]model.Link{} // by the rule's key
	var touch []of13.Message
	for _, r := range m.plan.Rules {
		if r.Kind == kind && links[r.Link] && (kind == flowrules.KindHold || r.Drops(p)) {
			of[r.Key()] = r.Link
		}
		if r.Kind == flowrules.KindDefault {
			touch = append(touch, r.Add())
		}
	}
	if err := sw.Apply(ctx, touch...); err != nil {
		return nil, m.refused(err)
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
	out := map[model.Link]uint64{}
	for _, s := range have {
		if l, ok := of[flowrules.KeyOf(s)]; ok {
			out[l] += s.Packets
		}
	}
	return out, nil
}
