package report

import (
	"testing"

	"netsplit/model"
)

// A script's run shows its steps in their order, with what came of them, and says
// that the script cut and healed.
func TestStepsOfAScript(t *testing.T) {
	in := failing(t)
	in.Summary.Scenario = model.Scenario{Strategy: model.StrategyScripted, Script: "split-brain", Steps: []model.Step{{Do: in.Summary.Scenario.Cut().Do}}}
	var decisions []model.Decision
	for _, d := range in.Decisions {
		if d.Cut || d.Heal {
			d.Reason, d.Message, d.Class, d.Frame, d.Action = model.ReasonScript, 0, nil, 0, ""
			decisions = append(decisions, d, d) // two cuts, and two heals
		}
	}
	in.Decisions = decisions
	last := in.Events[len(in.Events)-1]
	for i, s := range []model.ScriptStep{
		{Do: "cut", Text: "cut a: isolate n1", Outcome: model.StepDone, Result: "nothing passes 4 links"},
		{Do: "crash", Text: "crash n2", Outcome: model.StepDone, Result: "redis"},
		{Do: "assert", Text: "x is <b>v1</b>", Outcome: model.StepFailed, Result: "it is v0", Where: "a.yaml:7"},
		{Do: "await", Text: "await all", Outcome: model.StepStuck, Result: "not within 4s"},
	} {
		s.Num, s.Began = i+1, last.At
		in.Events = append(in.Events, model.Event{Num: last.Num + uint64(i) + 1, At: last.At, Kind: model.EventStep, Step: &s})
	}
	page := write(t, in)
	wants(t, "script", section(t, page, "steps"), "cut a: isolate n1", "nothing passes 4 links", "x is &lt;b&gt;v1", "does not hold: it is v0", "a.yaml:7", "could not be done: not within 4s")
	wants(t, "report", page, "script split-brain cut", "The script healed it.", "of the script&#39;s 2 cuts, the first of which is drawn")

	in.Decisions, in.Summary.Proof = nil, nil
	wants(t, "report without a cut", write(t, in), "Script split-brain was played; it cut nothing.")
}
