package judge

import (
	"io"
	"path/filepath"
	"slices"
	"time"

	"netsplit/explorer/report"
	"netsplit/record/rundir"
)

func writePage(dir string, f *runFiles, in report.Input) error {
	in.Title, in.Nodes, in.Hosts = f.target.Title, f.target.Nodes, f.testbed.Names()
	in.MaxAge = map[string]time.Duration{}
	for _, v := range f.target.Variables {
		in.MaxAge[v.Name] = v.MaxAge
	}
	in.Events, in.Decisions, in.Cuts = f.events, f.decisions, f.evidence.Cuts
	in.History, in.Recovery, in.Exits, in.LogLines, in.Ports = f.history, f.evidence.Recovery, f.evidence.Exits, f.logLines, f.evidence.Ports
	in.Incomplete, in.Known = slices.Concat(f.evidence.Incomplete, f.evidence.Unread), f.target.Known
	return rundir.WriteFile(filepath.Join(dir, rundir.ReportFile), func(w io.Writer) error { return report.Write(w, in) })
}
