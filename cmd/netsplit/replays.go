package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/explorer/check"
	"netsplit/model"
)

func shows(v wire.Verdict, f wire.Failure) bool {
	m := func(f wire.Failure) model.Failure {
		return model.Failure{Check: f.Check, Signature: f.Signature, Cause: f.Cause}
	}
	return slices.ContainsFunc(v.Failures, func(g wire.Failure) bool { return check.SameCause(m(f), m(g)) })
}

// replayLines counts by cause what the replays of a run showed: its own causes, the
// costliest first, then others.
func replayLines(orig wire.Verdict, runs []wire.RunRow) (lines []string) {
	causes := func(v wire.Verdict) [][]wire.Failure {
		return model.Together(v.Failures, func(f wire.Failure) string { return f.Cause })
	}
	for _, c := range causes(orig) {
		n := 0
		for _, r := range runs {
			if shows(r.Verdict, c[0]) {
				n++
			}
		}
		lines = append(lines, fmt.Sprintf("  %d/%d: %s, %s (%s): %s", n, len(runs), c[0].Severity, c[0].Check, c[0].Class, c[0].Cause))
	}
	var others []wire.Failure
	where := map[string][]string{}
	for _, r := range runs {
		for _, c := range causes(r.Verdict) {
			if shows(orig, c[0]) {
				continue
			}
			if where[c[0].Cause] == nil {
				others = append(others, c[0])
			}
			where[c[0].Cause] = append(where[c[0].Cause], r.ID)
		}
	}
	for _, f := range others {
		lines = append(lines, fmt.Sprintf("other failure: %s, %s (%s): %s; in %s", f.Severity, f.Check, f.Class, f.Summary, strings.Join(where[f.Cause], ", ")))
	}
	return lines
}

// tellReplays tells how often a run failed again.
func tellReplays(ctx context.Context, out io.Writer, m made) error {
	camp := m.campaign
	verdicts, _, err := countRuns(ctx, m.client, camp.ID)
	if err != nil {
		return err
	}
	what := "replays of " + camp.Spec.Replay
	if camp.Spec.WithoutCut {
		what += " without its cut"
	}
	fmt.Fprintf(out, "%d/%d %s failed for the same cause (%s), on %s\n", camp.Reproduced, camp.Done, what, verdicts, madeOn(camp.Spec))
	if err := printReplays(ctx, out, m.client, camp.ID, camp.Spec.Replay); err != nil {
		return err
	}
	if camp.Reason != "" && camp.State != string(model.CampaignFailed) {
		fmt.Fprintln(out, camp.Reason)
	}
	if m.dir != "" {
		fmt.Fprintf(out, "records: %s\n", filepath.Join(m.dir, camp.ID))
	}
	return nil
}

func printReplays(ctx context.Context, out io.Writer, cl *client.Client, campaign, original string) error {
	orig, err := cl.Run(ctx, original)
	if err != nil {
		return err
	}
	runs, err := allRuns(ctx, cl, campaign)
	if err != nil {
		return err
	}
	for _, line := range replayLines(orig.Verdict, runs) {
		fmt.Fprintln(out, line)
	}
	return nil
}
