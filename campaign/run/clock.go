package run

import (
	"fmt"
	"time"
)

// clockSlack is how exactly times are kept. A clock that is not set may still be
// led to the right time (slewed: adjtimex(2)), which is a step now and then.
const clockSlack = time.Millisecond

// clockNews is how far the machine's clock has been moved when it is told.
const clockNews = 50 * time.Millisecond

// clock turns times of the machine's clock, by which kernels stamp packets, into
// times since the run started, and back. The machine's clock is set now and then,
// by NTP or when a virtual machine goes on after a pause; the run's is not.
type clock struct {
	start  time.Time
	looked time.Duration // when it was last compared
	steps  []clockStep
	told   time.Duration // how far it had been moved when that was last told
}

// clockStep is a time at which the machine's clock was moved.
type clockStep struct {
	after time.Duration // the last look before it, since the run started
	ahead time.Duration // of the run's clock from then on
}

// look compares the clocks, both of which t has read. It returns by how much the
// machine's was moved since that was last told, if it is worth telling; 0: not.
func (c *clock) look(t time.Time) time.Duration { return c.compare(t.Sub(c.start), t) }

func (c *clock) compare(now time.Duration, wall time.Time) time.Duration {
	ahead, was := wall.Round(0).Sub(c.start.Round(0))-now, time.Duration(0)
	if n := len(c.steps); n > 0 {
		was = c.steps[n-1].ahead
	}
	after := c.looked
	c.looked = max(c.looked, now)
	if (ahead - was).Abs() <= clockSlack {
		return 0
	}
	c.steps = append(c.steps, clockStep{after, ahead})
	by := ahead - c.told
	if by.Abs() < clockNews {
		return 0
	}
	c.told = ahead
	return by
}

// since is a time of the machine's clock since the run started. Where that was set
// back, a time that it has shown twice is taken for the later one.
func (c *clock) since(t time.Time) time.Duration {
	d := t.Round(0).Sub(c.start.Round(0))
	for i := len(c.steps) - 1; i >= 0; i-- {
		if s := c.steps[i]; d-s.ahead >= s.after && d-s.ahead <= c.looked+clockSlack {
			return d - s.ahead
		}
	}
	return d
}

// wall is what the machine's clock showed at a time since the run started.
func (c *clock) wall(d time.Duration) time.Time {
	t := c.start.Round(0).Add(d)
	for i := len(c.steps) - 1; i >= 0; i-- {
		if s := c.steps[i]; d > s.after {
			return t.Add(s.ahead)
		}
	}
	return t
}

// monotone says why what happened between two times cannot be told from what
// happened before or after, nil if it can.
func (c *clock) monotone(from, to time.Duration) error {
	was := time.Duration(0)
	for _, s := range c.steps {
		if s.ahead < was-clockNews && s.after >= from && s.after <= to {
			return fmt.Errorf("the machine's clock was set back by %s meanwhile", (was - s.ahead).Round(time.Millisecond))
		}
		was = s.ahead
	}
	return nil
}
