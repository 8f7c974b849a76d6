package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"netsplit/model"
)

// never stands for the number of runs until something that was not seen.
const never = 1 << 30

// finding is one signature on one target, and what became of it.
type finding struct {
	target, signature, check string
	class                    model.FailureClass
	clean                    bool // a run without a cut showed it too
	by                       map[string]*found
}

// found is how one strategy fared with a finding.
type found struct {
	first  []int // per campaign: runs until first seen, or never
	budget int   // most fault runs that a campaign had
	// run is the run to replay, of the campaign that saw it first, and dir
	// the runs directory of that campaign; "" if no campaign did.
	run, dir        string
	runsFirst       int
	replayed, again int
}

// aggregate finds every distinct failure, sorted by target and signature.
func aggregate(all []search) []finding {
	type key struct{ target, signature string }
	byKey := map[key]*finding{}
	strategies := map[string][]*search{} // by target
	for i := range all {
		s := &all[i]
		strategies[s.target] = append(strategies[s.target], s)
		for _, runs := range [][]model.RunSummary{s.clean, s.faults} {
			for j := range runs {
				for _, f := range runs[j].Verdict.Failures {
					k := key{s.target, f.Signature}
					if byKey[k] == nil {
						byKey[k] = &finding{target: s.target, signature: f.Signature, check: f.Check, class: f.Class, by: map[string]*found{}}
					}
					if runs[j].Scenario.Strategy == model.StrategyClean {
						byKey[k].clean = true
					}
				}
			}
		}
	}
	var out []finding
	for _, f := range byKey {
		for _, s := range strategies[f.target] {
			b := f.by[s.strategy]
			if b == nil {
				b = &found{runsFirst: never}
				f.by[s.strategy] = b
			}
			b.budget = max(b.budget, len(s.faults))
			b.add(s, f.signature)
		}
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.target, b.target), strings.Compare(string(a.class), string(b.class)), strings.Compare(a.signature, b.signature))
	})
	return out
}

// add books one campaign.
func (b *found) add(s *search, signature string) {
	at := slices.IndexFunc(s.faults, func(r model.RunSummary) bool { return shows(&r, signature) })
	if at < 0 {
		b.first = append(b.first, never)
		return
	}
	b.first = append(b.first, at+1)
	if at+1 >= b.runsFirst {
		return
	}
	b.runsFirst, b.run, b.dir = at+1, s.faults[at].Run, s.dir
	b.replayed, b.again = 0, 0
	for i := range s.replays[b.run] {
		b.replayed++
		if shows(&s.replays[b.run][i], signature) {
			b.again++
		}
	}
}

// median is the middle value, the lower one of two; never if more than half of
// the campaigns did not see it.
func median(vs []int) int {
	if len(vs) == 0 {
		return never
	}
	return slices.Sorted(slices.Values(vs))[(len(vs)-1)/2]
}

// seen is how many campaigns saw it.
func (b *found) seen() int {
	n := 0
	for _, v := range b.first {
		if v < never {
			n++
		}
	}
	return n
}

func (b *found) String() string {
	if b == nil {
		return "no campaign"
	}
	m := median(b.first)
	at := fmt.Sprintf("%d", m)
	if m == never {
		at = fmt.Sprintf("not in %d", b.budget)
	}
	return fmt.Sprintf("%s (%d of %d campaigns)", at, b.seen(), len(b.first))
}

func (b *found) replay() string {
	if b == nil || b.replayed == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", b.again, b.replayed)
}

// ratio is the runs of one strategy in those of another, "" if neither saw it;
// where one did not see it, its budget bounds the ratio.
func ratio(a, b *found) string {
	if a == nil || b == nil {
		return ""
	}
	x, y := median(a.first), median(b.first)
	switch {
	case x == never && y == never:
		return ""
	case x == never:
		return fmt.Sprintf("> %.2f", float64(a.budget)/float64(y))
	case y == never:
		return fmt.Sprintf("< %.2f", float64(x)/float64(b.budget))
	}
	return fmt.Sprintf("%.2f", float64(x)/float64(y))
}

func print(w io.Writer, all []search, found []finding) error {
	type group struct{ target, strategy string }
	type sum struct {
		seeds                   []string
		runs, vacuous, unknowns int
	}
	sums := map[group]*sum{}
	var order []group
	for i := range all {
		s := &all[i]
		g := group{s.target, s.strategy}
		if sums[g] == nil {
			sums[g] = &sum{}
			order = append(order, g)
		}
		c := sums[g]
		c.seeds = append(c.seeds, s.seed)
		c.runs += len(s.faults)
		for _, r := range s.faults {
			switch r.Verdict.Value {
			case model.VerdictVacuous:
				c.vacuous++
			case model.VerdictUnknown:
				c.unknowns++
			}
		}
	}
	for _, g := range order {
		c := sums[g]
		fmt.Fprintf(w, "%s, %s: %d campaigns (seeds %s), %d fault runs, of which %d vacuous and %d unknown\n", g.target, g.strategy,
			len(c.seeds), strings.Join(c.seeds, " "), c.runs, c.vacuous, c.unknowns)
	}
	fmt.Fprint(w, "\nFault runs until first seen: median over the campaigns. Replay: of the run that showed it soonest.\n\n")
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tFINDING\tCLASS\tCOFI\tRANDOM\tCOFI/RANDOM\tREPLAY COFI\tREPLAY RANDOM")
	for _, f := range found {
		c, r := f.by[string(model.StrategyCoFI)], f.by[string(model.StrategyRandom)]
		name := f.signature
		if f.clean {
			name += " (also without a cut)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%v\t%s\t%s\t%s\n", f.target, name, f.class, c, r, ratio(c, r), c.replay(), r.replay())
	}
	if len(found) == 0 {
		fmt.Fprintln(t, "no findings")
	}
	return t.Flush()
}
