package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/campaign/bed"
	"netsplit/model"
)

// handCut is a partition cut by hand on the outside testbed, at line rate: by
// meters and drop rules of its switches, or by its hosts; not by the gate.
type handCut struct {
	cut *bed.Cut
	// ctx ends, by stop, when the partition is to be healed or the daemon goes
	// down: whatever proves it or counts gives up then.
	ctx  context.Context
	stop context.CancelFunc
	on   map[model.Link]bool // the links that it cuts
	// again gets why the proof holds no longer. One that waits is for all.
	again chan string
	// look asks whether it is kept still.
	look chan struct{}

	// left says of a partition that a daemon left behind when it died why little is
	// known of it; "" of others.
	left string

	// turn lets the cut, its counts and its heals follow one another: a heal that
	// overtook the cut would leave it standing. It guards what follows.
	turn    sync.Mutex
	counted counted
	decided time.Time // when it was first to be healed

	mu     sync.Mutex // guards what follows; nothing is waited for with it held
	timer  *time.Timer
	lifted bool // its rules were taken away
	st     model.PartitionStatus
}

// newHandCut is a partition that is not in force yet; s.mu is held.
func (s *Service) newHandCut(spec model.PartitionSpec) *handCut {
	h := &handCut{cut: s.outside.NewCut(spec.Partition), again: make(chan string, 1), look: make(chan struct{}, 1),
		counted: newCounted(), st: model.PartitionStatus{PartitionSpec: spec, State: model.PartitionRequested, Created: time.Now()}}
	h.ctx, h.stop = context.WithCancel(s.closing)
	h.on = map[model.Link]bool{}
	for _, l := range spec.Partition.Links() {
		h.on[l] = true
	}
	return h
}

func (h *handCut) status() model.PartitionStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.st
	if !st.Installed.IsZero() && (st.State == model.PartitionRequested || st.State == model.PartitionInForce) {
		st.RenewedUntil, _ = h.cut.Kept()
	}
	return st
}

// standing says whether anything of the partition may still be in force.
func (h *handCut) standing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lifted && !h.st.Ended()
}

// end stops what waits for the partition: its proof and its time to heal.
func (h *handCut) end() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// set changes the status of a partition, stores it and tells of it.
func (s *Service) set(h *handCut, change func(*model.PartitionStatus)) {
	h.mu.Lock()
	change(&h.st)
	st := h.st
	h.mu.Unlock()
	if err := s.store.PutPartition(st); err != nil {
		s.log.Error("a partition's state could not be stored", "partition", st.Name, "err", err)
	}
	text := fmt.Sprintf("partition %s is %s", st.Name, st.State)
	if st.Reason != "" {
		text += ": " + st.Reason
	}
	s.tell("partition", st.Name, string(st.State), text)
}

// watch proves a partition, and proves it anew whenever something happened to its
// rules, until it is healed; what it drops is counted all the while.
func (s *Service) watch(h *handCut) {
	defer h.stop()
	s.done.Go(func() { s.keepCounting(h) })
	for h.ctx.Err() == nil {
		s.prove(h)
		why, ok := h.shaken()
		if !ok {
			return
		}
		s.set(h, func(p *model.PartitionStatus) {
			if p.State == model.PartitionInForce {
				p.State, p.Reason = model.PartitionRequested, why
			}
		})
	}
}

// shaken waits until a proof holds no more and says why; not ok: the partition is to
// end.
func (h *handCut) shaken() (why string, ok bool) {
	for {
		select {
		case <-h.ctx.Done():
			return "", false
		case why := <-h.again:
			return why + "; it is being proved again", true
		case <-h.look:
			if _, err := h.cut.Kept(); err != nil {
				return err.Error(), true
			}
		}
	}
}

// proveAgain is how long a partition that could not be proved waits for the next
// try.
const proveAgain = time.Second

// prove tries until the partition is in force, and has it healed at its time,
// which begins with the first try's end, whatever came of it.
func (s *Service) prove(h *handCut) {
	for h.ctx.Err() == nil {
		select {
		case <-h.again: // before this try: it is what is proved
		default:
		}
		at, err := h.cut.Prove(h.ctx)
		if h.ctx.Err() != nil {
			return
		}
		s.healInTime(h)
		if err == nil && len(h.again) > 0 {
			continue
		}
		if err == nil {
			s.set(h, func(p *model.PartitionStatus) {
				if p.State != model.PartitionRequested {
					return
				}
				p.State, p.Reason = model.PartitionInForce, ""
				if p.InForce.IsZero() { // what passed since, was said not to
					p.InForce, p.LeakKnown = at, true
				}
			})
			return
		}
		if h.status().Reason != err.Error() {
			s.set(h, func(p *model.PartitionStatus) {
				if p.State == model.PartitionRequested {
					p.Reason = err.Error()
				}
			})
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(proveAgain):
		}
	}
}

// healInTime has a partition healed at its time, if it has one; once.
func (s *Service) healInTime(h *handCut) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.st.For <= 0 || h.timer != nil || h.ctx.Err() != nil {
		return
	}
	h.timer = time.AfterFunc(h.st.For, func() { s.healDue(h) })
}

// healDue heals a partition whose time is over, or that was left behind, and tries
// until it is healed or the daemon goes down: a switch may be away just then.
func (s *Service) healDue(h *handCut) {
	told := ""
	for s.closing.Err() == nil {
		err := s.unclaimed() // the packets of a proof must not come into its runs
		if err == nil || h.standing() {
			_, err = s.heal(h)
		}
		if err == nil {
			return
		}
		if err.Error() != told {
			told = err.Error()
			s.log.Error("a partition did not heal; it is tried again", "partition", h.status().Name, "err", err)
		}
		select {
		case <-s.closing.Done():
		case <-time.After(proveAgain):
		}
	}
}

// shake has the partitions by hand proved again: something happened to their
// rules. It does not wait.
func (s *Service) shake(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hand {
		select {
		case h.again <- why:
		default:
		}
	}
}

// look has the partitions by hand booked as in force no more that are not kept. It
// does not wait.
func (s *Service) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hand {
		select {
		case h.look <- struct{}{}:
		default:
		}
	}
}

// lose takes a partition out of what is desired, so that it does not come back
// with the switch, and books it as failed.
func (s *Service) lose(h *handCut, why string) {
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
	s.metrics.CutEnded("lost", h.status().Partition.Links())
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Reason = model.PartitionFailed, why
	})
	s.forget(h.status().Name, h)
}

// healLimit is how long all of a heal may take.
const healLimit = time.Minute

// errUnproved: the rules of a partition are gone, and no packet has shown it.
var errUnproved = errors.New("its rules were taken away, and no packet has shown yet that all passes again")

// heal ends a partition. It goes on when whoever asked for it has gone. One whose
// end could not be confirmed, or not be proved, may be healed again.
func (s *Service) heal(h *handCut) (model.PartitionStatus, error) {
	now := time.Now()
	h.end() // whoever has the turn hurries
	h.turn.Lock()
	defer h.turn.Unlock()
	if h.decided.IsZero() {
		h.decided = now
	}
	st := h.status()
	if st.Ended() {
		return st, nil
	}
	begins := st.State != model.PartitionHealing // else it was tried before: what passes now is no leak
	// What passes while the rules' counts are read is neither: at hosts with other clocks
	// nobody could tell it from what passes when the rules are gone.
	until := time.Now()
	if begins {
		s.countDropped(context.Background(), h) // while there are rules
		s.set(h, func(p *model.PartitionStatus) { p.State = model.PartitionHealing })
	}
	goesOn := context.Background()
	if h.left != "" { // its rules are gone whoever looks
		goesOn = s.closing
	}
	ctx, cancel := context.WithTimeout(goesOn, healLimit)
	defer cancel()
	if h.standing() {
		err := s.lift(ctx, h)
		if begins { // hosts that do not answer hold up no heal
			s.countLeaked(context.Background(), h, until)
		}
		if err != nil {
			s.set(h, func(p *model.PartitionStatus) { p.Reason = err.Error() })
			return h.status(), fmt.Errorf("%w: the heal was not confirmed, the rules expire by themselves within seconds: %w", model.ErrUnavailable, err)
		}
	}
	if err := h.cut.Healed(ctx, func(l model.Link, sp model.Specimen) bool { return s.cutByOthers(h, l, sp) }); err != nil {
		err = fmt.Errorf("%w: %w", errUnproved, err)
		s.set(h, func(p *model.PartitionStatus) { p.Reason = err.Error() })
		return h.status(), fmt.Errorf("%w: partition %q: %w; heal it again to look again", model.ErrUnavailable, st.Name, err)
	}
	if h.left == "" {
		s.metrics.HealTime(time.Since(h.decided))
	}
	others := s.stillCut(h)
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Healed, p.Reason = model.PartitionHealed, time.Now(), h.left
		if len(others) > 0 {
			still := fmt.Sprintf("some of its links are still cut, by %s", strings.Join(others, ", "))
			p.Reason = strings.TrimPrefix(p.Reason+"; "+still, "; ")
		}
	})
	st = h.status()
	s.forget(st.Name, h)
	return st, nil
}

// lift takes a partition's rules away.
func (s *Service) lift(ctx context.Context, h *handCut) error {
	if err := h.cut.Lift(ctx); err != nil {
		s.log.Warn("a partition heals link by link", "partition", h.status().Name, "err", err)
	}
	if err := h.cut.Remove(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	h.lifted = true
	h.mu.Unlock()
	s.metrics.CutEnded("by-hand", h.status().Partition.Links())
	return nil
}

// forget drops a partition that has ended, once the store knows its end: a
// daemon that cuts for weeks does not grow by it.
func (s *Service) forget(name string, h *handCut) {
	kept, err := s.store.GetPartition(name)
	if err != nil || !kept.Ended() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hand[name] == h {
		delete(s.hand, name)
	}
}

// cutByOthers says whether another partition that stands takes a specimen on a link, so
// that it cannot prove this heal.
func (s *Service) cutByOthers(h *handCut, l model.Link, sp model.Specimen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.hand {
		if o != h && o.on[l] && o.standing() && o.partition().Takes(sp) {
			return true
		}
	}
	return false
}

// partition is what is cut; it does not change.
func (h *handCut) partition() model.Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.st.Partition
}

// stillCut names, sorted, the other partitions that cut some of what this one did
// still, with the traffic of it that they cut if that is not all.
func (s *Service) stillCut(h *handCut) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	mine := h.partition()
	for name, o := range s.hand {
		p := o.partition()
		if o == h || !o.standing() || !slices.ContainsFunc(p.Links(), func(l model.Link) bool { return h.on[l] }) {
			continue
		}
		if !p.CutsAll(mine) {
			only := p.CutsOf(mine)
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
