package engine

import (
	"cmp"
	"slices"
	"time"

	"netsplit/model"
)

// tracker keeps the latest value of every variable and which inconsistent
// states of the watched invariants occurred.
type tracker struct {
	values map[model.VarRef]string
	watch  []watched              // sorted by invariant id
	of     map[model.VarRef][]int // which of watch a variable belongs to
	found  map[metKey]*model.MetState
	armed  bool
}

type watched struct {
	inv  model.Invariant
	last model.State // last current state, once known
	in   bool        // last was inconsistent and was counted
	// shapes counts the inconsistent states entered, by shape.
	shapes map[string]int
}

type metKey struct {
	inv   string
	state model.State
}

func newTracker(s model.Scenario) *tracker {
	t := &tracker{values: map[model.VarRef]string{}, of: map[model.VarRef][]int{}, found: map[metKey]*model.MetState{}}
	all := slices.Clone(s.Observe)
	for i := range s.Steps {
		st := &s.Steps[i]
		if c := st.When.State; c != nil {
			all = append(all, c.Invariant)
		}
		if m := st.Do.Message; m != nil && m.While != nil {
			all = append(all, m.While.Invariant)
		}
	}
	slices.SortStableFunc(all, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	all = slices.CompactFunc(all, func(a, b model.Invariant) bool { return a.ID == b.ID })
	for i, inv := range all {
		t.watch = append(t.watch, watched{inv: inv, shapes: map[string]int{}})
		t.of[inv.A] = append(t.of[inv.A], i)
		if inv.B != inv.A {
			t.of[inv.B] = append(t.of[inv.B], i)
		}
	}
	return t
}

// current is the state projected on the invariant; known is false until both
// variables were observed.
func (t *tracker) current(inv *model.Invariant) (model.State, bool) {
	if inv == nil {
		return model.State{}, false
	}
	a, okA := t.values[inv.A]
	b, okB := t.values[inv.B]
	return model.State{A: a, B: b}, okA && okB
}

func (t *tracker) observe(o model.Observation, now time.Duration) {
	t.values[o.Var] = o.Value
	for _, i := range t.of[o.Var] {
		t.note(&t.watch[i], now)
	}
}

func (t *tracker) note(w *watched, now time.Duration) {
	st, known := t.current(&w.inv)
	if !t.armed || !known {
		return
	}
	entered := !w.in || w.last != st
	w.last, w.in = st, st.A != st.B
	if !w.in || !entered {
		return
	}
	k, shape := metKey{w.inv.ID, st}, st.Shape()
	w.shapes[shape]++
	if t.found[k] == nil {
		t.found[k] = &model.MetState{Invariant: w.inv.ID, State: st, First: now, Nth: w.shapes[shape]}
	}
	t.found[k].Count++
}

// entered counts the inconsistent states of the shape that were entered.
func (t *tracker) entered(inv *model.Invariant, shape string) int {
	for _, i := range t.of[inv.A] {
		if t.watch[i].inv.ID == inv.ID {
			return t.watch[i].shapes[shape]
		}
	}
	return 0
}

// arm starts the recording; a state that lasts since before counts as entered
// now.
func (t *tracker) arm(now time.Duration) {
	t.armed = true
	for i := range t.watch {
		t.note(&t.watch[i], now)
	}
}

func (t *tracker) disarm() { t.armed = false }

func (t *tracker) met() []model.MetState {
	var out []model.MetState
	for _, m := range t.found {
		out = append(out, *m)
	}
	slices.SortFunc(out, model.MetState.Compare)
	return out
}

// States returns the inconsistent states of the invariants that a recorded
// run met while its workload ran, sorted by invariant, then state. With it the
// clean runs serve as Algorithm 1's run without partition (line 1) although
// they ended before the invariants were mined.
func States(log []model.Event, invariants []model.Invariant) []model.MetState {
	e := New(model.Scenario{Strategy: model.StrategyClean, Observe: invariants})
	for _, ev := range log {
		e.Step(ev)
	}
	return e.Result().States
}
