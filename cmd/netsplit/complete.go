package main

import (
	"context"
	"math"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
)

// completeLimit is how long a shell waits for the names that a daemon has.
const completeLimit = 500 * time.Millisecond

// names lists what an argument may be. A shell that completes it gets them from the daemon
// that the command would ask, and nothing if that does not answer soon.
type names func(ctx context.Context, cl *client.Client) ([]string, error)

// known are the names that the daemon has which the command would ask.
func (d *daemonFlags) known(list names) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
	defer cancel()
	cl, err := d.client()
	if err != nil {
		return nil
	}
	out, err := list(ctx, cl)
	if err != nil {
		return nil
	}
	return out
}

// targets are the names of targets that a command may take.
func (d *daemonFlags) targets() []string {
	if list := d.known(targetNames); list != nil {
		return list
	}
	return sut.Builtin(targets.FS)
}

// What a shell does with names: it keeps their order, and offers files besides, or not.
const (
	noFiles = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	orFiles = cobra.ShellCompDirectiveKeepOrder
)

// completes has the first argument of a command completed, or with more set, all.
func (d *daemonFlags) completes(c *cobra.Command, more bool, list names) *cobra.Command {
	last := 1
	if more {
		last = math.MaxInt
	}
	return completed(c, 1, last, noFiles, func() []string { return d.known(list) })
}

// completesRecord has the first argument of a command completed that takes an id, or a folder.
func (d *daemonFlags) completesRecord(c *cobra.Command, list names) *cobra.Command {
	return completed(c, 1, 1, orFiles, func() []string { return d.known(list) })
}

// completesTarget has the nth argument of a command completed that is the name of a target, or
// a path.
func (d *daemonFlags) completesTarget(c *cobra.Command, nth int) *cobra.Command {
	return completed(c, nth, nth, orFiles, d.targets)
}

// completed has the arguments from first to last, counted from 1, be one of a list.
func completed(c *cobra.Command, first, last int, also cobra.ShellCompDirective, list func() []string) *cobra.Command {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if n := len(args) + 1; n < first || n > last {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list(), also
	}
	return c
}

// completeFlags has flags completed that mean the same in all commands.
func (d *daemonFlags) completeFlags(root *cobra.Command) {
	for name, list := range map[string]func() []string{
		"campaign": func() []string { return d.known(campaignNames) },
		"schedule": func() []string { return d.known(scheduleNames) },
		"target":   d.targets,
		"on":       func() []string { return append(d.known(campaignNames), d.targets()...) },
		outputFlag: func() []string { return []string{string(outTable), string(outJSON), string(outLines)} },
	} {
		also := noFiles
		if name == "target" || name == "on" {
			also = orFiles
		}
		complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return list(), also }
		for c := range commands(root) {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, complete) // fails only without the flag
			}
		}
	}
}

func named[T any](list []T, name func(*T) string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = name(&list[i])
	}
	return out
}

func campaignNames(ctx context.Context, cl *client.Client) ([]string, error) {
	p, err := cl.Campaigns(ctx, wire.CampaignFilter{}, 200, "")
	return named(p.Items, func(c *wire.Campaign) string { return c.ID }), err
}

func runNames(ctx context.Context, cl *client.Client) ([]string, error) {
	p, err := cl.Runs(ctx, wire.RunFilter{}, 200, "")
	return named(p.Items, func(r *wire.RunRow) string { return r.ID }), err
}

// reportNames are those of campaigns and of runs.
func reportNames(ctx context.Context, cl *client.Client) ([]string, error) {
	campaigns, err := campaignNames(ctx, cl)
	if err != nil {
		return nil, err
	}
	runs, err := runNames(ctx, cl)
	return append(campaigns, runs...), err
}

func liveRunNames(ctx context.Context, cl *client.Client) (out []string, err error) {
	p, err := cl.Campaigns(ctx, wire.CampaignFilter{State: string(model.CampaignRunning)}, 200, "")
	for _, c := range p.Items {
		out = append(out, c.Running...)
	}
	return out, err
}

func findingNames(ctx context.Context, cl *client.Client) ([]string, error) {
	p, err := cl.Findings(ctx, "", 200, "")
	return named(p.Items, func(f *wire.Finding) string { return f.ID }), err
}

func scheduleNames(ctx context.Context, cl *client.Client) ([]string, error) {
	list, err := cl.Schedules(ctx)
	return named(list, func(s *wire.Schedule) string { return s.Name }), err
}

func partitionNames(ctx context.Context, cl *client.Client) ([]string, error) {
	p, err := cl.Partitions(ctx, 200, "")
	return named(p.Items, func(s *wire.PartitionStatus) string { return s.Name }), err
}

func targetNames(ctx context.Context, cl *client.Client) ([]string, error) {
	list, err := cl.Targets(ctx)
	return named(list, func(t *wire.Target) string { return t.Name }), err
}

func uploadNames(ctx context.Context, cl *client.Client) (out []string, err error) {
	list, err := cl.Targets(ctx)
	for _, t := range list {
		if t.Uploaded {
			out = append(out, t.Name)
		}
	}
	return out, err
}

func failureNames(ctx context.Context, cl *client.Client) ([]string, error) {
	p, err := cl.FindingHistories(ctx, "", "", 200, "")
	return named(p.Items, func(h *wire.FindingHistory) string { return h.ID }), err
}

func hostNames(ctx context.Context, cl *client.Client) ([]string, error) {
	list, err := cl.Hosts(ctx)
	return named(list, func(h *wire.Host) string { return h.Name }), err
}

// invariantNames lists the invariants of a target, of all if that is "", which are not pinned or
// dropped as the command would.
func invariantNames(target *string, status model.InvariantStatus) names {
	return func(ctx context.Context, cl *client.Client) (out []string, err error) {
		list, err := cl.Invariants(ctx, targetName(*target))
		for _, i := range list {
			if i.Status != string(status) {
				out = append(out, i.ID+"\t"+model.OneLine(i.Text)) // a shell shows the text
			}
		}
		return out, err
	}
}
