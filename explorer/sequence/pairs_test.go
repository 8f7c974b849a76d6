package sequence_test

import (
	"slices"
	"strings"
	"testing"

	"netsplit/explorer/sequence"
	"netsplit/internal/simwrite"
	"netsplit/model"
)

// On FATE's Figure 3a E and F meet each fault after C or D; what A and B add is met there.
func TestPairsOnFigure3a(t *testing.T) {
	runs, s, _ := figure3a().search(t, two(sequence.Pairs(nil)))
	if want := []string{"", "A", "B", "C", "D", "CE", "CF"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	l := s.Report().Levels[1]
	if l.Candidates != 6 || l.Kept != 2 || len(l.Pruned) != 4 || l.Pruned[0].Policy != "recovery-pairs" || !strings.Contains(l.Pruned[0].Why, "each point of its recovery") {
		t.Errorf("the report says %+v", l)
	}
}

// TestPairs: those sequences are kept whose last fault is one of some letters.
func TestPairs(t *testing.T) {
	for name, x := range map[string]struct {
		f    figure
		last string
		want []string
	}{
		// AB has X with X, and Y with X; BA X with Y. Cc has Y with Y, on two nodes.
		"independent faults meet by what they bring about": {figure{clean: "ABCc",
			after: map[string]string{"A": "XYB", "B": "XA", "C": "Yc", "c": "YC"}}, "ABCc", []string{"AB", "BA", "Cc"}},
		"on one node and on two": {figure{clean: "ABb", after: map[string]string{"A": "XBb", "B": "Y", "b": "Y"}}, "Bb", []string{"AB", "Ab"}},
		// After AZ there is X alone in BZ, but X and Y in CZ.
		"those that add most":    {figure{clean: "ABC", after: map[string]string{"A": "UVWZ", "B": "VWXZ", "C": "XYZ"}}, "Z", []string{"AZ", "CZ"}},
		"nothing is a behaviour": {figure{clean: "AB", after: map[string]string{"A": "B"}}, "B", []string{"AB"}},
	} {
		var got []string
		runs, _, _ := x.f.search(t, two(sequence.Pairs(nil)))
		for _, r := range runs {
			if len(r) == 2 && strings.Contains(x.last, r[1:]) {
				got = append(got, r)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

// TestAllPairsAreMet: on the simulated write no pair of a recovery's point and a dependent fault
// is missed, and no sequence is kept whose pairs others have.
func TestAllPairsAreMet(t *testing.T) {
	w := &watched{Policy: sequence.Pairs(nil), by: []model.PointKey{model.KeySide, model.KeyNode, model.KeyPeer, model.KeyType}}
	f := write(2, simwrite.Bugs(), w).run(t)
	if len(w.seen) < 100 || len(w.met) != len(w.seen) {
		t.Errorf("%d pairs are seen, %d are met", len(w.seen), len(w.met))
	}
	if l := f.report.Levels[1]; l.Kept+len(l.Pruned) != l.Candidates || 4*l.Kept > 3*l.Candidates {
		t.Errorf("%d of %d are kept, %d are not", l.Kept, l.Candidates, len(l.Pruned))
	}
}

// watched notes the pairs of dependent faults before and after a policy.
type watched struct {
	sequence.Policy
	by        []model.PointKey
	seen, met map[string]bool
}

func (w *watched) Prune(level []sequence.Candidate, k *sequence.Known) ([]sequence.Candidate, []sequence.Pruned, error) {
	kept, pruned, err := w.Policy.Prune(level, k)
	w.seen, w.met = w.pairs(level, k), w.pairs(kept, k)
	return kept, pruned, err
}

func (w *watched) pairs(of []sequence.Candidate, k *sequence.Known) map[string]bool {
	out := map[string]bool{}
	for _, c := range of {
		last := c.IDs[len(c.IDs)-1]
		if len(c.IDs) == 1 || k.Independent(last) {
			continue
		}
		points, _ := k.Recovery(c.Prefix(), w.by)
		for _, p := range points {
			out[p+" "+string(last)] = true
		}
	}
	return out
}
