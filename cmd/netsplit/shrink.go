package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

func shrinkCommand(conn *daemonFlags) *cobra.Command {
	var n, labs int
	var runsDir, gate, file string
	var show progressFlags
	var o output
	c := &cobra.Command{
		Use:   "shrink RUN",
		Short: "find which steps of a failed run the failure needs, and the smallest scenario",
		Long: `Tries the scenario of a failed run without its steps (delta debugging), -n times
each, with the target, release, settings and seed of that run. It says of each step
whether the failure needs it, and writes the smallest scenario that failed to --out,
for netsplit run --scenario.

A step is not needed if the scenario failed without it. It is needed if the scenario
failed with it and never without it, so often that chance is unlikely (below 5 %).`,
		Args: exactArgs(1, "a run's id"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := requireCount(c, "times", "labs"); err != nil {
				return err
			}
			if err := storeIn(runsDir); err != nil {
				return err
			}
			spec := wire.CampaignSpec{Replay: args[0], Shrink: &n, Labs: labs, Gate: gate}
			if file == "-" && o != outTable {
				return usage("--out - and -o %s both print: leave one out; the campaign has the smallest scenario", &o)
			}
			if file == "" {
				file = smallestFile(args[0])
			}
			return conn.campaign(c, runsDir, spec, show, func(p *progress, camp wire.Campaign) {
				p.say("%s tries %s without its steps on %s", camp.ID, spec.Replay, madeOn(camp.Spec))
			}, func(m made) error { return tellShrunk(c.OutOrStdout(), m, file, o) })
		},
	}
	c.Flags().IntVarP(&n, "times", "n", 3, "how often each scenario is tried")
	labsFlag(c.Flags(), &labs)
	c.Flags().StringVar(&gate, "gate", "", "port or packet-in (default: as the run's campaign asked for)")
	c.Flags().StringVar(&file, "out", "", "file for the smallest scenario, - for standard output (default RUN.smallest.yaml)")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the run's record is, for work in this process")
	o.registerEnd(c.Flags())
	show.register(c.Flags())
	conn.register(c)
	return c
}

// smallestFile is where the smallest scenario of a run is written unless a user says so.
func smallestFile(run string) string { return run + ".smallest.yaml" }

// tellShrunk tells which steps a failure needs, and writes the smallest scenario.
func tellShrunk(out io.Writer, m made, file string, o output) error {
	camp := m.campaign
	words := out
	if o != outTable {
		words = io.Discard
		if err := printOne(o, out, camp, nil); err != nil {
			return err
		}
	}
	for _, x := range camp.Shrunk {
		printShrunk(words, &x)
		if x.Smallest == nil {
			continue
		}
		b, err := scenarioYAML(&x)
		if err != nil {
			return err
		}
		if file == "-" {
			fmt.Fprintf(words, "\n%s", b)
			continue
		}
		if err := renameio.WriteFile(file, b, outputMode); err != nil { // no link is followed
			return err
		}
		fmt.Fprintf(words, "smallest scenario: %s\n", file)
	}
	if camp.Reason != "" && camp.State != string(model.CampaignFailed) {
		fmt.Fprintln(words, camp.Reason)
	}
	if m.dir != "" {
		fmt.Fprintf(words, "records: %s\n", filepath.Join(m.dir, camp.ID))
	}
	if err := m.ended("shrinking " + camp.Spec.Replay); err != nil {
		return err
	}
	if len(camp.Shrunk) == 0 || camp.Shrunk[0].All.Failed == 0 {
		return &exitError{exitUndecided, fmt.Errorf("nothing is known of what the failure of %s needs", camp.Spec.Replay)}
	}
	return nil
}

func printShrunk(out io.Writer, x *wire.Shrunk) {
	of := func(t wire.Tally) string {
		s := fmt.Sprintf("%d of %d", t.Failed, t.Tries)
		if t.Idle > 0 {
			s += fmt.Sprintf(" (%d say nothing)", t.Idle)
		}
		return s
	}
	fmt.Fprintf(out, "%s: %s\n", x.Run, x.Cause)
	fmt.Fprintf(out, "failed in %s tries with all %s, in %s without any; %d tries in all\n", of(x.All), model.Count(len(x.Steps), "step", "steps"), of(x.None), x.Made)
	for _, s := range x.Steps {
		fmt.Fprintf(out, "  step %d: %s\n", s.Step, s.Text)
		switch model.Needed(s.Needed) {
		case model.NeededYes:
			fmt.Fprintf(out, "    needed: failed in %s with it, in %s without\n", of(s.With), of(s.Without))
		case model.NeededNo:
			fmt.Fprintf(out, "    not needed: failed in %s without it\n", of(s.Without))
		default:
			fmt.Fprintf(out, "    unknown: failed in %s with it, in %s without: %s\n", of(s.With), of(s.Without), s.Why)
		}
	}
	switch {
	case x.Smallest != nil:
		fmt.Fprintf(out, "smallest: %d of %s, failed in %s\n", len(x.Keep), model.Count(len(x.Steps), "step", "steps"), of(x.Least))
	case x.All.Failed > 0:
		fmt.Fprintln(out, "smallest: none of the steps: it fails without a fault")
	}
	if x.Why != "" {
		fmt.Fprintf(out, "not all was tried: %s\n", x.Why)
	}
}

// scenarioYAML is the smallest scenario as a file, with what it is as a comment.
func scenarioYAML(x *wire.Shrunk) ([]byte, error) {
	b, err := json.Marshal(x.Smallest)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil { // which keeps the order of the keys
		return nil, err
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) {
		n.Style = 0
		for _, c := range n.Content {
			plain(c)
		}
	}
	plain(&doc)
	var out bytes.Buffer
	fmt.Fprintf(&out, "# The smallest part of %s that failed, in %d of %d tries: steps %s of %d.\n# %s\n", x.Run, x.Least.Failed, x.Least.Tries,
		strings.Trim(fmt.Sprint(x.Keep), "[]"), len(x.Steps), model.OneLine(x.Cause))
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// maxCauses are told at the end of a search; the report has all.
const maxCauses = 10

// printCauses tells of what the failed runs of a search are, a few lines each.
func printCauses(ctx context.Context, out io.Writer, cl *client.Client, campaign string) error {
	page, err := cl.Causes(ctx, campaign, maxCauses, "")
	if err == nil && len(page.Items) > 0 {
		tellCauses(out, page)
	}
	return err
}

func tellCauses(out io.Writer, page wire.Causes) {
	more := ""
	if page.Next != "" {
		more = fmt.Sprintf(", the first %d", maxCauses)
	}
	fmt.Fprintf(out, "\ncauses of failed runs, the costliest first%s\n", more)
	for i := range page.Items {
		c := &page.Items[i]
		fmt.Fprintf(out, "  %d. %s\n     %s\n", i+1, c.Rule, causeLine(c))
		for k, s := range c.Steps {
			fmt.Fprintf(out, "     %d) %s\n", k+1, s)
		}
		if x := c.Shrunk; x != nil && x.All.Failed > 0 {
			fmt.Fprintf(out, "     %s\n", needLine(x))
		}
	}
}

// needLine says which faults of a scenario a failure needs. A fault may take several steps.
func needLine(x *wire.Shrunk) string {
	by := map[model.Needed][]string{}
	for _, s := range x.Steps {
		by[model.Needed(s.Needed)] = append(by[model.Needed(s.Needed)], fmt.Sprint(s.Step))
	}
	var out []string
	for _, n := range []struct {
		is    model.Needed
		words string
	}{{model.NeededYes, "needs"}, {model.NeededUnknown, "may need"}, {model.NeededNo, "does not need"}} {
		if len(by[n.is]) > 0 {
			out = append(out, n.words+" "+strings.Join(by[n.is], ", "))
		}
	}
	return fmt.Sprintf("of the %s of its scenario it %s; failed in %d of %d tries of the smallest part", model.Count(len(x.Steps), "step", "steps"), strings.Join(out, ", "), x.Least.Failed, x.Least.Tries)
}

func causeLine(c *wire.Cause) string {
	s := "after no fault"
	if c.Fault != "" {
		s = "after " + c.Fault
	}
	if len(c.Missing) > 0 {
		s += ", missing " + strings.Join(c.Missing, ", ")
	}
	s += fmt.Sprintf("; in %s, smallest %s", model.Count(c.Seen, "run", "runs"), c.Run)
	if c.Replays > 0 {
		s += fmt.Sprintf(", replayed %d of %d", c.Reproduced, c.Replays)
	}
	if c.Clean {
		s += "; also without any fault"
	}
	return s
}
