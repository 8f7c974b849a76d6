package explorer

import (
	"fmt"
	"strings"

	"netsplit/model"
)

// terms reads what a run met in the numbers of another run: from is the state
// this one was cut at, to the state of the same shape that the other one was.
// The numbers of from become those of to, greater ones greater by as much,
// smaller ones smaller; all other values stay. Where both are the same state,
// so is everything else.
type terms struct{ from, to model.State }

func (t terms) class(c model.Class) model.Class {
	c.State = model.State{A: t.value(c.State.A), B: t.value(c.State.B)}
	return c
}

func (t terms) value(v string) string {
	n, ok := model.Number(v)
	if !ok || t.from == t.to {
		return v
	}
	type pair struct{ from, to int64 }
	var low, high *pair
	for _, s := range [][2]string{{t.from.A, t.to.A}, {t.from.B, t.to.B}} {
		x, okX := model.Number(s[0])
		y, okY := model.Number(s[1])
		if !okX || !okY {
			continue
		}
		p := &pair{x, y}
		if low == nil || p.from < low.from {
			low = p
		}
		if high == nil || p.from > high.from {
			high = p
		}
	}
	switch {
	case low == nil:
		return v
	case n <= low.from:
		n = low.to - (low.from - n)
	case n >= high.from:
		n = high.to + (n - high.from)
	default: // between the two: as far above the lower as there is room
		n = min(low.to+(n-low.from), high.to)
	}
	if strings.HasPrefix(v, "#") {
		return fmt.Sprintf("#%d", n)
	}
	return fmt.Sprint(n)
}

func inTerms(r model.RunResult, st model.State) model.RunResult {
	if r.CutState == nil || *r.CutState == st {
		return r
	}
	t := terms{from: *r.CutState, to: st}
	classes := make([]model.Class, len(r.Classes))
	for i, c := range r.Classes {
		classes[i] = t.class(c)
	}
	r.Classes = classes
	if r.HealClass != nil {
		c := t.class(*r.HealClass)
		r.HealClass = &c
	}
	return r
}
