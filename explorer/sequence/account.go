package sequence

import "netsplit/model"

// accountMost bounds the pruned sequences of a level that an account lists.
const accountMost = 5000

// Ran is a sequence all of whose faults occurred at their points.
type Ran struct {
	Candidate
	Failed bool
}

// Account is the report as it is kept. why is Ready.Why.
func (r *Report) Account(why string) model.Account {
	out := model.Account{Why: why, CleanRuns: r.CleanRuns, FaultRuns: r.FaultRuns, Left: r.Left}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	for _, l := range r.Levels {
		a := model.LevelAccount{Depth: l.Depth, Candidates: l.Candidates, Kept: l.Kept, Run: l.Run, Failed: l.Failed, Vacuous: l.Vacuous, By: map[string]int{}}
		for _, q := range l.Ran {
			s := q.account()
			s.Fate = map[bool]string{false: "passed", true: "failed"}[q.Failed]
			a.Sequences = append(a.Sequences, s)
		}
		for i, q := range l.Pruned {
			a.By[q.Policy]++
			if i >= accountMost {
				a.Unlisted++
				continue
			}
			s := q.account()
			s.Fate, s.Why, s.Like = q.Policy, q.Why, q.Like
			a.Sequences = append(a.Sequences, s)
		}
		out.Levels = append(out.Levels, a)
	}
	for _, f := range r.Faults {
		out.Faults = append(out.Faults, model.FaultAccount{ID: f.ID, Fault: f.Fault.String(), Asked: f.Asked, Occurred: f.Came, Other: f.Other})
	}
	return out
}

func (c Candidate) account() model.SequenceAccount {
	s := model.SequenceAccount{IDs: c.IDs}
	for _, f := range c.Faults {
		s.Faults = append(s.Faults, f.String())
	}
	return s
}
