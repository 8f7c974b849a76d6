package bed

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"netsplit/model"
)

// backend drops packets at line rate: the switches of a testbed (fabric.Fabric)
// or, where there are none, its hosts (hosts.Hosts).
type backend interface {
	// Cut puts a partition in force and returns when that was confirmed, which is
	// not yet proof. On error nothing of it is desired any more.
	Cut(ctx context.Context, id uint32, p model.Partition) error
	// Heal lifts the partition with that id, if it is in force.
	Heal(ctx context.Context, id uint32) error
	// Drops is what the rules that are to drop specimens of a partition have counted
	// so far, by link, for each specimen; it may lag.
	Drops(ctx context.Context, id uint32, of []model.Specimen) (map[model.Link][]model.Met, error)
	// Kept says until when at least the rules of a partition hold unless they are
	// renewed, and what hinders that they are. It does not wait.
	Kept(p model.Partition) (time.Time, error)
	// Verify says which rules of a partition were missing; it waits.
	Verify(ctx context.Context, p model.Partition) error
	// DropsBy is what was dropped of a partition so far, by link. It waits until
	// that is complete.
	DropsBy(ctx context.Context, id uint32) (map[model.Link]uint64, error)
}

// metered is a backend that cuts by meters first, where it can.
type metered interface {
	// Bite says why a partition's cut is by rules alone; nil: it is not.
	Bite(p model.Partition) error
	// Lift takes a partition's drop rules away and leaves its meters down. It says
	// which specimens nothing but a meter holds, by link, for each; links where it
	// holds none of them are left out.
	Lift(ctx context.Context, id uint32, of []model.Specimen) (map[model.Link][]bool, error)
	// Held is what the rules that send specimens of a partition to its meters have
	// counted so far, as Drops.
	Held(ctx context.Context, id uint32, of []model.Specimen) (map[model.Link][]model.Met, error)
}

// Cut is a partition that a bed cuts at line rate, without the gate, with what
// it takes to prove that it holds and that it is healed.
type Cut struct {
	bed       *Bed
	id        uint32 // in the backend, and in the rules' cookies
	partition model.Partition
	sent      atomic.Uint64 // packets of its own so far
	resets    atomic.Uint64 // sent so far
}

// NewCut is a partition that is not in force yet. id is one that no other in
// force on this bed has.
func (b *Bed) NewCut(id uint32, p model.Partition) *Cut {
	return &Cut{bed: b, id: id, partition: p}
}

// Takes says why the bed cannot have the effect; nil: it can.
func (b *Bed) Takes(e model.Effect) error {
	if e == model.Reset && b.fabric == nil {
		return errors.New("effect reset: the hosts of this testbed drop packets themselves and send no resets: ask for drop, or use a switch")
	}
	return nil
}

// Put has the partition cut and returns when that was confirmed, which is not
// yet proof: see Prove.
func (c *Cut) Put(ctx context.Context) error {
	if c.partition.Effect == model.Reset {
		c.bed.resetting.Store(c.id, c)
	}
	return c.bed.cuts.Cut(ctx, c.id, c.partition)
}

// Remove has the partition cut no more, and returns when that was confirmed. It
// does nothing where the partition is not in force.
func (c *Cut) Remove(ctx context.Context) error {
	err := c.bed.cuts.Heal(ctx, c.id)
	c.bed.resetting.Delete(c.id)
	return err
}

// Kept says until when at least the partition is cut unless that is renewed, and what
// hinders that it is; nil: it is renewed. It does not wait.
func (c *Cut) Kept() (time.Time, error) { return c.bed.cuts.Kept(c.partition) }

// Resets is how many packets it has sent so far to end TCP connections.
func (c *Cut) Resets() uint64 { return c.resets.Load() }

// Bite says whether the cut can be by meters, and if so why it is by rules
// alone; nil: it is by meters first.
func (c *Cut) Bite() (metering bool, alone error) {
	m, ok := c.bed.cuts.(metered)
	if !ok {
		return false, nil
	}
	return true, m.Bite(c.partition)
}

// Sent is how many packets its proofs have sent so far; with switches, over every
// link alike.
func (c *Cut) Sent() uint64 { return c.sent.Load() }

// Sum is the count of all links.
func Sum(byLink map[model.Link]uint64) (n uint64) {
	for _, m := range byLink {
		n += m
	}
	return n
}

// Dropped is how many packets it has dropped, those of its proofs included, by
// link. It waits until the count is complete.
func (c *Cut) Dropped(ctx context.Context) (map[model.Link]uint64, error) {
	return c.bed.cuts.DropsBy(ctx, c.id)
}
