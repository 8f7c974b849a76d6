package check

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// tooBusy takes away the failures that a machine without a free CPU may have caused, and
// says so; "" if it takes none. It loses no data and ends no process, but all that must
// come within a time may come later.
func tooBusy(r *Record, v *model.Verdict) string {
	if r.CPUWait < model.Busy {
		return ""
	}
	var late []string
	v.Failures = slices.DeleteFunc(v.Failures, func(f model.Failure) bool {
		timed := inTime(r, f)
		if timed {
			late = append(late, f.Summary)
		}
		return timed
	})
	if len(late) == 0 {
		return ""
	}
	return fmt.Sprintf("what was ready to run on this machine waited for a CPU for %.0f %% of the run, so nobody knows whose doing this is: %s; repeat the run on a quieter machine, or with fewer --labs",
		100*r.CPUWait, strings.Join(late, "; "))
}

// inTime says whether a failure is that something did not come in time.
func inTime(r *Record, f model.Failure) bool {
	switch f.Check {
	case "recovery", "workload-hang", "operations":
		return true
	case "not-finished", "leaders":
		return SeverityOf(f) == model.SeverityNotRecovered
	case "two-leaders": // views that would have agreed a moment later
		return !r.Recovery.Stable && strings.HasSuffix(f.Signature, "after recovery")
	}
	return false
}
