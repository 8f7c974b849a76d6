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
	var told []time.Duration
	for now := time.Duration(0); now < 30*time.Second; now += 37 * time.Millisecond {
		if by := c.compare(now, start.Add(now+ahead(now))); by != 0 {
			told = append(told, by.Round(10*time.Millisecond))
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
	if len(told) != 2 || told[0] != 8180*time.Millisecond || told[1] != -1180*time.Millisecond {
		t.Errorf("told of %v", told)
	}
	for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second} {
		if got, want := c.wall(d), start.Add(d+ahead(d)); got.Sub(want).Abs() > clockSlack {
			t.Errorf("%s since the start the clock showed %s, not %s", d, want, got)
		}
	}
	live := &clock{start: time.Now()}
	time.Sleep(time.Millisecond)
	if by := live.look(time.Now()); by != 0 || live.looked < time.Millisecond {
		t.Errorf("a clock that nobody sets was set by %s, looked at %s", by, live.looked)
	}
	if err := c.monotone(5*time.Second, 15*time.Second); err != nil {
		t.Errorf("set forward: %v", err)
	}
	if c.monotone(15*time.Second, 25*time.Second) == nil {
		t.Error("set back: nothing is said")
	}
}
