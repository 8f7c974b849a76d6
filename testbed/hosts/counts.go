package hosts

import (
	"context"
	"fmt"
	"slices"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
)

// drop is what a rule dropped for a partition.
type drop struct {
	rule hostrules.Rule
	n    uint64
}

// Drops is what the rules that are to drop probe packets on the links of the partition
// with that id have counted, by link, for each probe packet: those of the sender or, of
// probe packets that go past them, of the receiver.
func (h *Hosts) Drops(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	h.change.Lock()
	defer h.change.Unlock()
	f, err := h.refresh(ctx, id)
	if err != nil {
		return nil, err
	}
	out := map[model.Link][]model.Met{}
	for _, l := range f.p.Links() {
		for _, s := range of {
			at, met := h.hosts[l.Src], model.Met{}
			if s.Past {
				at = h.hosts[l.Dst]
			}
			for _, r := range hostrules.Take(at.rules, l, s) {
				met.Rule += r.Key() + "; "
				met.Packets += at.seen[r.Key()]
			}
			out[l] = append(out[l], met)
		}
	}
	return out, nil
}

// DropsBy is what was dropped of the partition with that id since it was cut, by
// rule. A packet that two partitions cut counts for both; what rules of a wider one
// drop does not count for one of some traffic only.
func (h *Hosts) DropsBy(ctx context.Context, id uint32) ([]model.RuleDrops, error) {
	h.change.Lock()
	defer h.change.Unlock()
	f, err := h.refresh(ctx, id)
	if f == nil {
		return nil, err
	}
	var out []model.RuleDrops
	for key, d := range f.dropped {
		out = append(out, model.RuleDrops{Rule: key, Link: d.rule.Link, Packets: d.n,
			Shared: slices.ContainsFunc(h.partitions, func(o *inForce) bool { return o.id < id && o.counts(d.rule) })})
	}
	return out, err
}

// CountedFor lists the partitions whose DropsBy has probe packets that are sent over links
// now: by link, for each probe packet, their ids.
func (h *Hosts) CountedFor(links []model.Link, of []model.ProbePacket) map[model.Link][][]uint32 {
	h.change.Lock()
	defer h.change.Unlock()
	out := map[model.Link][][]uint32{}
	for _, l := range links {
		out[l] = make([][]uint32, len(of))
		for i, s := range of {
			at := h.hosts[l.Src]
			if s.Past {
				at = h.hosts[l.Dst]
			}
			rules := hostrules.Take(at.rules, l, s)
			for _, f := range h.partitions {
				if slices.ContainsFunc(rules, f.counts) {
					out[l][i] = append(out[l][i], f.id)
				}
			}
		}
	}
	return out
}

// refresh asks the hosts that a partition concerns what they have dropped. change is
// held. The partition is nil if it is not in force.
func (h *Hosts) refresh(ctx context.Context, id uint32) (*inForce, error) {
	i := slices.IndexFunc(h.partitions, func(f *inForce) bool { return f.id == id })
	if i < 0 {
		return nil, fmt.Errorf("no partition %d is in force", id)
	}
	f := h.partitions[i]
	return f, h.each(ctx, func(ctx context.Context, o *host) (func(), error) {
		if !concerns(f.p, o.name) {
			return nil, nil
		}
		a := o.holder()
		if a == nil {
			return nil, fmt.Errorf("host %s has lost its rules, and their counts with them", o.name)
		}
		dropped, err := a.Dropped(ctx)
		return func() { h.book(o, dropped) }, err
	})
}

// book adds what a host has dropped since it was last asked to the partitions that
// it was dropped for.
func (h *Hosts) book(o *host, dropped map[string]uint64) {
	for _, r := range o.rules {
		n, seen := dropped[r.Key()], o.seen[r.Key()]
		if seen <= n { // or else its rules were made anew, and count from 0
			n -= seen
		}
		if n == 0 {
			continue
		}
		for _, f := range h.partitions {
			if !f.new && f.counts(r) {
				key := string(o.name) + " " + r.Key()
				if f.dropped[key] == nil {
					f.dropped[key] = &drop{rule: r}
				}
				f.dropped[key].n += n
			}
		}
	}
	o.seen = dropped
}
