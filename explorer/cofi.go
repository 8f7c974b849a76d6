package explorer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/explorer/engine"
	"netsplit/explorer/policy"
	"netsplit/model"
)

// setInvariants replaces what is explored; dropped invariants are left out.
func (c *Core) setInvariants(invs []model.Invariant) {
	c.mined = true
	c.invariants = nil
	for _, i := range invs {
		if i.Status != model.InvariantDrop {
			c.invariants = append(c.invariants, i)
		}
	}
	slices.SortStableFunc(c.invariants, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	c.invariants = slices.CompactFunc(c.invariants, func(a, b model.Invariant) bool { return a.ID == b.ID })
	for _, p := range c.order {
		p.compared = false
	}
}

func (c *Core) invariant(id string) (model.Invariant, bool) {
	i, ok := slices.BinarySearchFunc(c.invariants, id, func(i model.Invariant, id string) int { return cmp.Compare(i.ID, id) })
	if !ok {
		return model.Invariant{}, false
	}
	return c.invariants[i], true
}

// recordStates joins the states a run met to the list, with a pair for each of
// the state's two nodes (lines 1, 3 and 7).
func (c *Core) recordStates(r model.RunResult) {
	c.runs++
	is, ours := c.handed[r.Scenario]
	uncut, all := ours && is.s.Strategy == model.StrategyClean, map[metKey]bool{}
	if uncut {
		c.clean = append(c.clean, all)
	}
	met := slices.Clone(r.States)
	slices.SortFunc(met, model.MetState.Compare)
	for _, m := range met {
		inv, ok := c.invariant(m.Invariant)
		if !ok || m.State.A == m.State.B {
			continue
		}
		k := metKey{m.Invariant, m.State}
		all[k] = true
		s := c.states[k]
		if s == nil {
			s = &stateInfo{metKey: k, first: r.Scenario, firstAt: m.First, nth: m.Nth}
			c.states[k] = s
			c.addPairs(inv, m.State)
		}
		s.runs++
		s.count += m.Count
		if uncut {
			s.clean++
		}
		if ours {
			waited := is.pair != nil && is.cutAt(r) == k
			s.meet(is.s.Seed, is.s.ID, is.s.Strategy == model.StrategyClean || waited, m)
		}
	}
}

// cutAt is the state that a run of a pair cut at, as it was asked for, and its
// invariant; none for one that did not.
func (is *issued) cutAt(r model.RunResult) metKey {
	if !r.Reached {
		return metKey{}
	}
	s := engine.Met(is.s, r)
	at := s.Waits().When.State
	return metKey{at.Invariant.ID, *at.State}
}

func (c *Core) addPairs(inv model.Invariant, st model.State) {
	for _, n := range []model.NodeID{inv.A.Node, inv.B.Node} {
		k := pairKey{inv.ID, st, n}
		if c.pairs[k] != nil || !slices.Contains(c.cfg.Nodes, n) {
			continue
		}
		p := &pair{pairKey: k, seq: len(c.order), used: map[uint64]int{}}
		c.pairs[k] = p
		c.order = append(c.order, p)
	}
}

func (c *Core) handCoFI() (model.Scenario, string, bool) {
	if len(c.states) == 0 && len(c.out) > 0 {
		return model.Scenario{}, "no inconsistent state is known yet, and a run that records them is under way", false
	}
	if c.mayRecord() {
		c.recordings++
		c.faultOut++
		return c.issue(c.scenario(model.StrategyClean, "no inconsistent state is known yet: a run without a cut records those it meets")), "", true
	}
	first, ok := c.pick()
	if !ok {
		if len(c.out) > 0 {
			return model.Scenario{}, "each pair left has a run under way, and the runs of a pair follow one another", false
		}
		why, _ := c.finishedCoFI()
		return model.Scenario{}, why, false
	}
	p := c.order[first.Seq]
	p.running = true
	c.faultOut++
	is := c.scenario(model.StrategyCoFI, "")
	inv, st := first.Invariant, p.state
	is.pair, is.target = p, p.target()
	is.likes = c.standsFor(&inv, p)
	is.never = !p.reached
	at := &model.FaultCondition{Invariant: inv, State: &st}
	if c.looksAnew(is) {
		is.never, is.target = true, nil
	} else {
		is.use = c.states[p.metKey()].seed(p)
	}
	at.Nth = c.states[p.metKey()].nth
	if is.use != nil {
		is.s.Seed, at.Nth = is.use.seed, is.use.nth
	}
	p.used[is.s.Seed]++
	step := c.isolating(p.node)
	step.When.State, step.Max = at, c.cfg.MaxCut
	switch {
	case is.target != nil:
		step.Until.Class = &is.target.class
	case !is.never:
		step.Until.Unseen = &model.Unseen{Seen: p.classes()}
	}
	is.s.Steps = []model.Step{step}
	for _, l := range is.likes {
		is.s.Or = append(is.s.Or, l.names)
	}
	is.s.Why = is.why(first)
	return c.issue(is), "", true
}

// manyClean is how many runs without a cut must have met a state for it to be taken to
// come about under every seed; looks is how many runs of a pair then let no message
// heal, each under a seed of its own.
const (
	manyClean = 3
	looks     = 3
)

// looksAnew says that a run lets no message heal and draws its seed anew although
// others met its state. Every other of a pair's first runs does, if the state, or one
// that the run takes for it, comes about under every seed: each run without a cut met
// one, and so did the last run of the pair. What the values do not show, such as a
// message under way, differs from seed to seed.
func (c *Core) looksAnew(is *issued) bool {
	p := is.pair
	return p.misses == 0 && p.tries%2 == 0 && p.tries < 2*looks && len(c.clean) >= manyClean && !slices.ContainsFunc(c.clean, func(met map[metKey]bool) bool {
		return !met[p.metKey()] && !slices.ContainsFunc(is.likes, func(l like) bool { return met[l.metKey()] })
	})
}

// pick returns the first of the policy's order that is open and not running.
// Pairs that run or are explored are ordered with the others: their duplicates
// remain duplicates. What was given up counts for its likes only.
func (c *Core) pick() (policy.Choice, bool) {
	var cs []policy.Candidate
	for _, p := range c.order {
		if inv, ok := c.invariant(p.inv); ok {
			cs = append(cs, c.candidate(p, inv))
		}
	}
	for _, ch := range policy.Order(cs, c.rules, c.cfg.Nodes...) {
		if p := c.order[ch.Seq]; p.closed == "" && !p.running {
			return ch, true
		}
	}
	return policy.Choice{}, false
}

func (c *Core) candidate(p *pair, inv model.Invariant) policy.Candidate {
	s := c.states[p.metKey()]
	t := p.target()
	return policy.Candidate{
		Invariant: inv, State: p.state, Node: p.node, Seq: p.seq, Tries: p.tries, Misses: p.misses,
		Abandoned: p.closed != "" && !p.reached,
		Stands:    len(c.standsFor(&inv, p)) > 0, Looked: p.reached, Healed: p.healed(), Uncut: s.uncut(), Moved: t != nil && p.moved(t),
		StateRuns: s.runs, AllRuns: c.runs, StateCount: s.count, First: s.first, FirstAt: int64(s.firstAt),
	}
}

// why is the sentence for the record.
func (is *issued) why(ch policy.Choice) string {
	p := is.pair
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, met in %d of %d runs: try %d isolating %s, ", p.state, &ch.Invariant, ch.StateRuns, ch.AllRuns, p.tries+1, p.node)
	switch {
	case is.never:
		b.WriteString("no message heals: which classes come")
	case is.target != nil:
		fmt.Fprintf(&b, "heal at %s, one of %d classes known", is.target.class, len(p.known))
	default:
		fmt.Fprintf(&b, "heal at a class beyond the %d known", len(p.known))
	}
	if nth := is.s.Waits().When.State.Nth; nth > 0 && p.state.Numbers() {
		fmt.Fprintf(&b, "; number %d of its shape will do", nth)
	}
	if n := len(is.s.Or); n > 0 {
		fmt.Fprintf(&b, "; or the same with other nodes (%d)", n)
	}
	if is.use != nil {
		fmt.Fprintf(&b, "; seed of %s, which met it", is.use.run)
	} else if p.misses == 0 {
		b.WriteString("; a new seed, for it comes under every one")
	}
	if len(ch.Rules) > 0 {
		fmt.Fprintf(&b, "; weight %d: %s", ch.Weight, strings.Join(ch.Rules, ", "))
	}
	if ch.Later != "" {
		fmt.Fprintf(&b, "; late, since %s", ch.Later)
	}
	return b.String()
}

// mayRecord bounds the runs without a cut that look for a first state.
func (c *Core) mayRecord() bool {
	return len(c.invariants) > 0 && len(c.states) == 0 && c.recordings <= c.cfg.Retries && c.faultOut < c.cfg.Runs
}

func (c *Core) finishedCoFI() (string, bool) {
	if c.mayRecord() {
		return "", false
	}
	for _, p := range c.order {
		if _, ok := c.invariant(p.inv); ok && p.closed == "" {
			return "", false
		}
	}
	switch {
	case len(c.invariants) == 0:
		return "there is no invariant to explore: make clean runs with more changes in them, or pin one", true
	case len(c.states) == 0:
		return fmt.Sprintf("no invariant was ever violated in %d runs without a cut", c.runs), true
	}
	return fmt.Sprintf("all %d pairs of an inconsistent state and a node are explored", len(c.order)), true
}
