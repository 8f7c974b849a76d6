package check

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// moment matches the words of a signature that say when something happened.
var moment = regexp.MustCompile(`,?(?: acknowledged)? (?:without a cut|before the cut|during the cut|while cut|after heal)\b`)

// ownCause is the cause of a failure that nothing else in its run brought: for
// failed operations the error, whatever the operation and the place; for all
// others what failed, whenever that was.
func ownCause(f model.Failure) string {
	text := f.Signature
	switch f.Check {
	case "operations":
		if what, _, ok := strings.Cut(text, " although all it needs was reached"); ok {
			_, text, _ = strings.Cut(what, " ") // without the operation
		}
	case "workload-hang":
		if strings.HasPrefix(text, "operation ") {
			text = "operations took longer than their limit"
		} else if name, _, ok := strings.Cut(text, " did not end"); ok { // earlier versions said more
			text = "workload " + strings.TrimPrefix(strings.TrimPrefix(name, "workload "), "workload ") + " did not end"
		}
	}
	return f.Check + ": " + moment.ReplaceAllString(text, "")
}

// CauseOf is the cause of a failure, also of one that an older version judged.
func CauseOf(f model.Failure) string { return cmp.Or(f.Cause, ownCause(f)) }

// SameCause says whether a replay's failure is of the cause of the original's.
func SameCause(orig, again model.Failure) bool {
	a, b := CauseOf(orig), CauseOf(again)
	if strings.HasSuffix(a, sideUnknown) || strings.HasSuffix(b, sideUnknown) { // it may have been any side
		a, b = withoutSide(a), withoutSide(b)
	}
	return orig.Check == again.Check && orig.Signature == again.Signature || a == b
}

// withoutSide is the cause of lost writes without who acknowledged them.
func withoutSide(cause string) string {
	for _, s := range []string{sideUnknown, sideIsolated, sideOther} {
		cause = strings.TrimSuffix(cause, s)
	}
	return cause
}

// Costliest is the failure of a run that costs a user most; false: it has none.
func Costliest(v model.Verdict) (model.Failure, bool) {
	if len(v.Failures) == 0 {
		return model.Failure{}, false
	}
	return slices.MinFunc(v.Failures, compareFailures), true
}

// Shows says whether one of the failures of a run is of the cause of f.
func Shows(v model.Verdict, f model.Failure) bool {
	return slices.ContainsFunc(v.Failures, func(g model.Failure) bool { return SameCause(f, g) })
}

// exitReach is how long before a process ends its own host's log lines are its last
// words, and how long after it errors and log lines elsewhere are of its end.
const exitReach = 10 * time.Second

// attribute says of each failure what it costs and what brought it. A process that
// ended by itself brings the log lines and errors around its end, and that the
// target does not recover unless somebody started the process again. Two leaders that
// are still there when recovery is over are why it is not.
func attribute(r *Record, fs []model.Failure) {
	var exits []record.Exit
	for _, e := range sortedExits(r.Exits) {
		if exitMatters(r.Target, e) {
			exits = append(exits, e)
		}
	}
	for i := range fs {
		f := &fs[i]
		f.Severity, f.Cause = SeverityOf(*f), ownCause(*f)
		for _, e := range exits {
			if broughtBy(r, e, f) {
				f.Cause = ownCause(model.Failure{Check: processDied().name, Signature: exitSignature(e)})
				break
			}
		}
	}
	split := func(f model.Failure) bool { return f.Check == "two-leaders" }
	first := slices.IndexFunc(fs, split)
	if !slices.ContainsFunc(fs, func(f model.Failure) bool { return split(f) && strings.HasSuffix(f.Signature, "after recovery") }) {
		return
	}
	for i := range fs {
		if f := &fs[i]; f.Cause == ownCause(*f) && (split(*f) || f.Check == "recovery") {
			f.Cause = fs[first].Cause
		}
	}
}

func broughtBy(r *Record, e record.Exit, f *model.Failure) bool {
	from := e.At
	switch f.Severity {
	case model.SeverityNotRecovered:
		return !slices.ContainsFunc(r.Actions, func(a NodeAction) bool {
			return a.Verb == model.NodeStart && a.Host == e.Host && a.Process == e.Process && a.At >= e.At
		})
	case model.SeverityLog:
		if slices.Equal(f.Hosts, []model.NodeID{e.Host}) {
			return f.First >= e.At-exitReach
		}
	case model.SeverityError:
		if slices.Equal(f.Hosts, []model.NodeID{e.Host}) {
			return f.First >= e.At
		}
	default:
		return false
	}
	return f.Last > 0 && f.First >= from && f.First <= from+exitReach
}

// CompleteVerdict fills in what verdicts of older versions lack.
func CompleteVerdict(v *model.Verdict) {
	for i := range v.Failures {
		f := &v.Failures[i]
		f.Severity, f.Cause = SeverityOf(*f), CauseOf(*f)
	}
}

// Complete fills in what findings of older versions lack.
func Complete(f *model.Finding) {
	f.Failure.Severity, f.Failure.Cause = SeverityOf(f.Failure), CauseOf(f.Failure)
	f.Severity = f.Failure.Severity
	f.Cause = cmp.Or(f.Cause, f.Failure.Cause)
	f.CauseID = hashID("cause-", f.Campaign, f.Cause)
	f.Rank = Rank(f.Class, f.Severity)
}
