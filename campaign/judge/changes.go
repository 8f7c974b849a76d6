package judge

import (
	"fmt"
	"slices"

	"netsplit/inference/state"
	"netsplit/model"
)

// leastChanges is from how many observations of a variable on, on one node, it is told
// that each of them changed it.
const leastChanges = 5

// changes looks for variables that are seen only when they change, of which nothing can
// be mined unless a source says so, and for sources that say so and missed a change.
func (x *Examination) changes(f *runFiles) {
	type course struct {
		seen, changed int
		last          model.Observation
	}
	of := map[model.VarRef]*course{}
	missed, only := map[string]string{}, map[string]string{}
	lasts := map[model.VarRef]bool{}
	for i, e := range f.events {
		if e.Kind == model.EventNode && e.Node.EndsMemory() {
			for v, c := range of {
				if v.Node == e.Node.Host {
					c.last.Lasts = false
				}
			}
		}
		o := e.Observation
		if e.Kind != model.EventObserve || o == nil {
			continue
		}
		c := of[o.Var]
		if c == nil {
			c = &course{}
			of[o.Var] = c
		}
		lasts[o.Var] = lasts[o.Var] || o.Lasts
		if c.seen++; c.seen > 1 && c.last.Value != o.Value {
			c.changed++
		}
		if c.last.Lasts && !o.Lasts && c.last.Value != o.Value && missed[o.Var.Name] == "" && !reportedSoon(f.events[i:], *o) {
			missed[o.Var.Name] = fmt.Sprintf("%s was %s at %.3f s and %s at %.3f s", o.Var, c.last.Value, c.last.At.Seconds(), o.Value, o.At.Seconds())
		}
		c.last = *o
	}
	for v, c := range of {
		if !lasts[v] && c.seen >= leastChanges && c.changed == c.seen-1 && (only[v.Name] == "" || v.String() < only[v.Name]) {
			only[v.Name] = v.String()
		}
	}
	for _, v := range f.target.Variables {
		if how := missed[v.Name]; how != "" {
			x.problem("variable %s: a source claims to tell every change (tells: %s), but another source showed a change that it did not tell: %s", v.Name, model.TellsChanges, how)
		}
		if slices.ContainsFunc(v.Sources, func(s model.VarSource) bool { return s.Probe == nil }) && only[v.Name] != "" {
			x.fact("variable %s was seen only when it changed (%s): its value in between is unknown, so nothing is mined from it; if a source tells every change, write tells: %s there", v.Name, only[v.Name], model.TellsChanges)
		}
	}
}

// reportedSoon says whether the source that tells all changes told this one, too, a little
// later than another source.
func reportedSoon(events []model.Event, o model.Observation) bool {
	for _, e := range events {
		if e.At > o.At+state.DefaultSettle {
			return false
		}
		if p := e.Observation; e.Kind == model.EventObserve && p != nil && p.Var == o.Var && p.Lasts {
			return true
		}
	}
	return false
}
