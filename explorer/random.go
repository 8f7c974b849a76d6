package explorer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"netsplit/explorer/policy"
	"netsplit/model"
)

// Streams keep the draws for one purpose apart from those for another.
const (
	seedStream   = 1 << 32 // seed of a scenario
	randomStream = 2 << 32 // faults of a random scenario
)

// Random is what a random scenario is drawn from.
type Random struct {
	// Depth is the most faults of a scenario; 0: 1.
	Depth int
	// Kinds are the kinds of faults; none: one isolated node.
	Kinds []model.PointFaultKind
	// Steps plays a fault of a kind at a node, and at a peer if it is of two nodes, between two
	// times of the workload. It is needed with Kinds.
	Steps func(kind model.PointFaultKind, node, peer model.NodeID, from, to time.Duration) []model.Step
}

// draw is the generator of the current scenario for one purpose. It depends on
// the campaign's seed and the scenario's number only, so that what was drawn
// before does not matter. Offsets also depend on the longest workload so far.
func (c *Core) draw(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.cfg.Seed, stream+uint64(c.next)))
}

// randomScenario is the baseline of CoFI §5.1.3: a node and two offsets, drawn
// beforehand. The longest workload seen so far bounds the offsets. MaxCut does
// not apply: the paper's baseline knows none. With a depth or kinds of faults it is what
// Jepsen's nemeses do: that many faults, each of a kind, at a node and between two offsets of
// its own.
func (c *Core) randomScenario() *issued {
	is := c.scenario(model.StrategyRandom, "")
	r := c.draw(randomStream)
	n := 1
	if c.cfg.Random.Depth > 1 {
		n += r.IntN(c.cfg.Random.Depth)
	}
	var why []string
	for range n {
		steps, said := c.randomFault(r)
		is.s.Steps, why = append(is.s.Steps, steps...), append(why, said)
	}
	is.s.Why = fmt.Sprintf("random: %s after the start of the workload", strings.Join(why, "; "))
	return is
}

// randomFault draws a fault, and says it in words.
func (c *Core) randomFault(r *rand.Rand) ([]model.Step, string) {
	kinds := c.cfg.Random.Kinds
	node := policy.Node(r, c.cfg.Nodes)
	from, to := policy.Offsets(r, cmp.Or(c.longest, c.cfg.Workload))
	if len(kinds) == 0 {
		step := c.isolating(node)
		step.When.At, step.Until.At = from, to
		return []model.Step{step}, fmt.Sprintf("isolate %s from %s to %s", node, from, to)
	}
	kind, peer := kinds[r.IntN(len(kinds))], node
	for len(c.cfg.Nodes) > 1 && peer == node {
		peer = policy.Node(r, c.cfg.Nodes)
	}
	steps := c.cfg.Random.Steps(kind, node, peer, from, to)
	return steps, fmt.Sprintf("%s from %s to %s", steps[0].Do.String(), from, to)
}
