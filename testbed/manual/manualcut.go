package manual

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/model"
	"netsplit/testbed"
)

// cut is what the testbed does of a partition: a *testbed.Cut.
type cut interface {
	Put(ctx context.Context) error
	Mechanism() (metering bool, alone error)
	Prove(ctx context.Context) (time.Time, error)
	LeaseExpiry() (time.Time, error)
	Dropped(ctx context.Context) ([]model.RuleDrops, error)
	Crossed(ctx context.Context, from, to time.Time) (map[model.Link]uint64, error)
	Probes() map[model.Link]uint64
	Resets() uint64
	Lift(ctx context.Context) error
	Remove(ctx context.Context) error
	Healed(ctx context.Context, cutByOthers func(model.Link, model.ProbePacket) bool) error
}

var _ cut = (*testbed.Cut)(nil)

// manualCut is a manual partition, at line rate: by meters and drop rules of switches,
// or by hosts; not by the gate.
type manualCut struct {
	cut cut
	// ctx ends, by stop, when the partition is to be healed or the daemon goes
	// down: whatever proves it or counts gives up then.
	ctx  context.Context
	stop context.CancelFunc
	on   map[model.Link]bool // the links that it cuts
	// again gets the reason to prove it again. It holds one reason; later ones are dropped.
	again chan string
	// look asks for a check that its rules are still renewed. unkept says that they were
	// not at the last proof, and that this is its reason; only watch uses it.
	look   chan struct{}
	unkept bool
	// retries counts calls of HealAgain that the retry under way has not answered yet.
	retries atomic.Int64

	// left says why little is known of a partition that a dead daemon left behind; "" for
	// others.
	left string

	// turn serialises cutting, counting and healing: a heal that overtook the cut would
	// leave it standing. It guards what follows.
	turn    sync.Mutex
	counted counted
	decided time.Time // when a heal was first asked for
	reason  string    // why it was: model.ReasonHand or another

	setting sync.Mutex // held while its status is changed, stored and told

	mu     sync.Mutex // guards what follows; nothing is waited for with it held
	timer  *time.Timer
	lifted bool // its rules were taken away
	st     model.PartitionStatus
}

// newManualCut is a partition that is not in force yet; ps.mu is held.
func (ps *Partitions) newManualCut(spec model.PartitionSpec) *manualCut {
	h := &manualCut{cut: ps.newCut(spec.Partition), again: make(chan string, 1), look: make(chan struct{}, 1),
		counted: newCounted(), st: model.PartitionStatus{PartitionSpec: spec, State: model.PartitionRequested, Created: time.Now()}}
	h.ctx, h.stop = context.WithCancel(ps.c.Closing)
	h.on = map[model.Link]bool{}
	for _, l := range spec.Partition.Links() {
		h.on[l] = true
	}
	return h
}

func (h *manualCut) status() model.PartitionStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.st
	if !st.Installed.IsZero() && (st.State == model.PartitionRequested || st.State == model.PartitionInForce) {
		st.RenewedUntil, _ = h.cut.LeaseExpiry()
	}
	return st
}

// standing says whether anything of the partition may still be in force.
func (h *manualCut) standing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lifted && !h.st.Ended()
}

// end stops what waits for the partition: its proof and its time to heal.
func (h *manualCut) end() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// set changes the status of a partition, stores it and reports it. Changes are made one
// after the other, so the last one stored and reported is the status. If nothing changed,
// set does nothing.
func (ps *Partitions) set(h *manualCut, change func(*model.PartitionStatus)) {
	h.setting.Lock()
	defer h.setting.Unlock()
	h.mu.Lock()
	before := h.st
	change(&h.st)
	st := h.st
	h.mu.Unlock()
	if reflect.DeepEqual(st, before) {
		return
	}
	if err := ps.c.Store.PutPartition(st); err != nil {
		ps.c.Log.Error("a partition's state could not be stored", "partition", st.Name, "err", err)
	}
	text := fmt.Sprintf("partition %s is %s", st.Name, st.State)
	if st.Reason != "" {
		text += ": " + st.Reason
	}
	ps.c.Tell("partition", st.Name, string(st.State), text)
}

// because sets the reason why a partition is still in a state.
func (ps *Partitions) because(h *manualCut, state model.PartitionState, why string) {
	if st := h.status(); st.State != state || st.Reason == why {
		return
	}
	ps.set(h, func(p *model.PartitionStatus) {
		if p.State == state {
			p.Reason = why
		}
	})
}

// watch proves a partition, again whenever something happens to its rules, until it is to
// heal. It also keeps counting what the partition drops.
func (ps *Partitions) watch(h *manualCut) {
	defer h.stop()
	ps.work.Go(func() { ps.keepCounting(h) })
	for h.ctx.Err() == nil {
		ps.prove(h)
		why, ok := h.reverify()
		if !ok {
			return
		}
		ps.set(h, func(p *model.PartitionStatus) {
			if p.State == model.PartitionInForce {
				p.Lapse(time.Now(), why)
				if p.State, p.Reason = model.PartitionRequested, why; !h.unkept {
					p.Reason += "; it is being proved again"
				}
			}
		})
	}
}

// reverify waits until the proof no longer holds and says why. It is not ok if the
// partition is to end.
func (h *manualCut) reverify() (why string, ok bool) {
	for {
		select {
		case <-h.ctx.Done():
			return "", false
		case why := <-h.again:
			h.unkept = false
			return why, h.ctx.Err() == nil // select may choose this although ctx has ended
		case <-h.look:
			if _, err := h.cut.LeaseExpiry(); err != nil {
				h.unkept = true
				return err.Error(), h.ctx.Err() == nil
			}
		}
	}
}

// proveAgain is how long a partition that could not be proved waits for the next
// try.
const proveAgain = time.Second

// prove tries until the partition is in force. When the first try ends, whatever its
// outcome, the time begins after which the partition heals.
func (ps *Partitions) prove(h *manualCut) {
	for h.ctx.Err() == nil {
		select {
		case <-h.again: // this try proves what was asked for before it
		default:
		}
		if _, err := h.cut.LeaseExpiry(); h.unkept && err == nil { // its rules are renewed again
			h.unkept = false
			ps.because(h, model.PartitionRequested, "its rules are in place again; it is being proved")
		}
		at, err := h.cut.Prove(h.ctx)
		if h.ctx.Err() != nil {
			return
		}
		ps.healInTime(h)
		if err == nil && len(h.again) > 0 {
			continue
		}
		if err == nil {
			ps.set(h, func(p *model.PartitionStatus) {
				if p.State != model.PartitionRequested {
					return
				}
				p.State, p.Reason = model.PartitionInForce, ""
				p.Resume(at)
				if p.InForce.IsZero() { // from here on, packets that pass are leaks
					p.InForce, p.LeakKnown = at, true
				}
			})
			return
		}
		_, gone := h.cut.LeaseExpiry()
		if h.unkept = gone != nil; h.unkept { // this is the cause of whatever the proof met
			err = gone
		}
		ps.because(h, model.PartitionRequested, err.Error())
		select {
		case <-h.ctx.Done():
		case <-time.After(proveAgain):
		}
	}
}

// Reverify has all partitions proved again, because something happened to their rules. It
// does not wait.
func (ps *Partitions) Reverify(why string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, h := range ps.cuts {
		select {
		case h.again <- why:
		default:
		}
	}
}

// Recheck checks all partitions: one whose rules are no longer renewed, and may have expired,
// is no longer in force. It does not wait.
func (ps *Partitions) Recheck() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, h := range ps.cuts {
		select {
		case h.look <- struct{}{}:
		default:
		}
	}
}
