package agent

import (
	"context"
	"time"
)

const (
	// exchanges is how often an agent is asked for its time before its clock is
	// believed: the quickest answer tells most.
	exchanges = 5
	// clockLife is how long a comparison holds: clocks of machines drift apart by
	// some ten microseconds a second.
	clockLife = 20 * time.Second
)

// Offset is how an agent's clock differs from ours.
type Offset struct {
	// Ahead is what its clock shows more than ours; 0 if the two may be one.
	Ahead time.Duration
	// Within bounds the error of Ahead: half the quickest exchange. 0 if the two
	// may be one.
	Within time.Duration
	// RoundTrip is the quickest exchange.
	RoundTrip time.Duration
	at        time.Time // when it was measured
}

// compareClocks measures how far the agent's clock is from ours. What the agent
// showed between our asking and its answer may be one clock with ours; hosts of
// one machine always look so, and nothing is corrected there.
func (c *Client) compareClocks(ctx context.Context) error {
	var best Offset
	one := true
	for range exchanges {
		asked := time.Now()
		r, err := c.call(ctx, request{Op: opClock})
		if err != nil {
			return err
		}
		answered := time.Now()
		theirs := time.Unix(0, r.Now)
		// Wall clocks, as the agent's is: Round strips the monotonic reading.
		asked, answered = asked.Round(0), answered.Round(0)
		one = one && !theirs.Before(asked) && !theirs.After(answered)
		took := answered.Sub(asked)
		if best.at.IsZero() || took < best.RoundTrip {
			best = Offset{Ahead: theirs.Sub(asked.Add(took / 2)), Within: took / 2, RoundTrip: took, at: answered}
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

// ahead is what to add to our time to have the agent's.
func (c *Client) ahead(ctx context.Context) (time.Duration, error) {
	c.clock.Lock()
	o := c.offset
	c.clock.Unlock()
	if time.Since(o.at) < clockLife {
		return o.Ahead, nil
	}
	o, err := c.Clock(ctx)
	return o.Ahead, err
}

// ours is a time of the agent by our clock; zero stays zero.
func ours(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-ahead)
}
