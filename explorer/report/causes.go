package report

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// Bounds of what the page of a search says of causes: of the others the first line, and of
// the runs of each the first links. The API has all.
const (
	maxCauses    = 60
	maxCauseRuns = 300
	// openRuns is how many runs a campaign may have whose table is open from the start.
	openRuns = 100
)

// causeView is a cause of failed runs as the page shows it.
type causeView struct {
	ID, Class, Word, Severity, Rule, Summary string
	Tags                                     []string
	Steps                                    []string
	Unsure                                   string
	Run, Report, Replay                      string
	Shrunk                                   *shrunkView
	Runs                                     []linkView
	Seen, More                               int
}

type linkView struct{ Text, Href string }

// shrunkView says which steps of a run a failure needs.
type shrunkView struct {
	Run, All string
	Steps    []needView
	Why      string
	Least    string
}

type needView struct {
	Step                int
	Text, Needed, Class string
	With, Without, Why  string
}

func causeViews(in *CampaignInput) (first []causeView, rest []string) {
	for i := range in.Causes {
		c := &in.Causes[i]
		if i >= maxCauses {
			rest = append(rest, clean(fmt.Sprintf("%s; %s", c.Rule, strings.Join(causeTags(c), "; "))))
			continue
		}
		class, word := failureClass(c.Class)
		v := causeView{ID: clean(c.ID), Class: class, Word: word, Severity: clean(string(c.Severity)), Rule: clean(c.Rule), Summary: sentence(clean(c.Summary)),
			Tags: causeTags(c), Unsure: clean(c.Unsure), Run: clean(c.Run), Report: in.Reports[c.Run], Replay: clean(in.Replays[c.Run]), Seen: len(c.Runs)}
		for _, s := range c.Steps {
			v.Steps = append(v.Steps, clean(s))
		}
		if c.Shrunk != nil {
			s := newShrunkView(c.Shrunk)
			v.Shrunk = &s
		}
		for _, r := range c.Runs[:min(len(c.Runs), maxCauseRuns)] {
			v.Runs = append(v.Runs, linkView{clean(strings.TrimPrefix(r, in.Campaign.ID+"-")), in.Reports[r]})
		}
		v.More = len(c.Runs) - len(v.Runs)
		first = append(first, v)
	}
	return first, rest
}

// causeTags are what puts the runs of a cause together, and how often it was seen.
func causeTags(c *model.Cause) []string {
	fault := "after no fault"
	if c.Fault != "" {
		fault = "last fault: " + c.Fault
	}
	out := []string{fault}
	if len(c.Missing) > 0 {
		out = append(out, "missing: "+strings.Join(c.Missing, ", "))
	}
	out = append(out, "in "+model.Count(len(c.Runs), "run", "runs"), "first seen after "+model.Count(c.FirstAfter, "run", "runs"))
	if c.Replays > 0 {
		out = append(out, fmt.Sprintf("failed again in %d of %d replays", c.Reproduced, c.Replays))
	}
	if c.Clean {
		out = append(out, "also without any fault")
	}
	for i := range out {
		out[i] = clean(out[i])
	}
	return out
}

func newShrunkView(x *model.Shrunk) shrunkView {
	v := shrunkView{Run: clean(x.Run), Why: clean(x.Why),
		All: fmt.Sprintf("Failed in %s with all %s, in %s without any.", tallyWords(x.All), model.Count(len(x.Steps), "step", "steps"), tallyWords(x.None))}
	switch {
	case x.Smallest == nil:
	case len(x.Keep) == 0:
		v.Least = "It fails without any fault."
	default:
		v.Least = fmt.Sprintf("The smallest scenario has %d of %s and failed in %s.", len(x.Keep), model.Count(len(x.Steps), "step", "steps"), tallyWords(x.Least))
	}
	for _, n := range x.Steps {
		w := needView{Step: n.Step, Text: clean(n.Text), With: tallyWords(n.With), Without: tallyWords(n.Without), Why: clean(n.Why)}
		switch n.Needed {
		case model.NeededYes:
			w.Needed, w.Class = "needed", "fail"
		case model.NeededNo:
			w.Needed, w.Class = "not needed", "plain"
		default:
			w.Needed, w.Class = "unknown", "unknown"
		}
		v.Steps = append(v.Steps, w)
	}
	return v
}

func tallyWords(t model.Tally) string {
	if t.Tries == 0 {
		return "no try"
	}
	s := fmt.Sprintf("%d of %d", t.Failed, t.Tries)
	if t.Idle > 0 {
		s += fmt.Sprintf(" (%d say nothing)", t.Idle)
	}
	return s
}

// searchRuns are the runs that a campaign made for what it looks for, without those of a
// search that left out steps of failed runs.
func searchRuns(in *CampaignInput) []model.RunSummary {
	if in.Campaign.Spec.Replay != "" {
		return in.Runs
	}
	return slices.DeleteFunc(slices.Clone(in.Runs), func(r model.RunSummary) bool { return r.ReplayOf != "" })
}

// shrinkWord is the outcome of a campaign that leaves out steps of a run.
func shrinkWord(shrunk []model.Shrunk) (word, tone string) {
	if len(shrunk) == 0 || shrunk[0].Smallest == nil {
		return "? Did not fail again", "unknown"
	}
	return fmt.Sprintf("✕ %d of %s suffice", len(shrunk[0].Keep), model.Count(len(shrunk[0].Steps), "step", "steps")), "fail"
}
