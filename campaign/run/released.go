package run

import (
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

// keepReleased keeps what is released shortly before the cut and after the heal: hosts whose
// clocks are not ours cannot tell on which side of them it arrived. The caller holds mu.
func (s *session) keepReleased(held *heldFrame, at time.Duration) {
	switch {
	case s.proof.CutAt == 0:
		old := slices.IndexFunc(s.released, func(p letGo) bool { return p.at >= at-agent.Edge })
		if old < 0 {
			old = len(s.released)
		}
		s.released = s.released[old:]
	case s.isCut || at > s.proof.HealAt+agent.Edge:
		return
	}
	digest := held.digest
	if digest == 0 {
		digest = agent.Digest(held.data)
	}
	s.released = append(s.released, letGo{model.Link{Src: held.packet.From, Dst: held.packet.To}, at, digest})
}

// releasedOn is what keepReleased has kept of a link. The caller holds mu.
func (s *session) releasedOn(l model.Link) []agent.Released {
	var out []agent.Released
	for _, p := range s.released {
		if p.link == l {
			out = append(out, agent.Released{Digest: p.digest, At: s.clock.wall(p.at)})
		}
	}
	return out
}
