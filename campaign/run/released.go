package run

import (
	"context"
	"errors"
	"fmt"
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

// arrived counts what arrived over a link of a cut between two moments, and when the first packet
// came after the second one (testbed.Arrived), without the segments that netsplit itself sent there
// to reset connections, for another step: they have leaked through no cut. Of a cut of some traffic
// only all are counted: resets of other traffic would hide what leaked.
func (r *run) arrived(ctx context.Context, l model.Link, only []model.Traffic, from, to time.Time, released ...agent.Released) (int, time.Time, error) {
	n, first, err := r.c.Testbed.Arrived(ctx, l, only, from, to, released...)
	if n == 0 || len(only) > 0 {
		return n, first, err
	}
	sent := r.s.resetsOn(l, from.Add(-agent.Edge), to)
	if len(sent) == 0 {
		return n, first, err
	}
	digests := slices.Sorted(maps.Keys(sent))
	at, aerr := r.c.Testbed.ArrivalsOf(ctx, l.Dst, digests, from)
	if aerr != nil {
		return n, first, errors.Join(err, fmt.Errorf("resets cannot be told from leaks: %w", aerr))
	}
	for i, d := range digests {
		in := 0
		for _, t := range at[i] {
			if !t.Before(from) && !t.After(to) {
				in++
			}
		}
		n -= min(in, sent[d])
	}
	return max(0, n), first, err
}

// resetsOn are the digests of the segments that netsplit sent over a link between two moments to
// reset connections, each with how often.
func (s *session) resetsOn(l model.Link, from, to time.Time) map[uint64]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[uint64]int{}
	for _, p := range s.resets {
		if at := s.clock.wall(p.at); p.link == l && !at.Before(from) && !at.After(to) {
			out[p.digest]++
		}
	}
	return out
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
