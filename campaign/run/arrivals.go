package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// proveFaults asks the receiving hosts for the packets that message faults acted
// on: those know nothing of what was decided.
func (r *run) proveFaults(ctx context.Context) {
	s := r.s
	s.mu.Lock()
	byHost := map[model.NodeID][]*watchedPacket{}
	for _, w := range s.faults.watched {
		byHost[w.to] = append(byHost[w.to], w)
	}
	s.mu.Unlock()
	for host, ws := range byHost {
		var digests []uint64
		since := ws[0].since
		for _, w := range ws {
			digests = append(digests, w.digest)
			since = min(since, w.since)
		}
		s.mu.Lock()
		from := s.clock.from(since)
		s.mu.Unlock()
		got, err := r.c.Testbed.ArrivalsOf(ctx, host, digests, from)
		if err != nil {
			s.Note("message faults could not be checked at %s: %v", host, err)
			s.mu.Lock()
			for _, w := range ws { // what it said before is no proof of what came since
				w.known = false
			}
			s.mu.Unlock()
			continue
		}
		s.mu.Lock()
		for i, w := range ws {
			w.known, w.at = true, nil
			for _, t := range got[i] {
				if at := s.clock.since(t); at >= w.since {
					w.at = append(w.at, at)
				}
			}
		}
		s.mu.Unlock()
	}
}

// maxArrivals bounds the arrivals that are kept of one hit: where packets are
// equal they may be many.
const maxArrivals = 20

// faultProofs are the engine's, completed by what the receiving hosts saw. The
// caller holds mu.
func (s *session) faultProofs(proofs []model.FaultProof) []model.FaultProof {
	for i := range proofs {
		p := &proofs[i]
		p.Known = true
		for k := range p.Hits {
			h := &p.Hits[k]
			w := s.faults.frames[h.Frame]
			if w == nil || w.blur {
				continue
			}
			if !w.known {
				p.Known = false
				p.Trouble = fmt.Sprintf("host %s could not say what arrived", w.to)
				continue
			}
			h.Known = true
			p.Checked++
			from := slices.IndexFunc(w.at, func(at time.Duration) bool { return at >= h.At })
			if from >= 0 {
				h.Arrived = w.at[from:min(len(w.at), from+maxArrivals)]
			}
			if len(w.at) != w.passes {
				p.Wrong++
				if p.Wrong == 1 {
					p.Trouble = fmt.Sprintf("message %d (%s, %s to %s) was released %d time(s) and arrived %d time(s)", h.Message, h.Type, h.From, h.To, w.passes, len(w.at))
				}
			}
		}
		if p.Known && p.Checked == 0 && p.Acted > 0 {
			p.Known, p.Trouble = false, model.NoneChecked
		}
	}
	return proofs
}
