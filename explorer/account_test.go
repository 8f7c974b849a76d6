package explorer

import (
	"testing"

	"netsplit/model"
)

// TestAnAccountTellsWhichRunsWereOnOtherNodes than the pair's. What the search left says so.
func TestAnAccountTellsWhichRunsWereOnOtherNodes(t *testing.T) {
	p, left, begun := &pair{used: map[uint64]int{}}, &pair{}, &pair{tries: 1}
	c := &Core{out: map[string]*issued{}, order: []*pair{p, left, begun}}
	for i, or := range []model.Renaming{nil, {"n1": "n2", "n2": "n1"}, {"n1": "n2", "n2": "n1"}} {
		id := string(rune('a' + i))
		c.out[id] = &issued{pair: p}
		c.result(model.RunResult{Scenario: id, Reached: true, Or: or, Verdict: model.Verdict{Value: model.VerdictPass}})
	}
	p.closed = "all classes were met"
	a := c.Account().Pairs
	if a[0].Runs != 3 || a[0].Elsewhere != 2 || a[0].Fate != "explored" || a[0].Why != "all classes were met" {
		t.Errorf("%+v", a[0])
	}
	if a[1].Fate != "left" || a[1].Why != "the search ended before its first run" || a[2].Why != "the search ended before it was done" {
		t.Errorf("%+v, %+v", a[1], a[2])
	}
}
