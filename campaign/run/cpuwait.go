package run

import (
	"context"
	"sync"
	"time"
)

// nap is how long the sleeps are of which cpuWait counts how late they end.
const nap = 20 * time.Millisecond

// cpuWait measures from now on how late this process wakes from short sleeps. A timer is
// exact to a fraction of a millisecond, so what is more is the time that whoever is ready
// to run here waits for a CPU, whether other processes have it or the machine's host. What
// it returns ends that and says the share of the time, 0 to 1.
func cpuWait(sleep func(time.Duration)) func() float64 {
	ctx, stop := context.WithCancel(context.Background())
	began := time.Now()
	var late time.Duration
	var work sync.WaitGroup
	work.Go(func() {
		for before := began; ctx.Err() == nil; {
			sleep(nap)
			now := time.Now()
			late += now.Sub(before) - nap
			before = now
		}
	})
	return func() float64 {
		stop()
		work.Wait()
		return max(0, min(1, float64(late)/float64(time.Since(began))))
	}
}
