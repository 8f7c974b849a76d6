package bed

import (
	"testing"

	"netsplit/model"
)

// TestNoTwoCutsOfABedHaveOneID: a partition by hand whose rules a switch may still have
// and a script's cut are told apart, and neither is taken for the cut at the gate.
func TestNoTwoCutsOfABedHaveOneID(t *testing.T) {
	b, last := &Bed{}, uint32(cutID)
	for range 3 {
		c := b.NewCut(model.Partition{})
		if c.id <= last {
			t.Errorf("id %d after %d", c.id, last)
		}
		last = c.id
	}
}
