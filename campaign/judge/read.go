package judge

import (
	"errors"
	"fmt"
	"path/filepath"

	"netsplit/explorer/engine"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// runFiles is a run's record as it was read back. The scenario has the names of
// the nodes to which it came about.
type runFiles struct {
	meta      model.RunMeta
	target    model.Target
	testbed   model.Testbed
	evidence  record.Evidence
	events    []model.Event
	decisions []model.Decision
	history   []record.Entry
	logLines  []record.LogLine
	torn      []string // what its files lack
}

// readRun reads a run directory. Files that a run which ended early does not
// have are empty; evidence.json must be there.
func readRun(dir string) (*runFiles, error) {
	f := &runFiles{}
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.MetaFile), &f.meta); err != nil {
		return nil, fmt.Errorf("%s is not the record of a run: %w", dir, err)
	}
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.TargetFile), &f.target); err != nil {
		return nil, fmt.Errorf("the record has no readable target: %w", err)
	}
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.TestbedFile), &f.testbed); err != nil {
		return nil, fmt.Errorf("the record has no readable testbed: %w", err)
	}
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.EvidenceFile), &f.evidence); err != nil {
		return nil, fmt.Errorf("the run did not finish, it left no evidence to judge: %w", err)
	}
	f.meta.Scenario = engine.Met(f.meta.Scenario, f.evidence.Result).Played(f.evidence.Result.Steps)
	var errs []error
	f.events = readLines[model.Event](f, dir, rundir.EventsFile, &errs)
	f.decisions = readLines[model.Decision](f, dir, rundir.DecisionsFile, &errs)
	for i := range f.events { // known only once a script had begun them
		f.meta.Scenario.Extend(&f.events[i])
	}
	f.history = readLines[record.Entry](f, dir, rundir.HistoryFile, &errs)
	f.logLines = readLines[record.LogLine](f, dir, rundir.LogLinesFile, &errs)
	readLines[struct{}](f, dir, rundir.LinesFile, &errs) // relations read it
	return f, errors.Join(errs...)
}

func readLines[T any](f *runFiles, dir, file string, errs *[]error) []T {
	out, cut, err := rundir.ReadLines[T](dir, file)
	if err != nil {
		*errs = append(*errs, err)
	}
	n, counted := f.evidence.Lines[file], f.evidence.Lines != nil
	switch {
	case cut:
		f.torn = append(f.torn, file+" ends in the middle of a line")
	case counted && len(out) < n:
		f.torn = append(f.torn, fmt.Sprintf("%s holds %d of %d lines", file, len(out), n))
	case counted && len(out) > n:
		f.torn = append(f.torn, fmt.Sprintf("%s holds %d lines, %d were written", file, len(out), n))
	}
	return out
}
