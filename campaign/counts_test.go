package campaign

import (
	"testing"

	"netsplit/model"
)

// TestCountsGoOnWhereRulesBeginAnew: rules that expired and were put back count from
// 0 again, and those of a switch that is away tell nothing; what was counted stays.
func TestCountsGoOnWhereRulesBeginAnew(t *testing.T) {
	ab, cd := model.Link{Src: "a", Dst: "b"}, model.Link{Src: "c", Dst: "d"}
	c := newCounted()
	for _, told := range []map[model.Link]uint64{{ab: 10, cd: 4}, {ab: 12}, {ab: 12, cd: 1}, nil, {ab: 13, cd: 3}} {
		c.add(told)
	}
	if c.dropped[ab] != 13 || c.dropped[cd] != 4+3 {
		t.Errorf("%v, want 13 and 7", c.dropped)
	}
}
