package check

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
	"netsplit/record"
)

// recovery reports a target that did not come back within its limit.
func recovery() checker {
	return checker{
		name: "recovery",
		help: "`stable` conditions or invariants that do not hold again within `timing.recover` after heal",
		run: func(r *Record, _ settings) outcome {
			rec := r.Recovery
			if rec.Stable {
				return outcome{}
			}
			if rec.Limit == 0 {
				return outcome{unknown: "recovery was not watched"}
			}
			if left, hosts := leftDown(r); left != "" && !disagree(rec.Violated, hosts) {
				return outcome{unknown: "whether the target has recovered cannot be told: " + left}
			}
			after := "the workload ended"
			if r.Proof != nil {
				after = "heal"
			}
			f := model.Failure{Amount: len(rec.Pending) + len(rec.Violated)}
			var what []string
			if name := firstPending(r); name != "" {
				f.Signature = "not recovered: condition " + name + " does not hold"
				what = append(what, fmt.Sprintf("condition %s does not hold", name))
			}
			relations := map[string]string{} // and who says what of the first
			for _, v := range rec.Violated {
				a, b := v.Invariant.A, v.Invariant.B
				if rel := a.Name + " " + v.Invariant.Relation + " " + b.Name; relations[rel] == "" {
					relations[rel] = fmt.Sprintf("%s is %s and %s is %s", a, v.State.A, b, v.State.B)
				}
			}
			for _, rel := range sortedKeys(relations) {
				if f.Signature == "" {
					f.Signature = "not recovered: invariant " + rel + " is violated"
				}
				what = append(what, "nodes disagree: "+relations[rel])
			}
			if f.Signature == "" {
				f.Signature = "not recovered"
				what = append(what, "it did not become stable")
			}
			f.Summary = fmt.Sprintf("%s s after %s the target has not recovered: %s", seconds(rec.Limit), after, strings.Join(what, ", "))
			f.Detail = append(f.Detail, rec.Pending...)
			for _, v := range rec.Violated {
				f.Detail = append(f.Detail, fmt.Sprintf("%s is %s", &v.Invariant, v.State))
			}
			slices.Sort(f.Detail)
			f.Detail = slices.Compact(f.Detail)
			return outcome{failures: []model.Failure{f}}
		},
	}
}

// disagree says whether nodes disagree of which none is among the hosts.
func disagree(violated []record.Violation, hosts []model.NodeID) bool {
	return slices.ContainsFunc(violated, func(v record.Violation) bool {
		return !slices.Contains(hosts, v.Invariant.A.Node) && !slices.Contains(hosts, v.Invariant.B.Node)
	})
}

// leftDown says which servers somebody stopped, killed or paused last and did not start again, and
// lists their hosts; "" if there are none. What a step of the scenario took down is up before the
// target must recover, and a server that nobody starts by himself may be down.
func leftDown(r *Record) (string, []model.NodeID) {
	type server struct {
		host    model.NodeID
		process string
	}
	last := map[server]NodeAction{}
	for _, a := range r.Actions {
		last[server{a.Host, a.Process}] = a
	}
	var down []string
	var hosts []model.NodeID
	for s, a := range last {
		manual := slices.ContainsFunc(r.Target.Processes, func(p model.Process) bool { return p.Name == s.process && p.Manual })
		if !manual && (a.Verb == model.NodeStop || a.Verb == model.NodeKill || a.Verb == model.NodePause) {
			hosts = append(hosts, s.host)
			down = append(down, fmt.Sprintf("%s on %s (%s at %s s)", s.process, s.host, a.Verb, seconds(a.At)))
		}
	}
	if len(down) == 0 {
		return "", nil
	}
	slices.Sort(down)
	return "nobody started again " + strings.Join(down, ", ") + "; whoever stops a server must start it", hosts
}

// firstPending names the first condition, in the order of the target file,
// that does not hold: which ones fail beside it varies with the moment. An
// entry starts with the name of a condition; one that does not is a detail.
func firstPending(r *Record) string {
	var names []string
	for _, p := range r.Recovery.Pending {
		name, _, _ := strings.Cut(p, " ")
		names = append(names, strings.TrimRight(name, ":"))
	}
	for _, c := range r.Target.Stable {
		if slices.Contains(names, c.Name) {
			return c.Name
		}
	}
	return ""
}
