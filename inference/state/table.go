package state

import (
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// tableVars bounds the variables of one node in a table. A variable beyond it
// takes the place of stale ones, or is not kept.
const tableVars = 4096

// Table holds the latest observation of every variable.
type Table struct {
	maxAge map[string]time.Duration
	gone   map[string][]string // by variable
	nodes  map[model.NodeID]map[model.VarRef]model.Observation
}

// NewTable returns an empty table. An observation is fresh up to and
// including its variable's MaxAge; a MaxAge of 0 sets no bound, and one that lasts is
// fresh until the next, or until its node's server is stopped or started.
func NewTable(vars []model.Variable) *Table {
	t := &Table{maxAge: map[string]time.Duration{}, gone: map[string][]string{}, nodes: map[model.NodeID]map[model.VarRef]model.Observation{}}
	for _, v := range vars {
		t.maxAge[v.Name] = v.MaxAge
		if len(v.Gone) > 0 {
			t.gone[v.Name] = v.Gone
		}
	}
	return t
}

// Set keeps an observation unless a later one is held already.
func (t *Table) Set(o model.Observation) {
	of := t.nodes[o.Var.Node]
	if of == nil {
		of = map[model.VarRef]model.Observation{}
		t.nodes[o.Var.Node] = of
	}
	old, known := of[o.Var]
	if known && old.At > o.At {
		return
	}
	if !known && len(of) >= tableVars {
		maps.DeleteFunc(of, func(_ model.VarRef, x model.Observation) bool { return !t.fresh(x, o.At) })
		if len(of) >= tableVars {
			return
		}
	}
	of[o.Var] = o
}

func (t *Table) fresh(o model.Observation, now time.Duration) bool {
	age := t.maxAge[o.Var.Name]
	return age == 0 || o.Lasts || now-o.At <= age
}

// Restarted says that something was done to a node's server by which it may have lost
// what it knew: no observation of it lasts any more.
func (t *Table) Restarted(node model.NodeID) {
	for ref, o := range t.nodes[node] {
		o.Lasts = false
		t.nodes[node][ref] = o
	}
}

// Value returns the latest value of a variable, "" if there is none, and
// whether it is fresh at the given moment.
func (t *Table) Value(ref model.VarRef, now time.Duration) (value string, fresh bool) {
	o, ok := t.nodes[ref.Node][ref]
	return o.Value, ok && t.fresh(o, now)
}

// State returns the values of an invariant's two variables, and whether both
// are fresh.
func (t *Table) State(inv *model.Invariant, now time.Duration) (model.State, bool) {
	a, okA := t.Value(inv.A, now)
	b, okB := t.Value(inv.B, now)
	return model.State{A: a, B: b}, okA && okB
}

// Outdated says that an invariant compares what a node knows that has said of
// itself that it is no member any more: nobody tells it what is new. What it says
// of itself is not outdated.
func (t *Table) Outdated(inv *model.Invariant) bool {
	for _, ref := range []model.VarRef{inv.A, inv.B} {
		if ref.About == string(ref.Node) {
			continue
		}
		for name, values := range t.gone {
			last, known := t.nodes[ref.Node][model.VarRef{Name: name, About: string(ref.Node), Node: ref.Node}]
			if known && slices.Contains(values, last.Value) {
				return true
			}
		}
	}
	return false
}

// Values returns the last value of every variable, fresh or not, sorted by
// variable.
func (t *Table) Values() []model.VarValue {
	var out []model.VarValue
	for _, of := range t.nodes {
		for _, o := range of {
			out = append(out, model.VarValue{Var: o.Var, Kind: o.Kind, Value: o.Value})
		}
	}
	sortValues(out)
	return out
}

func sortValues(vs []model.VarValue) {
	slices.SortFunc(vs, func(a, b model.VarValue) int { return a.Var.Compare(b.Var) })
}
