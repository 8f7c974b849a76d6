package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// played is a run of steps that crash these hosts, one after the other.
func played(n int, hosts ...model.NodeID) model.RunSummary {
	r := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n)}, Messages: map[string]int{"ask": 1}}
	r.Scenario = model.Scenario{ID: fmt.Sprintf("s%04d", n), Strategy: model.StrategyClean}
	r.Verdict.Value = model.VerdictPass
	for i, h := range hosts {
		r.Scenario.Strategy = model.StrategySequences
		r.Scenario.Steps = append(r.Scenario.Steps, model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: h}}})
		r.Result.Steps = append(r.Result.Steps, model.StepResult{Step: i + 1, By: model.ReasonMessage, Began: 1})
	}
	return r
}

func failing(r model.RunSummary, check string) model.RunSummary {
	r.Verdict = model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: check, Signature: check, Class: model.Broken, Summary: check}}}
	return r
}

// tester plays scenarios on a system that breaks a rule whenever a host crashes, and books
// them as the campaign's runs.
func tester(s *Service, j *job, breaks map[model.NodeID]string) (makes tries, made *int) {
	made = new(int)
	return func(of string, sc model.Scenario, n int) (out []model.RunSummary, err error) {
		runs, err := s.allRuns(j.c.ID)
		if err != nil {
			return nil, err
		}
		for i := range n {
			var hosts []model.NodeID
			for _, st := range sc.Steps {
				hosts = append(hosts, st.Do.Node.Host)
			}
			r := played(len(runs)+i+1, hosts...)
			r.Campaign, r.Run, r.Scenario, r.ReplayOf = j.c.ID, fmt.Sprintf("%s-r%04d", j.c.ID, len(runs)+i+1), sc, of
			for _, h := range hosts {
				if breaks[h] != "" {
					r = failing(r, breaks[h])
				}
			}
			s.runFinished(j, r)
			out = append(out, r)
			*made++
		}
		return out, nil
	}, made
}

// TestTheStepsOfARunAreLeftOutOneByOne, and tries that were made before a restart count.
func TestTheStepsOfARunAreLeftOutOneByOne(t *testing.T) {
	s := bookkeeper(t)
	orig := failing(played(1, "n1", "n2", "n3"), "gone")
	if err := s.store.PutRun(orig); err != nil {
		t.Fatal(err)
	}
	j := &job{c: model.Campaign{ID: "c-2", State: model.CampaignRunning, Spec: model.CampaignSpec{Replay: orig.Run, Shrink: 3}}}
	makes, made := tester(s, j, map[model.NodeID]string{"n2": "gone", "n1": "process-died"})
	got, err := s.shrink(j, orig, nil, makes)
	if err != nil || !slices.Equal(got.Keep, []int{2}) || got.Made != *made || got.Run != orig.Run || got.Campaign != "c-2" || got.Tries != 3 || got.Cause != "gone: gone" {
		t.Errorf("%+v in %d runs, %v", got, *made, err)
	}
	for i, want := range []model.Needed{model.NeededNo, model.NeededYes, model.NeededNo} {
		if got.Steps[i].Needed != want {
			t.Errorf("step %d: %+v", i+1, got.Steps[i])
		}
	}
	before := *made
	again, err := s.shrink(j, orig, nil, makes)
	if err != nil || *made != before || !slices.Equal(again.Keep, got.Keep) || again.Made != got.Made {
		t.Errorf("after a restart: %d runs more, %+v, %v", *made-before, again, err)
	}
	if n, err := s.replaysOf(orig.Run); err != nil || len(n) != 0 {
		t.Errorf("%d tries count as replays, %v", len(n), err)
	}
}

// TestTriesThatCouldNotBeJudgedAreMadeAgain, and not for ever.
func TestTriesThatCouldNotBeJudgedAreMadeAgain(t *testing.T) {
	s := bookkeeper(t)
	orig := failing(played(1, "n1", "n2"), "gone")
	if err := s.store.PutRun(orig); err != nil {
		t.Fatal(err)
	}
	j := &job{c: model.Campaign{ID: "c-2", State: model.CampaignRunning, Spec: model.CampaignSpec{Replay: orig.Run, Shrink: 3}}}
	makes, made := tester(s, j, map[model.NodeID]string{"n1": "gone"})
	odd := 0
	got, err := s.shrink(j, orig, nil, func(of string, sc model.Scenario, n int) ([]model.RunSummary, error) {
		sums, err := makes(of, sc, n)
		for i := range sums {
			if odd++; odd%2 == 0 || len(sc.Steps) == 0 {
				sums[i].Verdict = model.Verdict{Value: model.VerdictUnknown}
			}
		}
		return sums, err
	})
	if err != nil || !slices.Equal(got.Keep, []int{1}) || got.None != (model.Tally{Tries: 6, Idle: 6}) || got.All.Judged() != 3 || got.All.Failed != 3 || got.Made != *made || got.Steps[0].Needed != model.NeededUnknown {
		t.Errorf("%+v in %d tries, %v", got, *made, err)
	}
}

func searched(t *testing.T, s *Service, runs ...model.RunSummary) *job {
	t.Helper()
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{Strategy: model.StrategySequences, Shrink: 3}}}
	if err := s.store.PutCampaign(j.c); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		s.runFinished(j, r)
	}
	return j
}

// TestASearchTriesEachCauseWithoutItsSteps, the smallest of each; what these runs show is
// no finding of the search.
func TestASearchTriesEachCauseWithoutItsSteps(t *testing.T) {
	s := bookkeeper(t)
	j := searched(t, s, played(1), failing(played(2, "n1", "n2"), "gone"), failing(played(3, "n3", "n2"), "gone"), failing(played(4, "n4"), "double"))
	makes, made := tester(s, j, map[model.NodeID]string{"n2": "gone", "n4": "double", "n1": "process-died"})
	if err := s.shrinkCauses(j, makes); err != nil {
		t.Fatal(err)
	}
	if x := j.c.Shrunk; len(x) != 2 || x[0].Run != "c-1-r0002" && x[1].Run != "c-1-r0002" || j.c.Reason != "" {
		t.Fatalf("%+v, %q", x, j.c.Reason)
	}
	n := *made
	if err := s.shrinkCauses(j, makes); err != nil || *made != n { // after a restart
		t.Errorf("%d more runs, %v", *made-n, err)
	}
	found, err := s.allFindings("c-1")
	if err != nil || len(found) != 2 || j.c.Findings != 2 {
		t.Errorf("%d findings, %v", len(found), err)
	}
	causes, err := s.Causes(context.Background(), "c-1")
	if err != nil || len(causes) != 2 {
		t.Fatalf("%+v, %v", causes, err)
	}
	for _, c := range causes {
		if c.Shrunk == nil || len(c.Shrunk.Keep) != 1 || c.Replays != 3 || c.Reproduced != 3 {
			t.Errorf("%+v", c)
		}
	}
	if c := causes[slices.IndexFunc(causes, func(c model.Cause) bool { return c.Seen == 2 })]; !slices.Equal(c.Shrunk.Keep, []int{2}) || !slices.Equal(c.Runs, []string{"c-1-r0002", "c-1-r0003"}) {
		t.Errorf("%+v", c)
	}
}

// TestASearchSaysWhichCausesItDidNotTry: those that fail in clean runs need no fault; for
// others there are no tries or no time left.
func TestASearchSaysWhichCausesItDidNotTry(t *testing.T) {
	s := bookkeeper(t)
	j := searched(t, s, failing(played(1), "gone"), failing(played(2, "n2"), "gone"))
	makes, made := tester(s, j, nil)
	if err := s.shrinkCauses(j, makes); err != nil || *made != 0 || j.c.Shrunk != nil {
		t.Errorf("%d runs for what fails by itself, %v", *made, err)
	}

	s = bookkeeper(t)
	var runs []model.RunSummary
	breaks := map[model.NodeID]string{}
	for i := range 15 {
		h, rule := model.NodeID(fmt.Sprintf("n%d", i)), fmt.Sprintf("rule%02d", i)
		runs, breaks[h] = append(runs, failing(played(i+1, h), rule)), rule
	}
	j = searched(t, s, runs...)
	makes, made = tester(s, j, breaks)
	if err := s.shrinkCauses(j, makes); err != nil || *made != shrinkRuns || len(j.c.Shrunk) != 10 || !strings.Contains(j.c.Reason, "before 5 of 15 causes had been tried without each step") {
		t.Errorf("%d runs, %d causes tried, %q, %v", *made, len(j.c.Shrunk), j.c.Reason, err)
	}

	s = bookkeeper(t)
	j = searched(t, s, runs...)
	err := s.shrinkCauses(j, func(string, model.Scenario, int) ([]model.RunSummary, error) { return nil, errBudget })
	if err != nil || !strings.Contains(j.c.Reason, "the budget of wall time is spent, which ended before 15 of 15") {
		t.Errorf("%q, %v", j.c.Reason, err)
	}
	stop := errors.New("stop")
	if err := s.shrinkCauses(j, func(string, model.Scenario, int) ([]model.RunSummary, error) { return nil, stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

// TestCausesOfACampaignThatEnded are read from its folder, or from its runs, and say what
// replays showed since.
func TestCausesOfACampaignThatEnded(t *testing.T) {
	s := bookkeeper(t)
	if err := rundir.MakeRoot(filepath.Join(s.cfg.RunsDir, "c-1")); err != nil {
		t.Fatal(err)
	}
	j := searched(t, s, played(1), failing(played(2, "n2"), "gone"))
	for _, c := range []model.Campaign{
		{ID: "c-2", Spec: model.CampaignSpec{Replay: "c-1-r0002"}, Done: 10, Reproduced: 7},
		{ID: "c-3", Spec: model.CampaignSpec{Replay: "c-1-r0002", WithoutCut: true}, Done: 10},
		{ID: "c-4", Spec: model.CampaignSpec{Replay: "c-1-r0002", Shrink: 3}, Done: 9, Shrunk: []model.Shrunk{{Run: "c-1-r0002", All: model.Tally{Tries: 3, Failed: 2}}}},
	} {
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
	}
	s.ended(j, nil)
	want, err := s.Causes(context.Background(), "c-1")
	if err != nil || len(want) != 1 || want[0].Replays != 13 || want[0].Reproduced != 9 || want[0].Shrunk == nil {
		t.Fatalf("%+v, %v", want, err)
	}
	if err := rundir.WriteJSON(s.causesFile("c-1"), []model.Cause{{ID: "from the file"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Causes(context.Background(), "c-1"); err != nil || len(got) != 1 || got[0].ID != "from the file" {
		t.Errorf("%+v, %v", got, err)
	}
	s.cfg.RunsDir = t.TempDir()
	if got, err := s.Causes(context.Background(), "c-1"); err != nil || len(got) != 1 || got[0].ID != want[0].ID {
		t.Errorf("without the file: %+v, %v", got, err)
	}
	if _, err := s.Causes(context.Background(), "c-9"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("no such campaign: %v", err)
	}
}

// TestShrinkIsRefusedWhereItMakesNoSense.
func TestShrinkIsRefusedWhereItMakesNoSense(t *testing.T) {
	s := bookkeeper(t)
	many := failing(played(4, slices.Repeat([]model.NodeID{"n1"}, 33)...), "gone")
	for _, r := range []model.RunSummary{failing(played(1, "n1"), "gone"), played(2, "n1"), failing(played(3), "gone"), many} {
		if err := s.store.PutRun(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		spec model.CampaignSpec
		want string // of the error; "": none
		is   int
	}{
		{model.CampaignSpec{Replay: "c-1-r0001", Shrink: 2, Runs: 9}, "", 2},
		{model.CampaignSpec{Strategy: model.StrategySequences}, "", 3},
		{model.CampaignSpec{Strategy: model.StrategySequences, Shrink: -1}, "", -1},
		{model.CampaignSpec{Strategy: model.StrategyCoFI}, "", 0},
		{model.CampaignSpec{Replay: "c-1-r0001", Strategy: model.StrategySequences}, "", 0},
		{model.CampaignSpec{Strategy: model.StrategyCoFI, Shrink: 1}, "it takes a failed run to replay, or strategy sequences", 0},
		{model.CampaignSpec{Replay: "c-1-r0001", Shrink: 101}, "use at most 100", 0},
		{model.CampaignSpec{Replay: "c-1-r0001", Shrink: -1}, "use 1 to 100", 0},
		{model.CampaignSpec{Replay: "c-1-r0001", Shrink: 1, WithoutCut: true}, "leave withoutCut out", 0},
		{model.CampaignSpec{Replay: "c-1-r0002", Shrink: 1}, "run c-1-r0002 did not fail (pass)", 0},
		{model.CampaignSpec{Replay: "c-1-r0003", Shrink: 1}, "failed without any fault", 0},
		{model.CampaignSpec{Replay: "c-1-r0004", Shrink: 1}, "has 33 steps", 0},
	} {
		got, err := s.completeShrink(c.spec)
		switch {
		case c.want == "" && (err != nil || got.Shrink != c.is || got.Replay != "" && got.Shrink > 0 && got.Runs != 0):
			t.Errorf("%+v: %+v, %v", c.spec, got, err)
		case c.want != "" && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}
