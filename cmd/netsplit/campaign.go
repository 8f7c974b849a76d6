package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
)

func campaignCommand(conn *daemonFlags) *cobra.Command {
	var what campaignFlags
	var runsDir string
	var show progressFlags
	var ci ciFlags
	var o output
	c := &cobra.Command{
		Use:   "campaign TARGET",
		Short: "search a target for partition bugs",
		Long: `Searches a target for partition bugs: clean runs to mine invariants from, then
runs that cut and heal at the messages where nodes disagree. TARGET is the name
of a known target (netsplit target list) or the path of a target file.

--explore cofi is that. random has faults at random times: one node is isolated, or
up to --depth faults of --kinds, which may overlap. The others search over
sequences of faults: the clean runs show at which messages the target could fail,
and the fault runs crash a node, isolate one or lose the message there: one fault,
then two, up to --depth. brute-force runs all sequences, prioritised one of each
recovery behaviour, and policies those that a file of policies keeps (netsplit policy).
At the end failed runs are sorted into causes, and the smallest sequence of each is
tried without each of its steps (--shrink).

Your running daemon does the work. Without one, this command does it in labs on
this machine (root) and keeps the records in --runs-dir.`,
		Args: exactArgs(1, "a target's name or file"),
		RunE: func(c *cobra.Command, names []string) error {
			spec, err := what.of(c, names[0])
			if err := errors.Join(err, ci.read()); err != nil {
				return err
			}
			if spec.StopWhenBroken && ci.known != nil {
				return usage("--stop-when-broken stops at findings of the baseline, too, and what is new stays hidden: leave out one of the two")
			}
			return conn.campaign(c, runsDir, spec, show, nil, func(m made) error { return summarise(c, m, &ci, o) })
		},
	}
	what.register(c)
	f := c.Flags()
	f.StringVar(&runsDir, "runs-dir", "", "keep records here and do the work in this process")
	ci.register(f)
	o.registerEnd(f)
	show.register(f)
	conn.register(c)
	c.AddCommand(campaignListCommand(conn), conn.completes(campaignShowCommand(conn), false, campaignNames), conn.completes(campaignCompareCommand(conn), true, campaignNames), conn.completes(campaignMapCommand(conn), false, campaignNames), conn.completes(campaignCausesCommand(conn), false, campaignNames), conn.completesTarget(campaignScheduleCommand(conn), 2),
		conn.completes(pauseCommand(conn), false, campaignNames), conn.completes(resumeCommand(conn), false, campaignNames), conn.completes(cancelCommand(conn), false, campaignNames))
	return c
}

// resumeCommand is "campaign resume".
func resumeCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var show progressFlags
	var ci ciFlags
	var o output
	c := &cobra.Command{
		Use: "resume CAMPAIGN", Short: "continue a campaign that is paused, or that failed, for example on a full disk",
		Long: `Continues a campaign that is paused or failed. Judged runs stay. Runs that had not ended
or could not be stored are lost: their scenarios are run again under new ids. The time
since it stopped does not count towards its budget. The command waits for the end; if it
is interrupted, the campaign is cancelled (to stop and keep it: netsplit campaign pause).`,
		Args: exactArgs(1, "a campaign's id"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(storeIn(runsDir), ci.read()); err != nil {
				return err
			}
			start := func(ctx context.Context, cl *client.Client, _ string) (wire.Campaign, error) {
				return cl.ResumeCampaign(ctx, args[0])
			}
			return conn.work(c, runsDir, start, show, nil, func(m made) error {
				if s := m.campaign.Spec; s.Replay != "" && s.Shrink != nil {
					return tellShrunk(c.OutOrStdout(), m, smallestFile(s.Replay), o)
				}
				return summarise(c, m, &ci, o)
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the campaign's records are, for work in this process")
	ci.register(c.Flags())
	o.registerEnd(c.Flags())
	show.register(c.Flags())
	conn.register(c)
	return c
}

// pauseWait is how long pause waits until the campaign's runs have stopped.
const pauseWait = 60 * time.Second

func pauseCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "pause ID", Short: "pause a campaign of the daemon until it is resumed; its current runs are lost and run again then", Args: exactArgs(1, "a campaign's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				camp, err := cl.PauseCampaign(ctx, args[0], pauseWait)
				if err != nil {
					return err
				}
				if err := printOne(o, c.OutOrStdout(), camp, func(out io.Writer, camp wire.Campaign) error {
					_, err := fmt.Fprintf(out, "campaign %s is %s after %d runs\n", camp.ID, camp.State, camp.Done)
					return err
				}); err != nil {
					return err
				}
				if camp.State != string(model.CampaignPaused) {
					return fmt.Errorf("campaign %s is %s and not paused", camp.ID, camp.State)
				}
				return nil
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

func cancelCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "cancel ID", Short: "end a campaign for good, be it paused or failed; what it recorded stays", Args: exactArgs(1, "a campaign's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				camp, err := cl.CancelCampaign(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), camp, func(out io.Writer, camp wire.Campaign) error {
					_, err := fmt.Fprintf(out, "campaign %s is asked to end: it is %s after %d runs\n", camp.ID, camp.State, camp.Done)
					return err
				})
			})
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs: for a campaign that failed, or whose command was killed")
	conn.register(c)
	return c
}

// summarise tells how a campaign ended, to whom ci says, and returns what the exit status
// says.
func summarise(c *cobra.Command, m made, ci *ciFlags, o output) error {
	found, verdicts, err := tellCampaign(c, m, o)
	if err != nil {
		return err
	}
	out, say := outcome(m, found, verdicts, ci), c.OutOrStdout()
	if o != outTable {
		say = c.ErrOrStderr()
	}
	if err := ci.tell(c.Context(), say, m, found, verdicts, out); err != nil {
		return cmp.Or(withStatus(out, err), err)
	}
	return out
}

// withStatus gives an error the exit status of an outcome; nil: that has none.
func withStatus(outcome, err error) error {
	if exit := (*exitError)(nil); errors.As(outcome, &exit) {
		return &exitError{exit.code, errors.Join(exit.err, err)}
	}
	return nil
}

// outcome is what the exit status says of a campaign that has ended.
func outcome(m made, found []wire.Finding, verdicts verdictCount, ci *ciFlags) error {
	ended := m.ended("the campaign")
	switch camp := m.campaign; {
	case m.interrupted || camp.State == string(model.CampaignFailed):
		return ended
	case camp.State == string(model.CampaignCancelled) && camp.Spec.StopWhenSuspect && len(camp.Warnings) > 0:
		return &exitError{exitUndecided, fmt.Errorf("%s: %s", camp.Reason, camp.Warnings[0].Text)}
	case slices.ContainsFunc(found, func(f wire.Finding) bool { return ci.counts(f.Target, f.Failure) }):
		return &exitError{code: exitFindings}
	case ended != nil:
		return ended
	case len(camp.Undecided) > 0:
		return &exitError{exitUndecided, fmt.Errorf("no fault run could be judged, so nothing is known about the target under partitions:\n  %s", strings.Join(camp.Undecided, "\n  "))}
	case verdicts.decided() == 0:
		return &exitError{exitUndecided, fmt.Errorf("no run could be judged: all are unknown or vacuous")}
	}
	return nil
}

// tellCampaign tells what a campaign has found so far.
func tellCampaign(c *cobra.Command, m made, o output) ([]wire.Finding, verdictCount, error) {
	cl, camp := m.client, m.campaign
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
	defer stop()
	out := c.OutOrStdout()
	found, err := allFindings(ctx, cl, camp.ID)
	if err != nil {
		return nil, nil, err
	}
	verdicts, times, err := countRuns(ctx, cl, camp.ID)
	if err != nil {
		return nil, nil, err
	}
	if o != outTable {
		return found, verdicts, printOne(o, out, camp, nil)
	}
	printHeadline(out, found)
	for _, w := range camp.Warnings {
		fmt.Fprintf(out, "\nwarning: %s\n  what to change: %s\n", w.Text, w.Advice)
	}
	fmt.Fprintf(out, "\ncampaign %s on %s: %s after %d runs (%s)", camp.ID, camp.Spec.Target, camp.State, camp.Done, verdicts)
	tries := 0
	for _, x := range camp.Shrunk {
		tries += x.Made
	}
	if tries > 0 {
		fmt.Fprintf(out, ", %d of them to try what causes need", tries)
	}
	if camp.Reason != "" {
		fmt.Fprintf(out, ": %s", camp.Reason)
	}
	fmt.Fprintf(out, "; seed %d\n", camp.Spec.Seed)
	if s := times.String(); s != "" {
		fmt.Fprintln(out, s)
	}

	printFindings(out, found, m.place)
	if camp.Spec.Strategy == string(model.StrategySequences) {
		if err := printCauses(ctx, out, cl, camp.ID); err != nil {
			return nil, nil, err
		}
	}
	if camp.Done > 0 {
		fmt.Fprintf(out, "\nreport of the campaign: %s\n", m.campaignReport(camp.ID))
	}
	if m.dir != "" {
		if _, err := os.Stat(filepath.Join(m.dir, camp.ID, rundir.AccountFile)); err == nil {
			fmt.Fprintf(out, "what became of all that it could have run: %s\n", m.command("policy report "+camp.ID))
		}
	}
	return found, verdicts, nil
}

// verdictCount counts runs by verdict, and those without one that were cut short.
type verdictCount map[string]int

const cutShort = "cut short"

func (v verdictCount) decided() int {
	return v[string(model.VerdictPass)] + v[string(model.VerdictFail)]
}

// String lists the verdicts in a fixed order.
func (v verdictCount) String() string {
	var parts []string
	for _, w := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictVacuous, model.VerdictUnknown, cutShort} {
		if n := v[string(w)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w))
		}
	}
	if len(parts) == 0 {
		return "none judged"
	}
	return strings.Join(parts, ", ")
}

// spent sums where the wall time of runs went.
type spent struct {
	runs, probes int
	cost         model.Cost
	probing      time.Duration
}

func (t *spent) add(r *wire.RunRow) {
	t.runs++
	t.probes += r.Probes
	t.probing += time.Duration(r.ProbeCost)
	for _, p := range []struct {
		to   *time.Duration
		from wire.Duration
	}{{&t.cost.Template, r.Cost.Template}, {&t.cost.Start, r.Cost.Start}, {&t.cost.Settle, r.Cost.Settle},
		{&t.cost.Workload, r.Cost.Workload}, {&t.cost.Recover, r.Cost.Recover}, {&t.cost.Ours, r.Cost.Ours}} {
		*p.to += time.Duration(p.from)
	}
}

// String says what an average run spent; "" without runs.
func (t *spent) String() string {
	if t.runs == 0 {
		return ""
	}
	mean := func(d time.Duration) time.Duration { return (d / time.Duration(t.runs)).Round(10 * time.Millisecond) }
	c := t.cost
	all := c.Start + c.Settle + c.Workload + c.Recover + c.Ours
	s := fmt.Sprintf("a run took %v on average: start %v, settle %v, workload %v, recovery %v, netsplit %v (%.1f %%); %d probes a run, waited %v for each",
		mean(all), mean(c.Start), mean(c.Settle), mean(c.Workload), mean(c.Recover), mean(c.Ours), 100*float64(c.Ours)/float64(max(all, 1)),
		t.probes/t.runs, (t.probing / time.Duration(max(t.probes, 1))).Round(10*time.Microsecond))
	if c.Template >= 100*time.Millisecond { // less is looking for one
		s += fmt.Sprintf("; making templates took %v once", c.Template.Round(100*time.Millisecond))
	}
	return s
}

func countRuns(ctx context.Context, cl *client.Client, campaign string) (verdictCount, *spent, error) {
	runs, err := allRuns(ctx, cl, campaign)
	v, t := verdictCount{}, &spent{}
	for i := range runs {
		if runs[i].CutShort {
			v[cutShort]++
			continue
		}
		v[runs[i].Verdict.Value]++
		t.add(&runs[i])
	}
	return v, t, err
}

// allRuns lists a campaign's runs in order of their start.
func allRuns(ctx context.Context, cl *client.Client, campaign string) ([]wire.RunRow, error) {
	var out []wire.RunRow
	for cursor := ""; ; {
		page, err := cl.Runs(ctx, wire.RunFilter{Campaign: campaign}, 200, cursor)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if cursor = page.Next; cursor == "" {
			slices.Reverse(out)
			return out, nil
		}
	}
}

func replayCommand(conn *daemonFlags) *cobra.Command {
	var n, labs int
	var withoutCut bool
	var runsDir, gate string
	var show progressFlags
	var o output
	c := &cobra.Command{
		Use:   "replay RUN",
		Short: "repeat a run's scenario and count how often it fails again",
		Long:  "Repeats the scenario of a run, with the target, release and settings of that run, and counts how often it fails again.",
		Args:  exactArgs(1, "a run's id"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := requireCount(c, "times", "labs"); err != nil {
				return err
			}
			return replay(c, conn, runsDir, wire.CampaignSpec{Replay: args[0], Runs: n, Labs: labs, Gate: gate, WithoutCut: withoutCut}, show, o)
		},
	}
	c.Flags().IntVarP(&n, "times", "n", 10, "how often to repeat it")
	labsFlag(c.Flags(), &labs)
	c.Flags().BoolVar(&withoutCut, "without-cut", false, "the control: the same runs, but nothing is done to the network")
	c.Flags().StringVar(&gate, "gate", "", "port or packet-in (default: as the run's campaign asked for)")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the run's record is, for work in this process")
	o.registerEnd(c.Flags())
	show.register(c.Flags())
	conn.register(c)
	return c
}

// madeOn is the target of a campaign with its release and settings.
func madeOn(spec wire.CampaignSpec) string {
	s := spec.Target
	for i, k := range slices.Sorted(maps.Keys(spec.Args)) {
		s += map[bool]string{true: " with ", false: ", "}[i == 0] + k + "=" + spec.Args[k]
	}
	return s
}

func storePath(runsDir string) string { return filepath.Join(runsDir, "netsplit.db") }

// storeIn says whether a runs directory holds a store: what was mistyped is not
// made.
func storeIn(runsDir string) error {
	if runsDir == "" {
		return nil
	}
	if _, err := os.Stat(storePath(runsDir)); err != nil {
		return usage("no store in --runs-dir %s: name the --runs-dir of the campaign (%w)", runsDir, err)
	}
	return nil
}

func replay(c *cobra.Command, conn *daemonFlags, runsDir string, spec wire.CampaignSpec, show progressFlags, o output) error {
	if err := storeIn(runsDir); err != nil {
		return err
	}
	return conn.campaign(c, runsDir, spec, show, func(p *progress, camp wire.Campaign) {
		p.say("%s repeats %s on %s", camp.ID, spec.Replay, madeOn(camp.Spec))
	}, func(m made) error {
		camp := m.campaign
		if err := printOne(o, c.OutOrStdout(), camp, func(out io.Writer, _ wire.Campaign) error {
			return tellReplays(context.WithoutCancel(c.Context()), out, m)
		}); err != nil {
			return err
		}
		return m.ended("the replay")
	})
}

func targetName(named string) string {
	if strings.ContainsRune(named, filepath.Separator) {
		if t, _, err := sut.Load(named); err == nil {
			return t.Name
		}
	}
	return named
}

func invariantsCommand(conn *daemonFlags) *cobra.Command {
	var of, runsDir string
	var o output
	c := &cobra.Command{
		Use: "invariants", Short: "list mined invariants; pin or drop one", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				list, err := cl.Invariants(ctx, targetName(of))
				if err != nil {
					return err
				}
				return printAll(o, c.OutOrStdout(), list, printInvariants)
			})
		},
	}
	c.AddCommand(conn.completesRecord(whyCommand(conn), campaignNames))
	asks := []*cobra.Command{c} // the store, or a daemon
	for verb, status := range map[string]model.InvariantStatus{"pin": model.InvariantPinned, "drop": model.InvariantDrop, "release": model.InvariantMined} {
		help := map[string]string{"pin": "keep an invariant whatever later runs say", "drop": "leave an invariant out of the search", "release": "return an invariant to the miner"}[verb]
		takes, what := " ID", "an invariant's id"
		if verb == "pin" {
			takes, what = " ID|INVARIANT", "an invariant's id, or an invariant such as 'status[n1]@n2 == status[n1]@n3'"
			help += ", even one that was not mined"
		}
		asks = append(asks, conn.completes(&cobra.Command{
			Use: verb + takes, Short: help, Args: exactArgs(1, what),
			RunE: func(c *cobra.Command, args []string) error {
				text := strings.Contains(args[0], "@")
				switch {
				case text && status != model.InvariantPinned:
					return usage("%s takes the id of an invariant, which %q is not: netsplit invariants lists them", verb, args[0])
				case text && of == "":
					return usage("pin %q for which target? name it with --target", args[0])
				}
				anyFolder := func(string) error { return nil } // one may be pinned before the first campaign
				return conn.stored(c, runsDir, anyFolder, func(ctx context.Context, cl *client.Client, _ string) error {
					var inv wire.Invariant
					var err error
					if text {
						inv, err = cl.PinInvariant(ctx, targetName(of), args[0])
					} else {
						inv, err = cl.SetInvariant(ctx, targetName(of), args[0], string(status))
					}
					if err != nil {
						return err
					}
					return printOne(o, c.OutOrStdout(), inv, func(out io.Writer, inv wire.Invariant) error { return printInvariants(out, []wire.Invariant{inv}) })
				})
			},
		}, false, invariantNames(&of, status)))
	}
	asks = append(asks, conn.completes(&cobra.Command{
		Use: "show ID", Short: "show an invariant", Args: exactArgs(1, "an invariant's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				inv, err := cl.Invariant(ctx, targetName(of), args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), inv, func(out io.Writer, inv wire.Invariant) error { return printInvariants(out, []wire.Invariant{inv}) })
			})
		},
	}, false, invariantNames(&of, "")))
	for _, a := range asks {
		o.register(a.Flags())
		a.Flags().StringVar(&of, "target", "", "only those of this target: its name, or its file or directory")
		a.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	}
	conn.register(asks...)
	c.AddCommand(asks[1:]...)
	return c
}
