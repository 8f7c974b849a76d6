package manual

import (
	"context"
	"maps"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed"
)

const (
	// countEvery is how often the drops of a manual partition are counted while nobody
	// asks: graphs lag by so much.
	countEvery = 5 * time.Second
	// countLimit is how long switches and hosts may take to answer.
	countLimit = 5 * time.Second
	// countLag is how long after its arrival an agent has counted a packet, at the latest.
	countLag = 500 * time.Millisecond
)

// fates is how many packets of a link were dropped, and how many leaked.
type fates struct{ dropped, leaked uint64 }

// counted is what was counted of a partition so far.
type counted struct {
	leaked map[model.Link]uint64 // since it was in force
	// dropped is what its rules counted; alone is the part that no older partition counts.
	dropped, alone map[model.Link]uint64
	read           map[string]uint64    // last count of each rule; a rule that expired and was put back counts from 0
	until          time.Time            // what came before is in leaked
	blind          bool                 // at some time before until, nobody could count
	reported       map[model.Link]fates // to the metrics
}

func newCounted() counted {
	return counted{leaked: map[model.Link]uint64{}, dropped: map[model.Link]uint64{}, alone: map[model.Link]uint64{}, read: map[string]uint64{}, reported: map[model.Link]fates{}}
}

// count books what was dropped so far, and what leaked before to. turn is held: what
// passes after a heal has begun is no leak.
func (ps *Partitions) count(ctx context.Context, h *manualCut, to time.Time) {
	ps.countDropped(ctx, h)
	ps.countLeaked(ctx, h, to)
}

// countDropped books what the rules have dropped so far; turn is held.
func (ps *Partitions) countDropped(ctx context.Context, h *manualCut) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	dropped, err := h.cut.Dropped(ctx)
	if err != nil {
		ps.c.Log.Debug("not all that a partition dropped was counted", "partition", h.status().Name, "err", err)
	}
	h.counted.add(dropped)
}

// countLeaked books what leaked before to, and reports all counts; turn is held. The
// agents can answer after the rules have gone, too.
func (ps *Partitions) countLeaked(ctx context.Context, h *manualCut, to time.Time) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	st, c := h.status(), &h.counted
	known := !st.InForce.IsZero()
	if from := latest(c.until, st.InForce); known && to.After(from) {
		leaked, err := h.cut.Crossed(ctx, from, to)
		c.until = to
		c.blind = c.blind || err != nil && ctx.Err() == nil || testbed.SetBack(from, to)
		if err != nil && ctx.Err() != nil { // nobody answered in time: the next count includes this time
			c.until, known = from, false
			leaked = nil
		}
		for l, n := range leaked { // a lower bound, if there was an error
			c.leaked[l] += n
		}
	}
	ps.measure(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.st.Dropped = testbed.Sum(c.dropped)
	h.st.Leaked, h.st.LeakKnown = testbed.Sum(c.leaked), known && !c.blind
	h.st.Wanted = h.st.Dropped + h.st.Leaked
	// The switch may not have counted the last probe packets yet.
	h.st.Probes, h.st.Resets = c.probes(h.cut.Probes()), h.cut.Resets()
}

// add books the present counts of the rules. Rules of switches and hosts that do not
// answer are missing in now; if they expire, what they counted since is lost.
func (c *counted) add(now []model.RuleDrops) {
	for _, d := range now {
		n := d.Packets
		if was := c.read[d.Rule]; n >= was {
			n -= was
		}
		c.read[d.Rule] = d.Packets
		c.dropped[d.Link] += n
		if !d.Shared {
			c.alone[d.Link] += n
		}
	}
}

// probes is how many of the packets that netsplit sent can be among those counted.
func (c *counted) probes(sent map[model.Link]uint64) (n uint64) {
	for l, is := range sent {
		n += min(is, c.dropped[l]+c.leaked[l])
	}
	return n
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// countNow updates the counts of a partition that has been in force. It does so while the
// partition is proved again, too: what passes then is a leak.
func (ps *Partitions) countNow(ctx context.Context, h *manualCut) {
	if !h.turn.TryLock() {
		return // it is being cut, counted or healed
	}
	defer h.turn.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)() // a heal does not wait for it
	switch st := h.status(); {
	case st.InForce.IsZero():
	case st.State == model.PartitionInForce, st.State == model.PartitionRequested:
		ps.count(ctx, h, time.Now().Add(-countLag))
	}
}

func (ps *Partitions) keepCounting(h *manualCut) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			ps.countNow(h.ctx, h)
		}
	}
}

// measure adds to the metrics what the partition dropped and leaked since the last time.
// If several partitions cut the same traffic of a link, only the oldest counts it, so that
// no packet counts twice. There are two exceptions: packets in the last countEvery before
// the oldest heals, and leaks if it cuts only a part of what a younger one cuts.
func (ps *Partitions) measure(h *manualCut) {
	older, c := ps.olderLinks(h), &h.counted
	for _, l := range h.status().Partition.Links() {
		now, was := fates{c.alone[l], c.leaked[l]}, c.reported[l]
		c.reported[l] = now
		drops, leaks := int(now.dropped-was.dropped), int(now.leaked-was.leaked)
		if older[l] {
			leaks = 0 // another's packets
		}
		for fate, n := range map[model.Fate]int{model.FateWanted: drops + leaks, model.FateDropped: drops, model.FateLeaked: leaks} {
			ps.c.Metrics.PacketFate(l, fate, n)
		}
	}
}

func (ps *Partitions) olderLinks(h *manualCut) map[model.Link]bool {
	ps.mu.Lock()
	others := maps.Clone(ps.cuts)
	ps.mu.Unlock()
	out, created := map[model.Link]bool{}, h.status().Created
	p := h.status().Partition
	for _, o := range others {
		if st := o.status(); o.standing() && st.Created.Before(created) && flowrules.CutsAll(st.Partition, p) {
			for _, l := range st.Partition.Links() {
				out[l] = true
			}
		}
	}
	return out
}
