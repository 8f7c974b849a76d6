package run

import (
	"testing"
	"time"
)

// TestClockThatIsSet: packets that are stamped by a clock that is set meanwhile
// keep their times since the start, and those times lead back to the stamps.
func TestClockThatIsSet(t *testing.T) {
	start := time.Date(2026, 11, 22, 16, 7, 0, 0, time.UTC)
	c := &clock{start: start}
	ahead := func(d time.Duration) time.Duration { // what a bad clock shows too much
		switch {
		case d < 10*time.Second:
			return d / 5000 // led, no step
		case d < 20*time.Second:
			return 8177 * time.Millisecond
		}
		return 7 * time.Second // back again
	}
	var reported []time.Duration
	for now := time.Duration(0); now < 30*time.Second; now += 37 * time.Millisecond {
		if wall := start.Add(now + ahead(now)); !c.compare(now, wall, false) {
			c.compare(now, wall, true)
		}
		if by := c.news(); by != 0 {
			reported = append(reported, by.Round(10*time.Millisecond))
		}
		for _, d := range []time.Duration{now, now - 30*time.Millisecond} {
			wall := start.Add(d + ahead(d))
			if got := c.since(wall); (got - d).Abs() > clockSlack {
				t.Fatalf("at %s: %s is taken for %s", now, d, got)
			}
			if got := c.wall(d); d < 10*time.Second-37*time.Millisecond && (got.Sub(wall)).Abs() > clockSlack {
				t.Fatalf("at %s: the clock showed %s at %s, not %s", now, wall, d, got)
			}
		}
	}
	if len(reported) != 2 || reported[0] != 8180*time.Millisecond || reported[1] != -1180*time.Millisecond {
		t.Errorf("told of %v", reported)
	}
	for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second} {
		if got, want := c.wall(d), start.Add(d+ahead(d)); got.Sub(want).Abs() > clockSlack {
			t.Errorf("%s since the start the clock showed %s, not %s", d, want, got)
		}
	}
	late := 30*time.Second + 20*time.Millisecond // after the last look
	if got := c.since(start.Add(late + ahead(late))); (got - late).Abs() > 5*clockSlack {
		t.Errorf("what comes after the last look is taken for %s", got)
	}
	if got, want := c.from(19*time.Second), start.Add(27*time.Second); got.Sub(want).Abs() > 50*time.Millisecond {
		t.Errorf("from 19s on the clock shows %s, before that it never was %s", want, got)
	}
	live := &clock{start: time.Now()}
	time.Sleep(time.Millisecond)
	if live.look(); live.news() != 0 || live.looked < time.Millisecond {
		t.Errorf("a clock that nobody sets is ahead by %s, looked at %s", live.ahead(), live.looked)
	}
	if err := c.monotone(5*time.Second, 15*time.Second); err != nil {
		t.Errorf("set forward: %v", err)
	}
	if c.monotone(15*time.Second, 25*time.Second) == nil {
		t.Error("set back: nothing is said")
	}
}
