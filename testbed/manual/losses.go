package manual

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsplit/model"
)

// loss says that a switch or host no longer does what it is told.
type loss struct {
	on     model.DatapathID // the switch, or
	host   model.NodeID     // the host: all partitions there are lost
	newest bool             // only the newest of them is
	why    string
	at     time.Time // when it was last reported
}

// losses is an unbounded queue of losses to be booked, so that add never waits.
type losses struct {
	mu      sync.Mutex
	waiting []loss
	more    chan struct{}
}

func newLosses() *losses { return &losses{more: make(chan struct{}, 1)} }

// add queues a loss. If an equal one waits already, add only updates its time.
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

// LoseSwitch books the partitions on a switch as lost: the rules there are not renewed. It
// does not wait.
func (ps *Partitions) LoseSwitch(id model.DatapathID, why error) {
	ps.losses.add(loss{on: id, why: unrenewed(why)})
}

// LoseHost books the partitions on a host that drops packets itself as lost. It does not
// wait.
func (ps *Partitions) LoseHost(host model.NodeID, why error) {
	ps.losses.add(loss{host: host, why: unrenewed(why)})
}

// LoseNewest gives up the newest partition on a switch that has no room for all of them.
// It does not wait.
func (ps *Partitions) LoseNewest(id model.DatapathID, why error) {
	ps.losses.add(loss{on: id, newest: true, why: why.Error()})
}

func unrenewed(why error) string {
	return fmt.Sprintf("its rules are not renewed and expire within seconds: %v", why)
}

// bookLosses takes losses from the queue and books the partitions there as lost.
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

// cutSince says whether the partition was cut after a host was lost, so that the host has
// its rules. It waits for a cut that is under way.
func (h *manualCut) cutSince(lost time.Time) bool {
	if st := h.status(); !st.Installed.IsZero() && st.Installed.Before(lost) {
		return false
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	_, err := h.cut.LeaseExpiry()
	return err == nil
}

// lose books a partition as failed, and removes it from the desired state, so that it does
// not come back with the switch.
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
