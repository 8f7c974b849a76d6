package manual

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsplit/model"
)

// loss is that a switch or a host does not do what we say any more.
type loss struct {
	on     model.DatapathID // the switch, or
	host   model.NodeID     // the host: what is cut there is lost
	newest bool             // only the newest partition there
	why    string
	at     time.Time // when it was told last
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
	n.at = time.Now()
	same := func(o loss) bool {
		o.at = n.at
		return o == n
	}
	if i := slices.IndexFunc(l.waiting, same); i >= 0 {
		l.waiting[i] = n
	} else {
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

// LoseSwitch has what is cut on a switch booked as lost: its rules are not renewed
// there. It does not wait.
func (ps *Partitions) LoseSwitch(id model.DatapathID, why error) {
	ps.losses.add(loss{on: id, why: unrenewed(why)})
}

// LoseHost has the partitions that concern a host, which drops packets itself, booked as
// lost. It does not wait.
func (ps *Partitions) LoseHost(host model.NodeID, why error) {
	ps.losses.add(loss{host: host, why: unrenewed(why)})
}

// LoseNewest has the newest partition on a switch given up: there is no room for all of
// them. It does not wait.
func (ps *Partitions) LoseNewest(id model.DatapathID, why error) {
	ps.losses.add(loss{on: id, newest: true, why: why.Error()})
}

func unrenewed(why error) string {
	return fmt.Sprintf("its rules are not renewed and expire within seconds: %v", why)
}

// bookLosses books, whenever a switch or host does not do what we say any more, that
// the partitions there are lost; the others stand.
func (ps *Partitions) bookLosses() {
	for {
		select {
		case <-ps.c.Closing.Done():
			return
		case <-ps.losses.more:
			for _, l := range ps.losses.take() {
				for _, h := range ps.standingAt(l) {
					if l.host == "" || !h.cutSince(l.at) {
						ps.lose(h, l.why)
					}
					if l.newest {
						break
					}
				}
			}
		}
	}
}

// standingAt lists the partitions that stand where something is lost, newest
// first.
func (ps *Partitions) standingAt(l loss) []*manualCut {
	at := func(h model.NodeID) bool {
		if l.host != "" {
			return h == l.host
		}
		t, ok := ps.tb.Testbed.Host(h)
		return ok && t.Datapath == l.on
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var out []*manualCut
	for _, h := range ps.cuts {
		if h.standing() && slices.ContainsFunc(h.status().Partition.Links(), func(l model.Link) bool { return at(l.Src) || at(l.Dst) }) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *manualCut) int { return b.status().Created.Compare(a.status().Created) })
	return out
}

// cutSince says whether a host that was lost then has been given the rules of the
// partition by its cut since, and has them. It waits for a cut that is under way.
func (h *manualCut) cutSince(lost time.Time) bool {
	if st := h.status(); !st.Installed.IsZero() && st.Installed.Before(lost) {
		return false
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	_, err := h.cut.LeaseExpiry()
	return err == nil
}

// lose takes a partition out of what is desired, so that it does not come back
// with the switch, and books it as failed.
func (ps *Partitions) lose(h *manualCut, why string) {
	if !h.standing() {
		return
	}
	h.end()
	h.turn.Lock()
	defer h.turn.Unlock()
	if !h.standing() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	_ = h.cut.Remove(ctx) // on the switch or host that is lost the rules expire
	ps.c.Metrics.CutEnded(model.ReasonLost, h.status().Partition.Links())
	ps.set(h, func(p *model.PartitionStatus) {
		p.State, p.Reason = model.PartitionFailed, why
		p.Resume(time.Now())
	})
	ps.forget(h.status().Name, h)
}
