package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
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

	// turn lets the cut and its heals follow one another: a heal that overtook
	// the cut would leave it standing. It guards stop.
	turn sync.Mutex
	stop context.CancelFunc // of the goroutine that proves it

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	st    model.PartitionStatus

	told map[model.Link]fates // to the metrics; turn is held
}

func (h *handCut) status() model.PartitionStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.st
}

// standing says whether anything of the partition may still be in force.
func (h *handCut) standing() bool {
	st := h.status().State
	return st != model.PartitionHealed && st != model.PartitionFailed
}

var partitionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// CreatePartition cuts by hand. It returns when the rules were sent; the
// partition is in force once nothing was seen to pass.
func (s *Service) CreatePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	fail := func(kind error, format string, args ...any) (model.PartitionStatus, error) {
		return model.PartitionStatus{}, fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
	}
	if s.outside == nil {
		return fail(model.ErrUnavailable, "this daemon has no testbed of its own to cut by hand: start it with --testbed FILE")
	}
	resolved, err := spec.Partition.Resolve(s.cfg.Testbed.Where(func(role string) (model.Holders, error) {
		return s.outside.Holders(ctx, role)
	}))
	if errors.Is(err, model.ErrUnavailable) {
		return model.PartitionStatus{}, err
	}
	if err != nil {
		return fail(model.ErrInvalid, "%v", err)
	}
	if spec.Partition = resolved; s.outside.Takes(resolved.Effect) != nil {
		return fail(model.ErrInvalid, "%v", s.outside.Takes(resolved.Effect))
	}
	s.mu.Lock()
	if s.claimed != "" {
		defer s.mu.Unlock()
		return fail(model.ErrConflict, "campaign %s uses the testbed: wait for it or cancel it", s.claimed)
	}
	s.ids++
	if spec.Name == "" {
		spec.Name = fmt.Sprintf("p-%d-%d", time.Now().Unix(), s.ids)
	}
	if !partitionName.MatchString(spec.Name) {
		defer s.mu.Unlock()
		return fail(model.ErrInvalid, "name %q: use 1 to 63 of a-z, 0-9 and -", spec.Name)
	}
	if old := s.hand[spec.Name]; old != nil && old.standing() {
		defer s.mu.Unlock()
		return fail(model.ErrConflict, "partition %q exists and is %s: heal it first or take another name", spec.Name, old.status().State)
	}
	h := &handCut{cut: s.outside.NewCut(uint32(s.ids), spec.Partition), st: model.PartitionStatus{PartitionSpec: spec, State: model.PartitionRequested, Created: time.Now()}, told: map[model.Link]fates{}}
	h.turn.Lock() // before a heal can find it
	defer h.turn.Unlock()
	s.hand[spec.Name] = h
	s.mu.Unlock()

	if err := s.store.PutPartition(h.status()); err != nil {
		s.mu.Lock()
		delete(s.hand, spec.Name)
		s.mu.Unlock()
		return model.PartitionStatus{}, err
	}
	if err := h.cut.Put(ctx); err != nil {
		s.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionFailed, err.Error() })
		herr := h.cut.Remove(context.WithoutCancel(ctx))
		return h.status(), errors.Join(fmt.Errorf("%w: partition %q was not taken: %w", model.ErrUnavailable, spec.Name, err), herr)
	}
	h.mu.Lock()
	if metering, alone := h.cut.Bite(); metering {
		h.st.CutBy = cutBy(alone)
	}
	h.mu.Unlock()
	s.metrics.CutStarted(spec.Partition.Shape, spec.Partition.Links())
	pctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer stop()
		s.proveCut(pctx, h)
		s.keepCounting(pctx, h)
	}()
	return h.status(), nil
}

// cutBy says in words how cuts bite; alone is why they do by rules alone.
func cutBy(alone error) string {
	if alone == nil {
		return "meters, then drop rules"
	}
	return fmt.Sprintf("drop rules alone: %v", alone)
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

// proveCut waits until the partition is in force, and has it healed at its time.
func (s *Service) proveCut(ctx context.Context, h *handCut) {
	at, err := h.cut.Prove(ctx)
	if err != nil {
		s.set(h, func(p *model.PartitionStatus) {
			if p.State == model.PartitionRequested {
				p.Reason = err.Error()
			}
		})
		return
	}
	s.set(h, func(p *model.PartitionStatus) {
		if p.State == model.PartitionRequested {
			p.State, p.InForce, p.LeakKnown = model.PartitionInForce, at, true
		}
	})
	if d := h.status().For; d > 0 {
		h.mu.Lock()
		h.timer = time.AfterFunc(d, func() {
			if _, err := s.heal(h); err != nil {
				s.log.Error("a partition did not heal at its time", "partition", h.status().Name, "err", err)
			}
		})
		h.mu.Unlock()
	}
}

// DeletePartition heals a partition cut by hand. Healing twice is harmless. It
// returns when a packet passed again, or with what hinders it.
func (s *Service) DeletePartition(_ context.Context, name string) (model.PartitionStatus, error) {
	s.mu.Lock()
	h := s.hand[name]
	s.mu.Unlock()
	if h == nil { // long ended, or never there
		st, err := s.store.GetPartition(name)
		if errors.Is(err, model.ErrNotFound) {
			err = fmt.Errorf("%w: no partition %q", model.ErrNotFound, name)
		}
		return st, err
	}
	return s.heal(h)
}

// loseHandCuts books, whenever a switch or host does not do what we say any more, that
// the partitions by hand are lost.
func (s *Service) loseHandCuts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-s.lost:
			s.mu.Lock()
			lost := slices.Collect(maps.Values(s.hand))
			s.mu.Unlock()
			for _, h := range lost {
				s.lose(h, why)
			}
		}
	}
}

// lose takes a partition out of what is desired, so that it does not come back
// with the switch, and books it as failed.
func (s *Service) lose(h *handCut, why error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	if !h.standing() {
		return
	}
	h.end()
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	_ = h.cut.Remove(ctx) // on the switch or host that is lost the rules expire
	s.metrics.CutEnded("lost", h.status().Partition.Links())
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Reason = model.PartitionFailed, "its rules are not renewed and expire within seconds: "+why.Error()
	})
}

// end stops what waits for the partition: its proof and its time to heal. turn
// is held.
func (h *handCut) end() {
	if h.stop != nil {
		h.stop()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// healLimit is how long all of a heal may take.
const healLimit = time.Minute

// heal ends a partition. It goes on when whoever asked for it has gone.
func (s *Service) heal(h *handCut) (model.PartitionStatus, error) {
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	h.turn.Lock()
	defer h.turn.Unlock()
	if st := h.status(); st.State == model.PartitionHealed {
		return st, nil
	}
	h.end()
	s.count(ctx, h)
	s.set(h, func(p *model.PartitionStatus) { p.State = model.PartitionHealing })
	if err := h.cut.Lift(ctx); err != nil {
		s.log.Warn("a partition heals link by link", "partition", h.status().Name, "err", err)
	}
	if err := h.cut.Remove(ctx); err != nil {
		s.set(h, func(p *model.PartitionStatus) { p.Reason = err.Error() })
		return h.status(), fmt.Errorf("%w: the heal was not confirmed, the rules expire by themselves within seconds: %w", model.ErrUnavailable, err)
	}
	s.metrics.CutEnded("by-hand", h.status().Partition.Links())
	began := time.Now()
	err := h.cut.Healed(ctx, func(l model.Link) bool { return len(s.stillCut(h, l)) > 0 })
	if err == nil {
		s.metrics.HealTime(time.Since(began))
	}
	others := s.stillCut(h, h.status().Partition.Links()...)
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Healed, p.Reason = model.PartitionHealed, time.Now(), ""
		switch {
		case err != nil:
			p.Reason = fmt.Sprintf("rules removed, but %v", err)
		case len(others) > 0:
			p.Reason = fmt.Sprintf("some of its links are still cut, by %s", strings.Join(others, ", "))
		}
	})
	st := h.status()
	s.forget(st.Name, h)
	return st, nil
}

// forget drops a partition that has ended, once the store knows its end: a
// daemon that cuts for weeks does not grow by it.
func (s *Service) forget(name string, h *handCut) {
	kept, err := s.store.GetPartition(name)
	if err != nil || kept.State != model.PartitionHealed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hand[name] == h {
		delete(s.hand, name)
	}
}

// stillCut names, sorted, the other partitions that cut any of the links still, so
// that no packet there can prove this heal.
func (s *Service) stillCut(h *handCut, links ...model.Link) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, o := range s.hand {
		if o != h && o.standing() && slices.ContainsFunc(o.status().Partition.Links(), func(l model.Link) bool { return slices.Contains(links, l) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Partitions lists the partitions by hand, newest first.
func (s *Service) Partitions(ctx context.Context) ([]model.PartitionStatus, error) {
	list, err := s.store.ListPartitions()
	for i := range list {
		s.mu.Lock()
		h := s.hand[list[i].Name]
		s.mu.Unlock()
		if h != nil {
			s.countNow(ctx, h)
			list[i] = s.lacking(h.status())
		}
	}
	slices.SortStableFunc(list, func(a, b model.PartitionStatus) int { return b.Created.Compare(a.Created) })
	return list, err
}

// Partition returns one.
func (s *Service) Partition(ctx context.Context, name string) (model.PartitionStatus, error) {
	s.mu.Lock()
	h := s.hand[name]
	s.mu.Unlock()
	if h != nil {
		s.countNow(ctx, h)
		return s.lacking(h.status()), nil
	}
	return s.store.GetPartition(name)
}

// lacking adds to a partition in force which of its switches are away: what is
// cut there is not renewed, and comes back with them.
func (s *Service) lacking(st model.PartitionStatus) model.PartitionStatus {
	if s.ctrl == nil || st.State != model.PartitionInForce || st.Reason != "" {
		return st
	}
	for _, id := range s.cfg.Testbed.Switches() {
		if s.ctrl.Switch(id) == nil {
			st.Reason += fmt.Sprintf("switch %s is not connected: what is cut there expires within seconds, and is cut again once it is back; ", id)
		}
	}
	st.Reason = strings.TrimSuffix(st.Reason, "; ")
	return st
}

// Reset heals every partition cut by hand and returns their names, sorted.
func (s *Service) Reset(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	var names []string
	for name, h := range s.hand {
		if h.standing() {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		_, err := s.DeletePartition(ctx, name)
		errs = append(errs, err)
	}
	return names, errors.Join(errs...)
}

// healLeftovers books the partitions that a daemon left behind when it died:
// its rules expire by themselves, and the fabric removes what it finds.
func (s *Service) healLeftovers() error {
	left, err := s.store.ListPartitions()
	if err != nil {
		return err
	}
	for _, p := range left {
		if p.State == model.PartitionHealed || p.State == model.PartitionFailed {
			continue
		}
		p.State, p.Healed = model.PartitionHealed, time.Now()
		p.Reason = "the daemon that cut it ended, and with it what was counted; its rules expired seconds later, or were removed now"
		p.LeakKnown = false
		if err := s.store.PutPartition(p); err != nil {
			return err
		}
	}
	return nil
}
