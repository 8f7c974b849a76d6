package campaign

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"netsplit/campaign/run"
	"netsplit/explorer/check"
	"netsplit/model"
)

// fakeScripts reads a text as the name of its target; it may be "mistaken".
type fakeScripts struct{}

func (fakeScripts) Known() ([]model.KnownScript, error) { return nil, nil }
func (fakeScripts) Read(f model.ScriptFile, other string, load func(string) (*model.Target, error)) (*Script, error) {
	if f.Text == "mistaken" {
		return nil, errors.New("mine.yaml:3: steps: no steps")
	}
	sc := &Script{File: f, Name: "mine", Target: f.Text, Set: map[string]string{"quorum": "1", "min_replicas": "0"}, Class: model.Documented, Quote: "It may.", Play: run.Play(nil)}
	if other != "" {
		sc.Target = other
	}
	_, err := load(sc.Target)
	return sc, err
}

// TestACampaignThatPlaysAScript: the script says on what and with which settings, whoever asks
// may say otherwise, and what makes no sense with a script is refused.
func TestACampaignThatPlaysAScript(t *testing.T) {
	s := bookkeeper(t)
	s.cfg.Scripts = fakeScripts{}
	file := &model.ScriptFile{Name: "mine.yaml", Text: "redis-sentinel"}
	spec, target, err := s.complete(model.CampaignSpec{Script: file, Strategy: model.StrategyCoFI, Args: map[string]string{"quorum": "2"}})
	if err != nil || spec.Strategy != model.StrategyScripted || spec.Target != "redis-sentinel" || spec.Runs != 1 || spec.Clean != 0 || spec.Labs != 1 ||
		!maps.Equal(spec.Args, map[string]string{"quorum": "2", "min_replicas": "0"}) || *spec.Script != *file || spec.OnStage() {
		t.Fatalf("%+v, %v", spec, err)
	}
	sc, err := s.scripted(spec.Script, spec.Target, target)
	if last := target.Checks[len(target.Checks)-1]; err != nil || sc.Name != "mine" || last.Name != check.Script || last.Class != model.Documented || last.Quote != "It may." {
		t.Errorf("%+v, %+v, %v", sc, target.Checks, err)
	}
	for _, c := range target.Checks {
		if c.Name == "lost-acknowledged-writes" {
			t.Error("a check of what the workloads did judges a script")
		}
	}
	if sc, err := s.scripted(nil, "redis-sentinel", target); sc != nil || err != nil {
		t.Errorf("no script: %+v, %v", sc, err)
	}
	played := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001", Scenario: model.Scenario{Strategy: model.StrategyScripted, Steps: []model.Step{{Do: model.Fault{Cut: &model.Partition{}}}}}}}
	if err := errors.Join(s.store.PutCampaign(model.Campaign{ID: "c-1", Spec: spec}), s.store.PutRun(played)); err != nil {
		t.Fatal(err)
	}
	if again, _, err := s.complete(model.CampaignSpec{Replay: "c-1-r0001"}); err != nil || again.Script == nil || *again.Script != *file || !maps.Equal(again.Args, spec.Args) || again.Strategy != model.StrategyScripted {
		t.Errorf("its replay: %+v, %v", again, err)
	}
	for want, requested := range map[string]model.CampaignSpec{
		"mine.yaml:3: steps: no steps":    {Script: &model.ScriptFile{Name: "mine.yaml", Text: "mistaken"}},
		"a daemon opens no path":          {Script: &model.ScriptFile{Name: "mine.yaml", Text: "../../etc/passwd"}},
		"leave out strategy random":       {Script: file, Strategy: model.StrategyRandom},
		"no clean runs":                   {Script: file, Clean: 5},
		"leave out the replay":            {Script: file, Replay: "c-1-r0001"},
		"replay and the scenario":         {Script: file, Scenario: &model.Scenario{}},
		"leave out withoutCut and shrink": {Replay: "c-1-r0001", WithoutCut: true},
		"leave stopWhenBroken out":        {Script: file, StopWhenBroken: true},
		"no setting":                      {Script: file, Args: map[string]string{"nothing": "1"}},
		"strategy scripted needs a":       {Target: "redis-sentinel", Strategy: model.StrategyScripted},
	} {
		if _, _, err := s.complete(requested); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	put, _, err := s.PutSchedule(t.Context(), model.Schedule{Name: "nightly", Cron: "@daily", Spec: model.CampaignSpec{Script: file, Strategy: model.StrategyCoFI}})
	if err != nil || put.Spec.Strategy != model.StrategyScripted || put.Spec.Target != "redis-sentinel" || *put.Spec.Script != *file {
		t.Errorf("a schedule: %+v, %v", put, err)
	}
	s.cfg.Scripts = nil
	if _, _, err := s.complete(model.CampaignSpec{Script: file}); err == nil || !strings.Contains(err.Error(), "plays no scripts") {
		t.Errorf("%v", err)
	}
}

// TestAScriptGoesOn where its file is known; one that a program plays does not.
func TestAScriptGoesOn(t *testing.T) {
	file := &model.ScriptFile{Name: "mine.yaml", Text: "redis-sentinel"}
	for _, c := range []struct {
		script *model.ScriptFile
		state  model.CampaignState
	}{{file, model.CampaignQueued}, {nil, model.CampaignFailed}} {
		s := bookkeeper(t)
		if err := s.store.PutCampaign(model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{Target: "redis-sentinel", Strategy: model.StrategyScripted, Script: c.script}}); err != nil {
			t.Fatal(err)
		}
		if err := s.resume(); err != nil {
			t.Fatal(err)
		}
		got, err := s.getCampaign("c-1")
		if queued := len(s.queue) == 1; err != nil || queued != (c.state == model.CampaignQueued) || !queued && got.State != c.state {
			t.Errorf("%+v, %d queued, %v", got, len(s.queue), err)
		}
	}
}
