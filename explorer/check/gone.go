package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// gone reports what was created and is missing in the end, and what was
// deleted and is there again.
func gone() checker {
	return checker{
		name:    "gone",
		history: true,
		loss:    &loss{"thing that was created or deleted", "things that were created or deleted", "not so in the list", "so"},
		help:    "a thing that an acknowledged operation created, that no operation may have deleted since, and that the final list lacks; or one that was deleted and is listed. Judged where `<list>-done` is `ok`",
		with: map[string]setting{
			"create": {def: "create", help: "`f` of the operations that create the thing in `key`"},
			"delete": {def: "delete", help: "`f` of the operations that delete it"},
			"list":   {def: "final-list", help: "`f` of the operations that list a thing (`key`) at the end, through a node. `<list>-done` with `ok` says that the list is whole (with a node: that node's)"},
			"late":   lateSetting,
			"every":  {def: "true", kind: "bool", help: "true: each node that was read must list it; false: one of them must"},
		},
		run: runGone,
	}
}

// never is the end of an operation that may take effect at any time.
const never = forever

func runGone(r *Record, s settings) outcome {
	lists, whole, why := map[model.NodeID]map[string]bool{}, map[model.NodeID]bool{}, "no final list in the history"
	for _, o := range ordered(r, s["list"], s["list"]+"-done") {
		switch {
		case o.F != s["list"] && o.Type == model.OpOK:
			whole[o.Node] = true
		case o.F != s["list"] && o.Type != model.OpInvoke:
			whole[o.Node], why = false, "the final list could not be read: "+o.Error
		case o.Type == model.OpOK:
			if lists[o.Node] == nil {
				lists[o.Node] = map[string]bool{}
			}
			lists[o.Node][o.Key] = true
		}
	}
	if one := lists[""]; whole[""] { // one list, whichever nodes answered
		if one == nil {
			one = map[string]bool{}
		}
		for _, l := range lists {
			maps.Copy(one, l)
		}
		lists[""] = one
	}
	read, some := false, map[model.NodeID]bool{} // whether a list is whole, and who listed anything
	for n := range whole {
		read = read || whole[n]
		some[n] = true
	}
	for n := range lists {
		some[n] = true
	}
	byKey := map[string][]call{}
	creates, deletes := s.list("create"), s.list("delete")
	acked := 0
	all := calls(r)
	for _, c := range all {
		if c.typ == model.OpFail || !slices.Contains(creates, c.f) && !slices.Contains(deletes, c.f) {
			continue
		}
		if c.typ != model.OpOK {
			c.done = never
		} else {
			acked++
		}
		byKey[c.key] = append(byKey[c.key], c)
	}
	if acked == 0 {
		return outcome{idle: "nothing was created or deleted"}
	}
	if !read {
		return outcome{unknown: why + "; what could not be listed is not called gone"}
	}
	lost, back := map[string]*model.Failure{}, map[string]*model.Failure{}
	var missing, again []string
	unread := unreadKeys(all, s["list"])
	for _, key := range sortedKeys(byKey) {
		if unread[key] {
			continue
		}
		var with, without []model.NodeID
		for _, n := range sortedKeys(some) {
			if lists[n][key] {
				with = append(with, n)
			} else if whole[n] {
				without = append(without, n)
			}
		}
		made, unmade := last(byKey[key], creates, deletes), last(byKey[key], deletes, creates)
		lacks := len(with) == 0 || s.bool("every") && len(without) > 0
		switch {
		case made != nil && lacks:
			missing = append(missing, key)
			sig := fmt.Sprintf("what %s created is gone after recovery", made.f)
			if len(with) > 0 {
				sig = fmt.Sprintf("what %s created is gone from some nodes after recovery", made.f)
			}
			note(lost, sig, fmt.Sprintf("%s was created (%s acknowledged by %s at %s s%s) and is not listed%s when recovery is over", key, made.f, nameOf(made.node), seconds(made.done), when(r, made.done), through(without)))
		case unmade != nil && len(with) > 0:
			again = append(again, key)
			sig := fmt.Sprintf("what %s deleted is there again after recovery", unmade.f)
			note(back, sig, fmt.Sprintf("%s was deleted (%s acknowledged by %s at %s s%s) and is listed%s when recovery is over", key, unmade.f, nameOf(unmade.node), seconds(unmade.done), when(r, unmade.done), through(with)))
		}
	}
	mayExplain(lost, unnamed(all, deletes), words(deletes))
	mayExplain(back, unnamed(all, creates), words(creates))
	out := outcome{}
	if len(lost) > 0 {
		out.missing = missing
	}
	if len(back) > 0 {
		out.missing = append(out.missing, again...)
	}
	maps.Copy(lost, back)
	out.failures = collect(lost)
	return out
}

// mayExplain takes out of the failures what n operations without an answer may
// have done, to one thing each; nobody knows to which.
func mayExplain(by map[string]*model.Failure, n int, fs string) {
	total := 0
	for _, f := range by {
		total += f.Amount
	}
	if total <= n {
		clear(by)
		return
	}
	for _, f := range by {
		if n > 0 {
			f.Summary += fmt.Sprintf("; %d such in all, of which %d operations without an answer (%s) may explain as many", total, n, fs)
		}
	}
}

// last returns an acknowledged operation of one kind that came, without doubt,
// after all of the other kind; nil if there is none.
func last(cs []call, kind, other []string) *call {
	for i := len(cs) - 1; i >= 0; i-- {
		c := &cs[i]
		if c.typ != model.OpOK || !slices.Contains(kind, c.f) {
			continue
		}
		if !slices.ContainsFunc(cs, func(o call) bool { return slices.Contains(other, o.f) && o.done >= c.invoked }) {
			return c
		}
	}
	return nil
}

// note adds one more of a kind of failure: the first is the summary, the first
// twenty are details.
func note(by map[string]*model.Failure, sig, what string) {
	f := by[sig]
	if f == nil {
		f = &model.Failure{Signature: sig, Summary: what}
		by[sig] = f
	}
	f.Amount++
	if len(f.Detail) < 20 {
		f.Detail = append(f.Detail, what)
	}
}

// when places a moment against the cut; "" without one. It is for summaries: in a signature it
// would make two findings of one cause.
func when(r *Record, at time.Duration) string {
	switch {
	case r.Proof == nil:
		return ""
	case at < r.Proof.CutAt:
		return ", before the cut"
	case r.Proof.HealAt == 0 || at < r.Proof.HealAt:
		return ", while cut"
	}
	return ", after heal"
}

func nameOf(n model.NodeID) string {
	if n == "" {
		return "an unknown node"
	}
	return string(n)
}

func through(nodes []model.NodeID) string {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n model.NodeID) bool { return n == "" })
	if len(nodes) == 0 {
		return ""
	}
	return " through " + words(nodes)
}
