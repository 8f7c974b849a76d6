package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

func copiesEqual() checker {
	return checker{
		name:    "copies-equal",
		history: true,
		loss:    &loss{"key", "keys", "not the same on all nodes", "the same"},
		help:    "a key whose final values, read through each node, are not all the same. A node that could not be read leaves the run unknown; read each node only when it has caught up with the leader",
		with: map[string]setting{
			"read":  {def: "final-state", help: "`f` of the operations that read what a node (`node`) holds (`value`) of a key. `<read>-done` with `ok` and the node says that its list is whole, so a key that it lacks differs"},
			"late":  lateSetting,
			"least": {def: "2", kind: "count", min: 1, help: "how many nodes must have been read; with fewer the run is unknown"},
		},
		run: func(r *Record, s settings) outcome {
			held := map[string]map[model.NodeID]string{} // by key
			whole, silent := map[model.NodeID]bool{}, map[model.NodeID]string{}
			nodes := map[model.NodeID]bool{}
			unread := map[string]map[model.NodeID]bool{} // by key: who was asked last and told nothing
			for _, c := range calls(r) {
				switch {
				case c.node == "":
				case c.f == s["read"]+"-done":
					whole[c.node] = c.typ == model.OpOK
					if c.typ != model.OpOK {
						silent[c.node] = c.err
					} else {
						nodes[c.node] = true
					}
				case c.f != s["read"]:
				case c.typ == model.OpOK:
					if held[c.key] == nil {
						held[c.key] = map[model.NodeID]string{}
					}
					held[c.key][c.node] = c.value
					nodes[c.node] = true
					delete(silent, c.node)
					delete(unread[c.key], c.node)
				case c.unanswered():
					delete(held[c.key], c.node) // what it held before, it may hold no more
					if unread[c.key] == nil {
						unread[c.key] = map[model.NodeID]bool{}
					}
					unread[c.key][c.node] = true
					silent[c.node] = c.err
				case held[c.key][c.node] == "":
					silent[c.node] = c.err
				}
			}
			if len(ordered(r, s["read"], s["read"]+"-done")) == 0 {
				return outcome{idle: "no copy was read"}
			}
			var out outcome
			by := map[string]*model.Failure{}
			compared := len(held) == 0 // all have none
			for _, key := range sortedKeys(held) {
				for n, all := range whole {
					if _, has := held[key][n]; !has && all && !unread[key][n] {
						held[key][n] = model.Absent
					}
				}
				compared = compared || len(held[key]) >= s.count("least")
				byValue := map[string][]model.NodeID{}
				for _, n := range sortedKeys(held[key]) {
					v := held[key][n]
					byValue[v] = append(byValue[v], n)
				}
				if len(byValue) < 2 {
					continue
				}
				out.missing = append(out.missing, key)
				sig := "copies of " + cmp.Or(stable(key), "the state") + " differ after recovery"
				f := by[sig]
				words := difference(byValue)
				if f == nil {
					f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("when recovery is over the nodes hold different copies of %s: %s", cmp.Or(key, "the state"), strings.Join(words, "; "))}
					by[sig] = f
				}
				f.Amount++
				if len(f.Detail) < 20 {
					f.Detail = append(f.Detail, cmp.Or(key, "the state")+": "+strings.Join(words, "; "))
				}
			}
			out.failures = collect(by)
			var why []string
			for _, n := range sortedKeys(silent) {
				why = append(why, strings.TrimSpace(fmt.Sprintf("%s could not be read: %s", n, silent[n])))
			}
			if len(nodes) < s.count("least") {
				why = append(why, fmt.Sprintf("nodes read at the end: %d; copies are compared from %s on", len(nodes), s["least"]))
			}
			if len(why) == 0 && !compared {
				why = append(why, fmt.Sprintf("no copy was read through %s nodes, so none was compared", s["least"]))
			}
			out.unknown = strings.Join(why, "; ")
			return out
		},
	}
}

// difference says who holds what, the value that most hold first.
func difference(byValue map[string][]model.NodeID) []string {
	values := sortedKeys(byValue)
	slices.SortStableFunc(values, func(a, b string) int { return len(byValue[b]) - len(byValue[a]) })
	var out []string
	for _, v := range values {
		verb := "hold "
		if len(byValue[v]) == 1 {
			verb = "holds "
		}
		out = append(out, words(byValue[v])+" "+verb+cmp.Or(shorten(v), "nothing"))
	}
	return out
}
