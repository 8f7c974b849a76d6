package manual

import (
	"context"
	"testing"

	"netsplit/model"
)

// TestCountsGoOnWhereRulesBeginAnew: rules that expired and were put back count from
// 0 again, and those of a switch that is away tell nothing; what was counted stays.
func TestCountsGoOnWhereRulesBeginAnew(t *testing.T) {
	ab, cd := model.Link{Src: "a", Dst: "b"}, model.Link{Src: "c", Dst: "d"}
	c := newCounted()
	for _, reported := range []map[model.Link]uint64{{ab: 10, cd: 4}, {ab: 12}, {ab: 12, cd: 1}, nil, {ab: 13, cd: 3}} {
		var now []model.RuleDrops
		for l, n := range reported {
			now = append(now, model.RuleDrops{Rule: l.String(), Link: l, Packets: n})
		}
		c.add(now)
	}
	if c.dropped[ab] != 13 || c.dropped[cd] != 4+3 {
		t.Errorf("%v, want 13 and 7", c.dropped)
	}
}

// TestARuleThatGoesTakesNothingAlong: a link's rules count each for itself, and one
// that goes with another partition takes back nothing and has nothing counted twice.
// Alone is what no older partition counts.
func TestARuleThatGoesTakesNothingAlong(t *testing.T) {
	ab := model.Link{Src: "a", Dst: "b"}
	c := newCounted()
	mine := func(n uint64) model.RuleDrops { return model.RuleDrops{Rule: "mine", Link: ab, Packets: n} }
	c.add([]model.RuleDrops{mine(10), {Rule: "theirs", Link: ab, Packets: 100, Shared: true}})
	c.add([]model.RuleDrops{mine(11)})
	c.add([]model.RuleDrops{mine(12), {Rule: "theirs", Link: ab, Packets: 101, Shared: true}})
	if c.dropped[ab] != 12+101 || c.alone[ab] != 12 {
		t.Errorf("%v dropped, %v of it alone, want 113 and 12", c.dropped, c.alone)
	}
	if n := c.probes(map[model.Link]uint64{ab: 200, ab.Reverse(): 5}); n != 113 {
		t.Errorf("%d probes among 113 packets", n)
	}
}

// TestAHealDoesNotWaitForACount: a count that switches do not answer gives way.
func TestAHealDoesNotWaitForACount(t *testing.T) {
	r := newRoom(t)
	counting, gaveUp := make(chan struct{}, 10), make(chan error, 10)
	r.make = func(c *fakeCut) {
		c.dropped = func(ctx context.Context) error {
			if h := r.held("p1"); h.ctx.Err() != nil {
				return nil // the heal's own
			}
			counting <- struct{}{}
			<-ctx.Done()
			gaveUp <- ctx.Err()
			return ctx.Err()
		}
	}
	r.cut("p1", "n1", "n2")
	go r.countNow(context.Background(), r.held("p1"))
	<-counting
	if st, err := r.Delete(t.Context(), "p1"); err != nil || st.State != model.PartitionHealed {
		t.Errorf("%+v, %v", st, err)
	}
	if err := <-gaveUp; err != context.Canceled {
		t.Errorf("the count ended with %v: the heal has waited for it", err)
	}
}

func (r *room) held(name string) *manualCut {
	r.Partitions.mu.Lock()
	defer r.Partitions.mu.Unlock()
	return r.cuts[name]
}
