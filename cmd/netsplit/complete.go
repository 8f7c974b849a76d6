package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// completeLimit is how long a shell waits for the names that a daemon has.
const completeLimit = 500 * time.Millisecond

// names lists what an argument may be. A shell that completes it gets them from the daemon
// that the command would ask, and nothing if that does not answer soon.
type names func(ctx context.Context, cl *client.Client) ([]string, error)

// completes has the first argument of a command completed, or with more set, all.
func (d *daemonFlags) completes(c *cobra.Command, more bool, list names) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !more {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
		defer cancel()
		cl, err := d.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out, err := list(ctx, cl)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	return c
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
