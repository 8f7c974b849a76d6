package sequence

import "netsplit/model"

// Report is what a search has done so far.
type Report struct {
	CleanRuns int
	FaultRuns int // all attempts included
	Levels    []Level
	// Faults are those that a run was asked for, as first asked.
	Faults []FaultStat
	// Left is how many sequences of the last level the budget did not reach.
	Left int
	// Err is what a policy failed with.
	Err error
}

// Level is what became of the sequences with Depth faults.
type Level struct {
	Depth int
	// Candidates is how many were seen: brute force would run them all. Kept is how many
	// the policies left.
	Candidates, Kept int
	// Run is how many were run with all their faults, Failed how many of these failed.
	// Vacuous is how many were given up since a point did not come.
	Run, Failed, Vacuous int
	// Ran are those that Run counts, in the order in which their runs ended.
	Ran []Ran
	// Pruned are those that policies took out, and those given up.
	Pruned []Pruned
}

// FaultStat says how often the point of a fault came: in Came of Asked runs that waited
// for it, once the faults before it had occurred. In Other of them its message came at
// another point.
type FaultStat struct {
	Fault model.PointFault
	ID    model.FaultID
	Asked int
	Came  int
	Other int
}

// Report tells what was run, kept and pruned, and why. It must not be changed.
func (s *Search) Report() *Report { return &s.report }

// Level lists the sequences that the policies kept of the last level.
func (s *Search) Level() []Candidate {
	var out []Candidate
	for _, t := range s.level {
		if len(t.c.IDs) > 0 {
			out = append(out, t.c)
		}
	}
	return out
}

// current is the level that is run.
func (s *Search) current() *Level { return &s.report.Levels[len(s.report.Levels)-1] }

func (s *Search) prune(p Pruned) {
	if len(p.IDs) > 0 {
		l := s.current()
		l.Pruned = append(l.Pruned, p)
	}
}

// count books which points of a sequence came.
func (s *Search) count(t *task, r Result) {
	for i, id := range t.c.IDs[:min(r.Occurred+1, len(t.c.IDs))] {
		at, ok := s.stats[id]
		if !ok {
			at = len(s.report.Faults)
			s.stats[id] = at
			s.report.Faults = append(s.report.Faults, FaultStat{Fault: t.c.Faults[i], ID: id})
		}
		st := &s.report.Faults[at]
		st.Asked++
		switch {
		case i < r.Occurred:
			st.Came++
		case r.Other != nil:
			st.Other++
		}
	}
}
