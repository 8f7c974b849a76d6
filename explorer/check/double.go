package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// double reports one thing that two hold: a lock, an element, a number.
func double() checker {
	return checker{
		name:    "double",
		history: true,
		help:    "one thing that was handed to more than `count` processes at a time: an element of a queue, an id, a lock, a permit",
		with: map[string]setting{
			"take":    {def: "take", help: "`f` of the operations that hand out a thing"},
			"release": {def: "", help: "`f` of the operations that give it back; empty: it is never given back"},
			"thing":   {def: "key", help: "`key` or `value`: where the answer has the thing's name"},
			"count":   {def: "1", kind: "count", min: 1, help: "how many may hold it at a time (permits of a semaphore)"},
			"lease":   {def: "0s", kind: "duration", help: "how long a thing is held at least, from when it was asked for; 0s: until it is given back"},
		},
		run: runDouble,
	}
}

// holding is the stretch in which a process held a thing without doubt: from
// the answer until it began to give it back, or its lease could end.
type holding struct {
	by       string
	node     model.NodeID
	from, to time.Duration
}

func runDouble(r *Record, s settings) outcome {
	takes, releases := s.list("take"), s.list("release")
	thing := func(c call) string {
		if s["thing"] == "value" {
			return c.value
		}
		return c.key
	}
	type holder struct{ by, thing string }
	held := map[string][]holding{} // by thing
	open := map[holder][]int{}     // indices into held[thing]
	for _, c := range calls(r) {   // by time of invocation: a release comes after its take
		h := holder{fmt.Sprintf("%s/%d", c.workload, c.process), thing(c)}
		switch {
		case slices.Contains(takes, c.f) && c.typ == model.OpOK && h.thing != "":
			x := holding{h.by, c.node, c.done, forever}
			if lease := s.duration("lease"); lease > 0 {
				x.to = max(x.from, c.invoked+lease)
			}
			open[h] = append(open[h], len(held[h.thing]))
			held[h.thing] = append(held[h.thing], x)
		case slices.Contains(releases, c.f) && h.thing == "" && c.typ != model.OpOK:
			for o := range open { // it may have given back any
				if o.by == h.by {
					for _, i := range open[o] {
						held[o.thing][i].to = max(held[o.thing][i].from, min(held[o.thing][i].to, c.invoked))
					}
				}
			}
		case slices.Contains(releases, c.f):
			if is := open[h]; len(is) > 0 {
				x := &held[h.thing][is[0]]
				x.to = max(x.from, min(x.to, c.invoked))
				open[h] = is[1:]
			}
		}
	}
	if len(held) == 0 {
		return outcome{idle: "nothing was handed out, so nothing twice"}
	}
	by := map[string]*model.Failure{}
	for _, name := range sortedKeys(held) {
		hs := held[name]
		slices.SortStableFunc(hs, func(a, b holding) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.by, b.by)) })
		for i, h := range hs {
			var with []holding // others that hold it when this one gets it
			for _, o := range hs[:i] {
				if o.to > h.from && (o.by != h.by || len(releases) == 0) {
					with = append(with, o)
				}
			}
			if len(with) < s.count("count") {
				continue
			}
			first := with[len(with)-1]
			sig := takes[0] + " hands out a thing twice"
			if len(releases) > 0 {
				sig = takes[0] + " lets too many hold a thing"
			}
			what := fmt.Sprintf("%s was handed to %s by %s at %.3f s and to %s by %s at %.3f s", name, first.by, nameOf(first.node), first.from.Seconds(), h.by, nameOf(h.node), h.from.Seconds()) + when(r, h.from)
			if first.to < forever {
				what += fmt.Sprintf(", held until %.3f s", first.to.Seconds())
			}
			note(by, sig, what)
			break
		}
	}
	return outcome{failures: collect(by)}
}
