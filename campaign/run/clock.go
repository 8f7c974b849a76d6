package run

import (
	"fmt"
	"time"
)

// clockSlack is by how much a clock may be led to the right time (slewed, at most
// 500 ppm: adjtimex(2)) without a run noticing.
const clockSlack = 100 * time.Millisecond

// clockStep is by how much the machine's clock was set while elapsed passed between
// two moments on it: a virtual machine that had been paused, or an NTP step. The
// arrival of packets is on this clock, what netsplit does is not.
func clockStep(from, to time.Time, elapsed time.Duration) time.Duration {
	return to.Round(0).Sub(from.Round(0)) - elapsed
}

// clockReason says why a run across such a step says nothing; "" for a small one.
func clockReason(step time.Duration) string {
	if step.Abs() <= clockSlack {
		return ""
	}
	word := "forward"
	if step < 0 {
		word = "back"
	}
	return fmt.Sprintf("the clock of netsplit's machine was set %s by %s during the run (a virtual machine that was paused, or an NTP step), so when its packets arrived is not known", word, step.Abs().Round(time.Millisecond))
}
