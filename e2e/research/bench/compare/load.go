package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"netsplit/model"
	"netsplit/record/rundir"
)

// doneFile marks a runs directory whose campaign came to its end.
const doneFile = "done"

// search is one campaign.
type search struct {
	target, strategy, seed string
	dir                    string             // runs directory
	faults, clean          []model.RunSummary // in order of their end
	replays                map[string][]model.RunSummary
}

// load reads every finished campaign below dir, sorted by target, strategy and
// seed, and the names of those that have not finished.
func load(dir string) (all []search, unfinished []string, err error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(dirs)
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, doneFile)); errors.Is(err, fs.ErrNotExist) {
			unfinished = append(unfinished, d)
			continue
		} else if err != nil {
			return nil, nil, err
		}
		s := search{dir: d, seed: filepath.Base(d), strategy: filepath.Base(filepath.Dir(d)),
			target: filepath.Base(filepath.Dir(filepath.Dir(d))), replays: map[string][]model.RunSummary{}}
		files, err := filepath.Glob(filepath.Join(d, "*", "*", rundir.SummaryFile))
		if err != nil {
			return nil, nil, err
		}
		var runs []model.RunSummary
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return nil, nil, err
			}
			var r model.RunSummary
			if err := json.Unmarshal(b, &r); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", f, err)
			}
			runs = append(runs, r)
		}
		s.sort(runs)
		if len(s.faults) == 0 {
			return nil, nil, fmt.Errorf("%s is marked as done and holds no fault run: delete it and run the campaign again", d)
		}
		all = append(all, s)
	}
	return all, unfinished, nil
}

// sort puts the runs where they belong, in order of their end.
func (s *search) sort(runs []model.RunSummary) {
	slices.SortFunc(runs, func(a, b model.RunSummary) int {
		if c := a.Ended.Compare(b.Ended); c != 0 {
			return c
		}
		if a.Run < b.Run {
			return -1
		}
		return 1
	})
	for _, r := range runs {
		switch {
		case r.ReplayOf != "":
			s.replays[r.ReplayOf] = append(s.replays[r.ReplayOf], r)
		case r.Scenario.Strategy == model.StrategyClean:
			s.clean = append(s.clean, r)
		default:
			s.faults = append(s.faults, r)
		}
	}
}

func shows(r *model.RunSummary, signature string) bool {
	return slices.ContainsFunc(r.Verdict.Failures, func(f model.Failure) bool { return f.Signature == signature })
}
