package workload

import (
	"math/rand/v2"
	"time"
)

// Plan says when an operator acts, from the start, and on which of so many. Each
// moment is in the first half of its share of the time, so that what it brings about ends
// before the next one.
func Plan(seed uint64, count int, d time.Duration, among int) (moments []time.Duration, picks []int) {
	rng := rand.New(rand.NewPCG(seed, 0x57e9d0))
	for i := range count {
		share := d / time.Duration(count)
		moments = append(moments, time.Duration(i)*share+time.Duration(rng.Int64N(int64(share/2)+1)))
		picks = append(picks, rng.IntN(among))
	}
	return moments, picks
}
