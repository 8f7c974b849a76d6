package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// singleLeader reports systems of one leader that had two, or none in the end.
func singleLeader() checker {
	return checker{
		name: "leaders",
		help: "two nodes that both say for longer than `overlap` that they lead; too many or too few leaders when recovery is over. A node leads from one observation to the next, within `max_age`; whether a probed node that led and is silent in the end still leads, nobody knows",
		with: map[string]setting{
			"variable": {def: "", kind: "variable", help: "variable that says what a node is or whom it follows, by the node itself (a probe, or messages that it sends)"},
			"leads":    {def: "leader", help: "values that mean that it leads; `$self`: its own name"},
			"role":     {def: "final-role", help: "`f` of the operations whose `value` is what a node (`node`) is after recovery; it counts before `variable`"},
			"overlap":  {def: "", kind: "duration", help: "how long two nodes may lead at a time; empty: only the end counts"},
			"least":    {def: "0", kind: "count", help: "how many nodes must lead when recovery is over"},
			"most":     {def: "1", kind: "count", help: "how many nodes may lead when recovery is over"},
		},
		run: func(r *Record, s settings) outcome {
			var out outcome
			if s["variable"] != "" && s["overlap"] != "" {
				f, found, seen := leadTogether(r, s)
				if found {
					out.failures = append(out.failures, f)
				}
				if !seen {
					out.unknown = fmt.Sprintf("no node ever showed %s, so nobody knows whether two led at one time", s["variable"])
				}
			}
			roles, silent := finalRoles(r, s)
			if len(roles) == 0 {
				out.unknown = "nothing says who leads when recovery is over"
				return out
			}
			before, led := out.unknown, 0
			for _, about := range sortedKeys(roles) {
				led += leadersOf(r, s, about, roles[about], silent[about], &out)
			}
			for _, about := range sortedKeys(silent) {
				if roles[about] == nil {
					out.unknown = and(out.unknown, fmt.Sprintf("nothing says who leads%s when recovery is over", ofThing(" ", about)))
				}
			}
			if led == 0 && len(out.failures) == 0 && out.unknown == before && !everLed(r, s) {
				out.idle = "no node was ever " + meaning(s)
			}
			return out
		},
	}
}

// meaning is what a node is that leads, in words.
func meaning(s settings) string { return strings.Join(s.list("leads"), " or ") }

// leadersOf judges how many lead one thing when recovery is over, and says how
// many do.
func leadersOf(r *Record, s settings, about string, roles map[model.NodeID]string, silent []model.NodeID, out *outcome) int {
	var lead, others []string
	for _, n := range sortedKeys(roles) {
		if leads(s, n, roles[n]) {
			lead = append(lead, string(n))
		} else {
			others = append(others, fmt.Sprintf("%s is %s", n, cmp.Or(roles[n], "unknown")))
		}
	}
	what := ofThing(" ", about)
	var f model.Failure
	switch {
	case len(lead) > s.count("most"):
		f = model.Failure{Signature: fmt.Sprintf("more than %s lead after recovery", s["most"]), Amount: len(lead),
			Summary: fmt.Sprintf("%d nodes lead%s when recovery is over: %s", len(lead), what, strings.Join(lead, ", ")), Detail: others}
	case len(lead) <= s.count("most") && len(lead)+len(ledSilent(r, s, about, silent)) > s.count("most"):
		out.unknown = and(out.unknown, fmt.Sprintf("%d nodes lead%s when recovery is over, and there may be more: not observed then, but leading before: %s", len(lead), what, words(ledSilent(r, s, about, silent))))
	case len(lead) < s.count("least") && len(lead)+len(silent) >= s.count("least"):
		out.unknown = and(out.unknown, fmt.Sprintf("%d nodes lead%s when recovery is over, and %s was not observed then: it may lead as well", len(lead), what, words(silent)))
	case len(lead) < s.count("least"):
		f = model.Failure{Signature: fmt.Sprintf("fewer than %s lead after recovery", s["least"]), Amount: len(lead),
			Summary: fmt.Sprintf("%d nodes lead%s when recovery is over (a node leads that is %s): %s", len(lead), what, meaning(s), strings.Join(others, ", ")), Detail: others}
	}
	if f.Signature == "" {
		return len(lead)
	}
	for i, have := range out.failures { // the same of another thing
		if have.Signature == f.Signature {
			out.failures[i].Detail = append(have.Detail, f.Summary)
			return len(lead)
		}
	}
	out.failures = append(out.failures, f)
	return len(lead)
}

// ledSilent are the silent nodes that led when their probe last read them.
func ledSilent(r *Record, s settings, about string, silent []model.NodeID) (out []model.NodeID) {
	for _, n := range silent {
		v := model.VarRef{Name: s["variable"], Node: n, About: about}
		if _, led := ledLast(r, v, func(value string) bool { return leads(s, n, value) }); led && probed(r, v) {
			out = append(out, n)
		}
	}
	return out
}

func leads(s settings, n model.NodeID, value string) bool {
	return slices.ContainsFunc(s.list("leads"), func(v string) bool { return v == value || v == "$self" && value == string(n) })
}

// everLed says whether a node showed in the run that it leads.
func everLed(r *Record, s settings) bool {
	return slices.ContainsFunc(r.Observations, func(o model.Observation) bool {
		return o.Var.Name == s["variable"] && ofItself(r, o.Var) && leads(s, o.Var.Node, o.Value)
	})
}

// ofItself says whether a variable tells what its node is, of the system or of
// one thing of several, and not what the node takes another one for.
func ofItself(r *Record, v model.VarRef) bool { return v.About == "" || thing(r, v.About) != "" }

// finalRoles is what each node is when recovery is over, for each thing that
// has a leader. silent are nodes that showed what they are in the run, and not
// then, or that were asked and did not answer.
func finalRoles(r *Record, s settings) (roles map[string]map[model.NodeID]string, silent map[string][]model.NodeID) {
	roles, silent = map[string]map[model.NodeID]string{}, map[string][]model.NodeID{}
	set := func(about string, node model.NodeID, value string) {
		if roles[about] == nil {
			roles[about] = map[model.NodeID]string{}
		}
		roles[about][node] = value
	}
	values, old := atEnd(r)
	for _, v := range values {
		if s["variable"] != "" && v.Var.Name == s["variable"] && ofItself(r, v.Var) {
			set(v.Var.About, v.Var.Node, v.Value)
		}
	}
	for _, c := range calls(r) {
		about := thing(r, c.key)
		switch i := slices.Index(silent[about], c.node); {
		case c.f != s["role"] || c.node == "":
		case c.typ == model.OpOK:
			set(about, c.node, c.value)
			if i >= 0 {
				silent[about] = slices.Delete(silent[about], i, i+1)
			}
		case c.unanswered():
			delete(roles[about], c.node) // what it was before, it may be no more
			if i < 0 {
				silent[about] = append(silent[about], c.node)
			}
		}
	}
	for _, v := range old {
		if _, reported := roles[v.About][v.Node]; !reported && s["variable"] != "" && v.Name == s["variable"] && ofItself(r, v) && !slices.Contains(silent[v.About], v.Node) {
			silent[v.About] = append(silent[v.About], v.Node)
		}
	}
	return roles, silent
}

// leadTogether looks for two nodes that led one thing for longer than allowed at one
// time. A node leads without doubt from one observation that says so to the
// next that does, with none between that says otherwise, if the next comes
// before the first is stale (Variable.MaxAge): while a probe hangs, nobody
// knows. What a probe answers may have been so for the last time when it was
// asked, which was after its answer before. seen is false if no node ever
// showed the variable.
func leadTogether(r *Record, s settings) (f model.Failure, found, seen bool) {
	type leader struct {
		about string
		node  model.NodeID
	}
	type stretch struct {
		leader
		from, to time.Duration
		last     time.Duration // observed last
	}
	type requested struct {
		leader
		probe string
	}
	obs := slices.Clone(r.Observations)
	slices.SortStableFunc(obs, func(a, b model.Observation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.Var.Compare(b.Var), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Probe, b.Probe))
	})
	age := maxAge(r, s["variable"])
	var all []stretch
	open := map[leader]int{}
	answered := map[requested]time.Duration{}
	for _, o := range obs {
		if o.Var.Name != s["variable"] || !ofItself(r, o.Var) {
			continue
		}
		seen = true
		who := leader{o.Var.About, o.Var.Node}
		sure := o.At
		if o.Probe != "" {
			k := requested{who, o.Probe}
			sure = answered[k]
			answered[k] = o.At
		}
		i, is := open[who]
		switch on := leads(s, o.Var.Node, o.Value); {
		case on && is && o.At-all[i].last <= age:
			all[i].to, all[i].last = max(all[i].to, sure), o.At
		case on:
			open[who] = len(all)
			all = append(all, stretch{who, o.At, o.At, o.At})
		default:
			delete(open, who)
		}
	}
	for i, b := range all {
		for _, a := range all[:i] {
			from, to := max(a.from, b.from), min(a.to, b.to)
			if a.about != b.about || a.node == b.node || to-from <= s.duration("overlap") {
				continue
			}
			return model.Failure{Signature: "two nodes lead at one time", Amount: 2,
				Summary: fmt.Sprintf("%s and %s both lead%s from %.3f to %.3f s%s; %s was allowed", a.node, b.node, ofThing(" ", a.about), from.Seconds(), to.Seconds(), when(r, from), s["overlap"])}, true, true
		}
	}
	return model.Failure{}, false, seen
}
