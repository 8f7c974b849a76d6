package explorer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/explorer/policy"
	"netsplit/model"
)

// pairKey is CoFI's <inconsistent state, partitioned node> of one invariant.
type pairKey struct {
	inv   string
	state model.State
	node  model.NodeID
}

// pair is the progress of Algorithm 1, lines 4 to 7, for one pairKey. Its runs
// follow one another, since each needs the classes that the one before met.
type pair struct {
	pairKey
	seq     int
	seen    []model.Class // allMsgTypes, sorted
	tries   int           // runs that came back
	misses  int           // of those, runs in a row in which the state did not occur
	moving  bool
	running bool
	reached bool   // a run reached the state
	closed  string // why it is done; "" while it is not
}

// stateInfo is an inconsistent state and how it was met.
type stateInfo struct {
	metKey
	runs, count int
	first       string
	firstAt     time.Duration
}

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
	met := slices.Clone(r.States)
	slices.SortFunc(met, compareMet)
	for _, m := range met {
		inv, ok := c.invariant(m.Invariant)
		if !ok || m.State.A == m.State.B {
			continue
		}
		k := metKey{m.Invariant, m.State}
		s := c.states[k]
		if s == nil {
			s = &stateInfo{metKey: k, first: r.Scenario, firstAt: m.First}
			c.states[k] = s
			c.addPairs(inv, m.State)
		}
		s.runs++
		s.count += m.Count
	}
}

func (c *Core) addPairs(inv model.Invariant, st model.State) {
	for _, n := range []model.NodeID{inv.A.Node, inv.B.Node} {
		k := pairKey{inv.ID, st, n}
		if c.pairs[k] != nil || !slices.Contains(c.cfg.Nodes, n) {
			continue
		}
		p := &pair{pairKey: k, seq: len(c.order)}
		c.pairs[k] = p
		c.order = append(c.order, p)
	}
}

// learn is what a run of the pair taught.
func (p *pair) learn(s model.Scenario, r model.RunResult, retries int) {
	p.running = false
	p.tries++
	p.moving = false
	if !r.Reached {
		p.misses++
		if p.misses > retries {
			p.closed = fmt.Sprintf("the state did not occur in %d runs in a row", p.misses)
		}
		return
	}
	p.misses, p.reached = 0, true
	if r.HealClass == nil {
		p.closed = "a run met no new class" // line 5
		return
	}
	at, found := slices.BinarySearchFunc(p.seen, *r.HealClass, model.Class.Compare)
	if found {
		p.closed = "a run healed at a class seen before"
		return
	}
	p.seen = slices.Insert(p.seen, at, *r.HealClass)
	p.moving = r.HealClass.State != p.state
}

// handCoFI issues the run of the pair that the policy puts first.
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
	is := c.scenario(model.StrategyCoFI, p.why(first))
	inv, st := first.Invariant, p.state
	is.pair = p
	is.s.Isolate = p.node
	is.s.Partition = c.cfg.partition(p.node)
	is.s.Invariant, is.s.State = &inv, &st
	is.s.Seen = slices.Clone(p.seen)
	is.s.MaxCut = c.cfg.MaxCut
	return c.issue(is), "", true
}

// pick returns the first of the policy's order that is open and not running.
// Pairs that run or are explored are ordered with the others: their duplicates
// remain duplicates.
func (c *Core) pick() (policy.Choice, bool) {
	var cs []policy.Candidate
	for _, p := range c.order {
		if inv, ok := c.invariant(p.inv); ok && (p.closed == "" || p.reached) {
			cs = append(cs, c.candidate(p, inv))
		}
	}
	for _, ch := range policy.Order(cs, c.rules) {
		if p := c.order[ch.Seq]; p.closed == "" && !p.running {
			return ch, true
		}
	}
	return policy.Choice{}, false
}

func (c *Core) candidate(p *pair, inv model.Invariant) policy.Candidate {
	s := c.states[metKey{p.inv, p.state}]
	return policy.Candidate{
		Invariant: inv, State: p.state, Node: p.node, Seq: p.seq, Tries: p.tries, Moving: p.moving,
		StateRuns: s.runs, AllRuns: c.runs, StateCount: s.count, First: s.first, FirstAt: int64(s.firstAt),
	}
}

// why is the sentence for the record.
func (p *pair) why(ch policy.Choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, met in %d of %d runs: try %d isolating %s, %d class(es) seen", p.state, &ch.Invariant, ch.StateRuns, ch.AllRuns, p.tries+1, p.node, len(p.seen))
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
