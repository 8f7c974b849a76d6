package check

import (
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

func notFinished() checker {
	return checker{
		name:    "not-finished",
		history: true,
		loss:    &loss{"piece of accepted work", "pieces of accepted work", "not over", "over"},
		help:    "accepted work (a job, an application, a move) that is not over when recovery is, whether it was stopped or not, or that the system no longer knows",
		with: map[string]setting{
			"submit": {def: "submit", help: "`f` of the operations that submit the work in `key`"},
			"stop":   {def: "kill", help: "`f` of the operations that stop it"},
			"status": {def: "final-status", help: "`f` of the operations whose value is the state of `key` at the end"},
			"over":   {def: "FINISHED,SUCCEEDED,FAILED,KILLED", help: "states of work that is over"},
			"late":   lateSetting,
			"lost":   {def: "NOTFOUND,UNKNOWN", help: "states of work that the system no longer knows"},
		},
		run: func(r *Record, s settings) outcome {
			submits, stops := s.list("submit"), s.list("stop")
			accepted, stopped := map[string]call{}, map[string]time.Duration{}
			for _, c := range calls(r) {
				if c.typ != model.OpOK {
					continue
				}
				if slices.Contains(submits, c.f) {
					accepted[c.key] = c
				}
				if slices.Contains(stops, c.f) {
					stopped[c.key] = c.done
				}
			}
			if len(accepted) == 0 {
				return outcome{idle: "no work was accepted, so none could be left over"}
			}
			state, why := map[string]string{}, map[string]string{}
			for _, c := range calls(r) {
				switch {
				case !slices.Contains(s.list("status"), c.f):
				case c.typ == model.OpOK:
					state[c.key] = c.value
				case c.unanswered():
					delete(state, c.key) // what it was before, it may be no more
					fallthrough
				default:
					why[c.key] = c.err
				}
			}
			var out outcome
			by := map[string]*model.Failure{}
			for _, key := range sortedKeys(accepted) {
				is, known := state[key]
				reported := ""
				if at, ok := stopped[key]; ok {
					reported = fmt.Sprintf(", though it was told to stop at %s s", seconds(at))
				}
				what := fmt.Sprintf("%s was accepted at %s s%s; it is %s when recovery is over%s", key, seconds(accepted[key].done), when(r, accepted[key].done), is, reported)
				if known && !slices.Contains(s.list("over"), is) {
					out.missing = append(out.missing, key)
				}
				switch {
				case !known:
					out.unknown = fmt.Sprintf("nobody could tell the state of %s: %s", key, why[key])
				case slices.Contains(s.list("lost"), is):
					note(by, fmt.Sprintf("what %s handed in is lost: %s after recovery", accepted[key].f, is), what)
				case !slices.Contains(s.list("over"), is) && reported != "":
					note(by, fmt.Sprintf("what %s handed in cannot be stopped: %s after recovery", accepted[key].f, stable(is)), what)
				case !slices.Contains(s.list("over"), is):
					note(by, fmt.Sprintf("what %s handed in does not end: %s after recovery", accepted[key].f, stable(is)), what)
				}
			}
			out.failures = collect(by)
			return out
		},
	}
}
