package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"netsplit/model"
)

// Mark is what Causes needs of a run. It is small, since a search has thousands of runs. Clean:
// no fault began, or the failure came before the first cut.
type Mark struct {
	Run           string
	Clean, Failed bool
	Failure       model.Failure // that cost most, without detail
	Rules         []string      // causes of all failures
	Fault         string        // kind of the last fault that began before it; "" for none
	Lost          []string      // types of messages that this fault lost for good
	Types         []string      // of its messages, of runs that failed or passed
	Steps         []string      // the faults that began, in words
	Length        time.Duration // from the start of the run until the last of them began
}

// MarkOf is the mark of a run; false: it has no part in the causes of its campaign.
func MarkOf(r *model.RunSummary) (Mark, bool) {
	if r.ReplayOf != "" {
		return Mark{}, false
	}
	m := Mark{Run: r.Run}
	m.Failure, m.Failed = Costliest(r.Verdict)
	m.Failure.Detail = nil
	for _, f := range r.Verdict.Failures {
		m.Rules = append(m.Rules, CauseOf(f))
	}
	if m.Failed || r.Verdict.Value == model.VerdictPass {
		for _, t := range slices.Sorted(maps.Keys(r.Messages)) {
			if !(&model.Message{Type: t}).Transport() { // caches and connections come and go
				m.Types = append(m.Types, unique.Make(t).Value()) // all runs have the same
			}
		}
	}
	last := time.Duration(-1)
	for i := range r.Scenario.Steps {
		st := &r.Scenario.Steps[i]
		at, ok := began(r, i+1)
		if !ok {
			continue
		}
		m.Steps, m.Length = append(m.Steps, st.String()), max(m.Length, at)
		if m.Failure.First > 0 && at > m.Failure.First || at < last {
			continue // it had no part in the failure, or is not the last
		}
		last = at
		m.Fault, m.Lost = faultKind(st), lostForGood(r, i+1)
	}
	m.Clean = len(m.Steps) == 0 || m.Failure.BeforeCut
	if len(r.Scenario.Sequence) > 0 && len(m.Steps) == len(r.Scenario.Steps) { // it tells more
		m.Steps = nil
		for _, f := range r.Scenario.Sequence {
			m.Steps = append(m.Steps, f.String())
		}
	}
	return m, true
}

// began says whether a step did, and when. Records of earlier versions have no results of
// steps.
func began(r *model.RunSummary, place int) (time.Duration, bool) {
	if len(r.Result.Steps) > 0 {
		i := slices.IndexFunc(r.Result.Steps, func(s model.StepResult) bool { return s.Step == place })
		return r.Result.Steps[max(i, 0)].Began, i >= 0 && r.Result.Steps[i].By != ""
	}
	if r.Scenario.Fault(place) == nil {
		if r.Proof == nil {
			return 0, false
		}
		return r.Proof.CutAt, true
	}
	for i := range r.Faults {
		if p := &r.Faults[i]; p.Fault == place && len(p.Hits) > 0 {
			return p.Hits[0].At, true
		}
	}
	return 0, false
}

// faultKind is what a step does, without where.
func faultKind(st *model.Step) string {
	switch f := st.Do.Message; {
	case f != nil && f.Kind == model.FaultLose:
		return "lose a " + string(cmp.Or(f.Lose, model.LosePacket))
	case f != nil:
		return string(f.Kind)
	case st.Do.Isolate != "":
		return "isolate"
	case st.Do.Cut != nil:
		return "cut " + string(st.Do.Cut.Shape)
	case st.Do.Disk != nil:
		return "disk " + string(st.Do.Disk.Kind)
	}
	kind, _, _ := strings.Cut(st.String(), " ")
	return kind
}

func lostForGood(r *model.RunSummary, place int) (types []string) {
	for i := range r.Faults {
		if r.Faults[i].Fault != place {
			continue
		}
		for _, h := range r.Faults[i].Hits {
			if h.Passed == 0 && h.Through == 0 && !slices.Contains(types, h.Type) {
				types = append(types, h.Type)
			}
		}
	}
	return types
}

// Causes sorts the failed runs of a campaign into causes, the costliest first. Runs are taken
// in the order of their ids whatever order they come in.
func Causes(campaign string, marks []Mark) []model.Cause {
	marks = slices.Clone(marks)
	slices.SortStableFunc(marks, func(a, b Mark) int { return model.CompareRuns(a.Run, b.Run) })
	usual, inClean := usualTypes(marks)
	by := map[string]*model.Cause{}
	smallest := map[string]*Mark{}
	var order []string
	for n := range marks {
		m := &marks[n]
		if !m.Failed {
			continue
		}
		missing := slices.Concat(m.Lost, slices.DeleteFunc(slices.Clone(usual), func(t string) bool {
			_, seen := slices.BinarySearch(m.Types, t)
			return seen
		}))
		slices.Sort(missing)
		missing = slices.Compact(missing)
		rule := CauseOf(m.Failure)
		key := strings.Join(append([]string{rule, m.Fault}, missing...), "\x00")
		c := by[key]
		if c == nil {
			c = &model.Cause{ID: hashID("cause-", campaign, key), Campaign: campaign, Class: m.Failure.Class, Severity: SeverityOf(m.Failure), Rule: rule,
				CauseID: hashID("cause-", campaign, rule), Fault: m.Fault, Missing: missing, Clean: inClean[rule], FirstAfter: n + 1}
			c.Rank = Rank(c.Class, c.Severity)
			by[key], order = c, append(order, key)
		}
		c.Runs, c.Seen = append(c.Runs, m.Run), c.Seen+1
		if classRank(m.Failure.Class) < classRank(c.Class) {
			c.Class, c.Rank = m.Failure.Class, Rank(m.Failure.Class, c.Severity)
		}
		if s := smallest[key]; s == nil || cmp.Or(cmp.Compare(len(m.Steps), len(s.Steps)), cmp.Compare(m.Length, s.Length)) < 0 {
			smallest[key] = m
			c.Run, c.Steps, c.Summary = m.Run, m.Steps, m.Failure.Summary
		}
	}
	out := make([]model.Cause, 0, len(order))
	for _, key := range order {
		c := by[key]
		switch {
		case usual == nil:
			c.Unsure = "no run without a fault was judged, so nobody knows which messages are missing"
		case len(c.Missing) == 0 && c.Seen > 1:
			c.Unsure = "no type of message is missing: the rule and the kind of the fault alone put these runs together"
		}
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b model.Cause) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(classRank(a.Class), classRank(b.Class)), cmp.Compare(a.FirstAfter, b.FirstAfter))
	})
	return out
}

// usualTypes are the types of messages that every clean run had, and every run that passed in
// spite of its faults, sorted; nil: no clean run was judged. inClean are the causes of
// failures that came without a fault.
func usualTypes(marks []Mark) (usual []string, inClean map[string]bool) {
	inClean = map[string]bool{}
	judged := false
	for i := range marks {
		m := &marks[i]
		if m.Clean {
			for _, r := range m.Rules {
				inClean[r] = true
			}
			judged = judged || !m.Failed && m.Types != nil
		}
		switch {
		case m.Failed || m.Types == nil:
		case usual == nil:
			usual = slices.Clone(m.Types)
		default:
			usual = slices.DeleteFunc(usual, func(t string) bool {
				_, ok := slices.BinarySearch(m.Types, t)
				return !ok
			})
		}
	}
	if !judged {
		return nil, inClean
	}
	return usual, inClean
}
