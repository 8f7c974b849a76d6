package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// printTable prints the paper's Table 3 with our columns, then the campaigns
// of results.jsonl in dir and what else they found.
func printTable(out io.Writer, p *plan, dir string) error {
	results, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if len(p.Bugs) > 0 {
		fmt.Fprintln(w, "BUG\tFAILURE SYMPTOM\tMETADATA\tSTOP\tSTATUS\tRANDOM (PAPER)\tCOFI: FOUND AFTER\tRANDOM: FOUND AFTER\tREPLAYED\tDROPPED\tNOTE")
	}
	for _, b := range p.Bugs {
		cofi, best := row(b, results, "cofi")
		random, _ := row(b, results, "random")
		note, replayed, dropped := b.Why, "", ""
		if best != nil {
			replayed, dropped = fmt.Sprintf("%d/%d", best.Replays, best.Tried), fmt.Sprint(best.Dropped)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.ID, b.Symptom, b.About, mark(b.Stop), b.Status, b.Random, cofi, random, replayed, dropped, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Bugs) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintln(w, "CAMPAIGN\tSTRATEGY\tSEED\tDATE\tVERSION\tINVARIANTS\tCLEAN\tFAULT RUNS\tVERDICTS\tRUNS/H\tLABS\tLOAD\tSTART, SETTLE, WORKLOAD, RECOVER, OURS\tFINDINGS: KNOWN, BROKEN, DOCUMENTED, ALSO CLEAN")
	for _, r := range results {
		var known, broken, documented, clean int
		for _, f := range r.Findings {
			switch {
			case f.Clean:
				clean++
			case f.Known != "":
				known++
			case f.Class == "documented":
				documented++
			default:
				broken++
			}
		}
		var verdicts []string
		for _, v := range []string{"pass", "fail", "vacuous", "unknown"} {
			if n := r.Verdicts[v]; n > 0 {
				verdicts = append(verdicts, fmt.Sprintf("%d %s", n, v))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%.0f\t%d\t%s\t%s\t%d, %d, %d, %d\n", r.Campaign, r.Strategy, r.Seed, r.Date.Format("2006-01-02"),
			cmp.Or(r.Version, "-"), r.Invariants, r.Clean, r.Faults, strings.Join(verdicts, ", "), float64(r.Clean+r.Faults)/max(r.Wall, 1)*3600, r.Labs, r.Load, costs(r.Cost), known, broken, documented, clean)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, r := range results {
		if r.Note != "" {
			fmt.Fprintf(out, "%s, %s: no fault run: %s\n", r.Campaign, r.Strategy, r.Note)
		}
		for _, f := range r.Findings {
			if f.Class == "documented" || f.Clean {
				continue
			}
			name := f.Known
			if name == "" {
				name = "not known"
			}
			fmt.Fprintf(out, "%s, %s: %s: %s; first in run %d, in %d runs, replayed %d/%d\n", r.Campaign, r.Strategy, name, f.Summary, f.First, f.Runs, f.Replays, f.Tried)
		}
	}
	return nil
}

// row says how a strategy fared with a bug: after how many fault runs, or that
// it was not found, or not looked for.
func row(b bug, results []result, strategy string) (string, *found) {
	var best *found
	tried := 0
	for i := range results {
		r := &results[i]
		if r.Strategy != strategy || !slices.Contains(b.In, r.Campaign) {
			continue
		}
		tried += r.Faults
		for j := range r.Findings {
			if f := &r.Findings[j]; f.Known == b.ID && f.First > 0 && (best == nil || best.Clean && !f.Clean || best.Clean == f.Clean && cmp.Or(cmp.Compare(f.First, best.First), cmp.Compare(best.Replays, f.Replays)) < 0) {
				best = f
			}
		}
	}
	switch {
	case best != nil && best.Clean: // it needs no partition
		return fmt.Sprintf("%d, also clean", best.First), best
	case best != nil:
		return fmt.Sprintf("%d", best.First), best
	case b.Why != "":
		return "-", nil
	case tried == 0:
		return "not run yet", nil
	}
	return fmt.Sprintf("not in %d", tried), nil
}

func mark(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// costs prints where the time of the runs went, in the order of phases.
func costs(c map[string]float64) string {
	if c == nil {
		return "-"
	}
	var out []string
	for _, p := range phases {
		out = append(out, fmt.Sprintf("%.0f%%", 100*c[p]))
	}
	return strings.Join(out, " ")
}
