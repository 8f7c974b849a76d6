package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"netsplit/explorer"
	"netsplit/explorer/engine"
	"netsplit/model"
)

// Campaign is a search over the simulated system, driven as the campaign loop
// drives one over a real system.
type Campaign struct {
	Options Options
	Config  explorer.Config
	// Labs is the number of runs outstanding at once. Their results come back
	// in an order drawn from the seed.
	Labs int
	// StopAtFirst ends the campaign at the first failure.
	StopAtFirst bool
}

// Report is what a campaign leaves behind.
type Report struct {
	Inputs  []explorer.Input // the log of inputs
	Readies []explorer.Ready // the answers
	Runs    []Run            // in order of return
	Why     string           // why it ended
	// Failed is the number of runs, clean ones included, until the first
	// failure; 0: none failed.
	Failed int
}

// Run searches until the core is done.
func (c Campaign) Run() Report {
	c.Options = c.Options.withDefaults()
	core := explorer.NewCore(c.Config)
	rnd := rand.New(rand.NewPCG(c.Config.Seed, 3))
	var rep Report
	step := func(in explorer.Input) explorer.Ready {
		r := core.Step(in)
		rep.Inputs = append(rep.Inputs, in)
		rep.Readies = append(rep.Readies, r)
		return r
	}
	var out []model.Scenario
	for {
		r := step(explorer.Input{Kind: explorer.InputAsk, Slots: max(c.Labs, 1) - len(out)})
		out = append(out, r.Scenarios...)
		switch {
		case r.Mine:
			invs, results := mine(c.Options, rep.Runs)
			step(explorer.Input{Kind: explorer.InputInvariants, Invariants: invs, Results: results})
			continue
		case len(out) == 0:
			rep.Why = r.Why
			return rep
		}
		i := rnd.IntN(len(out))
		run := Execute(c.Options, out[i])
		out = slices.Delete(out, i, i+1)
		rep.Runs = append(rep.Runs, run)
		res := run.Result()
		step(explorer.Input{Kind: explorer.InputResult, Result: &res})
		if rep.Failed == 0 && run.Verdict.Value == model.VerdictFail {
			rep.Failed = len(rep.Runs)
			if c.StopAtFirst {
				rep.Why = "a run failed"
				return rep
			}
		}
	}
}

// mine stands in for the miner, which the explorer must not know: any two
// nodes are expected to agree on the status of a member, where that changed in
// the clean runs. The states the clean runs met come with it.
func mine(o Options, runs []Run) ([]model.Invariant, []model.RunResult) {
	changes := map[string]int{}
	for _, r := range runs {
		last := map[model.VarRef]string{}
		for _, ev := range r.Log {
			if ob := ev.Observation; ob != nil && ev.At >= warmup {
				if v, ok := last[ob.Var]; ok && v != ob.Value {
					changes[ob.Var.About]++
				}
				last[ob.Var] = ob.Value
			}
		}
	}
	var invs []model.Invariant
	for _, about := range o.Nodes {
		for i, a := range o.Nodes {
			for _, b := range o.Nodes[i+1:] {
				if changes[string(about)] == 0 {
					continue
				}
				va, vb := statusOf(about, a), statusOf(about, b)
				invs = append(invs, model.Invariant{ID: model.InvariantID(model.RelationEqual, va, vb), Kind: statusKind, Relation: model.RelationEqual,
					A: va, B: vb, Status: model.InvariantMined, Changes: changes[string(about)], Runs: len(runs)})
			}
		}
	}
	slices.SortFunc(invs, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	var results []model.RunResult
	for _, r := range runs {
		res := r.Result()
		res.States = engine.States(r.Log, invs)
		results = append(results, res)
	}
	return invs, results
}
