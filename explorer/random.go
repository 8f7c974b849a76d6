package explorer

import (
	"fmt"
	"math/rand/v2"

	"netsplit/explorer/policy"
	"netsplit/model"
)

// Streams keep the draws for one purpose apart from those for another.
const (
	seedStream   = 1 << 32 // seed of a scenario
	randomStream = 2 << 32 // node and offsets of a random scenario
)

// draw is the generator of the current scenario for one purpose. It depends on
// the campaign's seed and the scenario's number only, so that what was drawn
// before, and in which order runs came back, do not matter.
func (c *Core) draw(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.cfg.Seed, stream+uint64(c.next)))
}

// randomScenario is the baseline of CoFI §5.1.3: a node and two offsets, drawn
// beforehand. The longest workload seen so far bounds the offsets. MaxCut does
// not apply: the paper's baseline knows none.
func (c *Core) randomScenario() *issued {
	is := c.scenario(model.StrategyRandom, "")
	r := c.draw(randomStream)
	node := policy.Node(r, c.cfg.Nodes)
	step := c.isolating(node)
	step.When.At, step.Until.At = policy.Offsets(r, c.longest)
	is.s.Steps = []model.Step{step}
	is.s.Why = fmt.Sprintf("random: isolate %s from %s to %s after the start of the workload", node, step.When.At, step.Until.At)
	return is
}
