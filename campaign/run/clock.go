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
	start  time.Time     // a reading of both
	looked time.Duration // when it was last compared
	steps  []clockStep
	told   time.Duration // how far it had been moved when that was last told
}

// clockStep is a time at which the machine's clock was moved.
type clockStep struct {
	after time.Duration // the last look before it, since the run started
	noted time.Duration // the first look after it
	ahead time.Duration // of the run's clock from then on
}

// look compares the clocks as they are now. What looks like a step is looked at
// once more: between the readings of the two, others may have had the CPU.
func (c *clock) look() {
	t := time.Now()
	if !c.compare(t.Sub(c.start), t, false) {
		t = time.Now()
		c.compare(t.Sub(c.start), t, true)
	}
}

// compare says whether the machine's clock shows wall when it should, and if not,
// books that as a step.
func (c *clock) compare(now time.Duration, wall time.Time, book bool) bool {
	ahead := wall.Round(0).Sub(c.start.Round(0)) - now
	ok := (ahead - c.ahead()).Abs() <= clockSlack
	if !ok && book {
		c.steps = append(c.steps, clockStep{c.looked, now, ahead})
	}
	if ok || book {
		c.looked = max(c.looked, now)
	}
	return ok
}

// ahead is by how much the machine's clock is ahead of the run's by now.
func (c *clock) ahead() time.Duration {
	if n := len(c.steps); n > 0 {
		return c.steps[n-1].ahead
	}
	return 0
}

// news is by how much the machine's clock was moved since that was last told, if it
// is worth telling; 0: not.
func (c *clock) news() time.Duration {
	by := c.ahead() - c.told
	if by.Abs() < clockNews {
		return 0
	}
	c.told = c.ahead()
	return by
}

// since is a time of the machine's clock since the run started. Where that was set
// back, a time that it has shown twice is taken for the later one.
func (c *clock) since(t time.Time) time.Duration {
	d := t.Round(0).Sub(c.start.Round(0))
	until := c.looked + clockSlack
	for i := len(c.steps) - 1; i >= 0; i-- {
		s := c.steps[i]
		if at := d - s.ahead; at >= s.after && at <= until {
			return at
		}
		until = s.noted
	}
	if d <= until {
		return d
	}
	return d - c.ahead() // after the last look
}

// from is the earliest that the machine's clock has shown at a time since the run
// started or later.
func (c *clock) from(d time.Duration) time.Time {
	t := c.wall(d)
	for _, s := range c.steps {
		if at := c.start.Round(0).Add(s.after + s.ahead); s.after >= d && at.Before(t) {
			t = at
		}
	}
	return t
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
