package campaign

import (
	"context"
	"time"

	"netsplit/campaign/bed"
	"netsplit/model"
)

// countEvery is how often what a partition by hand drops is counted while nobody
// asks: the graphs of it follow so closely.
const countEvery = 5 * time.Second

// fates is how many packets of a link were dropped, and how many leaked.
type fates struct{ dropped, leaked uint64 }

// count books what wanted to cross and what leaked so far. turn is held: once a
// heal has begun, what passes is no leak.
func (s *Service) count(ctx context.Context, h *handCut) {
	st := h.status()
	dropped, derr := h.cut.Dropped(ctx)
	var leaked map[model.Link]uint64
	var lerr error
	if !st.InForce.IsZero() {
		leaked, lerr = h.cut.Crossed(ctx, st.InForce, time.Now())
	}
	if derr == nil && lerr == nil {
		s.measure(h, dropped, leaked)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if derr == nil {
		h.st.Dropped = bed.Sum(dropped)
	}
	h.st.Leaked, h.st.LeakKnown = bed.Sum(leaked), lerr == nil && !st.InForce.IsZero()
	h.st.Wanted = h.st.Dropped + h.st.Leaked
	// The switch may not have counted the last of its own yet.
	h.st.Probes, h.st.Resets = min(h.cut.Sent(), h.st.Wanted), h.cut.Resets()
}

// countNow brings the counts of a partition that is in force up to date.
func (s *Service) countNow(ctx context.Context, h *handCut) {
	if !h.turn.TryLock() {
		return // it is being cut or healed
	}
	defer h.turn.Unlock()
	if h.status().State == model.PartitionInForce {
		s.count(ctx, h)
	}
}

// keepCounting counts until ctx ends.
func (s *Service) keepCounting(ctx context.Context, h *handCut) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.countNow(ctx, h)
		}
	}
}

// measure adds to the metrics what the partition dropped and leaked since the
// last time. Of partitions that overlap the oldest counts, so that a packet is
// one; those of countEvery before it is healed may be two.
func (s *Service) measure(h *handCut, dropped, leaked map[model.Link]uint64) {
	older := s.olderLinks(h)
	for _, l := range h.status().Partition.Links() {
		now, was := fates{dropped[l], leaked[l]}, h.told[l]
		h.told[l] = now
		if now.dropped < was.dropped || now.leaked < was.leaked || older[l] {
			continue // counters that began anew, or another's packets
		}
		drops, leaks := int(now.dropped-was.dropped), int(now.leaked-was.leaked)
		s.metrics.PacketFate(l, "wanted", drops+leaks)
		s.metrics.PacketFate(l, "dropped", drops)
		s.metrics.PacketFate(l, "leaked", leaks)
	}
}

// olderLinks are the links that older partitions cut.
func (s *Service) olderLinks(h *handCut) map[model.Link]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, created := map[model.Link]bool{}, h.status().Created
	for _, o := range s.hand {
		if st := o.status(); o.standing() && st.Created.Before(created) {
			for _, l := range st.Partition.Links() {
				out[l] = true
			}
		}
	}
	return out
}
