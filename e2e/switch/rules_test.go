package ofswitch

import (
	"testing"

	"netsplit/model"
	"netsplit/testbed/fabric"
)

// TestCutsByRulesAlone: a testbed that wants no meters forwards, is cut and healed.
func TestCutsByRulesAlone(t *testing.T) {
	b := newBench(t, 4)
	b.testbed.Cuts = model.CutByRules
	f, _ := b.start(fabric.Config{})
	b.expect("nothing cut", everything)
	if err := f.Cut(within(t), 1, shapes[1].p); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("cut", matrix(shapes[1].p))
	if err := f.Heal(within(t), 1); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("healed", everything)
}
