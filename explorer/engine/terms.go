package engine

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

// InTerms is the result in the names and numbers of the scenario that was requested,
// where its own are those with which it came about. States keep theirs: they are what
// was met.
func InTerms(r model.RunResult, s model.Scenario) model.RunResult {
	st := s.Waits()
	if st == nil {
		return r
	}
	asked := st.When.State
	if len(r.Or) > 0 {
		_, turned := r.Or.Invariant(&asked.Invariant, nil)
		back := r.Or.Inverse()
		if r.CutState != nil {
			st := back.State(*r.CutState, turned)
			r.CutState = &st
		}
		r = classesIn(r, func(c model.Class) model.Class { return back.Class(c, turned) })
	}
	if r.CutState == nil || asked.State == nil {
		return r
	}
	return classesIn(r, terms{from: *r.CutState, to: *asked.State}.class)
}

// classesIn is the result with its classes read so.
func classesIn(r model.RunResult, read func(model.Class) model.Class) model.RunResult {
	classes := make([]model.Class, len(r.Classes))
	for i, c := range r.Classes {
		classes[i] = read(c)
	}
	r.Classes = classes
	if r.HealClass != nil {
		c := read(*r.HealClass)
		r.HealClass = &c
	}
	return r
}
