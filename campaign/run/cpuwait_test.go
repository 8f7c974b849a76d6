package run

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCPUWait: where timers are exact nobody waits, and where sleeps take four times as long
// three quarters of the time.
func TestCPUWait(t *testing.T) {
	for times, want := range map[time.Duration]float64{1: 0, 4: 0.75} {
		synctest.Test(t, func(t *testing.T) {
			share := cpuWait(func(d time.Duration) { time.Sleep(times * d) })
			time.Sleep(80 * nap)
			if got := share(); got < want-0.02 || got > want {
				t.Errorf("sleeps of %d times: %v, want %v", times, got, want)
			}
		})
	}
}
