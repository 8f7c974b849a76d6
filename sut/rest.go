package sut

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// points checks what tells points apart.
func (v *validator) points() {
	p := v.t.Points
	known := model.PointKeys()
	for i, k := range p.Keys {
		if !slices.Contains(known, k) {
			v.addf(fmt.Sprintf("points.keys[%d]", i), "a point has no key %q%s: it has %s", k, DidYouMean(string(k), texts(known)), strings.Join(texts(known), ", "))
		}
	}
	if len(p.Keys) > 0 && !model.Identifies(p.Keys) {
		v.addf("points.keys", "the keys lack side or type: nobody can tell what fails at a point")
	}
	for i, s := range p.Periodic {
		if s == "" {
			v.addf(fmt.Sprintf("points.periodic[%d]", i), "no type: give one as runs show it, with * for any text")
		}
	}
	v.unique("points.stages", "stage", len(p.Stages), func(i int) string { return p.Stages[i].Name })
	for i, s := range p.Stages {
		if s.Begins == "" {
			v.addf(fmt.Sprintf("points.stages[%d].begins", i), "stage %q begins with nothing: give the type of the message that begins it", s.Name)
		}
	}
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}

// quiesce checks what a run waits for before its end is judged.
func (v *validator) quiesce() {
	q := v.t.Quiesce
	if q == nil {
		return
	}
	if len(q.Until) == 0 {
		v.addf("quiesce.until", "no conditions: say how to see that nothing goes on any more")
	}
	if q.Limit <= 0 {
		v.addf("quiesce.limit", "no limit: say how long a run waits for it")
	}
	if (q.Ask == nil) != (len(q.Hosts) == 0) {
		v.addf("quiesce.hosts", "ask and hosts go together: give both or neither")
	}
	v.declared("quiesce.hosts", q.Hosts...)
	if q.Ask != nil {
		v.probe("quiesce.ask", *q.Ask)
	}
	v.conditionsOf("quiesce.until", q.Until)
	for i, c := range q.Until {
		if slices.ContainsFunc(v.t.Stable, func(o model.Condition) bool { return o.Name == c.Name }) {
			v.addf(fmt.Sprintf("quiesce.until[%d].name", i), "condition %q is in stable, too, and holds before this is asked: give it another name, and what tells more", c.Name)
		}
	}
}

// quiesce is what of it is asked on the host.
func (x *expander) quiesce(q *model.Quiesce) *model.Quiesce {
	if q == nil {
		return nil
	}
	out := *q
	if out.Ask = nil; q.Ask != nil && slices.Contains(q.Hosts, model.NodeID(x.v.Host)) {
		p := x.probe("quiesce.ask", *q.Ask)
		out.Ask = &p
	}
	out.Until = x.conditions("quiesce.until", q.Until)
	return &out
}

// conditions are those of the host.
func (x *expander) conditions(key string, in []model.Condition) []model.Condition {
	var out []model.Condition
	for i, c := range in {
		if !slices.Contains(c.Hosts, model.NodeID(x.v.Host)) {
			continue
		}
		at := fmt.Sprintf("%s[%d]", key, i)
		c.Probe = x.probe(at+".probe", c.Probe)
		c.Match = x.text(at+".match", c.Match)
		out = append(out, c)
	}
	return out
}
