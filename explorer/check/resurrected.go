package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

func resurrected() checker {
	return checker{
		name:    "resurrected",
		history: true,
		help:    "a member whose removal was answered `ok`, that a node then reported as removed or did not list, and that a node later lists as a member again, or still lists when recovery is over",
		with: map[string]setting{
			"remove":  {def: "decommission", help: "`f` of the operation that removes the member in `key`"},
			"status":  {def: "status", help: "`f` of the operations whose value lists members: `n1=NORMAL n2=LEFT`"},
			"final":   {def: "final-status", help: "the same after recovery"},
			"member":  {def: "NORMAL", help: "statuses of a member"},
			"removed": {def: "LEFT", help: "statuses of a removed member; a name that is missing was removed too"},
		},
		run: runResurrected,
	}
}

func runResurrected(r *Record, s settings) outcome {
	requested, removedAt := map[string]time.Duration{}, map[string]time.Duration{}
	for _, c := range calls(r) {
		if at, again := removedAt[c.key]; c.f == s["remove"] && c.typ == model.OpOK && (!again || c.done < at) {
			requested[c.key], removedAt[c.key] = c.invoked, c.done // one without an answer may have done nothing
		}
	}
	if len(removedAt) == 0 {
		return outcome{idle: "no removal was acknowledged, so nothing could come back"}
	}
	var out outcome
	for _, subject := range sortedKeys(removedAt) {
		f, final := returned(r, s, subject, requested[subject], removedAt[subject])
		if !final {
			out.unknown = "no final status was read, so nobody knows whether " + subject + " is still removed"
		}
		if f != nil {
			out.failures = append(out.failures, *f)
		}
	}
	return out
}

// returned follows what each node says about the subject since its removal was
// asked for; that it is a member counts once the removal was acknowledged.
func returned(r *Record, s settings, subject string, requested, removedAt time.Duration) (f *model.Failure, final bool) {
	gone := map[model.NodeID]time.Duration{} // who reported it removed, and when first
	for _, o := range ordered(r, s["status"], s["final"]) {
		if o.Type != model.OpOK || o.Time < requested {
			continue
		}
		if string(o.Node) == subject {
			continue // what it thinks of itself does not count
		}
		last := o.F == s["final"]
		final = final || last
		status, listed := statusOf(o.Value, subject)
		member := listed && slices.Contains(s.list("member"), status)
		if !listed || slices.Contains(s.list("removed"), status) {
			if _, ok := gone[o.Node]; !ok {
				gone[o.Node] = o.Time
			}
			continue
		}
		if !member || o.Time < removedAt {
			continue
		}
		since, saw := gone[o.Node]
		switch {
		case saw && (f == nil || strings.Contains(f.Signature, "never")):
			f = &model.Failure{
				Signature: "removed member comes back",
				Summary: fmt.Sprintf("%s was removed at %s s and gone for %s at %s s, which reports it as %s again at %s s",
					subject, seconds(removedAt), o.Node, seconds(since), status, seconds(o.Time)),
			}
		case last && f == nil:
			f = &model.Failure{
				Signature: "removed member never leaves",
				Summary: fmt.Sprintf("%s was removed at %s s, and %s still reports it as %s when recovery is over",
					subject, seconds(removedAt), o.Node, status),
			}
		}
		if f != nil {
			f.Amount++
			if len(f.Detail) < 10 {
				f.Detail = append(f.Detail, fmt.Sprintf("%s at %.3f s: %s", o.Node, o.Time.Seconds(), o.Value))
			}
		}
	}
	return f, final
}

// statusOf finds name=status in a list separated by spaces.
func statusOf(value, name string) (string, bool) {
	for _, f := range strings.Fields(value) {
		if n, st, ok := strings.Cut(f, "="); ok && n == name {
			return st, true
		}
	}
	return "", false
}
