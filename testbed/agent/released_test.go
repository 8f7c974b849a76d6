package agent

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// TestWhatAGateLetGoIsNoLeak: near the ends of a time, what a gate let go before or
// after did not arrive in it; what it did not let go, or more of the same, may have.
func TestWhatAGateLetGoIsNoLeak(t *testing.T) {
	const half, ms = 15 * time.Millisecond, time.Millisecond
	from := time.Now().Add(-time.Second)
	to := from.Add(200 * ms)
	var work sync.WaitGroup
	for _, skew := range []time.Duration{-10 * ms, 0, 10 * ms} {
		for _, k := range []struct {
			name          string
			let, arrived  []time.Time
			digest        uint64 // of what was let go; 7 is of what arrived
			sure, unsure  int
			first, latest time.Time // between which the first after the end is to be seen
		}{
			{"the one that healed", []time.Time{to.Add(ms)}, []time.Time{to.Add(2 * ms)}, 7, 0, 0, to, to.Add(2*ms + 2*half)},
			{"and others after it", []time.Time{to.Add(ms), to.Add(400 * ms)}, []time.Time{to.Add(2 * ms), to.Add(401 * ms)}, 7, 0, 0, to, to.Add(2*ms + 2*half)},
			{"the last before the cut", []time.Time{from.Add(-ms)}, []time.Time{from.Add(ms)}, 7, 0, 0, time.Time{}, time.Time{}},
			{"another one", []time.Time{to.Add(ms)}, []time.Time{to.Add(2 * ms)}, 8, 0, 1, time.Time{}, time.Time{}},
			{"one let go, two came", []time.Time{to.Add(ms)}, []time.Time{to.Add(-2 * ms), to.Add(2 * ms)}, 7, 0, 1, to, to.Add(2*ms + 2*half)},
			{"one that leaked, let go later", []time.Time{to.Add(200 * ms)}, []time.Time{to.Add(-2 * ms), to.Add(201 * ms)}, 7, 0, 1, to, to.Add(201*ms + 2*half)},
			{"in the middle", []time.Time{to.Add(ms)}, []time.Time{from.Add(100 * ms)}, 7, 1, 0, time.Time{}, time.Time{}},
		} {
			work.Go(func() {
				f := far{skew: skew, half: half, arrived: k.arrived}
				c := f.client(t, true)
				src := Sender{Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
				for _, at := range k.let {
					src.Released = append(src.Released, Released{k.digest, at})
				}
				n, err := c.CountFrom(t.Context(), src, from, to)
				if err != nil || n.Packets != k.sure || n.Unsure != k.unsure {
					t.Errorf("%v ahead, %s: %+v, %v", skew, k.name, n, err)
				}
				first, err := c.FirstFrom(t.Context(), src, to)
				if err != nil || first.IsZero() != k.first.IsZero() || first.Before(k.first) || first.After(k.latest) {
					t.Errorf("%v ahead, %s: the first came %v after the end, %v", skew, k.name, first.Sub(to), err)
				}
			})
		}
	}
	work.Wait()
}
