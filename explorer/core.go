package explorer

import (
	"fmt"
	"slices"
	"time"

	"netsplit/explorer/engine"
	"netsplit/explorer/policy"
	"netsplit/model"
)

// Config is what a campaign asks of the search.
type Config struct {
	Strategy model.Strategy `json:"strategy"`
	// Seed is the source of every random choice and of the scenarios' seeds.
	Seed uint64 `json:"seed"`
	// Nodes are the hosts that the search may isolate; Hosts are all of the testbed,
	// clients included.
	Nodes   []model.NodeID `json:"nodes"`
	Clients []model.NodeID `json:"clients,omitempty"`
	Hosts   []model.NodeID `json:"hosts"`
	Effect  model.Effect   `json:"effect"`
	// IsolateClients: cuts separate an isolated node from clients too; otherwise
	// only from the other Nodes.
	IsolateClients bool `json:"isolateClients"`
	// Retries bounds how often the search tries a state again that did not recur,
	// and how often it hands out a scenario again whose run was lost or could not
	// be judged.
	Retries int `json:"retries"`
	// Runs bounds the fault runs; Clean is the number of clean runs before them.
	Runs  int `json:"runs"`
	Clean int `json:"clean"`
	// MaxCut ends a cofi cut at the latest; 0: only the end of the workload does.
	MaxCut time.Duration `json:"maxCut"`
	// Random is what strategy random draws from; the zero value: one isolated node.
	Random Random `json:"-"`
	// Workload is the expected length of the workload. Strategy random draws its
	// times from it until a run shows how long it is.
	Workload time.Duration `json:"workload"`
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	switch c.Strategy {
	case model.StrategyClean, model.StrategyCoFI, model.StrategyRandom:
	default:
		return fmt.Errorf("explorer: unknown strategy %q: use cofi, random, sequences or clean", c.Strategy)
	}
	if c.Runs < 0 || c.Clean < 0 || c.Retries < 0 || c.MaxCut < 0 || c.Workload < 0 {
		return fmt.Errorf("explorer: runs %d, clean %d, retries %d, max cut %s and workload %s must not be negative", c.Runs, c.Clean, c.Retries, c.MaxCut, c.Workload)
	}
	if c.Strategy == model.StrategyClean {
		return nil
	}
	if len(c.Nodes) == 0 {
		return fmt.Errorf("explorer: no node to isolate: the target names none")
	}
	for _, n := range c.Nodes {
		if err := c.Isolating(n).Validate(c.Hosts); err != nil {
			return fmt.Errorf("explorer: isolating %s: %w", n, err)
		}
	}
	if c.Strategy == model.StrategyRandom && c.Workload == 0 {
		return fmt.Errorf("explorer: random draws its offsets from the length of the workload: state it")
	}
	if c.Random.Depth < 0 {
		return fmt.Errorf("explorer: depth %d: a run has at least one fault", c.Random.Depth)
	}
	return nil
}

// Isolating cuts the nodes off, together: from every other host, or from the other nodes only.
func (c Config) Isolating(nodes ...model.NodeID) model.Partition {
	if c.IsolateClients {
		return model.IsolateAll(nodes, c.Hosts, c.Effect)
	}
	p := model.IsolateAll(nodes, c.Nodes, c.Effect)
	if len(c.Hosts) > len(c.Nodes) {
		p.Shape = model.Partial // the clients stay connected to both sides
	}
	return p
}

// isolating is the step that cuts the node off at once.
func (c *Core) isolating(node model.NodeID) model.Step {
	p := c.cfg.Isolating(node)
	return model.Step{Do: model.Fault{Cut: &p, Isolate: node}}
}

// InputKind says which part of an Input is filled.
type InputKind string

// Kinds of inputs.
const (
	// InputInvariants hands over the invariants of the clean runs. Results holds
	// the states that those runs met (see States), by the ids of their scenarios;
	// the search uses the seeds of these again. A later input replaces the
	// invariants; what was explored stays explored.
	InputInvariants InputKind = "invariants"
	// InputResult hands over a finished run.
	InputResult InputKind = "result"
	// InputLost says that the run of a scenario ended without a result.
	InputLost InputKind = "lost"
	// InputAsk asks for up to Slots scenarios to run now.
	InputAsk InputKind = "ask"
)

// Input is one step of the search. The log of inputs and the Config determine
// every Ready.
type Input struct {
	Kind       InputKind         `json:"kind"`
	Invariants []model.Invariant `json:"invariants,omitempty"`
	Results    []model.RunResult `json:"results,omitempty"`
	Result     *model.RunResult  `json:"result,omitempty"`
	Scenario   string            `json:"scenario,omitempty"`
	Slots      int               `json:"slots,omitempty"`
}

// Ready is the answer to an Input.
type Ready struct {
	// Scenarios are those to run, in answer to an InputAsk only. Each is
	// outstanding until an InputResult or InputLost names it.
	Scenarios []model.Scenario `json:"scenarios,omitempty"`
	// Mine says that all clean runs have ended and the search waits for an
	// InputInvariants.
	Mine bool `json:"mine,omitempty"`
	// Done says that no scenario is outstanding and none will follow.
	Done bool `json:"done,omitempty"`
	// Why says in a sentence why the search is done, or why there are fewer
	// Scenarios than Slots.
	Why string `json:"why,omitempty"`
}

// issued is a scenario that was handed out.
type issued struct {
	s      model.Scenario
	pair   *pair    // cofi only
	likes  []like   // what it stands for beside the pair
	target *known   // the class it should heal at, if any
	never  bool     // no message heals
	use    *seedUse // how its seed did so far, nil for one drawn anew
	clean  bool     // one of the Config.Clean first runs
	again  int      // times it was handed out again
}

// Core is the state of a campaign's search. It is not safe for concurrent use.
type Core struct {
	cfg   Config
	err   error
	rules []policy.Rule
	// next numbers scenarios. out holds those that run now; lost holds those to
	// hand out again, in the order in which they were lost.
	next int
	out  map[string]*issued
	lost []*issued
	// handed holds all that were ever handed out, by id.
	handed map[string]*issued

	cleanOut, cleanBack int
	faultOut            int
	// runs counts all finished runs that told which states they met.
	runs int
	// clean are those of them that had nothing to cut, by the states that each met.
	clean      []map[metKey]bool
	longest    time.Duration
	mined      bool
	recordings int // clean runs handed out to record states (line 1)

	invariants []model.Invariant // to be explored, sorted by id
	states     map[metKey]*stateInfo
	pairs      map[pairKey]*pair
	order      []*pair // as found
}

// NewCore starts a search. If Validate refuses the configuration, every Ready is
// Done, with the error as Why.
func NewCore(cfg Config) *Core {
	return &Core{
		cfg: cfg, err: cfg.Validate(), rules: policy.Rules(), longest: bound(cfg),
		out: map[string]*issued{}, handed: map[string]*issued{}, states: map[metKey]*stateInfo{}, pairs: map[pairKey]*pair{},
	}
}

// bound is how long workloads are, as far as that is known before any run: nothing is if clean
// runs come first.
func bound(cfg Config) time.Duration {
	if cfg.Clean > 0 {
		return 0
	}
	return cfg.Workload
}

// Step takes one input and returns what follows from it.
func (c *Core) Step(in Input) Ready {
	if c.err != nil {
		return Ready{Done: true, Why: c.err.Error()}
	}
	var r Ready
	switch in.Kind {
	case InputInvariants:
		c.setInvariants(in.Invariants)
		for _, res := range in.Results {
			c.recordStates(res)
		}
	case InputResult:
		if in.Result != nil {
			c.result(*in.Result)
		}
	case InputLost:
		c.giveBack(in.Scenario, "its run was lost")
	case InputAsk:
		for len(r.Scenarios) < in.Slots {
			s, why, ok := c.hand()
			if !ok {
				r.Why = why
				break
			}
			r.Scenarios = append(r.Scenarios, s)
		}
	default:
		r.Why = fmt.Sprintf("unknown input %q is ignored: use invariants, result, lost or ask", in.Kind)
	}
	r.Mine = c.waitsForInvariants()
	if len(c.out) == 0 && len(c.lost) == 0 && !r.Mine && len(r.Scenarios) == 0 {
		if why, done := c.finished(); done {
			r.Done, r.Why = true, why
		}
	}
	return r
}

// hand issues the next scenario; if there is none now, why says why.
func (c *Core) hand() (model.Scenario, string, bool) {
	if len(c.lost) > 0 {
		is := c.lost[0]
		c.lost = c.lost[1:]
		return c.issue(is), "", true
	}
	if c.cleanOut < c.cfg.Clean {
		c.cleanOut++
		is := c.scenario(model.StrategyClean, fmt.Sprintf("clean run %d of %d: nothing is cut", c.cleanOut, c.cfg.Clean))
		is.clean = true
		return c.issue(is), "", true
	}
	if c.cfg.Strategy == model.StrategyClean {
		return model.Scenario{}, "all clean runs are handed out", false
	}
	if c.cleanBack < c.cleanOut {
		return model.Scenario{}, fmt.Sprintf("waiting for %s", model.Count(c.cleanOut-c.cleanBack, "clean run", "clean runs")), false
	}
	if c.waitsForInvariants() {
		return model.Scenario{}, "waiting for the invariants mined from the clean runs", false
	}
	if c.faultOut >= c.cfg.Runs {
		return model.Scenario{}, c.spent(), false
	}
	if c.cfg.Strategy == model.StrategyRandom {
		c.faultOut++
		return c.issue(c.randomScenario()), "", true
	}
	return c.handCoFI()
}

func (c *Core) spent() string {
	return fmt.Sprintf("the budget of %d fault runs is spent", c.cfg.Runs)
}

// waitsForInvariants: random needs none, but a first InputInvariants lets its
// runs record the same states as those of cofi, so both ask for it.
func (c *Core) waitsForInvariants() bool {
	return c.cfg.Strategy != model.StrategyClean && !c.mined && c.cleanOut >= c.cfg.Clean && c.cleanBack >= c.cleanOut
}

// finished says why nothing follows, given that nothing is outstanding.
func (c *Core) finished() (string, bool) {
	switch {
	case c.cleanOut < c.cfg.Clean:
		return "", false
	case c.cfg.Strategy == model.StrategyClean:
		return fmt.Sprintf("all %d clean runs are back", c.cfg.Clean), true
	case c.faultOut >= c.cfg.Runs:
		return c.spent(), true
	case c.cfg.Strategy == model.StrategyRandom:
		return "", false
	}
	return c.finishedCoFI()
}

func (c *Core) issue(is *issued) model.Scenario {
	c.out[is.s.ID], c.handed[is.s.ID] = is, is
	return is.s
}

// scenario starts a new one. Its id and seed depend on its number alone.
func (c *Core) scenario(st model.Strategy, why string) *issued {
	c.next++
	return &issued{s: model.Scenario{
		ID: fmt.Sprintf("s%04d", c.next), Strategy: st, Seed: c.draw(seedStream).Uint64(),
		Observe: slices.Clone(c.invariants), Why: why,
	}}
}

// result learns from a finished run. A result of no outstanding scenario (a
// duplicate, a replay) is ignored.
func (c *Core) result(r model.RunResult) {
	is := c.out[r.Scenario]
	if is == nil {
		return
	}
	if r.Verdict.Value == model.VerdictUnknown && !r.GivenUp && is.again < c.cfg.Retries {
		c.giveBack(r.Scenario, "its run could not be judged")
		return
	}
	delete(c.out, r.Scenario)
	c.longest = max(c.longest, r.Duration)
	if is.clean {
		c.cleanBack++
	}
	if len(is.s.Observe) > 0 {
		c.recordStates(r)
	}
	if is.pair != nil {
		if r.Reached && len(r.Or) > 0 {
			is.pair.renamed++
		}
		is.pair.learn(is, engine.InTerms(r, is.s), c.cfg.Retries)
		if !r.Reached {
			c.states[is.pair.metKey()].missed++
			c.missed(is)
			if is.use != nil {
				is.use.missed++
			}
		}
	}
}

// giveBack hands a scenario out again, or gives it up.
func (c *Core) giveBack(id, why string) {
	is := c.out[id]
	if is == nil {
		return
	}
	delete(c.out, id)
	if is.again < c.cfg.Retries {
		is.again++
		c.lost = append(c.lost, is)
		return
	}
	if is.clean {
		c.cleanBack++
	}
	if is.pair != nil {
		is.pair.running = false
		is.pair.closed = fmt.Sprintf("given up: %s %d times", why, is.again+1)
	}
}
