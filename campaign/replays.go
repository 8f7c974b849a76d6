package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"netsplit/explorer"
	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record/rundir"
)

// replay repeats a run's scenario and counts how often the cause of what cost most
// shows again.
func (s *Service) replay(ctx context.Context, j *job, r place) error {
	orig, err := s.store.GetRun(j.c.Spec.Replay)
	if err != nil {
		return err
	}
	if err := s.tellChanged(j, r, orig); err != nil {
		return err
	}
	err = s.each(ctx, j, r, func(n int) model.WorkItem {
		if j.c.Spec.Script != nil {
			w := s.playItem(j, n, orig.Scenario.Seed)
			w.ReplayOf = orig.Run
			return w
		}
		sc := explorer.Replay(orig.Scenario, orig.Result)
		if j.c.Spec.WithoutCut {
			sc = explorer.WithoutFaults(orig.Scenario)
		}
		sc.ID = fmt.Sprintf("s%04d", n)
		return model.WorkItem{Campaign: j.c.ID, Run: fmt.Sprintf("%s-r%04d", j.c.ID, n), Spec: j.c.Spec, Scenario: sc, ReplayOf: orig.Run}
	}, func(sum model.RunSummary) {
		if reproduces(orig, sum) {
			s.update(j, func(c *model.Campaign) { c.Reproduced++ })
		}
	})
	return errors.Join(err, s.bookReplay(orig)) // what was made counts, however it ended
}

// tellChanged has the campaign say what of the target is not as the run recorded it.
func (s *Service) tellChanged(j *job, r place, orig model.RunSummary) error {
	scripts, err := r.scripts()
	if err != nil {
		return err
	}
	if why := joinReasons(s.otherNow(j.c.Spec), s.changedSince(orig, r.target(), scripts)); why != "" {
		s.update(j, func(c *model.Campaign) { c.Reason = why })
	}
	return nil
}

// changedSince says what of the target is not as a run recorded it: keys of its
// file, and scripts beside it. "" if all is, or its record is gone.
func (s *Service) changedSince(orig model.RunSummary, now *model.Target, scripts map[string]string) string {
	var changed []string
	if keys := s.otherKeys(orig, now); len(keys) > 0 {
		changed = append(changed, "the target file ("+strings.Join(keys, ", ")+")")
	}
	if files := otherFiles(orig.Scripts, scripts); len(files) > 0 {
		changed = append(changed, "files beside the target file ("+strings.Join(files, ", ")+")")
	}
	if len(changed) == 0 {
		return ""
	}
	return fmt.Sprintf("%s changed since %s was made, which may explain other results", strings.Join(changed, " and "), orig.Run)
}

// otherKeys names the keys of the target that are not as a run recorded them;
// none if its record is gone.
func (s *Service) otherKeys(orig model.RunSummary, now *model.Target) (keys []string) {
	var then, same model.Target
	if rundir.ReadJSON(filepath.Join(s.runDir(orig.Campaign, orig.Run), rundir.TargetFile), &then) != nil {
		return nil
	}
	b, err := json.Marshal(now) // as a record has it
	if err != nil || json.Unmarshal(b, &same) != nil {
		return nil
	}
	a, c := reflect.ValueOf(then), reflect.ValueOf(same)
	for i := range a.NumField() {
		if key, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ","); key != "-" && !reflect.DeepEqual(a.Field(i).Interface(), c.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// otherFiles names the files that are not as they were, sorted; none if a run that
// is older than their record has none.
func otherFiles(then, now map[string]string) (out []string) {
	if then == nil {
		return nil
	}
	all := maps.Clone(then)
	maps.Copy(all, now)
	for _, f := range slices.Sorted(maps.Keys(all)) {
		if then[f] != now[f] {
			out = append(out, f)
		}
	}
	return out
}

// reproduces says whether a replay shows the cause of what cost most in the
// original.
func reproduces(orig, again model.RunSummary) bool {
	f, failed := check.Costliest(orig.Verdict)
	return failed && check.Shows(again.Verdict, f)
}

func (s *Service) bookReplay(orig model.RunSummary) error {
	s.booking.Lock()
	defer s.booking.Unlock()
	findings, err := s.allFindings(orig.Campaign)
	if err != nil {
		return err
	}
	again, err := s.replaysOf(orig.Run)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Run != orig.Run {
			continue
		}
		f.Replays, f.Reproduced = len(again), 0
		for _, r := range again {
			if check.Shows(r.Verdict, f.Failure) {
				f.Reproduced++
			}
		}
		if err := s.store.PutFinding(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) repeat(w model.WorkItem) string {
	if w.Scenario.Strategy == model.StrategyScripted {
		return w.Scenario.Repeat
	}
	return s.replayCommand(w.Run)
}

// replayCommand is what a user types to repeat a run.
func (s *Service) replayCommand(run string) string {
	cmd := "netsplit replay " + run + " -n 10"
	if s.cfg.InProcess {
		cmd += " --runs-dir " + s.cfg.RunsDir
	}
	return cmd
}
