package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"netsplit/model"
)

// printTable prints the paper's Table 3 with our columns, then the campaigns
// of results.jsonl in dir, their sums by system, and what they found.
func printTable(out io.Writer, p *plan, dir string) error {
	results, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil {
		return err
	}
	js, err := readJudgments(filepath.Join(dir, "judgments.yaml"))
	if err != nil {
		return err
	}
	if err := p.bySymptom(results); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if len(p.Bugs) > 0 {
		fmt.Fprintln(w, "BUG\tFAILURE SYMPTOM\tMETADATA\tSTOP\tSTATUS\tRANDOM (PAPER)\tCOFI: FOUND AFTER\tRANDOM: FOUND AFTER\tDROPPED\tNOTE")
	}
	for _, b := range p.Bugs {
		cofi, best := row(b, results, "cofi")
		random, _ := row(b, results, "random")
		dropped := ""
		if best != nil {
			dropped = fmt.Sprint(best.Dropped)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.ID, b.Symptom, b.About, mark(b.Stop), b.Status, b.Random, cofi, random, dropped, b.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Bugs) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintln(w, "CAMPAIGN\tSTRATEGY\tSEED\tDATE\tVERSION\tINVARIANTS\tCLEAN\tFAULT RUNS\tVERDICTS\tRUNS/H\tLABS\tLOAD\tSTART, SETTLE, WORKLOAD, RECOVER, OURS\tFINDINGS: KNOWN, BROKEN, DOCUMENTED, WITHOUT A CUT")
	for _, r := range results {
		var known, broken, documented, clean int
		for _, f := range r.Findings {
			switch {
			case f.Clean || f.First == 0:
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
	fmt.Fprintln(w, "SYSTEM\tCAMPAIGNS\tFINDINGS: "+strings.ToUpper(strings.Join(words, ", "))+"\tSEARCHES\tREPLAYS\tTOGETHER\tMESSAGES OF NO KNOWN TYPE")
	systems := p.systems(results, js)
	for _, name := range slices.Sorted(maps.Keys(systems)) {
		fmt.Fprintln(w, systems[name].line(name))
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
			name := "not known"
			if f.Known != "" {
				name = model.KnownAs(f.Known, f.By)
			}
			j := js.of(r.Campaign, &f)
			fmt.Fprintf(out, "%s, %s: %s, %s: %s; %s\n    %s\n", r.Campaign, r.Strategy, j.Judgment, name, f.Summary, f.shown(), j.Why)
		}
	}
	return nil
}

// shown says in which runs a finding showed.
func (f *found) shown() string {
	var out []string
	if f.First > 0 {
		out = append(out, fmt.Sprintf("first in run %d, in %d runs, %s", f.First, f.Runs, f.replayed()))
	}
	if f.Uncut > 0 {
		out = append(out, fmt.Sprintf("in %d before the cut or without one", f.Uncut))
	}
	if f.Clean {
		out = append(out, "also in clean runs")
	}
	return strings.Join(out, ", ")
}

func (f *found) replayed() string {
	if f.Tried == 0 {
		return "not replayed"
	}
	return fmt.Sprintf("replayed %d of %d", f.Replays, f.Tried)
}

// bySymptom says of the findings of lines from before it was recorded whether
// the signature that they have is made from the symptom, as target files have it
// today.
func (p *plan) bySymptom(results []result) error {
	for i := range results {
		r := &results[i]
		at := slices.IndexFunc(p.Campaigns, func(c campaign) bool { return c.Name == r.Campaign })
		if r.Version != "" || at < 0 || !slices.ContainsFunc(r.Findings, func(f found) bool { return f.Known != "" }) {
			continue
		}
		known, err := p.Campaigns[at].known()
		if err != nil {
			return err
		}
		for j := range r.Findings {
			f := &r.Findings[j]
			if k := slices.IndexFunc(known, func(k model.KnownFailure) bool { return k.ID == f.Known }); f.Known != "" && k >= 0 {
				f.By = known[k].By
			}
		}
	}
	return nil
}

// row says how a strategy fared with a bug: after how many fault runs, or that
// it was not found, or not looked for.
func row(b bug, results []result, strategy string) (string, *found) {
	var best *found
	tried, uncut := 0, false
	for i := range results {
		r := &results[i]
		if r.Strategy != strategy || !slices.Contains(b.In, r.Campaign) {
			continue
		}
		tried += r.Faults
		for j := range r.Findings {
			f := &r.Findings[j]
			uncut = uncut || f.Known == b.ID && f.First == 0
			if f.Known == b.ID && f.First > 0 && (best == nil || best.Clean && !f.Clean || best.Clean == f.Clean && cmp.Or(cmp.Compare(f.First, best.First), cmp.Compare(best.Replays, f.Replays)) < 0) {
				best = f
			}
		}
	}
	switch {
	case best != nil:
		said := []string{fmt.Sprint(best.First)}
		if best.By == model.KnownBySymptom {
			said = append(said, "by symptom")
		}
		if best.Clean || best.Uncut > 0 { // it needs no partition
			said = append(said, "also without a cut")
		}
		return strings.Join(append(said, best.replayed()), ", "), best
	case b.Why != "":
		return "-", nil
	case tried == 0:
		return "not run yet", nil
	case uncut:
		return fmt.Sprintf("not in %d but without a cut", tried), nil
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
