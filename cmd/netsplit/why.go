package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/campaign/judge"
	"netsplit/inference/invariant"
)

// whyCommand is "invariants why": what the miner made of every pair.
func whyCommand() *cobra.Command {
	var only string
	c := &cobra.Command{
		Use: "why CAMPAIGN_DIR", Short: "explain for each pair of variables why it is an invariant or not",
		Long: "Mines the recorded clean runs of a campaign again, offline, and lists every pair of variables of one kind. " +
			"For a pair that was not kept it says what is missing, at the message where the pair came nearest to an invariant. " +
			"A weak invariant may be chance; a campaign uses weak ones only if it has no others.",
		Args: exactArgs(1, "the directory of a campaign's records"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := judge.Remine(args[0])
			if err != nil {
				return err
			}
			t := newTable(c.OutOrStdout(), "A", "B", "KEPT?", "WHY")
			kept, points, rejected, scarce := 0, 0, 0, 0
			for _, k := range r.Kept {
				if concerns(only, k.A.String(), k.B.String()) {
					kept++
					points += len(k.Points)
					how := "yes"
					if k.Chance > invariant.DefaultMaxChance {
						how = "weak"
					}
					with := ""
					if k.Like > 0 {
						with = fmt.Sprintf(", together with %d like it, on nodes with the same processes", k.Like)
					}
					t.row(k.A, k.B, how, fmt.Sprintf("equal in %d samples of %d runs, %d changes, at %d message types; by chance with p %.1g%s",
						k.Support, k.Runs, k.Changes, len(k.Points), k.Chance, with))
				}
			}
			for _, x := range r.Rejected {
				if concerns(only, x.A.String(), x.B.String()) {
					rejected++
					scarce += judge.Scarce([]invariant.Rejected{x})
					t.row(x.A, x.B, "no", lack(x, len(r.Runs)))
				}
			}
			if err := t.end(); err != nil {
				return err
			}
			for _, lack := range r.Torn {
				fmt.Fprintf(c.ErrOrStderr(), "netsplit: clean run %s; it was not mined\n", lack)
			}
			if kept+rejected == 0 {
				fmt.Fprintln(c.OutOrStdout(), "No pair: two nodes must have variables of one kind, about the same host or thing, seen before a message is sent from one to the other and after it arrived.")
			}
			fmt.Fprintf(c.OutOrStdout(), "%d clean runs; %d pairs kept, %d if each message type counts, as in the CoFI paper; %d not kept, of which %d changed and never differed\n", len(r.Runs), kept, points, rejected, scarce)
			return nil
		},
	}
	c.Flags().StringVar(&only, "about", "", "only pairs that contain this text, such as a variable's name")
	return c
}

func concerns(text, a, b string) bool { return strings.Contains(a, text) || strings.Contains(b, text) }

// lack says in words what a pair lacks.
func lack(x invariant.Rejected, runs int) string {
	at := fmt.Sprintf("at %s %s → %s", x.Point.Type, x.Point.From, x.Point.To)
	switch x.Lack {
	case invariant.LackAgreement:
		v := x.Counter.Values
		return fmt.Sprintf("differ in %d of %d samples %s, first in %s, message %d: %q and %q", x.Differ, x.Differ+x.Support, at, x.Counter.Run, x.Counter.Message, v[0].Value, v[1].Value)
	case invariant.LackRuns:
		return fmt.Sprintf("sampled in %d of %d runs %s; %d are needed", x.Runs, runs, at, invariant.DefaultMinRuns)
	case invariant.LackSupport:
		return fmt.Sprintf("only %d samples %s; %d are needed", x.Support, at, invariant.DefaultMinSupport)
	case invariant.LackChanges:
		return fmt.Sprintf("always equal %s, but with only %d changes; %d are needed, in two runs, because a constant shows no agreement", at, x.Changes, invariant.DefaultMinChanges)
	}
	return fmt.Sprintf("always equal %s, but with only %d changes that may be chance (p %.1g after correction)", at, x.Changes, x.Chance)
}
