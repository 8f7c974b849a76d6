package check

import (
	"fmt"
	"slices"

	"netsplit/model"
)

// Script is the name of the check of scripted runs.
const Script = "script"

// assertions are the verbs of the steps that say what must be so.
var assertions = map[string]bool{"assert": true}

func script() checker {
	return checker{
		name:    Script,
		history: true,
		help:    "an assertion of a script did not hold; netsplit gives it to scripted runs, target files need not name it",
		run: func(r *Record, _ settings) outcome {
			out := outcome{idle: "the script asserts nothing"}
			by := map[string]*model.Failure{}
			for _, s := range r.Steps {
				if assertions[s.Do] {
					out.idle = ""
				}
				switch s.Outcome {
				case model.StepDone:
				case model.StepStuck:
					out.unknown = fmt.Sprintf("step %d (%s) could not be done%s: %s", s.Num, s.Text, where(s), s.Result)
				case model.StepFailed:
					sig := "assertion: " + s.Text
					f := by[sig]
					if f == nil {
						f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("%s: %s", s.Text, s.Result)}
						by[sig] = f
					}
					f.Amount++
					f.Detail = append(f.Detail, fmt.Sprintf("step %d at %s s%s: %s", s.Num, seconds(s.Began), where(s), s.Result))
				default:
					out.unknown = and(out.unknown, fmt.Sprintf("step %d has the outcome %q, which nobody knows", s.Num, s.Outcome))
				}
			}
			if out.unknown != "" {
				out.idle = "" // it may have been about to
			}
			out.failures = collect(by)
			return out
		},
	}
}

func where(s model.ScriptStep) string {
	if s.Where == "" {
		return ""
	}
	return ", " + s.Where
}

// idleCut names a cut of a script that nothing wanted to cross; "" if there is
// none. The script meant it to do something.
func idleCut(r *Record) string {
	for _, c := range r.Cuts {
		machine := slices.ContainsFunc(r.begun(), func(b begun) bool { // its servers died all the same
			return c.Of(b.went.Step) && b.Do.Silent()
		})
		if c.Proof.Wanted == 0 && !machine {
			return c.Name
		}
	}
	return ""
}
