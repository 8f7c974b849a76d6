package report

import (
	"cmp"
	"fmt"
	"slices"

	"netsplit/model"
)

// stepRow is a step of a script or a scenario.
type stepRow struct {
	Num                        int
	At, Took, Text, Result, By string
	Class                      string
}

// stepRows are the steps of a script, in their order.
func stepRows(in *Input) []stepRow {
	var out []stepRow
	for i := range in.Events {
		e := &in.Events[i]
		if e.Kind != model.EventStep || e.Step == nil {
			continue
		}
		s := e.Step
		row := stepRow{Num: s.Num, At: at(s.Began), Took: span(e.At - s.Began), Text: clean(s.Text), Result: clean(s.Result), By: clean(s.Where)}
		switch {
		case s.Outcome == model.StepFailed:
			row.Class, row.Result = "dropped", "does not hold: "+row.Result
		case s.Outcome == model.StepStuck:
			row.Class, row.Result = "dropped", "could not be done: "+row.Result
		case s.Do == "cut", s.Do == "heal":
			row.Class = s.Do
		}
		out = append(out, row)
	}
	return out
}

// scenarioRows are the steps of the scenario, as the run says that they went.
func scenarioRows(in *Input) []stepRow {
	var out []stepRow
	for _, r := range in.Summary.Result.Steps {
		if r.Step < 1 || r.Step > len(in.Summary.Scenario.Steps) {
			continue
		}
		st := &in.Summary.Scenario.Steps[r.Step-1]
		row := stepRow{Num: r.Step, Text: clean(st.String()), By: clean(cmp.Or(r.By, "never began"))}
		if r.By != "" {
			row.At = at(r.Began)
		}
		for _, role := range r.Roles {
			row.By += fmt.Sprintf("; %s was %v", clean(role.Role), role.Have[0])
		}
		if r.Lacked != "" {
			row.By = clean("could not begin: " + r.Lacked)
		}
		if r.EndedBy != "" {
			row.Took, row.Result = span(r.Ended-r.Began), clean(r.EndedBy)
		}
		switch {
		case r.Slip > 0 && st.Do.Silent():
			row.Result += fmt.Sprintf("; its host went on to send %d more packets, none of which left it: the crash is not exact", r.Slip)
		case r.Slip > 0:
			row.Result += fmt.Sprintf("; its host sent %d more packets: the crash is not exact", r.Slip)
		}
		if st.Do.Disk != nil && r.By != "" {
			row.Class, row.Result = "dropped", row.Result+diskResult(in, r)
		}
		if st.Do.Cut != nil && r.By != "" {
			row.Class = "cut"
		}
		for _, c := range in.Cuts {
			if c.Of(r.Step) {
				leaked := fmt.Sprint(c.Proof.Leaked)
				if !c.Proof.LeakKnown {
					leaked = "an unknown number"
				}
				row.Result += fmt.Sprintf("; %d packets wanted to cross, %d were dropped, %s leaked", c.Proof.Wanted, c.Proof.Dropped, leaked)
			}
		}
		out = append(out, row)
	}
	return out
}

// furtherCuts says what the cuts of a scenario parted that began after its first one, and when.
func furtherCuts(s *model.RunSummary) (out []string) {
	var cuts []model.StepResult
	for _, r := range s.Result.Steps {
		if r.By != "" && r.Step >= 1 && r.Step <= len(s.Scenario.Steps) && s.Scenario.Steps[r.Step-1].Do.Cut != nil {
			cuts = append(cuts, r)
		}
	}
	slices.SortStableFunc(cuts, func(a, b model.StepResult) int { return cmp.Compare(a.Began, b.Began) })
	for _, r := range cuts[min(1, len(cuts)):] {
		do := &s.Scenario.Steps[r.Step-1].Do
		did := "cut " + sides(*do.Cut)
		if do.Silent() {
			did = "crashed the machine " + string(do.Node.Host)
		}
		until := ""
		if r.EndedBy != "" {
			until = " to " + at(r.Ended)
		}
		who := fmt.Sprintf("Step %d", r.Step)
		if s.Scenario.Strategy == model.StrategyScripted { // whose steps have numbers of their own
			who = "The script also"
		}
		out = append(out, fmt.Sprintf("%s %s, from %s%s.", who, did, at(r.Began), until))
	}
	return out
}

// otherSteps says when the steps of a scenario without a cut began, of messages aside: those
// stand with what they did.
func otherSteps(s *model.RunSummary) (out string) {
	for _, r := range s.Result.Steps {
		if r.By != "" && r.Step >= 1 && r.Step <= len(s.Scenario.Steps) && s.Scenario.Fault(r.Step) == nil {
			out += fmt.Sprintf(" Step %d (%s) began at %s.", r.Step, clean(s.Scenario.Steps[r.Step-1].Do.String()), at(r.Began))
		}
	}
	return out
}
