package judge

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"netsplit/explorer/report"
	"netsplit/record/rundir"
)

// writePage writes the page of a judged run into its directory.
func writePage(dir string, f *runFiles, in report.Input) error {
	in.Title, in.Nodes, in.Hosts = f.target.Title, f.target.Nodes, f.testbed.Names()
	in.MaxAge = map[string]time.Duration{}
	for _, v := range f.target.Variables {
		in.MaxAge[v.Name] = v.MaxAge
	}
	in.Events, in.Decisions = f.events, f.decisions
	for _, h := range f.history {
		in.History = append(in.History, report.Op{Workload: h.Workload, Operation: h.Operation})
	}
	rec := f.evidence.Recovery
	in.Recovery = report.Recovery{HealedAt: rec.HealedAt, StableAt: rec.StableAt, Limit: rec.Limit, Pending: rec.Pending}
	for _, v := range rec.Violated {
		in.Recovery.Violated = append(in.Recovery.Violated, v.String())
	}
	for _, x := range f.evidence.Exits {
		if !x.Expected {
			in.Exits = append(in.Exits, fmt.Sprintf("%s on %s ended with status %d at %.3f s", x.Process, x.Host, x.Status, x.At.Seconds()))
		}
	}
	for _, l := range f.logLines {
		in.FatalLines = append(in.FatalLines, fmt.Sprintf("%s on %s at %.3f s: %s", l.Process, l.Host, l.At.Seconds(), l.Line))
	}
	in.Incomplete, in.Known = slices.Concat(f.evidence.Incomplete, f.evidence.Unheard), f.target.Known
	return rundir.WriteFile(filepath.Join(dir, rundir.ReportFile), func(w io.Writer) error { return report.Write(w, in) })
}
