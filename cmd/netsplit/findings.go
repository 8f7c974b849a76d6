package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/explorer/check"
	"netsplit/model"
)

// headlineRunes bounds a finding on one line; the whole of it stands below.
const headlineRunes = 140

func headline(f wire.Failure) string {
	s := []rune(f.Severity + " (" + f.Class + "): " + model.OneLine(f.Summary))
	if len(s) > headlineRunes {
		s = append(s[:headlineRunes-1], '…')
	}
	return string(s)
}

// causes groups findings by what brought them, the costliest first.
func causes(found []wire.Finding) [][]wire.Finding {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b wire.Finding) int {
		rank := func(f wire.Finding) int { return check.Rank(model.FailureClass(f.Class), model.Severity(f.Severity)) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.FirstAfter, b.FirstAfter), strings.Compare(a.Failure.Signature, b.Failure.Signature))
	})
	return model.Together(found, func(f wire.Finding) string { return cmp.Or(f.CauseID, f.ID) })
}

func printHeadline(out io.Writer, found []wire.Finding) {
	all := causes(found)
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", headline(all[0][0].Failure))
	if n := len(all) - 1; n > 0 {
		fmt.Fprintf(out, "and findings of %s, below\n", model.Count(n, "more cause", "more causes"))
	}
}

// printFindings prints a line for each cause, and below them how to repeat each and
// what else it brought.
func printFindings(out io.Writer, found []wire.Finding, at place) {
	if len(found) == 0 {
		fmt.Fprintln(out, "\nno findings")
		return
	}
	all := causes(found)
	fmt.Fprintf(out, "\n%s of %s, the costliest first\n", model.Count(len(found), "finding", "findings"), model.Count(len(all), "cause", "causes"))
	for i, c := range all {
		fmt.Fprintf(out, "  %d. %s\n", i+1, headline(c[0].Failure))
	}
	fmt.Fprintln(out, "broken: the documentation promises otherwise, or the target file or the script says so; broken-bound: beyond your bound; documented: the documentation admits it")
	for i, c := range all {
		f := c[0]
		fmt.Fprintf(out, "\n%d. %s: %s\n   %s; in %s\n   replay: %s\n   report: %s\n", i+1,
			f.Failure.Check, f.Failure.Summary, whenSeen(f, found), model.Count(len(f.Runs), "run", "runs"), at.replay(f.Run), at.report(f.Campaign, f.Run))
		for _, g := range c[1:] {
			fmt.Fprintf(out, "   same cause: %s, %s; %s; in %s, the first %s\n", g.Failure.Check, headline(g.Failure), whenSeen(g, found), model.Count(len(g.Runs), "run", "runs"), g.Run)
		}
	}
}

func whenSeen(f wire.Finding, found []wire.Finding) string {
	when := fmt.Sprintf("first seen in run %d", f.FirstAfter)
	if f.Clean {
		when += ", also without any fault"
	}
	if f.Replays > 0 {
		when += fmt.Sprintf(", replayed %d of %d", f.Reproduced, f.Replays)
	}
	if f.Failure.Known != "" {
		when = model.KnownAs(f.Failure.Known, f.Failure.KnownBy) + "; " + when
	}
	if slices.ContainsFunc(found, func(g wire.Finding) bool { return g.ID != f.ID && g.Failure.Check == f.Failure.Check }) {
		when = f.Failure.Signature + "; " + when
	}
	return when
}

func allFindings(ctx context.Context, cl *client.Client, campaign string) ([]wire.Finding, error) {
	var out []wire.Finding
	for cursor := ""; ; {
		page, err := cl.Findings(ctx, campaign, 200, cursor)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Items {
			f, err := cl.Finding(ctx, row.ID)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
		if cursor = page.Next; cursor == "" {
			return out, nil
		}
	}
}
