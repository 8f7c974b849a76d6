package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// twoLeaders reports leaders that should not be two: in one epoch at any time,
// or at all once recovery is over.
func twoLeaders() checker {
	return checker{
		name: "two-leaders",
		help: "two leaders that messages announce under one epoch; after recovery, two nodes that lead, or nodes that disagree about the leader. An observation older than `max_age` is no evidence; if a probed node led by it, nobody knows whether two lead",
		with: map[string]setting{
			"leader": {def: "", kind: "variable", help: "variable whose value is the leader's name; a node leads when it names itself"},
			"role":   {def: "final-role", help: "`f` of the operations that tell a node's role after recovery"},
			"value":  {def: "master", help: "value of `role` that means leader"},
			"view":   {def: "", kind: "variable", help: "variable that holds which node a node takes for the leader"},
			"epoch":  {def: "", kind: "variable", help: "variable that holds the epoch of that view, read from the same message"},
		},
		run: func(r *Record, s settings) outcome {
			var out outcome
			if s["view"] != "" && s["epoch"] != "" {
				if f, ok := oneEpoch(r, s["view"], s["epoch"]); ok {
					out.failures = append(out.failures, f)
				}
			}
			if f, ok := leadersAtEnd(r, s); ok {
				out.failures = append(out.failures, f)
			}
			if f, ok := viewsAtEnd(r, s["view"]); ok {
				out.failures = append(out.failures, f)
			}
			if !saidWhoLeads(r, s) {
				out.idle = "nothing in the run says who leads"
			} else {
				out.unknown = cmp.Or(unsaidAtEnd(r, s), secondAtEnd(r, s))
			}
			return out
		},
	}
}

// unsaidAtEnd says that nobody shows who leads when recovery is over, though the
// run did show it, or was to; "" if somebody does. Views stand in where nothing
// tells leaders; beside one who does, they may be missing.
func unsaidAtEnd(r *Record, s settings) string {
	values, _ := atEnd(r)
	shown := func(variable string) bool {
		return slices.ContainsFunc(values, func(v model.VarValue) bool { return v.Var.Name == variable })
	}
	roles := ordered(r, s["role"])
	reported := slices.ContainsFunc(roles, func(o record.Entry) bool { return o.Type == model.OpOK })
	leaders := s["leader"] != "" || len(roles) > 0
	if reported || shown(s["leader"]) || !leaders && shown(s["view"]) {
		return ""
	}
	return "nothing says who leads when recovery is over"
}

// saidWhoLeads says whether the run has anything that the check looks at, or
// asked for it.
func saidWhoLeads(r *Record, s settings) bool {
	about := func(v model.VarRef) bool { return v.Name != "" && (v.Name == s["leader"] || v.Name == s["view"]) }
	return slices.ContainsFunc(r.Observations, func(o model.Observation) bool { return about(o.Var) }) ||
		slices.ContainsFunc(r.Recovery.Final, func(v model.VarValue) bool { return about(v.Var) }) ||
		len(ordered(r, s["role"])) > 0
}

// oneEpoch looks for two leaders of one thing announced under one epoch. Only a
// view and an epoch read from one message belong together, about the same thing
// if the epoch is about one.
func oneEpoch(r *Record, view, epoch string) (model.Failure, bool) {
	type said struct {
		leader string
		by     model.Observation
	}
	obs := slices.Clone(r.Observations)
	slices.SortStableFunc(obs, func(a, b model.Observation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Message, b.Message), a.Var.Compare(b.Var), cmp.Compare(a.Value, b.Value))
	})
	type source struct {
		message uint64
		node    model.NodeID
		about   string
	}
	epochOf := map[source]string{}
	for _, o := range obs {
		if o.Message != 0 && o.Var.Name == epoch {
			epochOf[source{o.Message, o.Var.Node, thing(r, o.Var.About)}] = o.Value
		}
	}
	type term struct{ about, epoch string }
	first := map[term]said{}
	for _, o := range obs {
		about := thing(r, o.Var.About)
		e, ok := epochOf[source{o.Message, o.Var.Node, about}]
		if !ok {
			e, ok = epochOf[source{o.Message, o.Var.Node, ""}]
		}
		if !ok || o.Var.Name != view {
			continue
		}
		f, known := first[term{about, e}]
		if !known {
			first[term{about, e}] = said{o.Value, o}
			continue
		}
		if f.leader != o.Value {
			return model.Failure{
				Signature: "two leaders in one epoch",
				Summary: fmt.Sprintf("two leaders%s in epoch %s: %s says %s at %s s, %s says %s at %s s", ofThing(" of ", about), e,
					f.by.Var.Node, f.leader, seconds(f.by.At), o.Var.Node, o.Value, seconds(o.At)),
				Amount: 1,
			}, true
		}
	}
	return model.Failure{}, false
}

// atEnd returns what nodes held when recovery was over, and the variables that
// were observed in the run and of which nobody knows then. At the limit that is
// the last value of each variable. At the moment at which the conditions began
// to hold, the last values may be older than that moment: only what was
// observed since counts. A value that was stale (Variable.MaxAge) when another
// node showed the same variable last is no evidence beside it: its probe hung,
// or the node was gone. Where a variable is probed, only what a probe read counts: what
// messages alone showed is not known.
func atEnd(r *Record) (values []model.VarValue, old []model.VarRef) {
	from, to := time.Duration(0), max(r.Recovery.HealedAt+r.Recovery.Limit, r.WorkloadEnd)
	if r.Recovery.Stable {
		from, to = r.Recovery.StableAt, forever
	}
	last, newest, ever := map[model.VarRef]model.Observation{}, map[string]time.Duration{}, map[model.VarRef]bool{}
	for _, o := range r.Observations {
		ever[o.Var] = true
		if o.At < from || o.At > to || o.Probe == "" && probed(r, o.Var) {
			continue
		}
		newest[o.Var.Name] = max(newest[o.Var.Name], o.At)
		if have, ok := last[o.Var]; !ok || cmp.Or(cmp.Compare(o.At, have.At), cmp.Compare(o.Value, have.Value)) > 0 {
			last[o.Var] = o
		}
	}
	final := r.Recovery.Final
	if r.Recovery.Stable {
		final = nil
		for _, o := range last {
			final = append(final, model.VarValue{Var: o.Var, Kind: o.Kind, Value: o.Value})
		}
	}
	for _, v := range final {
		o, ok := last[v.Var]
		asked := probed(r, v.Var)
		if ok && newest[v.Var.Name]-o.At > maxAge(r, v.Var.Name) || !ok && asked && ever[v.Var] {
			continue
		}
		if ok && asked {
			v.Value = o.Value
		}
		values = append(values, v)
		delete(ever, v.Var)
	}
	for v := range ever {
		old = append(old, v)
	}
	slices.SortFunc(values, func(a, b model.VarValue) int { return cmp.Or(a.Var.Compare(b.Var), cmp.Compare(a.Value, b.Value)) })
	slices.SortFunc(old, model.VarRef.Compare)
	return values, old
}

// probed says whether a probe reads a variable. What a node is asked it holds; what it
// says may have waited in a queue since the cut.
func probed(r *Record, of model.VarRef) bool {
	return slices.ContainsFunc(r.Target.Variables, func(v model.Variable) bool {
		return v.Name == of.Name && slices.ContainsFunc(v.Sources, func(s model.VarSource) bool {
			return s.Probe != nil && (len(s.Hosts) == 0 || slices.Contains(s.Hosts, of.Node))
		})
	})
}

// maxAge is how long an observation of a variable is evidence; no bound where
// the target states none.
func maxAge(r *Record, variable string) time.Duration {
	for _, v := range r.Target.Variables {
		if v.Name == variable && v.MaxAge > 0 {
			return v.MaxAge
		}
	}
	return forever
}

// leadAtEnd lists, for each thing, the nodes that lead it when recovery is over: by
// the last values observed or by the final roles in the history, the last of
// each node, whichever has more.
func leadAtEnd(r *Record, s settings) map[string]map[string]bool {
	observed, reported := map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(to map[string]map[string]bool, about, node string) {
		if to[about] == nil {
			to[about] = map[string]bool{}
		}
		to[about][node] = true
	}
	values, _ := atEnd(r)
	for _, v := range values {
		if s["leader"] != "" && v.Var.Name == s["leader"] && v.Value == string(v.Var.Node) {
			add(observed, thing(r, v.Var.About), v.Value)
		}
	}
	for _, c := range calls(r) {
		switch {
		case c.f != s["role"]:
		case c.typ == model.OpOK && c.value == s["value"]:
			add(reported, thing(r, c.key), string(c.node))
		case c.typ == model.OpOK || c.unanswered(): // what it was before, it may be no more
			delete(reported[thing(r, c.key)], string(c.node))
		}
	}
	for about, leaders := range reported {
		if len(leaders) > len(observed[about]) {
			observed[about] = leaders
		}
	}
	return observed
}

// secondAtEnd says that there may be two leaders when recovery is over, since a node
// that was the leader when it was last observed was not read by its probe then; "" if
// there is none. It is no failure: the node may have followed since. What is not probed
// is not asked for at the end, and silence there says nothing. A process of the node that
// has ended since then does not lead.
func secondAtEnd(r *Record, s settings) string {
	leaders := leadAtEnd(r, s)
	_, old := atEnd(r)
	for _, v := range old {
		about := thing(r, v.About)
		if v.Name != s["leader"] || !probed(r, v) || slices.ContainsFunc(ordered(r, s["role"]), func(o record.Entry) bool {
			return o.Type == model.OpOK && o.Node == v.Node && thing(r, o.Key) == about
		}) {
			continue
		}
		last, led := ledLast(r, v, func(value string) bool { return value == string(v.Node) })
		if !led {
			continue
		}
		for _, n := range sortedKeys(leaders[about]) {
			if n != string(v.Node) {
				return fmt.Sprintf("%s leads%s when recovery is over, and %s was not observed then: it led at %s s", n, ofThing(" ", about), v.Node, seconds(last))
			}
		}
		if leaders[about] == nil {
			leaders[about] = map[string]bool{}
		}
		leaders[about][string(v.Node)] = true
	}
	return ""
}

// ledLast says when a node led by the last observation of a variable of its own, if it
// did and no process of it has ended since.
func ledLast(r *Record, v model.VarRef, leads func(value string) bool) (at time.Duration, led bool) {
	var last model.Observation
	for _, o := range r.Observations {
		if o.Var == v && cmp.Or(cmp.Compare(o.At, last.At), cmp.Compare(o.Value, last.Value)) >= 0 {
			last = o
		}
	}
	ended := slices.ContainsFunc(r.Exits, func(e record.Exit) bool { return e.Host == v.Node && e.At >= last.At })
	return last.At, leads(last.Value) && !ended
}

func leadersAtEnd(r *Record, s settings) (model.Failure, bool) {
	observed := leadAtEnd(r, s)
	f := model.Failure{Signature: "two nodes lead after recovery"}
	for _, about := range sortedKeys(observed) {
		if leaders := observed[about]; len(leaders) > 1 {
			f.Detail = append(f.Detail, fmt.Sprintf("%d nodes lead%s when recovery is over: %s", len(leaders), ofThing(" ", about), strings.Join(sortedKeys(leaders), ", ")))
			f.Amount = max(f.Amount, len(leaders))
		}
	}
	f.Summary, f.Detail = summed(f.Detail)
	return f, f.Amount > 0
}

// summed is the first of what was found of several things and how many more
// there are, and all of them if they are several.
func summed(found []string) (string, []string) {
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return fmt.Sprintf("%s; and %d more", found[0], len(found)-1), found
}

func viewsAtEnd(r *Record, view string) (model.Failure, bool) {
	if view == "" {
		return model.Failure{}, false
	}
	values, named := map[string]map[string]bool{}, map[string][]string{}
	held, _ := atEnd(r)
	for _, v := range held {
		if v.Var.Name == view {
			about := thing(r, v.Var.About)
			if values[about] == nil {
				values[about] = map[string]bool{}
			}
			values[about][v.Value] = true
			named[about] = append(named[about], v.Var.String()+" is "+v.Value)
		}
	}
	f := model.Failure{Signature: "views of the leader differ after recovery"}
	var differ []string
	for _, about := range sortedKeys(values) {
		if n := len(values[about]); n > 1 {
			slices.Sort(named[about])
			differ = append(differ, fmt.Sprintf("when recovery is over the nodes name different leaders%s: %s", ofThing(" of ", about), strings.Join(named[about], ", ")))
			f.Detail = append(f.Detail, named[about]...)
			f.Amount = max(f.Amount, n)
		}
	}
	f.Summary, _ = summed(differ)
	return f, f.Amount > 0
}
