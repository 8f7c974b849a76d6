package sequence_test

import (
	"fmt"
	"hash/crc32"
	"maps"
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
	if l.Candidates != 6 || l.Kept != 2 || len(l.Pruned) != 4 || l.Pruned[0].Policy != "recovery-pairs" || l.Pruned[0].Like == nil || !strings.Contains(l.Pruned[0].Why, "each point of its recovery") {
		t.Errorf("the report says %+v", l)
	}
}

// TestPairs: those sequences are kept whose last fault is one of some letters.
func TestPairs(t *testing.T) {
	for name, x := range map[string]struct {
		f     figure
		last  string
		want  []string
		kinds []sequence.FaultAt // nil: crashes
	}{
		// AB has X with X, and Y with X; BA X with Y. Cc has Y with Y, on two nodes.
		"independent faults meet by what they bring about": {figure{clean: "ABCc",
			after: map[string]string{"A": "XYB", "B": "XA", "C": "Yc", "c": "YC"}}, "ABCc", []string{"AB", "BA", "Cc"}, nil},
		"on one node and on two": {figure{clean: "ABb", after: map[string]string{"A": "XBb", "B": "Y", "b": "Y"}}, "Bb", []string{"AB", "Ab"}, nil},
		// After AZ there is X alone in BZ, but X and Y in CZ.
		"those that add most":    {figure{clean: "ABC", after: map[string]string{"A": "UVWZ", "B": "VWXZ", "C": "XYZ"}}, "Z", []string{"AZ", "CZ"}, nil},
		"nothing is a behaviour": {figure{clean: "AB", after: map[string]string{"A": "B"}}, "B", []string{"AB"}, nil},
		"kinds are told apart":   {figure{clean: "AB", after: map[string]string{"A": "B"}}, "B", []string{"AB", "AB"}, []sequence.FaultAt{crashes[0], {Kind: model.PointLose, Side: model.SideSend, Place: model.PlaceBefore}}},
	} {
		var got []string
		cfg := two(sequence.Pairs(nil))
		cfg.Kinds = x.kinds
		runs, _, _ := x.f.search(t, cfg)
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

// TestAllPairsAreMet: on the simulated write no pair of a recovery's point and a last fault is
// missed, and what is not kept names one that is.
func TestAllPairsAreMet(t *testing.T) {
	for depth := 2; depth <= 3; depth++ {
		w := &watched{Policy: sequence.Pairs(nil)}
		c := write(depth, simwrite.Bugs(), w)
		if depth == 3 { // one of them, so that it takes no long time
			c.cfg.Policies = append([]sequence.Policy{fewFirst}, c.cfg.Policies...)
		}
		f := c.run(t)
		for i, of := range []string{"dependent", "independent"} {
			if len(w.seen[i]) < 20 || !maps.Equal(w.met[i], w.seen[i]) {
				t.Errorf("depth %d: %d pairs of %s faults are seen, %d are met", depth, len(w.seen[i]), of, len(w.met[i]))
			}
		}
		l := f.report.Levels[depth-1]
		for _, p := range l.Pruned {
			if p.Policy == "recovery-pairs" && !w.kept[p.Like.String()] {
				t.Fatalf("depth %d: %s is not run for %s, which is not kept", depth, p.IDs, p.Like)
			}
		}
		if 4*l.Kept > 3*l.Candidates {
			t.Errorf("depth %d: %d of %d are kept", depth, l.Kept, l.Candidates)
		}
	}
}

// fewFirst keeps every eighth of the single faults.
var fewFirst = sequence.Filter{Title: "few", Keep: func(c sequence.Candidate, k *sequence.Known) (string, error) {
	if len(c.IDs) == 1 && crc32.ChecksumIEEE([]byte(c.IDs[0]))%8 > 0 {
		return "not now", nil
	}
	return "", nil
}}

// watched notes the pairs of dependent and of independent faults before and after a policy, at the
// last level.
type watched struct {
	sequence.Policy
	seen, met [2]map[string]bool
	kept      map[string]bool
}

func (w *watched) Prune(level []sequence.Candidate, k *sequence.Known) ([]sequence.Candidate, []sequence.Pruned, error) {
	kept, pruned, err := w.Policy.Prune(level, k)
	w.seen, w.met, w.kept = pairsOf(level, k), pairsOf(kept, k), map[string]bool{}
	for _, c := range kept {
		w.kept[c.IDs.String()] = true
	}
	return kept, pruned, err
}

func pairsOf(level []sequence.Candidate, k *sequence.Known) (out [2]map[string]bool) {
	out[0], out[1] = map[string]bool{}, map[string]bool{}
	recovery := func(s model.Sequence, by ...model.PointKey) []string {
		if points, _ := k.Recovery(s, by); len(points) > 0 {
			return points
		}
		return []string{"none"}
	}
	for _, c := range level {
		last := c.IDs[len(c.IDs)-1]
		switch {
		case len(c.IDs) == 1:
		case k.Independent(last):
			for _, p := range recovery(c.Prefix(), model.KeySide, model.KeyType) {
				for _, q := range recovery(model.Sequence{last}, model.KeySide, model.KeyType) {
					out[1][fmt.Sprint(p, " ", q, " ", c.Faults[0].Node == c.Last().Node)] = true
				}
			}
		default:
			for _, p := range recovery(c.Prefix(), model.KeySide, model.KeyNode, model.KeyPeer, model.KeyType) {
				out[0][p+" "+string(last)] = true
			}
		}
	}
	return out
}

// BZ has three of its pairs in AZ and one in CZ.
func TestPairsNameWhoStandsIn(t *testing.T) {
	_, s, _ := figure{clean: "ABC", after: map[string]string{"A": "UVWZ", "B": "VWXZ", "C": "XYZ"}}.search(t, two(sequence.Pairs(nil)))
	stands := ""
	for _, p := range s.Report().Levels[1].Pruned {
		if p.Faults[0].Type == "B" && p.Last().Type == "Z" {
			for _, r := range s.Report().Levels[1].Ran {
				if slices.Equal(r.IDs, p.Like) {
					stands = r.Faults[0].Type + r.Last().Type
				}
			}
		}
	}
	if stands != "AZ" {
		t.Errorf("%q stands in for BZ, want AZ", stands)
	}
}
