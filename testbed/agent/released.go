package agent

import (
	"context"
	"time"
)

// Edge is how long before and after a moment callers list the packets that a gate
// released. The list helps only if the clock is known to half of Edge.
const Edge = 500 * time.Millisecond

// Released is a packet that a gate released to a host.
type Released struct {
	Digest uint64 // see Digest
	At     time.Time
}

// excused counts packets that arrived so close to from or to that the host's clock does
// not tell on which side, and that the gate released. Of packets with one digest it
// excuses at most as many as the gate released and the host did not see elsewhere. It
// excuses none if the host cannot answer.
func (c *Client) excused(ctx context.Context, released []Released, from, to time.Time, o Offset) int {
	// A packet released just outside these limits may arrive inside, and the reverse.
	first, last := from.Add(o.Within-Edge), to.Add(Edge-o.Within)
	let := map[uint64]int{}
	var digests []uint64
	for _, r := range released {
		if r.At.Before(first) || r.At.After(last) {
			continue
		}
		if let[r.Digest]++; let[r.Digest] == 1 {
			digests = append(digests, r.Digest)
		}
	}
	if len(digests) == 0 || o.Within > Edge/2 {
		return 0
	}
	all, err := c.arrivalsOf(ctx, digests, first, o)
	if err != nil {
		return 0
	}
	n := 0
	for i, at := range all {
		near, elsewhere := 0, 0
		for _, t := range at {
			switch {
			case t.Sub(from).Abs() <= o.Within, t.Sub(to).Abs() <= o.Within:
				near++
			case !t.After(last):
				elsewhere++
			}
		}
		n += max(0, min(near, let[digests[i]]-elsewhere))
	}
	return n
}

// firstReleased is when the first packet arrived that the gate released at after or later;
// zero if none is known to have arrived.
func (c *Client) firstReleased(ctx context.Context, released []Released, after time.Time, o Offset) (first time.Time) {
	var digests []uint64
	for _, r := range released {
		if !r.At.Before(after) {
			digests = append(digests, r.Digest)
		}
	}
	if len(digests) == 0 {
		return first
	}
	all, err := c.arrivalsOf(ctx, digests, after.Add(-o.Within), o)
	if err != nil {
		return first
	}
	for _, at := range all {
		if len(at) > 0 && (first.IsZero() || at[0].Before(first)) {
			first = at[0]
		}
	}
	if !first.IsZero() && first.Before(after) { // by the error of the clock
		first = after
	}
	return first
}
