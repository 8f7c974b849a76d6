package report

import (
	"fmt"
	"strings"

	"netsplit/model"
)

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

// stepMarks name the steps of a script that change the testbed, but for the cut
// that is drawn, for the picture of all messages.
func stepMarks(in *Input) []mark {
	var out []mark
	first := map[string]bool{}
	for i := range in.Events {
		s := in.Events[i].Step
		if in.Events[i].Kind != model.EventStep || s == nil {
			continue
		}
		switch s.Do {
		case "cut", "heal":
			if !first[s.Do] {
				first[s.Do] = true
				continue
			}
			fallthrough
		case "crash", "stop", "start", "restart", "pause", "resume":
			name, _, _ := strings.Cut(s.Text, ":")
			out = append(out, mark{in.Events[i].At.Microseconds(), clean(fmt.Sprintf("%d %s", s.Num, name))})
		}
	}
	return out
}
