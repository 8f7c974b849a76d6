package campaign

import (
	"context"
	"slices"
	"sync"

	"netsplit/model"
)

// loss is that a switch or a host does not do what we say any more.
type loss struct {
	on     model.DatapathID // the switch, or
	host   model.NodeID     // the host: what is cut there is lost
	newest bool             // only the newest partition there
	why    string
}

// losses wait to be booked. Who tells of one does not wait, and none is forgotten.
type losses struct {
	mu      sync.Mutex
	waiting []loss
	more    chan struct{}
}

func newLosses() *losses { return &losses{more: make(chan struct{}, 1)} }

// add takes a loss; one that waits already is the same.
func (l *losses) add(n loss) {
	l.mu.Lock()
	if !slices.Contains(l.waiting, n) {
		l.waiting = append(l.waiting, n)
	}
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *losses) take() []loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting = nil
	return all
}

// loseHandCuts books, whenever a switch or host does not do what we say any more, that
// the partitions by hand there are lost; the others stand.
func (s *Service) loseHandCuts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.losses.more:
			for _, l := range s.losses.take() {
				for _, h := range s.standingAt(l) {
					s.lose(h, l.why)
					if l.newest {
						break
					}
				}
			}
		}
	}
}

// standingAt lists the partitions by hand that stand where something is lost, newest
// first.
func (s *Service) standingAt(l loss) []*handCut {
	at := func(h model.NodeID) bool {
		if l.host != "" {
			return h == l.host
		}
		t, ok := s.outside.Testbed.Host(h)
		return ok && t.Datapath == l.on
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*handCut
	for _, h := range s.hand {
		if h.standing() && slices.ContainsFunc(h.status().Partition.Links(), func(l model.Link) bool { return at(l.Src) || at(l.Dst) }) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *handCut) int { return b.status().Created.Compare(a.status().Created) })
	return out
}
