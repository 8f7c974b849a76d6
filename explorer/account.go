package explorer

import "netsplit/model"

// Account says what became of every pair that the search has found: nothing is pruned, but
// a pair may be given up, or left when the budget is spent.
func (c *Core) Account() model.Account {
	out := model.Account{CleanRuns: c.cleanOut, FaultRuns: c.faultOut}
	for _, p := range c.order {
		a := model.PairAccount{Invariant: p.inv, State: p.state, Node: p.node, Runs: p.tries, Elsewhere: p.renamed, Why: p.closed}
		if inv, ok := c.invariant(p.inv); ok {
			a.Invariant = inv.String()
		}
		switch {
		case p.closed == "":
			a.Fate, a.Why = "left", "the search ended before it was done"
			if p.tries == 0 {
				a.Why = "the search ended before its first run"
			}
			out.Left++
		case p.reached:
			a.Fate = "explored"
		default:
			a.Fate = "given up"
		}
		out.Pairs = append(out.Pairs, a)
	}
	return out
}
