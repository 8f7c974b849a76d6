package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/model"
)

// backend drops packets at line rate: the switches of a testbed (fabric.Fabric)
// or, where there are none, its hosts (hosts.Hosts).
type backend interface {
	// Cut cuts a partition and returns when that is confirmed, which is not yet
	// proof. On error the backend no longer tries to cut it.
	Cut(ctx context.Context, id uint32, p model.Partition) error
	// Heal lifts the partition with that id, if it is in force.
	Heal(ctx context.Context, id uint32) error
	// Drops is what the partition's rules have counted so far that must drop the probe
	// packets: by link, for each probe packet. It may lag.
	Drops(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error)
	// LeaseExpiry is the earliest time at which a rule of the partition expires unless it
	// is renewed, and what hinders the renewal. It does not wait.
	LeaseExpiry(p model.Partition) (time.Time, error)
	// Verify says which rules of a partition were missing; it waits.
	Verify(ctx context.Context, p model.Partition) error
	// DropsBy is what was dropped of a partition so far, by the rules that dropped
	// it. It waits until that is complete.
	DropsBy(ctx context.Context, id uint32) ([]model.RuleDrops, error)
	// CountedFor lists, by link and for each probe packet sent there now, the ids of the
	// partitions whose DropsBy counts it.
	CountedFor(links []model.Link, of []model.ProbePacket) map[model.Link][][]uint32
}

// metered is a backend that cuts by meters first, where it can.
type metered interface {
	// Mechanism says why drop rules alone cut a partition; nil: meters cut first.
	Mechanism(p model.Partition) error
	// Lift takes a partition's drop rules away and leaves its meters down. It returns, by
	// link, which probe packets only a meter still holds back; it leaves out links without
	// any.
	Lift(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]bool, error)
	// Held is what the rules that send probe packets of a partition to its meters have
	// counted so far, as Drops.
	Held(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]model.Met, error)
}

// Cut is a partition that the switches or hosts of a testbed cut at line rate,
// without the gate. It can prove that it holds and that it is healed.
type Cut struct {
	tb        *Testbed
	id        uint32 // in the backend, and in the rules' cookies
	partition model.Partition
	resets    atomic.Uint64 // sent so far

	mu     sync.Mutex // guards what follows
	probes map[model.Link]uint64
}

// NewCut returns a partition that is not in force yet. Its id is higher than those of
// all earlier cuts on this testbed, at the gate or not.
func (b *Testbed) NewCut(p model.Partition) *Cut {
	return &Cut{tb: b, id: b.ids.Add(1), partition: p, probes: map[model.Link]uint64{}}
}

// Takes says why the testbed cannot cut a partition at line rate; nil: it can.
func (b *Testbed) Takes(p model.Partition) error {
	if err := p.NeedsGate(); err != nil {
		return err
	}
	if p.Effect == model.Reset && b.fabric == nil {
		return errors.New("effect reset: the hosts of this testbed drop packets themselves and send no resets: ask for drop, or use a switch")
	}
	return nil
}

// Put cuts the partition and returns when the switches or hosts have confirmed it.
// That is not yet proof: see Prove.
func (c *Cut) Put(ctx context.Context) error {
	c.tb.standing.Store(c.id, c)
	return c.tb.cuts.Cut(ctx, c.id, c.partition)
}

// Remove ends the cut and returns when the switches or hosts have confirmed it. It
// does nothing if the partition is not in force.
func (c *Cut) Remove(ctx context.Context) error {
	err := c.tb.cuts.Heal(ctx, c.id)
	c.tb.standing.Delete(c.id)
	return err
}

// LeaseExpiry is the earliest time at which the cut ends unless netsplit renews it, and
// what hinders the renewal; nil: nothing does. It does not wait.
func (c *Cut) LeaseExpiry() (time.Time, error) { return c.tb.cuts.LeaseExpiry(c.partition) }

// Resets is how many packets netsplit has sent so far to end TCP connections across it.
func (c *Cut) Resets() uint64 { return c.resets.Load() }

// Mechanism says whether switches make the cut, and if so, why by drop rules alone;
// nil: meters cut first.
func (c *Cut) Mechanism() (metering bool, alone error) {
	m, ok := c.tb.cuts.(metered)
	if !ok {
		return false, nil
	}
	return true, m.Mechanism(c.partition)
}

// CutBy says in words the mechanism of a cut; alone is the reason for rules alone
// (Mechanism, Testbed.Meters).
func CutBy(alone error) string {
	if alone == nil {
		return "meters, then drop rules"
	}
	return fmt.Sprintf("drop rules alone: %v", alone)
}

// Probes is how many probe packets, by link, are among those that the cut has dropped
// so far: they were sent to prove this cut, or another one on the same links.
func (c *Cut) Probes() map[model.Link]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.probes)
}

func (b *Testbed) probed(l model.Link, sent []bool, counted [][]uint32) {
	for i, is := range sent {
		if !is || i >= len(counted) {
			continue
		}
		for _, id := range counted[i] {
			if v, standing := b.standing.Load(id); standing {
				c := v.(*Cut)
				c.mu.Lock()
				c.probes[l]++
				c.mu.Unlock()
			}
		}
	}
}

// Sum adds up the counts of all links.
func Sum(byLink map[model.Link]uint64) (n uint64) {
	for _, m := range byLink {
		n += m
	}
	return n
}

// Dropped is how many packets the cut has dropped, probe packets included, by rule.
// It waits until the count is complete.
func (c *Cut) Dropped(ctx context.Context) ([]model.RuleDrops, error) {
	return c.tb.cuts.DropsBy(ctx, c.id)
}
