package explorer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// ErrTries is what a try answers once no more are allowed: Shrink ends with what it has.
var ErrTries = errors.New("no more tries are allowed")

// chanceOfMissing is the chance below which a failure that did not come without a step counts
// as one that needs the step.
const chanceOfMissing = 0.05

// Shrink finds the smallest scenario that still fails, by ddmin over the steps (Zeller,
// Hildebrandt: Simplifying and Isolating Failure-Inducing Input, TSE 2002, §3.2), and says
// of each step whether the failure needs it. try has the scenario of the steps at these
// places tried, the same one once; none of them: nothing is done. Its errors end the work,
// and Shrink returns them, except ErrTries, with what is known by then.
//
// A scenario fails if one of its tries does, so that each step that is left out was seen to
// be needless. A failure that comes seldom may look as if it needs a step: see needs.
func Shrink(sc model.Scenario, past Past, try func(places []int) (model.Tally, error)) (model.Shrunk, error) {
	s := shrinking{try: try, known: map[string]model.Tally{}}
	var all []int
	for i := range sc.Steps {
		all = append(all, i+1)
	}
	out := model.Shrunk{}
	whole, err := s.fails(all)
	out.All = s.of(all)
	if err == nil && whole {
		var empty bool
		empty, err = s.fails(nil)
		out.None = s.of(nil)
		out.Keep = all
		switch {
		case empty:
			out.Keep = nil
		case err == nil:
			out.Keep, err = s.ddmin(all)
		}
		least, _ := Only(sc, out.Keep, past)
		out.Smallest, out.Least = &least, s.of(out.Keep)
	}
	switch {
	case errors.Is(err, ErrTries):
		out.Why, err = "no more tries were allowed", nil
	case err != nil:
		out.Why = "it was stopped"
	case !whole:
		out.Why = fmt.Sprintf("the run's scenario did not fail for this cause in %d tries", out.All.Tries)
	}
	for i := range sc.Steps {
		out.Steps = append(out.Steps, s.need(&sc, past, &out, i+1))
	}
	return out, err
}

type shrinking struct {
	try   func([]int) (model.Tally, error)
	known map[string]model.Tally // by places
}

func (s *shrinking) of(places []int) model.Tally { return s.known[fmt.Sprint(places)] }

func (s *shrinking) fails(places []int) (bool, error) {
	if t, ok := s.known[fmt.Sprint(places)]; ok {
		return t.Failed > 0, nil
	}
	t, err := s.try(places)
	if err != nil {
		return false, err
	}
	s.known[fmt.Sprint(places)] = t
	return t.Failed > 0, nil
}

// ddmin returns the fewest places that it found to fail, all that was found by an error.
func (s *shrinking) ddmin(keep []int) ([]int, error) {
	for parts := 2; len(keep) > 1; {
		parts = min(parts, len(keep))
		subsets := split(keep, parts)
		next, n := []int(nil), 0
		for _, tried := range [][][]int{subsets, complements(keep, subsets)} {
			for _, c := range tried {
				bad, err := s.fails(c)
				if err != nil {
					return keep, err
				}
				if bad {
					next = c
					break
				}
			}
			if next != nil {
				break
			}
			n++
		}
		switch {
		case next != nil && n == 0:
			keep, parts = next, 2
		case next != nil:
			keep, parts = next, max(parts-1, 2)
		case parts == len(keep):
			return keep, nil
		default:
			parts *= 2
		}
	}
	return keep, nil
}

// split cuts a list into n parts of nearly equal length.
func split(in []int, n int) (out [][]int) {
	for i := range n {
		out = append(out, in[i*len(in)/n:(i+1)*len(in)/n])
	}
	return out
}

// complements are the list without each of its parts; of two parts each is the other's.
func complements(of []int, parts [][]int) (out [][]int) {
	if len(parts) == 2 {
		return nil
	}
	for _, p := range parts {
		out = append(out, without(of, p...))
	}
	return out
}

func without(of []int, these ...int) []int {
	return slices.DeleteFunc(slices.Clone(of), func(i int) bool { return slices.Contains(these, i) })
}

func (s *shrinking) need(sc *model.Scenario, past Past, out *model.Shrunk, place int) model.StepNeed {
	n := model.StepNeed{Step: place, Text: sc.Steps[place-1].String(), Needed: model.NeededUnknown, With: out.All}
	if out.Smallest == nil {
		n.Why = out.Why
		return n
	}
	if !slices.Contains(out.Keep, place) {
		n.Needed, n.Without = model.NeededNo, out.Least
		return n
	}
	less := without(out.Keep, place)
	t, tried := s.known[fmt.Sprint(less)]
	n.With, n.Without = out.Least, t
	_, moved := Only(*sc, less, past)
	switch {
	case !tried:
		n.Why = "it was not tried without the step"
	case t.Judged() == 0:
		n.Why = "without it no try could be judged, or other steps did not come"
	case !needs(n.With, t):
		n.Why = "it fails too seldom to tell: try more often"
	case len(moved) > 0:
		n.Why = fmt.Sprintf("without it step %s may come at another moment", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(moved)), ", "), "[]"))
	default:
		n.Needed = model.NeededYes
	}
	return n
}

// needs says whether no failure without a step would be rare if the step did not matter. The
// rate is that of the tries with the step and of one more that did not fail.
func needs(with, without model.Tally) bool {
	rate, chance := float64(with.Failed)/float64(with.Judged()+1), 1.0
	for range without.Judged() {
		chance *= 1 - rate
	}
	return chance < chanceOfMissing
}
