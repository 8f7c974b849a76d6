package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"netsplit/model"
)

// A manual partition is in force when nothing passes any more. The switch confirms its
// rules before that: Open vSwitch forwards from its cache until its revalidators have
// looked at every cached decision. They work in rounds, and each round also credits
// packets to the rules. So the proof sends probe packets over every link, again and
// again, and each time waits until the drop rules have counted them. Between the first
// time and the fifth, three whole rounds go by that began after the cut. One round is
// not enough: a round that forgets many decisions misses some that no round has seen
// before (3.1.0, measured: of 400 made in the half second before a cut up to 50 outlive
// the first round, 1 the second, none the third). Then the agents tell whether anything
// has arrived since. Hosts that drop packets themselves do so from one packet to the
// next. The proof is the same there.
//
// A probe packet proves only the rule that it meets, and other switches do not revise
// their whole cache in rounds. So each round sends a probe packet for every rule that
// drops a part of the cut, and that rule must count it. A cut of all traffic has two such
// rules: for broadcast ARP requests, and for frames addressed to the receiver. Where
// hosts drop packets themselves, each probe packet is also sent as a broadcast: the
// sender's rules let it pass, and the receiver's rules count it.
const (
	provingRounds = 5
	// liftingRounds are enough for a heal, which proves afterwards that packets pass.
	liftingRounds = 3
	// roundLimit is how long a round may take before it fails: Open vSwitch starts one
	// every 500 ms by default, and after each flow-mod.
	roundLimit = 700 * time.Millisecond
	// lateTries is how often again makes rounds that are not counted in time.
	lateTries = 3
	// quietFor is longer than a round. If nothing arrives for so long, a cut is proved
	// on a switch that does not count.
	quietFor   = 700 * time.Millisecond
	proofLimit = 10 * time.Second
	// liftLimit is how long a heal waits for its drop rules to be gone.
	liftLimit = 2 * time.Second
	// arrival is time enough for a packet that passes to arrive.
	arrival = 10 * time.Millisecond
	// retryEvery is the pause before another try of a proof.
	retryEvery = 20 * time.Millisecond
	// pollEvery is the pause between two looks at a counter.
	pollEvery = 5 * time.Millisecond
)

// Prove waits, at most 10 s, until it is proved that the partition is in force, and
// returns the time since when nothing has passed. The error says what hinders the proof.
// A cut that is not renewed is not proved, although nothing may pass for some seconds.
func (c *Cut) Prove(ctx context.Context) (time.Time, error) {
	probePackets := c.probePackets()
	all := c.every(probePackets)
	ctx, stop := context.WithTimeout(ctx, proofLimit)
	defer stop()
	var why hindrance
	for {
		at, hindered, err := c.prove(ctx, all, probePackets)
		if hindered == nil && (err == nil || ctx.Err() == nil) {
			return at, err
		}
		if why.saw(ctx, errors.Join(hindered, err)); ctx.Err() != nil {
			return time.Time{}, fmt.Errorf("not proved within %v: %w", proofLimit, why.is)
		}
		_ = pause(ctx, retryEvery) // its end is seen above
	}
}

// prove tries once. It returns the time since when nothing has passed, or why that is not
// proved yet (hindered), or why another try is pointless (err).
func (c *Cut) prove(ctx context.Context, all due, probePackets []model.ProbePacket) (at time.Time, hindered, err error) {
	if _, err := c.LeaseExpiry(); err != nil {
		return time.Time{}, nil, err
	}
	emit := func() error {
		_, err := c.emit(ctx, all, probePackets)
		return err
	}
	uncounted := c.countedRounds(ctx, all, probePackets)
	if uncounted != nil && ctx.Err() != nil { // the time is over: whatever was waited for is the reason
		return time.Time{}, uncounted, nil
	}
	if uncounted != nil { // the switch does not count: silence is the proof
		if err := c.tb.cuts.Verify(ctx, c.partition); err != nil { // our rules do not count packets that never reach them
			return time.Time{}, nil, err
		}
		if err := errors.Join(emit(), pause(ctx, quietFor)); err != nil {
			return time.Time{}, err, nil
		}
	}
	at = time.Now()
	if err := errors.Join(emit(), pause(ctx, arrival)); err != nil {
		return time.Time{}, err, nil
	}
	byLink, err := c.Crossed(ctx, at, time.Now())
	if n := Sum(byLink); err == nil && n > 0 {
		err = fmt.Errorf("%d packets still passed", n)
	}
	if err != nil {
		return time.Time{}, errors.Join(uncounted, err), nil
	}
	// Probe packets do not meet every rule.
	if err := c.tb.cuts.Verify(ctx, c.partition); err != nil {
		return time.Time{}, nil, err
	}
	if _, err := c.LeaseExpiry(); err != nil {
		return time.Time{}, nil, err
	}
	return at, nil, nil
}

// countedRounds makes the rounds of a proof. If this testbed has counted in an earlier
// proof, counts that are missing now are only late, so it repeats the rounds.
func (c *Cut) countedRounds(ctx context.Context, all due, probePackets []model.ProbePacket) error {
	try := func() error { return c.rounds(ctx, provingRounds, all, probePackets, c.drops) }
	err := try()
	if errors.Is(err, errUncounted) && c.tb.counted.Load() {
		err = again(try)
	}
	if err == nil {
		c.tb.counted.Store(true)
	}
	return err
}

// errUncounted: packets were sent, and not counted in time.
var errUncounted = errors.New("not counted by the rules that are to drop them")

// again repeats rounds that were not counted in time: the switch may wait for a CPU or
// have lost a packet. It returns any other error at once.
func again(rounds func() error) (err error) {
	for range lateTries {
		if err = rounds(); !errors.Is(err, errUncounted) {
			break
		}
	}
	return err
}

// hindrance is why a proof was not made.
type hindrance struct {
	is    error
	tried bool
}

// saw keeps what a try found; nil: nothing. A try that was cut short because the proof's
// time ended says nothing about the host that it asked. It counts only if it is the first.
func (h *hindrance) saw(ctx context.Context, err error) {
	if ctx.Err() == nil || !h.tried {
		h.is, h.tried = err, true
	}
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

// counter reads how many packets were counted by the partition's rules that probe packets
// meet: by link, for each probe packet.
type counter func(context.Context, []model.ProbePacket) (map[model.Link][]model.Met, error)

func (c *Cut) drops(ctx context.Context, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
	return c.tb.cuts.Drops(ctx, c.id, of)
}

// due says, by link, which of some probe packets are to be sent.
type due map[model.Link][]bool

func (c *Cut) every(probePackets []model.ProbePacket) due {
	out := due{}
	for _, l := range c.partition.Links() {
		out[l] = slices.Repeat([]bool{true}, len(probePackets))
	}
	return out
}

func (d due) links() []model.Link { return slices.SortedFunc(maps.Keys(d), model.Link.Compare) }

// rounds sends the probe packets that are due n times. Each time it waits until the rules
// of every link have counted them.
func (c *Cut) rounds(ctx context.Context, n int, due due, probePackets []model.ProbePacket, count counter) error {
	for range n {
		before, err := count(ctx, probePackets)
		if err != nil {
			return err
		}
		sent, err := c.emit(ctx, due, probePackets)
		if err != nil {
			return err
		}
		var all []awaited
		for _, l := range due.links() {
			all = append(all, await(l, probePackets, before[l], sent[l])...)
		}
		if err := counted(ctx, all, probePackets, count); err != nil {
			return err
		}
	}
	return nil
}

// awaited is a probe packet that was sent. least is the count of its rule once that has
// counted all probe packets of the round that meet it.
type awaited struct {
	model.Link
	probePacket int
	rule        string
	least       uint64
}

// await lists the counts to wait for on a link.
func await(l model.Link, probePackets []model.ProbePacket, before []model.Met, sent []bool) []awaited {
	perRule := map[string]uint64{}
	for i := range probePackets {
		if sent[i] {
			perRule[before[i].Rule]++
		}
	}
	var out []awaited
	for i := range probePackets {
		if sent[i] {
			out = append(out, awaited{l, i, before[i].Rule, before[i].Packets + perRule[before[i].Rule]})
		}
	}
	return out
}

// Lift removes the partition's drop rules and waits, by rounds as Prove does, until no
// packet meets them any more. Meanwhile the meters still hold everything back, so the heal
// that follows takes effect on all links at once. Lift does nothing if there are no
// meters, or if other partitions still cut the same.
func (c *Cut) Lift(ctx context.Context) error {
	m, ok := c.tb.cuts.(metered)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, liftLimit)
	defer stop()
	probePackets := c.partition.ProbePackets()
	held, err := m.Lift(ctx, c.id, probePackets)
	if err != nil || len(held) == 0 {
		return err
	}
	return c.rounds(ctx, liftingRounds, held, probePackets, func(ctx context.Context, of []model.ProbePacket) (map[model.Link][]model.Met, error) {
		return m.Held(ctx, c.id, of)
	})
}

func counted(ctx context.Context, all []awaited, probePackets []model.ProbePacket, count counter) error {
	end := time.Now().Add(roundLimit)
	for {
		now, err := count(ctx, probePackets)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(a awaited) bool {
			is := now[a.Link][a.probePacket]
			return is.Rule != "" && is.Rule == a.rule && is.Packets >= a.least
		})
		if len(all) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d probe packets, the first of %s over %s, are %w", len(all), probePackets[all[0].probePacket].Traffic, all[0].Link, errUncounted)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// emit sends the probe packets that are due, over all links at once, and returns which of
// them could be sent over each. It books them for the cuts whose rules count them.
func (c *Cut) emit(ctx context.Context, due due, probePackets []model.ProbePacket) (map[model.Link][]bool, error) {
	links := due.links()
	sent := make([][]bool, len(links))
	counted := c.tb.cuts.CountedFor(links, probePackets)
	err := c.over(links, func(l model.Link) (err error) {
		i := slices.Index(links, l)
		sent[i], err = c.tb.emitSome(ctx, l, probePackets, due[l])
		c.tb.probed(l, sent[i], counted[l])
		return err
	})
	out := map[model.Link][]bool{}
	for i, l := range links {
		out[l] = sent[i]
	}
	return out, err
}

func (c *Cut) probePackets() []model.ProbePacket {
	out := c.partition.ProbePackets()
	if c.tb.hosts == nil {
		return out
	}
	for _, s := range slices.Clone(out) {
		if !s.Asks {
			s.Past = true
			out = append(out, s)
		}
	}
	return out
}

// Crossed counts at the receiving hosts what arrived, by link.
func (c *Cut) Crossed(ctx context.Context, from, to time.Time) (map[model.Link]uint64, error) {
	links := c.partition.Links()
	counts := make([]int, len(links))
	err := c.over(links, func(l model.Link) error {
		n, _, err := c.tb.Arrived(ctx, l, c.partition.Only, from, to)
		counts[slices.Index(links, l)] = n
		return err
	})
	out := map[model.Link]uint64{}
	for i, n := range counts {
		out[links[i]] = uint64(n)
	}
	return out, err
}

// setBackBy is the least step back that counts as setting a clock. A clock that is slewed
// to the right time (adjtimex(2)) falls behind by less.
const setBackBy = 50 * time.Millisecond

// SetBack says whether the machine's clock was set back between two readings of time.Now.
// Kernels stamp packets by that clock, so counts of what arrived between the two (Crossed,
// Arrived) may then lack packets.
func SetBack(from, to time.Time) bool {
	return to.Round(0).Sub(from.Round(0)) < to.Sub(from)-setBackBy
}

// Healed waits, at most 10 s, until a probe packet of each kind that was cut has passed
// over every link, except kinds that other partitions still cut there. The error names
// what did not pass.
func (c *Cut) Healed(ctx context.Context, cutByOthers func(model.Link, model.ProbePacket) bool) error {
	ctx, stop := context.WithTimeout(ctx, proofLimit)
	defer stop()
	began, probePackets := time.Now(), c.partition.ProbePackets()
	left := c.every(probePackets)
	left.spare(probePackets, cutByOthers)
	var why hindrance
	for len(left) > 0 {
		links := left.links()
		passed := make([][]bool, len(links))
		err := c.over(links, func(l model.Link) (err error) {
			passed[slices.Index(links, l)], err = c.passed(ctx, l, probePackets, left[l], began)
			return err
		})
		for i, l := range links {
			for j, is := range passed[i] {
				left[l][j] = left[l][j] && !is
			}
		}
		left.spare(probePackets, cutByOthers)
		if why.saw(ctx, err); ctx.Err() != nil {
			break
		}
		if len(left) > 0 {
			_ = pause(ctx, pollEvery)
		}
	}
	if len(left) == 0 {
		return nil
	}
	links := left.links()
	return errors.Join(fmt.Errorf("over %d links not everything that was cut passed again within %v, first %s over %s", len(left), proofLimit, probePackets[slices.Index(left[links[0]], true)].Traffic, links[0]),
		c.tb.hindered(links), why.is)
}

func (d due) spare(probePackets []model.ProbePacket, cutByOthers func(model.Link, model.ProbePacket) bool) {
	for l, is := range d {
		for i, s := range probePackets {
			is[i] = is[i] && !cutByOthers(l, s)
		}
		if !slices.Contains(is, true) {
			delete(d, l)
		}
	}
}

// passed sends the probe packets that are due over a link, and says which of them need not
// be sent again: they have arrived, or cannot be sent there.
func (c *Cut) passed(ctx context.Context, l model.Link, probePackets []model.ProbePacket, due []bool, since time.Time) ([]bool, error) {
	sent, err := c.tb.emitSome(ctx, l, probePackets, due)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(probePackets))
	for i, s := range probePackets {
		if out[i] = !sent[i]; !due[i] || !sent[i] {
			continue
		}
		if out[i], err = c.tb.seen(ctx, l, s, since); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// over does something for all links at once. It returns equal errors once.
func (c *Cut) over(links []model.Link, do func(model.Link) error) error {
	errs := make([]error, len(links))
	var work sync.WaitGroup
	for i, l := range links {
		work.Go(func() { errs[i] = do(l) })
	}
	work.Wait()
	return distinct(errs)
}

// distinct joins errors, those of one text once.
func distinct(errs []error) error {
	reported := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || reported[err.Error()] {
			return true
		}
		reported[err.Error()] = true
		return false
	})...)
}
