package bed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// A partition by hand is in force when nothing passes any more, and that is not
// when the switch says that it has the rules: Open vSwitch goes on forwarding
// from its cache until its revalidators have looked at every cached decision.
// They do so in rounds, and in each round they also credit packets to the rules.
// So one packet after the other is sent over every link, each after the one
// before it was counted by the drop rules: between the first and the third, one
// whole round has gone by that began after the cut. Then the agents are asked
// whether anything arrived since. Hosts that drop packets themselves do so from one
// packet to the next, and are asked for the same proof.
const (
	provingRounds = 3
	// roundLimit is how long a round may take before packets are sent once more:
	// Open vSwitch starts one every 500 ms by default, and after each flow-mod.
	roundLimit = 700 * time.Millisecond
	// quietFor proves a cut on a switch whose counters do not tell: longer than
	// a round takes.
	quietFor   = 700 * time.Millisecond
	proofLimit = 10 * time.Second
	// liftLimit is how long a heal waits for its drop rules to be gone.
	liftLimit = 2 * time.Second
	// arrival is time enough for a packet that passes to arrive.
	arrival = 10 * time.Millisecond
	// pollEvery is the pause between two looks at a counter.
	pollEvery = 5 * time.Millisecond
)

// Prove returns once the partition is in force: from when nothing passed. An
// error says what hinders the proof, which is waited for at most 10 s, or that
// ctx ended before it was made. What is not kept is not proved, though nothing
// may pass for some seconds.
func (c *Cut) Prove(ctx context.Context) (time.Time, error) {
	ctx, stop := context.WithTimeout(ctx, proofLimit)
	defer stop()
	var why error
	for ctx.Err() == nil {
		if _, err := c.Kept(); err != nil {
			return time.Time{}, err
		}
		if why = c.rounds(ctx, c.partition.Links(), c.drops); why != nil { // the counters do not tell: silence does
			why = errors.Join(why, c.emit(ctx, c.partition.Links()), pause(ctx, quietFor))
		}
		at := time.Now()
		if err := errors.Join(c.emit(ctx, c.partition.Links()), pause(ctx, arrival)); err != nil {
			why = errors.Join(why, err)
			continue
		}
		byLink, err := c.Crossed(ctx, at, time.Now())
		n := Sum(byLink)
		if err == nil && n == 0 {
			// The packets of the proof do not go by every rule.
			if err := c.bed.cuts.Verify(ctx, c.partition); err != nil {
				return time.Time{}, err
			}
			if _, err := c.Kept(); err != nil {
				return time.Time{}, err
			}
			return at, nil
		}
		if err == nil {
			err = fmt.Errorf("%d packets still passed", n)
		}
		why = errors.Join(why, err)
	}
	return time.Time{}, fmt.Errorf("not proved within %v: %w", proofLimit, errors.Join(why, ctx.Err()))
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// counter reads what rules about the partition have counted, by link.
type counter func(context.Context) (map[model.Link]uint64, error)

func (c *Cut) drops(ctx context.Context) (map[model.Link]uint64, error) {
	return c.bed.cuts.Drops(ctx, c.id)
}

// rounds returns when the rules of every link have counted provingRounds times
// what was sent, each time before it was sent again.
func (c *Cut) rounds(ctx context.Context, links []model.Link, count counter) error {
	for range provingRounds {
		before, err := count(ctx)
		if err != nil {
			return err
		}
		if err := c.emit(ctx, links); err != nil {
			return err
		}
		if err := c.counted(ctx, links, count, before); err != nil {
			return err
		}
	}
	return nil
}

// Lift removes the partition's drop rules and returns once nothing goes by them
// any more, as Prove does about those that forward. Meanwhile meters hold all of it,
// so that the heal that follows is one moment for all links. Without meters, or
// with other partitions in the way, there is nothing to do.
func (c *Cut) Lift(ctx context.Context) error {
	m, ok := c.bed.cuts.(metered)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, liftLimit)
	defer stop()
	links, err := m.Lift(ctx, c.id)
	if err != nil || len(links) == 0 {
		return err
	}
	return c.rounds(ctx, links, func(ctx context.Context) (map[model.Link]uint64, error) { return m.Held(ctx, c.id) })
}

// counted waits until the rules of every link have counted a packet of each
// sample more than before.
func (c *Cut) counted(ctx context.Context, links []model.Link, count counter, before map[model.Link]uint64) error {
	end := time.Now().Add(roundLimit)
	for {
		now, err := count(ctx)
		if err != nil {
			return err
		}
		var left []model.Link
		for _, l := range links {
			if now[l] < before[l]+uint64(len(c.samples())) {
				left = append(left, l)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the rules of %d links, %s among them, do not count what was sent", len(left), left[0])
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// emit sends a packet of each sample over every link, all at once.
func (c *Cut) emit(ctx context.Context, links []model.Link) error {
	return c.over(links, func(l model.Link) error {
		dst, ok := c.bed.Testbed.Host(l.Dst)
		if !ok {
			return fmt.Errorf("no host %q", l.Dst)
		}
		var errs []error
		for _, t := range c.samples() {
			c.sent.Add(1)
			errs = append(errs, c.bed.emit(ctx, l.Src, dst.IP, t))
		}
		return errors.Join(errs...)
	})
}

// samples is the traffic that stands for what is cut: one packet of each.
func (c *Cut) samples() []model.Traffic {
	if len(c.partition.Only) > 0 {
		return c.partition.Only
	}
	return []model.Traffic{{Proto: "arp"}} // leaves at once: who has asked already waits with all else
}

// Crossed counts at the receiving hosts what arrived, by link.
func (c *Cut) Crossed(ctx context.Context, from, to time.Time) (map[model.Link]uint64, error) {
	links := c.partition.Links()
	counts := make([]int, len(links))
	err := c.over(links, func(l model.Link) error {
		n, _, err := c.bed.Arrived(ctx, l, c.partition.Only, from, to)
		counts[slices.Index(links, l)] = n
		return err
	})
	out := map[model.Link]uint64{}
	for i, n := range counts {
		out[links[i]] = uint64(n)
	}
	return out, err
}

// Healed returns when a packet has passed over every link but those that others
// still cut; links over which none did within 10 s are named.
func (c *Cut) Healed(ctx context.Context, cutByOthers func(model.Link) bool) error {
	ctx, stop := context.WithTimeout(ctx, proofLimit)
	defer stop()
	began := time.Now()
	left := map[model.Link]bool{}
	for _, l := range c.partition.Links() {
		if !cutByOthers(l) {
			left[l] = true
		}
	}
	var why error
	for len(left) > 0 && ctx.Err() == nil {
		links := slices.SortedFunc(maps.Keys(left), model.Link.Compare)
		passed := make([]bool, len(links))
		why = c.over(links, func(l model.Link) error {
			dst, _ := c.bed.Testbed.Host(l.Dst)
			all := true
			for _, t := range c.samples() {
				if err := c.bed.emit(ctx, l.Src, dst.IP, t); err != nil {
					return err
				}
				_, first, err := c.bed.Arrived(ctx, l, []model.Traffic{t}, began, began)
				if err != nil {
					return err
				}
				all = all && !first.IsZero()
			}
			passed[slices.Index(links, l)] = all
			return nil
		})
		for i, l := range links {
			if passed[i] || cutByOthers(l) {
				delete(left, l)
			}
		}
		if len(left) > 0 {
			_ = pause(ctx, pollEvery)
		}
	}
	if len(left) == 0 {
		return nil
	}
	links := slices.SortedFunc(maps.Keys(left), model.Link.Compare)
	return errors.Join(fmt.Errorf("no packet was seen to pass over %d links, %s among them, within %v", len(links), links[0], proofLimit), why)
}

// over does something for all links at once.
func (c *Cut) over(links []model.Link, do func(model.Link) error) error {
	back := make(chan error, len(links))
	for _, l := range links {
		go func() { back <- do(l) }()
	}
	var errs []error
	for range links {
		errs = append(errs, <-back)
	}
	return errors.Join(errs...)
}
