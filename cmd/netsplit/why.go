package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/campaign/judge"
)

// whyCommand is "invariants why": what the miner made of every pair.
func whyCommand(conn *daemonFlags) *cobra.Command {
	var about string
	var o output
	c := &cobra.Command{
		Use: "why CAMPAIGN_DIR", Short: "explain for each pair of variables why it is an invariant or not",
		Long: "Mines the recorded clean runs of a campaign again, offline, and lists every pair of variables of one kind. " +
			"For a pair that was not kept it says what is missing, at the message where the pair came nearest to an invariant. " +
			"A weak invariant may be chance; a campaign uses weak ones only if it has no others. " +
			"With --api a daemon does so for the campaign of an id.",
		Args: exactArgs(1, "the directory of a campaign's records, or with --api its id"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := conn.pairs(c, args[0], about)
			if err != nil {
				return err
			}
			for _, lack := range p.Torn {
				fmt.Fprintf(c.ErrOrStderr(), "netsplit: clean run %s; it was not mined\n", lack)
			}
			return printOne(o, c.OutOrStdout(), p, printPairsMined)
		},
	}
	c.Flags().StringVar(&about, "about", "", "only pairs that contain this text, such as a variable's name")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func (d *daemonFlags) pairs(c *cobra.Command, campaign, about string) (out wire.MinedPairs, err error) {
	if !d.named(c) {
		m, err := judge.Pairs(campaign, about)
		return wire.FromMinedPairs(m), err
	}
	err = d.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
		out, err = cl.MinedPairs(ctx, campaign, about)
		return err
	})
	return out, err
}

func printPairsMined(out io.Writer, p wire.MinedPairs) error {
	t := newTable(out, "A", "B", "KEPT?", "WHY")
	for _, x := range p.Items {
		t.row(x.A, x.B, x.Kept, x.Why)
	}
	if err := t.end(); err != nil {
		return err
	}
	if len(p.Items) == 0 {
		fmt.Fprintln(out, "No pair: two nodes must have variables of one kind, about the same host or thing, seen before a message is sent from one to the other and after it arrived.")
	}
	fmt.Fprintf(out, "%d clean runs; %d pairs kept, %d if each message type counts, as in the CoFI paper; %d not kept, of which %d changed and never differed\n", p.CleanRuns, p.Kept, p.Points, p.Rejected, p.Scarce)
	return nil
}
