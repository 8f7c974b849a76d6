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
func Shrink(sc model.Scenario, try func(places []int) (model.Tally, error)) (model.Shrunk, error) {
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
		least, _ := Only(sc, out.Keep)
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
		out.Steps = append(out.Steps, s.need(&sc, &out, i+1))
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

func (s *shrinking) need(sc *model.Scenario, out *model.Shrunk, place int) model.StepNeed {
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
	_, moved := Only(*sc, less)
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

// Only is a scenario with the steps at these places alone, in their order. A step that
// followed one that is left out begins when that one would have begun, or ended. The places
// of steps for which no trigger says that moment are returned as moved: they follow the step
// before it, or the start of the workload.
func Only(sc model.Scenario, places []int) (out model.Scenario, moved []int) {
	if len(places) == 0 {
		return WithoutFaults(sc), nil
	}
	out = sc
	out.Steps, out.Sequence = nil, nil
	if out.Strategy == model.StrategySequences {
		out.Strategy = model.StrategySteps
	}
	begin, end := moment{exact: true}, moment{exact: true} // of the step before
	for i, st := range sc.Steps {
		at := moment{st.When, true}
		switch st.When.Follows {
		case model.FollowsBegin:
			at = begin.then(st.When)
		case model.FollowsEnd:
			at = end.then(st.When)
		}
		if !slices.Contains(places, i+1) {
			begin, end = at.acts(&st), at.ends(&st)
			continue
		}
		if st.Do.Message != nil && at.Message != nil {
			at.Message, at.exact = nil, false
		}
		st.When = at.Trigger
		if len(out.Steps) == 0 {
			st.When.Follows = ""
		}
		out.Steps = append(out.Steps, st)
		if !at.exact {
			moved = append(moved, i+1)
		}
		begin = moment{model.Trigger{Follows: model.FollowsBegin}, true}
		end = moment{model.Trigger{Follows: model.FollowsEnd}, true}
	}
	if out.Waits() == nil {
		out.Or = nil
	}
	out.Why = fmt.Sprintf("repeats %s with %d of its %d steps: %s", sc.ID, len(places), len(sc.Steps), strings.Trim(fmt.Sprint(places), "[]"))
	return out, moved
}

// moment is a trigger for the moment of a step that may be left out; exact says that it is
// that moment.
type moment struct {
	model.Trigger
	exact bool
}

// then is the moment of own, which follows m.
func (m moment) then(own model.Trigger) moment {
	out := moment{own, m.exact}
	out.Follows, out.At, out.After = m.Follows, max(m.At, own.At), m.After+own.After
	switch {
	case m.State == nil && m.Message == nil:
	case own.State == nil && own.Message == nil && own.At == 0 && own.After == 0:
		out.State, out.Message = m.State, m.Message
	default:
		out.exact = false
	}
	return out
}

// acts is when the step begins for those that follow it: a message fault, once it acts.
func (m moment) acts(st *model.Step) moment {
	f := st.Do.Message
	if f == nil {
		return m
	}
	out := m.then(model.Trigger{At: f.After, Message: &model.MessageTrigger{Match: f.Match, Nth: f.Nth}})
	out.exact = out.exact && f.While == nil
	return out
}

// ends is when the step ends for those that follow it.
func (m moment) ends(st *model.Step) moment {
	out := m.acts(st)
	f, u := st.Do.Message, &st.Until
	switch {
	case f != nil: // it acts once
		out.exact = out.exact && f.Every == 0 && f.Times <= 1
	case u.Timed() && u.At == 0:
		after := u.After
		if st.Max > 0 {
			after = min(after, st.Max)
		}
		out = out.then(model.Trigger{After: after})
	case *u == (model.Trigger{}) && st.Max > 0:
		out = out.then(model.Trigger{After: st.Max})
	default:
		out.exact = false
	}
	return out
}
