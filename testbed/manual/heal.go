package manual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
)

// healLimit is how long all of a heal may take.
const healLimit = time.Minute

// errUnproved: the rules of a partition are gone, but no probe packet has passed yet.
var errUnproved = errors.New("its rules were removed, but it is not proved yet that packets pass again")

// heal ends a partition. The reason of the first try is kept. heal continues even if its
// caller has gone. A partition whose heal was not confirmed or not proved may be healed
// again.
func (ps *Partitions) heal(h *manualCut, reason string) (model.PartitionStatus, error) {
	now := time.Now()
	h.end() // a proof or count that has the turn gives up
	h.turn.Lock()
	defer h.turn.Unlock()
	if h.decided.IsZero() {
		h.decided, h.reason = now, reason
	}
	st := h.status()
	if st.Ended() {
		return st, nil
	}
	begins := st.State != model.PartitionHealing // else an earlier try has counted the leaks
	// What passes from here on is no leak, although the rules still stand while they are
	// read: on hosts with other clocks nobody could tell it from what passes without rules.
	until := time.Now()
	if begins {
		ps.countDropped(context.Background(), h) // while there are rules
		ps.set(h, func(p *model.PartitionStatus) {
			p.State, p.Reason = model.PartitionHealing, "" // the old reason was about the cut
			p.Resume(until)
		})
	}
	parent := context.Background()
	if !h.standing() { // its rules are gone: when the daemon closes, it need not wait for the proof
		parent = ps.c.Closing
	}
	ctx, cancel := context.WithTimeout(parent, healLimit)
	defer cancel()
	if h.standing() {
		err := ps.lift(ctx, h)
		if begins { // after the rules are gone: hosts that do not answer delay no heal
			ps.countLeaked(context.Background(), h, until)
		}
		if err != nil {
			ps.because(h, model.PartitionHealing, err.Error())
			return h.status(), fmt.Errorf("%w: the heal was not confirmed, the rules expire by themselves within seconds: %w", model.ErrUnavailable, err)
		}
		ps.because(h, model.PartitionHealing, "") // what hindered it before is over
	}
	if err := h.cut.Healed(ctx, func(l model.Link, sp model.ProbePacket) bool { return ps.cutByOthers(h, l, sp) }); err != nil {
		err = fmt.Errorf("%w: %w", errUnproved, err)
		ps.because(h, model.PartitionHealing, err.Error())
		return h.status(), fmt.Errorf("%w: partition %q: %w; heal it again to repeat the proof", model.ErrUnavailable, st.Name, err)
	}
	if h.left == "" {
		ps.c.Metrics.HealTime(time.Since(h.decided))
	}
	others := ps.stillCut(h)
	ps.set(h, func(p *model.PartitionStatus) {
		p.State, p.Healed, p.Reason = model.PartitionHealed, time.Now(), h.left
		if len(others) > 0 {
			still := fmt.Sprintf("some of its links are still cut, by %s", strings.Join(others, ", "))
			p.Reason = strings.TrimPrefix(p.Reason+"; "+still, "; ")
		}
	})
	st = h.status()
	ps.forget(st.Name, h)
	return st, nil
}

// lift takes a partition's rules away; its turn is held.
func (ps *Partitions) lift(ctx context.Context, h *manualCut) error {
	if err := h.cut.Lift(ctx); err != nil {
		ps.c.Log.Warn("a partition heals link by link", "partition", h.status().Name, "err", err)
	}
	if err := h.cut.Remove(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	h.lifted = true
	h.mu.Unlock()
	ps.c.Metrics.CutEnded(h.reason, h.status().Partition.Links())
	return nil
}

// forget drops a partition from memory once the store has its end, so that a daemon that
// cuts for weeks does not grow.
func (ps *Partitions) forget(name string, h *manualCut) {
	kept, err := ps.c.Store.GetPartition(name)
	if err != nil || !kept.Ended() {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.cuts[name] == h {
		delete(ps.cuts, name)
	}
}

// cutByOthers says whether another standing partition drops a probe packet on a link, so
// that the packet cannot prove this heal.
func (ps *Partitions) cutByOthers(h *manualCut, l model.Link, sp model.ProbePacket) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, o := range ps.cuts {
		if o != h && o.on[l] && o.standing() && flowrules.Takes(o.partition(), sp) {
			return true
		}
	}
	return false
}

// partition is what is cut; it does not change.
func (h *manualCut) partition() model.Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.st.Partition
}

// stillCut names, sorted, the other partitions that still cut some of what this one cut,
// with the traffic that they cut if it is not all of it.
func (ps *Partitions) stillCut(h *manualCut) []string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var names []string
	mine := h.partition()
	for name, o := range ps.cuts {
		p := o.partition()
		if o == h || !o.standing() || !slices.ContainsFunc(p.Links(), func(l model.Link) bool { return h.on[l] }) {
			continue
		}
		if !flowrules.CutsAll(p, mine) {
			only := flowrules.CutsOf(p, mine)
			if len(only) == 0 {
				continue
			}
			var words []string
			for _, t := range only {
				words = append(words, t.String())
			}
			name += " (only " + strings.Join(words, ", ") + ")"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// healInTime starts, once, the timer that heals a partition, if it has a time limit.
func (ps *Partitions) healInTime(h *manualCut) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.st.For <= 0 || h.timer != nil || h.ctx.Err() != nil {
		return
	}
	h.timer = time.AfterFunc(h.st.For, func() { ps.healDue(h) })
}

// healDue heals a partition whose time is over, or that a dead daemon left behind. It tries
// until the partition is healed or the daemon closes: a switch may be disconnected.
func (ps *Partitions) healDue(h *manualCut) {
	reported := ""
	for ps.c.Closing.Err() == nil {
		err := ps.tryHeal(h, model.ReasonTime)
		if err == nil {
			return
		}
		if err.Error() != reported {
			reported = err.Error()
			ps.c.Log.Error("a partition did not heal; it is tried again", "partition", h.status().Name, "err", err)
		}
		select {
		case <-ps.c.Closing.Done():
		case <-time.After(proveAgain):
		}
	}
}

// tryHeal heals a partition, unless its rules are gone and somebody claimed the testbed:
// then its probe packets would disturb the claimant.
func (ps *Partitions) tryHeal(h *manualCut, reason string) error {
	if err := ps.unclaimed(); err != nil && !h.standing() {
		return err
	}
	_, err := ps.heal(h, reason)
	return err
}

// HealAgain retries all heals that failed. Call it when something on the testbed works
// again. It does not wait.
func (ps *Partitions) HealAgain() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, h := range ps.cuts {
		if ps.c.Closing.Err() != nil || h.status().State != model.PartitionHealing || h.retries.Add(1) > 1 {
			continue
		}
		ps.work.Go(func() {
			for n := int64(0); !h.retries.CompareAndSwap(n, 0); { // again, if HealAgain was called during the last try
				n = h.retries.Load()
				_ = ps.tryHeal(h, model.ReasonHand) // the status has the error
			}
		})
	}
}
