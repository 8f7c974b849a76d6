package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/campaign/search"
	"netsplit/explorer"
	"netsplit/explorer/sequence"
	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// A search over sequences takes the keys of the target unless it is given others, and
// policies by their text: what they name comes with them, and what is wrong has its line.
func TestWhatASearchOverSequencesIsGiven(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir(), InProcess: true}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "target.yaml")
	write(t, file, "name: mine\nnodes: [n1, n2]\nclients: [c1]\npoints: {keys: [side, type]}\n"+
		"processes: [{name: s, hosts: [n1], command: [sleep, '9']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
		"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n")
	spec := model.CampaignSpec{Target: file, Strategy: model.StrategySequences}
	got, _, err := s.complete(spec)
	if err != nil || !slices.Equal(got.Keys, []model.PointKey{"side", "type"}) || got.Depth != 1 {
		t.Errorf("keys %v, depth %d: %v", got.Keys, got.Depth, err)
	}
	random := model.CampaignSpec{Target: file, Strategy: model.StrategyRandom, Depth: 3, Faults: []model.PointFaultKind{model.PointCrash, model.PointPowerCut}}
	if got, _, err := s.complete(random); err != nil || got.Depth != 3 {
		t.Errorf("random: depth %d: %v", got.Depth, err)
	}
	const loops = "def filter(s):\n  while True:\n    pass\n"
	for want, change := range map[string]func(*model.CampaignSpec){
		"":          func(c *model.CampaignSpec) { c.Keys, c.Prioritised = []model.PointKey{"side", "type", "node"}, true },
		"no key":    func(c *model.CampaignSpec) { c.Keys = []model.PointKey{"side", "type", "stack"} },
		"no key \"": func(c *model.CampaignSpec) { c.Only = map[string][]string{"colour": {"red"}} },
		"mine.star:2:": func(c *model.CampaignSpec) {
			c.Policies = &model.PolicyFile{Name: "p.yaml", Text: "policy: [{file: mine.star}]", Files: map[string]string{"mine.star": loops}}
		},
		"p.yaml:1: no text of a file mine.star": func(c *model.CampaignSpec) {
			c.Policies = &model.PolicyFile{Name: "p.yaml", Text: "policy: [{file: mine.star}]"}
		},
		"a fault lose is of a message": func(c *model.CampaignSpec) {
			c.Strategy, c.Faults = model.StrategyRandom, []model.PointFaultKind{model.PointLose}
		},
		"depth and faults are of strategies sequences and random": func(c *model.CampaignSpec) { c.Strategy, c.Depth = model.StrategyCoFI, 2 },
		"keys of sequences": func(c *model.CampaignSpec) {
			c.Strategy, c.Only = model.StrategyRandom, map[string][]string{"type": {"a"}}
		},
	} {
		c := spec
		change(&c)
		got, _, err := s.complete(c)
		switch {
		case want == "" && (err != nil || len(got.Keys) != 3):
			t.Errorf("keys %v: %v", got.Keys, err)
		case want != "" && (err == nil || !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What became of every sequence is kept beside the runs; a policy that fails while the
// search goes on fails the campaign with its line.
func TestAPolicyThatFailsFailsTheCampaign(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(s.cfg.RunsDir, "c-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	policies, err := policiesOf(model.CampaignSpec{Policies: &model.PolicyFile{Name: "p.star", Text: "def filter(s):\n  return s[0]['colour'] == 'red'\n"}})
	if err != nil {
		t.Fatal(err)
	}
	src := search.FromSequences(sequence.Config{Clean: 1, Depth: 1, Runs: 1, Kinds: sequence.AtMessages(), Policies: policies}, sequence.Play{})
	clean := src.Step(search.Input{Input: explorer.Input{Kind: explorer.InputAsk, Slots: 1}}).Scenarios[0].ID
	src.Step(search.Input{Input: explorer.Input{Kind: explorer.InputResult, Result: &model.RunResult{Scenario: clean, Verdict: model.Verdict{Value: model.VerdictPass}}}})
	src.Step(search.Input{Input: explorer.Input{Kind: "profiles"}, Clean: &search.CleanRuns{Profiles: map[string]model.Profile{
		clean: {Points: []model.SeenPoint{{Point: model.Point{Side: model.SideSend, Node: "n1", Type: "a", Nth: 1}}}}}}})
	src.Step(search.Input{Input: explorer.Input{Kind: explorer.InputAsk, Slots: 1}})
	if err := s.account("c-1", src); err == nil || !strings.Contains(err.Error(), `p.star:2:14: a fit has no key "colour"`) {
		t.Error(err)
	}
	var kept model.Account
	if err := rundir.ReadJSON(filepath.Join(s.cfg.RunsDir, "c-1", rundir.AccountFile), &kept); err != nil || kept.CleanRuns != 1 || kept.Error == "" {
		t.Errorf("%+v, %v", kept, err)
	}
}
