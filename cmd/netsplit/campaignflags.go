package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
)

// campaignFlags say what a campaign is.
type campaignFlags struct {
	spec      wire.CampaignSpec
	budget    time.Duration
	args      map[string]string
	maxLost   int
	maxWindow time.Duration
	shrink    int
	how       exploreFlags
}

// of is the campaign on a target that the flags ask for.
func (w *campaignFlags) of(c *cobra.Command, target string) (wire.CampaignSpec, error) {
	spec := w.spec
	if err := errors.Join(requireCount(c, "labs", "clean", "faults", "retries"), requirePositive(c, "budget")); err != nil {
		return spec, err
	}
	spec.Target, spec.Args, spec.Budget = target, w.args, wire.Span(w.budget)
	if c.Flags().Changed("shrink") {
		spec.Shrink = &w.shrink
	}
	if c.Flags().Changed("max-lost") {
		spec.MaxLost = &w.maxLost
	}
	if c.Flags().Changed("max-window") {
		window := wire.Duration(w.maxWindow)
		spec.MaxWindow = &window
	}
	err := w.how.apply(c, &spec)
	return spec, err
}

func (w *campaignFlags) register(c *cobra.Command) {
	f, spec := c.Flags(), &w.spec
	w.how.register(c, spec)
	f.IntVar(&w.shrink, "shrink", 3, "sequences: at the end, how often to try the smallest sequence of each cause without each of its steps (0: do not)")
	f.Uint64Var(&spec.Seed, "seed", 0, "drives every random choice (0: one is chosen and recorded)")
	labsFlag(f, &spec.Labs)
	f.StringSliceVar(&spec.Needs, "needs", nil, "what a runner must have for the runs: tags, cores=N, memory=SIZE (netsplit cluster runners)")
	f.IntVar(&spec.Clean, "clean", 3, "clean runs before the fault runs")
	f.IntVar(&spec.Runs, "faults", 20, "fault runs at most")
	f.DurationVar(&w.budget, "budget", 0, "stop the campaign after this time, without that in the queue (default: never)")
	f.StringVar(&spec.Effect, "effect", "drop", "what a cut does: drop or reset")
	f.StringVar(&spec.Gate, "gate", "", gateHelp)
	f.IntVar(&spec.Retries, "retries", 2, "how often a state that did not recur is tried again")
	f.StringToStringVar(&w.args, "set", nil, "settings of the target, name=value")
	f.IntVar(&w.maxLost, "max-lost", 0, "your bound on documented losses; more losses are a broken promise")
	f.DurationVar(&w.maxWindow, "max-window", 0, "your bound on the time between the first and the last documented loss")
	f.BoolVar(&spec.StopWhenSuspect, "stop-when-suspect", false, "stop at the first sign of a wrong target file, with exit status 4")
	f.BoolVar(&spec.StopWhenBroken, "stop-when-broken", false, "stop at the first broken promise that no clean run showed")
}
