package manual

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed"
)

var partitionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Create cuts a partition and returns when the switches or hosts have confirmed the rules.
// The partition is in force later, when that is proved. One that exists under the name is a
// conflict.
func (ps *Partitions) Create(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	return ps.create(ctx, spec, false)
}

// Ensure is Create, but a partition that exists under the name and is the same, roles
// resolved now, is returned as it is.
func (ps *Partitions) Ensure(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	return ps.create(ctx, spec, true)
}

func (ps *Partitions) create(ctx context.Context, spec model.PartitionSpec, same bool) (model.PartitionStatus, error) {
	fail := func(kind error, format string, args ...any) (model.PartitionStatus, error) {
		return model.PartitionStatus{}, fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
	}
	if ps.tb == nil {
		return fail(model.ErrUnavailable, "this daemon has no testbed of its own to cut by hand: start it with --testbed FILE")
	}
	resolved, err := flowrules.Resolve(spec.Partition, flowrules.WhereOn(&ps.tb.Testbed, func(role string) (model.Holders, error) {
		return ps.tb.Holders(ctx, role)
	}))
	if errors.Is(err, model.ErrUnavailable) {
		return model.PartitionStatus{}, err
	}
	if err != nil {
		return fail(model.ErrInvalid, "%v", err)
	}
	if spec.Partition = resolved; ps.tb.Takes(resolved) != nil {
		return fail(model.ErrInvalid, "%v", ps.tb.Takes(resolved))
	}
	ps.mu.Lock()
	if err := ps.free(); err != nil {
		defer ps.mu.Unlock()
		return model.PartitionStatus{}, err
	}
	ps.begun++
	if spec.Name == "" {
		spec.Name = fmt.Sprintf("p-%d-%d", time.Now().Unix(), ps.begun)
	}
	if !partitionName.MatchString(spec.Name) {
		defer ps.mu.Unlock()
		return fail(model.ErrInvalid, "name %q: use 1 to 63 of a-z, 0-9 and -", spec.Name)
	}
	if old := ps.cuts[spec.Name]; old != nil {
		if st := old.status(); !st.Ended() { // also one that is healing: its end is still to be told
			defer ps.mu.Unlock()
			switch standing := st.State == model.PartitionRequested || st.State == model.PartitionInForce; {
			case same && standing && reflect.DeepEqual(st.PartitionSpec, spec):
				return st, nil
			case same && standing:
				return fail(model.ErrConflict, "partition %q is another one: heal it first, for a partition does not change; a role in it may have moved", spec.Name)
			}
			return fail(model.ErrConflict, "partition %q exists and is %s: heal it first or take another name", spec.Name, st.State)
		}
	}
	h := ps.newManualCut(spec)
	h.turn.Lock() // before a heal can find it
	defer h.turn.Unlock()
	ps.cuts[spec.Name] = h
	ps.mu.Unlock()

	if err := ps.c.Store.PutPartition(h.status()); err != nil {
		h.stop()
		ps.mu.Lock()
		delete(ps.cuts, spec.Name)
		ps.mu.Unlock()
		return model.PartitionStatus{}, err
	}
	if err := h.cut.Put(ctx); err != nil {
		h.stop()
		ps.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionFailed, err.Error() })
		herr := h.cut.Remove(context.WithoutCancel(ctx))
		if herr != nil && herr.Error() == err.Error() {
			herr = nil // said already
		}
		ps.forget(spec.Name, h)
		return h.status(), errors.Join(fmt.Errorf("%w: partition %q was not taken: %w", model.ErrUnavailable, spec.Name, err), herr)
	}
	installed := time.Now()
	metering, alone := h.cut.Mechanism() // waits for whoever changes the switches
	h.mu.Lock()
	h.st.Installed = installed
	if metering {
		h.st.CutBy = testbed.CutBy(alone)
	}
	h.mu.Unlock()
	ps.c.Metrics.CutStarted(spec.Partition.Shape, spec.Partition.Links())
	ps.work.Go(func() { ps.watch(h) })
	return h.status(), nil
}

// Delete heals a partition and returns when packets pass again, or an error that says what
// hinders it. It may be called again. A partition that failed stays failed.
func (ps *Partitions) Delete(_ context.Context, name string) (model.PartitionStatus, error) {
	ps.mu.Lock()
	h := ps.cuts[name]
	ps.mu.Unlock()
	if h == nil { // long ended, or never there
		st, err := ps.c.Store.GetPartition(name)
		if errors.Is(err, model.ErrNotFound) {
			err = fmt.Errorf("%w: no partition %q", model.ErrNotFound, name)
		}
		return st, err
	}
	if err := ps.unclaimed(); err != nil && !h.standing() && !h.status().Ended() { // only the proof of its heal is missing
		return h.status(), err
	}
	return ps.heal(h, model.ReasonHand)
}

// List lists the partitions, newest first; those that stand are all on the first page,
// however old they are.
func (ps *Partitions) List(ctx context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error) {
	list, next, err := ps.c.Store.ListPartitions(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	ps.mu.Lock()
	standing := map[string]*manualCut{}
	for name, h := range ps.cuts {
		if st := h.status(); !st.Ended() {
			standing[name] = h
		}
	}
	ps.mu.Unlock()
	list = slices.DeleteFunc(list, func(p model.PartitionStatus) bool { return standing[p.Name] != nil })
	if cursor == "" {
		for _, h := range standing {
			ps.countNow(ctx, h)
			list = append(list, h.status())
		}
	}
	slices.SortStableFunc(list, func(a, b model.PartitionStatus) int { return b.Created.Compare(a.Created) })
	return list, next, nil
}

// Get returns one.
func (ps *Partitions) Get(ctx context.Context, name string) (model.PartitionStatus, error) {
	ps.mu.Lock()
	h := ps.cuts[name]
	ps.mu.Unlock()
	if h != nil {
		ps.countNow(ctx, h)
		return h.status(), nil
	}
	return ps.c.Store.GetPartition(name)
}

// Reset heals every partition and returns their names, sorted.
func (ps *Partitions) Reset(ctx context.Context) ([]string, error) {
	names, errs := ps.healAll(ctx)
	return names, errors.Join(errs...)
}

func (ps *Partitions) healAll(ctx context.Context) (names []string, errs []error) {
	ps.mu.Lock()
	for name, h := range ps.cuts {
		if h.standing() {
			names = append(names, name)
		}
	}
	ps.mu.Unlock()
	slices.Sort(names)
	// All at once: the proofs, which take longest where a host does not answer, go side
	// by side.
	errs = make([]error, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() { _, errs[i] = ps.Delete(ctx, name) })
	}
	work.Wait()
	return names, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}
