package manual

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/testbed"
)

// Config is what Partitions is made from.
type Config struct {
	Store   Store
	Metrics Metrics
	// Tell enters a change into the daemon's log of what happens. It does not wait.
	Tell func(kind, id, state, text string)
	Log  *slog.Logger
	// Closing ends when the daemon goes down: nothing is proved or counted any more.
	Closing context.Context
}

// Store keeps partitions by their names, those that have ended too.
type Store interface {
	PutPartition(model.PartitionStatus) error
	// GetPartition fails with model.ErrNotFound.
	GetPartition(name string) (model.PartitionStatus, error)
	// ListPartitions lists a page, newest first, and the cursor of the next one.
	ListPartitions(limit int, cursor string) ([]model.PartitionStatus, string, error)
}

// Metrics receives what happens, as it happens.
type Metrics interface {
	CutStarted(shape model.Shape, links []model.Link)
	CutEnded(reason string, links []model.Link)
	PacketFate(link model.Link, fate model.Fate, n int)
	HealTime(d time.Duration)
}

// Partitions keeps the manual partitions of one testbed. Their state is in the store. When
// the daemon ends, so do the cuts.
type Partitions struct {
	c      Config
	tb     *testbed.Testbed // nil: none to cut on
	newCut func(model.Partition) cut

	mu      sync.Mutex // guards what follows; nothing is waited for with it held
	cuts    map[string]*manualCut
	begun   int    // partitions so far; part of generated names
	claimed string // who else uses the testbed; "": nobody

	losses *losses        // to be booked
	work   sync.WaitGroup // goroutines that end with Closing
}

// New makes Partitions without a testbed: nothing can be cut until Open. Losses may be
// reported before that.
func New(c Config) *Partitions {
	return &Partitions{c: c, cuts: map[string]*manualCut{}, losses: newLosses()}
}

// Open sets the testbed to cut on; nil: there is none, and requests are refused. known are
// all partitions in the store: Open takes up those that a dead daemon left behind. Call it
// once.
func (ps *Partitions) Open(b *testbed.Testbed, known []model.PartitionStatus) error {
	ps.tb, ps.newCut = b, func(p model.Partition) cut { return b.NewCut(p) }
	if err := ps.takeUp(known); err != nil {
		return err
	}
	ps.work.Go(ps.bookLosses)
	return nil
}

// takeUp takes up the partitions that a dead daemon left behind. Their rules expire by
// themselves, and the fabric removes any that it finds. takeUp has their heal proved.
func (ps *Partitions) takeUp(known []model.PartitionStatus) error {
	for _, p := range known {
		if p.Ended() {
			continue
		}
		p.LeakKnown = false
		p.Resume(time.Now())
		if !ps.has(p.Partition) {
			p.State, p.Healed = model.PartitionHealed, time.Now()
			p.Reason = leftBehind + "; its hosts are not in the testbed of this one, and its rules expired seconds later"
			if err := ps.c.Store.PutPartition(p); err != nil {
				return err
			}
			continue
		}
		ps.mu.Lock()
		ps.begun++
		h := ps.newManualCut(p.PartitionSpec)
		h.left, h.lifted, h.st = leftBehind+"; its rules expired seconds later, or were removed", true, p
		ps.cuts[p.Name] = h
		ps.mu.Unlock()
		ps.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionHealing, h.left })
		ps.work.Go(func() { ps.healDue(h) })
	}
	return nil
}

const leftBehind = "the daemon that cut it ended, and its counts are lost"

func (ps *Partitions) has(p model.Partition) bool {
	return ps.tb != nil && !slices.ContainsFunc(p.Links(), func(l model.Link) bool {
		_, src := ps.tb.Testbed.Host(l.Src)
		_, dst := ps.tb.Testbed.Host(l.Dst)
		return !src || !dst
	})
}

// Close heals every partition, once Closing has ended. That a heal could not be proved
// is no error: a host may well be down.
func (ps *Partitions) Close() error {
	ps.work.Wait()
	_, errs := ps.healAll(context.Background())
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errUnproved) })...)
}
