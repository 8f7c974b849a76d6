package run

import (
	"strings"
	"testing"
	"time"
)

// TestClockThatIsSet: a run across a step of the machine's clock says so, one in
// which the clock was only led does not.
func TestClockThatIsSet(t *testing.T) {
	from := time.Date(2026, 11, 22, 16, 7, 0, 0, time.UTC)
	for _, c := range []struct {
		wall time.Duration // that the clock shows to have passed, of 60 s
		want string
	}{
		{60 * time.Second, ""}, {60*time.Second + 30*time.Millisecond, ""},
		{68177 * time.Millisecond, "set forward by 8.177s"}, {59 * time.Second, "set back by 1s"},
	} {
		got := clockReason(clockStep(from, from.Add(c.wall), 60*time.Second))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.wall, got, c.want)
		}
	}
	began := time.Now()
	time.Sleep(time.Millisecond)
	if now := time.Now(); clockReason(clockStep(began, now, now.Sub(began))) != "" {
		t.Errorf("a clock that nobody sets: %s", clockStep(began, now, now.Sub(began)))
	}
}
