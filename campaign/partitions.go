package campaign

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"netsplit/campaign/bed"
	"netsplit/model"
)

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
	if old := s.hand[spec.Name]; old != nil {
		if st := old.status(); !st.Ended() { // also one that is healing: its end is still to be told
			defer s.mu.Unlock()
			return fail(model.ErrConflict, "partition %q exists and is %s: heal it first or take another name", spec.Name, st.State)
		}
	}
	h := s.newHandCut(spec)
	h.turn.Lock() // before a heal can find it
	defer h.turn.Unlock()
	s.hand[spec.Name] = h
	s.mu.Unlock()

	if err := s.store.PutPartition(h.status()); err != nil {
		h.stop()
		s.mu.Lock()
		delete(s.hand, spec.Name)
		s.mu.Unlock()
		return model.PartitionStatus{}, err
	}
	if err := h.cut.Put(ctx); err != nil {
		h.stop()
		s.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionFailed, err.Error() })
		herr := h.cut.Remove(context.WithoutCancel(ctx))
		if herr != nil && herr.Error() == err.Error() {
			herr = nil // said already
		}
		s.forget(spec.Name, h)
		return h.status(), errors.Join(fmt.Errorf("%w: partition %q was not taken: %w", model.ErrUnavailable, spec.Name, err), herr)
	}
	installed := time.Now()
	metering, alone := h.cut.Bite() // waits for whoever changes the switches
	h.mu.Lock()
	h.st.Installed = installed
	if metering {
		h.st.CutBy = bed.CutBy(alone)
	}
	h.mu.Unlock()
	s.metrics.CutStarted(spec.Partition.Shape, spec.Partition.Links())
	s.done.Go(func() { s.watch(h) })
	return h.status(), nil
}

// DeletePartition heals a partition cut by hand. Healing twice is harmless, and
// one that failed stays so. It returns when a packet passed again, or with what
// hinders it; then it may be called again.
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
	if err := s.unclaimed(); err != nil && !h.standing() && !h.status().Ended() { // only its proof is left to be made
		return h.status(), err
	}
	return s.heal(h)
}

// Partitions lists the partitions by hand, newest first; those that stand are all on
// the first page, however old they are.
func (s *Service) Partitions(ctx context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error) {
	list, next, err := s.store.ListPartitions(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	standing := map[string]*handCut{}
	for name, h := range s.hand {
		if st := h.status(); !st.Ended() {
			standing[name] = h
		}
	}
	s.mu.Unlock()
	list = slices.DeleteFunc(list, func(p model.PartitionStatus) bool { return standing[p.Name] != nil })
	if cursor == "" {
		for _, h := range standing {
			s.countNow(ctx, h)
			list = append(list, h.status())
		}
	}
	slices.SortStableFunc(list, func(a, b model.PartitionStatus) int { return b.Created.Compare(a.Created) })
	return list, next, nil
}

func (s *Service) allPartitions() ([]model.PartitionStatus, error) {
	return all(func(c string) ([]model.PartitionStatus, string, error) { return s.store.ListPartitions(page, c) })
}

// Partition returns one.
func (s *Service) Partition(ctx context.Context, name string) (model.PartitionStatus, error) {
	s.mu.Lock()
	h := s.hand[name]
	s.mu.Unlock()
	if h != nil {
		s.countNow(ctx, h)
		return h.status(), nil
	}
	return s.store.GetPartition(name)
}

// Reset heals every partition cut by hand and returns their names, sorted.
func (s *Service) Reset(ctx context.Context) ([]string, error) {
	names, errs := s.healAll(ctx)
	return names, errors.Join(errs...)
}

func (s *Service) healAll(ctx context.Context) (names []string, errs []error) {
	s.mu.Lock()
	for name, h := range s.hand {
		if h.standing() {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	slices.Sort(names)
	// All at once: the proofs, which take longest where a host does not answer, go side
	// by side.
	errs = make([]error, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() { _, errs[i] = s.DeletePartition(ctx, name) })
	}
	work.Wait()
	return names, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// healLeftovers takes up the partitions that a daemon left behind when it died: its
// rules expire by themselves, and the fabric removes what it finds. They are healed
// once that is proved.
func (s *Service) healLeftovers() error {
	left, err := s.allPartitions()
	if err != nil {
		return err
	}
	for _, p := range left {
		if p.Ended() {
			continue
		}
		p.LeakKnown = false
		if !s.has(p.Partition) {
			p.State, p.Healed = model.PartitionHealed, time.Now()
			p.Reason = leftBehind + "; its hosts are not in the testbed of this one, and its rules expired seconds later"
			if err := s.store.PutPartition(p); err != nil {
				return err
			}
			continue
		}
		s.mu.Lock()
		h := s.newHandCut(p.PartitionSpec)
		h.left, h.lifted, h.st = leftBehind+"; its rules expired seconds later, or were removed", true, p
		s.hand[p.Name] = h
		s.mu.Unlock()
		s.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionHealing, h.left })
		s.done.Go(func() { s.healDue(h) })
	}
	return nil
}

const leftBehind = "the daemon that cut it ended, and with it what was counted"

// has says whether all hosts of a partition are on the outside testbed.
func (s *Service) has(p model.Partition) bool {
	return s.outside != nil && !slices.ContainsFunc(p.Links(), func(l model.Link) bool {
		_, src := s.outside.Testbed.Host(l.Src)
		_, dst := s.outside.Testbed.Host(l.Dst)
		return !src || !dst
	})
}
