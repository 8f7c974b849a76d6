package agent

import (
	"context"
	"time"
)

const (
	// exchanges is how often an agent is asked for its time before its clock is
	// believed: the quickest answer tells most.
	exchanges = 5
	// clockLife is how long a comparison holds, and drift how far clocks of machines
	// get apart meanwhile: some ten microseconds a second.
	clockLife = 20 * time.Second
	drift     = clockLife / 100_000
)

// Offset is how an agent's clock differs from ours.
type Offset struct {
	// Ahead is what its clock shows more than ours; 0 if the two are one.
	Ahead time.Duration
	// Within bounds the error of Ahead: half the quickest exchange, and what clocks
	// drift until they are compared again. 0 if the two are one.
	Within time.Duration
	// RoundTrip is the quickest exchange.
	RoundTrip time.Duration
	at        time.Time // when it was measured
}

// compareClocks measures how far the agent's clock is from ours. Where the host is
// this machine, and the agent showed a time between our asking and its answer, the
// two are one clock. Of another machine's that says no more than that it differs by
// less than the round trip.
func (c *Client) compareClocks(ctx context.Context) error {
	var best Offset
	one := !c.remote
	for range exchanges {
		asked := time.Now()
		r, err := c.call(ctx, request{Op: opClock})
		if err != nil {
			return err
		}
		answered := time.Now()
		theirs := time.Unix(0, r.Now)
		took := answered.Sub(asked)
		// Wall clocks, as the agent's is: Round strips the monotonic reading.
		asked, answered = asked.Round(0), answered.Round(0)
		one = one && !theirs.Before(asked) && !theirs.After(answered)
		if best.at.IsZero() || took < best.RoundTrip {
			best = Offset{Ahead: theirs.Sub(asked.Add(took / 2)), Within: took/2 + drift, RoundTrip: took, at: answered}
		}
	}
	if one {
		best.Ahead, best.Within = 0, 0
	}
	c.clock.Lock()
	c.offset = best
	c.clock.Unlock()
	return nil
}

// Clock is how the agent's clock differs from ours, measured anew.
func (c *Client) Clock(ctx context.Context) (Offset, error) {
	if err := c.compareClocks(ctx); err != nil {
		return Offset{}, err
	}
	c.clock.Lock()
	defer c.clock.Unlock()
	return c.offset, nil
}

// offsetNow is how the agent's clock differs from ours, measured anew if that was
// too long ago.
func (c *Client) offsetNow(ctx context.Context) (Offset, error) {
	c.clock.Lock()
	o := c.offset
	c.clock.Unlock()
	if time.Since(o.at) < clockLife {
		return o, nil
	}
	return c.Clock(ctx)
}

// ours is a time of the agent by our clock; zero stays zero.
func ours(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-ahead)
}
