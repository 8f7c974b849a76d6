package testbed

import (
	"testing"
	"time"

	"netsplit/model"
)

// TestNoTwoCutsOfATestbedHaveOneID: a manual partition whose rules a switch may still have
// and a script's cut are told apart, and neither is taken for the cut at the gate.
func TestNoTwoCutsOfATestbedHaveOneID(t *testing.T) {
	b, last := &Testbed{}, uint32(cutID)
	for range 3 {
		c := b.NewCut(model.Partition{})
		if c.id <= last {
			t.Errorf("id %d after %d", c.id, last)
		}
		last = c.id
	}
}

// TestAClockThatGoesOnIsNotSetBack: its readings are as far apart as they should.
func TestAClockThatGoesOnIsNotSetBack(t *testing.T) {
	now := time.Now()
	if SetBack(now, now.Add(time.Second)) {
		t.Error("a clock that goes on was set back")
	}
}
