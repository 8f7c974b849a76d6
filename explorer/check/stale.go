package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

func staleRead() checker {
	return checker{
		name:    "stale-read",
		history: true,
		help:    "a read that returns an older value than one that was acknowledged before the read began. Write each value to a key once",
		with: map[string]setting{
			"write":  {def: "write", help: "`f` of the operations that write `value` to `key`"},
			"read":   {def: "read", help: "`f` of the operations that read `key`; value \"\" means that there is none"},
			"delete": {def: "delete", help: "`f` of the operations that delete `key`"},
		},
		run: func(r *Record, s settings) outcome {
			writes, reads, deletes := s.list("write"), s.list("read"), s.list("delete")
			byKey := map[string][]call{}
			var reading, unnamed []call // unnamed: it may have changed any key
			acked := 0
			for _, c := range calls(r) {
				switch {
				case slices.Contains(writes, c.f), slices.Contains(deletes, c.f):
					if slices.Contains(deletes, c.f) {
						c.value = ""
					}
					if c.typ != model.OpOK {
						c.done = never // it may take effect at any time
					} else {
						acked++
					}
					switch {
					case c.unanswered() && c.key == "":
						unnamed = append(unnamed, c)
					case c.typ != model.OpFail:
						byKey[c.key] = append(byKey[c.key], c)
					}
				case slices.Contains(reads, c.f) && c.typ == model.OpOK:
					reading = append(reading, c)
				}
			}
			switch {
			case acked == 0:
				return outcome{idle: "no write was acknowledged, so no read could miss one"}
			case len(reading) == 0:
				return outcome{idle: "nothing was read"}
			}
			by := map[string]*model.Failure{}
			judged := 0
			for _, c := range reading {
				if slices.ContainsFunc(byKey[c.key], func(w call) bool { return w.done < c.invoked }) {
					judged++
				}
				if newer := missed(slices.Concat(byKey[c.key], unnamed), c); newer != nil {
					sig := c.f + " returns old values"
					if r.Proof != nil {
						side := ", through a node that was not isolated"
						if at := c.coordinator(r.Target); isolated(r, at) {
							side = ", through the isolated node"
						} else if at == "" {
							side = ""
						}
						sig += side
					}
					note(by, sig, fmt.Sprintf("%s of %s through %s from %.3f to %.3f s returned %q, though %s of %q was acknowledged by %s at %.3f s%s",
						c.f, c.key, nameOf(c.node), c.invoked.Seconds(), c.done.Seconds(), shorten(c.value), newer.f, shorten(newer.value), nameOf(newer.node), newer.done.Seconds(), strings.Replace(when(r, c.invoked), ",", "; it was read", 1)))
				}
			}
			if judged == 0 {
				return outcome{idle: "no read began after a write of its key was acknowledged"}
			}
			return outcome{failures: collect(by)}
		},
	}
}

// missed returns a write that was over before the read began, and that came
// without doubt after every write of the value that was read; nil if there is
// none. Of a value that nobody wrote, the age is not known.
func missed(changes []call, read call) *call {
	found, last := read.value == "", time.Duration(-1) // when the value may have been written last
	for i := range changes {
		if o := &changes[i]; o.value == read.value && o.invoked <= read.done {
			found, last = true, max(last, o.done)
		}
	}
	if !found {
		return nil
	}
	var newest *call
	for i := range changes {
		w := &changes[i]
		if w.done < read.invoked && w.value != read.value && w.invoked > last && (newest == nil || w.done > newest.done) {
			newest = w
		}
	}
	return newest
}
