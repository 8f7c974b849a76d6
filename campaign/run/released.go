package run

import (
	"context"
	"maps"
	"slices"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// letGo is a packet that the gate released.
type letGo struct {
	link   model.Link
	at     time.Duration
	digest uint64
}

// keepReleased keeps what is released shortly before a cut and after its heal: hosts whose
// clocks are not ours cannot tell on which side of them it arrived. The caller holds mu.
func (s *session) keepReleased(held *heldFrame, at time.Duration) {
	s.recent = s.recently(at)
	digest := held.digest
	if digest == 0 {
		digest = agent.Digest(held.data)
	}
	p := letGo{model.Link{Src: held.packet.From, Dst: held.packet.To}, at, digest}
	s.recent = append(s.recent, p)
	for _, c := range s.gateCuts {
		if !c.on && at <= c.proof.HealAt+agent.Edge {
			c.released = append(c.released, p)
		}
	}
}

// resetsOn are the digests of the segments that netsplit itself sent over a link of a cut, to
// reset connections, while it was in force, each as often as it was sent. Of a cut of some traffic
// only there are none: they are not told apart from what leaked of the other traffic. The caller
// holds mu.
func (s *session) resetsOn(c *gateCut, l model.Link) map[uint64]int {
	out := map[uint64]int{}
	from, to, _ := leakWindow(c.proof)
	for _, p := range s.resets {
		if p.link == l && p.at >= from-agent.Edge && p.at <= to && len(c.partition.Only) == 0 {
			out[p.digest]++
		}
	}
	return out
}

// arrivedResets counts the segments of resetsOn that arrived at a host between two moments.
func (r *run) arrivedResets(ctx context.Context, host model.NodeID, sent map[uint64]int, from, to time.Time) (int, error) {
	if len(sent) == 0 || !to.After(from) {
		return 0, nil
	}
	digests := slices.Sorted(maps.Keys(sent))
	all, err := r.c.Testbed.ArrivalsOf(ctx, host, digests, from)
	if err != nil {
		return 0, err
	}
	n := 0
	for i, at := range all {
		in := 0
		for _, t := range at {
			if !t.Before(from) && !t.After(to) {
				in++
			}
		}
		n += min(in, sent[digests[i]])
	}
	return n, nil
}

// recently is what was released within agent.Edge before a time. The caller holds mu.
func (s *session) recently(at time.Duration) []letGo {
	old := slices.IndexFunc(s.recent, func(p letGo) bool { return p.at >= at-agent.Edge })
	if old < 0 {
		return nil
	}
	return slices.Clip(s.recent[old:])
}

// releasedOn is what keepReleased has kept of a link for a cut. The caller holds mu.
func (s *session) releasedOn(c *gateCut, l model.Link) []agent.Released {
	var out []agent.Released
	for _, p := range c.released {
		if p.link == l {
			out = append(out, agent.Released{Digest: p.digest, At: s.clock.wall(p.at)})
		}
	}
	return out
}
