package run

import (
	"testing"
	"time"

	"netsplit/model"
)

// TestWhenTheSecondLookIsMade: when the target's own repair has had its time since
// the heal, and some seconds after the first reads at least.
func TestWhenTheSecondLookIsMade(t *testing.T) {
	for _, c := range []struct{ repair, recover, healed, read, want time.Duration }{
		{5 * time.Second, 30 * time.Second, 10 * time.Second, 11 * time.Second, 15 * time.Second},
		{0, 30 * time.Second, 10 * time.Second, 11 * time.Second, 40 * time.Second},
		{5 * time.Second, 30 * time.Second, 10 * time.Second, 40 * time.Second, 43 * time.Second},
	} {
		if got := secondLook(model.Timing{Repair: c.repair, Recover: c.recover}, c.healed, c.read); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
