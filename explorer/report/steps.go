package report

import "netsplit/model"

// stepRow is a step of a script.
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
