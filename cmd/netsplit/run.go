package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
	"netsplit/model"
)

func runCommand(conn *daemonFlags) *cobra.Command {
	var spec wire.CampaignSpec
	var file, runsDir string
	var args map[string]string
	var show progressFlags
	var ci ciFlags
	var o output
	c := &cobra.Command{
		Use:   "run TARGET --scenario FILE",
		Short: "run one scenario: cuts, and faults of single messages, step by step",
		Long: `Runs a scenario on a target, -n times, and judges each run. FILE (YAML or JSON, -
is standard input) says what to do:

    steps:
      - when: {state: {invariant: "status[n1]@n2 == status[n1]@n3", state: {a: LEFT, b: NORMAL}}}
        do: {isolate: n3}
        until: {message: {type: "text G*", from: n3}}
      - when: {follows: end, after: 1s}
        do: {cut: {shape: partial, groups: [[n1], [n2]]}}
        until: {after: 2s}
      - do: {message: {kind: delay, for: 500ms, match: {type: "text G*", to: n1}, nth: 3}}

A step begins when its moment comes: when the step before it has begun or ended
(follows), after a time, at a state, at a message; without when, as the workload
starts. It ends at its until, after max at the latest, or with the workload. It cuts
(isolate, or cut with any shape), or acts on single messages: delay, duplicate,
reorder or lose the nth that matches (from 1), with every: k every k-th from there,
at most times times, with while only while an invariant is violated. Several may act
at once. In a type, * is any text. from and to default to any host.
docs/scenario-reference.md lists all keys.

TCP retransmits a lost packet; the record counts that. lose: message loses a
message for good and resets its connection. docs/message-faults.md says what else
TCP hides. A run in which a step never began, or did not meet its message, is vacuous.

Your running daemon does the work. Without one, this command does it in labs on
this machine (root) and keeps the records in --runs-dir.`,
		Args: exactArgs(1, "a target's name or file"),
		RunE: func(c *cobra.Command, names []string) error {
			if err := requireCount(c, "labs", "times"); err != nil {
				return err
			}
			if file == "" {
				return usage("say what to do: --scenario FILE; see netsplit run --help")
			}
			if err := ci.read(); err != nil {
				return err
			}
			sc, err := readScenario(file, c.InOrStdin())
			if err != nil {
				return err
			}
			spec.Target, spec.Args, spec.Scenario = names[0], args, sc.spec
			return sc.located(conn.campaign(c, runsDir, spec, show, func(p *progress, _ wire.Campaign) { p.where = sc.where }, func(m made) error {
				if o == outTable {
					if err := printFaults(context.WithoutCancel(c.Context()), c.OutOrStdout(), m); err != nil {
						return err
					}
				}
				return summarise(c, m, &ci, o)
			}))
		},
	}
	f := c.Flags()
	f.StringVar(&file, "scenario", "", "file that says what to do")
	f.IntVarP(&spec.Runs, "times", "n", 1, "how often to run it")
	f.Uint64Var(&spec.Seed, "seed", 0, "drives every random choice (0: one is chosen and recorded)")
	labsFlag(f, &spec.Labs)
	f.StringVar(&spec.Gate, "gate", "", gateHelp)
	f.StringToStringVar(&args, "set", nil, "settings of the target, name=value")
	f.StringVar(&runsDir, "runs-dir", "", "keep records here and do the work in this process")
	ci.register(f)
	o.registerEnd(f)
	show.register(f)
	conn.register(c)
	return c
}

func readScenario(file string, stdin io.Reader) (*scenarioFile, error) {
	var b []byte
	var err error
	if file == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usage("scenario: %w", err)
	}
	f, err := parseScenario(file, b)
	if err != nil {
		return nil, usage("scenario %w; netsplit run --help shows an example", err)
	}
	return f, nil
}

func printFaults(ctx context.Context, out io.Writer, m made) error {
	rows, err := allRuns(ctx, m.client, m.campaign.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		r, err := m.client.Run(ctx, row.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s: %s: %s\n", r.ID, r.Verdict.Value, r.Verdict.Reason)
		fmt.Fprintf(out, "  report: %s\n", m.report(m.campaign.ID, r.ID))
		describeSteps(out, &r)
	}
	return nil
}

func stepWords(s *wire.StepResult) string {
	switch {
	case s.Lacked != "":
		return s.Text + ": could not begin: " + s.Lacked
	case s.By == "":
		return s.Text + ": never began"
	}
	w := fmt.Sprintf("%s: began at %.3f s (%s)", s.Text, time.Duration(s.Began).Seconds(), s.By)
	if s.EndedBy != "" {
		w += fmt.Sprintf(", ended at %.3f s (%s)", time.Duration(s.Ended).Seconds(), s.EndedBy)
	}
	if s.Failed > 0 {
		w += fmt.Sprintf("; %d file operation(s) did not go on as asked", s.Failed)
	}
	if s.Slip > 0 {
		w += fmt.Sprintf("; its host went on to send %s", model.Count(s.Slip, "packet", "packets"))
	}
	for _, role := range slices.Sorted(maps.Keys(s.Roles)) {
		w += fmt.Sprintf("; %s was %s", role, s.Roles[role])
	}
	return w
}

func faultWords(p *wire.FaultProof) string {
	s := fmt.Sprintf("met %d message(s), acted on %d", p.Met, p.Acted)
	for _, n := range []struct {
		n     int
		words string
	}{{p.Taken, "left %d to another fault"}, {p.ByPlace, "took %d for the answer by place alone"}, {p.Lost, "packets lost: %d"}, {p.Returned, "%d came back by retransmission"}, {p.Copies, "sent %d copies"},
		{p.Resets, "reset a connection %d time(s)"}, {p.InOrder, "%d that nothing overtook"}, {p.Late, "%d went on late"}, {p.Early, "%d went on early, as the workload ended"},
		{p.Cut, "%d were dropped by the cut"}} {
		if n.n > 0 {
			s += ", " + fmt.Sprintf(n.words, n.n)
		}
	}
	switch {
	case p.Acted == 0:
	case !p.Known:
		s += "; not proved: " + p.Trouble
	case p.Wrong > 0:
		s += fmt.Sprintf("; %d of %d did not arrive as decided: %s", p.Wrong, p.Checked, p.Trouble)
	default:
		s += fmt.Sprintf("; %d checked at the receiving host, all as decided", p.Checked)
	}
	return s
}
