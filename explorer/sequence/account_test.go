package sequence_test

import (
	"testing"

	"netsplit/explorer/sequence"
)

// An account has every sequence once, with what became of it and why.
func TestAnAccountHasEverySequence(t *testing.T) {
	f := figure{clean: "ABC", after: map[string]string{"A": "DE", "B": "E"}, absent: map[string]int{"C": 100}}
	last := sequence.Cluster{Title: "last", Key: func(c sequence.Candidate, _ *sequence.Known) (string, bool, error) {
		return c.Last().Type, false, nil
	}}
	_, s, why := f.search(t, two(last))
	a := s.Report().Account(why)
	if a.Why != why || a.CleanRuns != 1 || a.FaultRuns != s.Report().FaultRuns || len(a.Levels) != 2 {
		t.Fatalf("%+v", a)
	}
	for i, l := range a.Levels {
		fates := map[string]int{}
		for _, q := range l.Sequences {
			fates[q.Fate]++
			if len(q.IDs) != i+1 || len(q.Faults) != i+1 || q.Fate == "last" && (q.Why == "" || q.Like == nil) {
				t.Errorf("level %d: %+v", i+1, q)
			}
		}
		if len(l.Sequences) != l.Candidates || fates["passed"]+fates["failed"] != l.Run || fates["vacuous"] != l.Vacuous || fates["last"] != l.By["last"] {
			t.Errorf("level %d of %d sequences: %v", i+1, l.Candidates, fates)
		}
	}
	for _, q := range a.Faults {
		if q.Fault == "" || q.Asked < q.Occurred || q.Asked == 0 {
			t.Errorf("%+v", q)
		}
	}
}
