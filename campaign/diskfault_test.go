package campaign

import (
	"errors"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestDisksFailInLabsOnly: elsewhere a step about files is refused with the reason, as is one
// about a server that there is not.
func TestDisksFailInLabsOnly(t *testing.T) {
	target := &model.Target{Name: "mine", Nodes: []model.NodeID{"n1", "n2"}, Processes: []model.Process{{Name: "db", Hosts: []model.NodeID{"n1", "n2"}}, {Name: "init", Hosts: []model.NodeID{"n1"}, Once: true}}}
	hosts := func(exec ...string) []model.TestbedHost {
		return []model.TestbedHost{{Name: "n1"}, {Name: "n2", Exec: exec}}
	}
	gone := model.Step{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: "n1"}}}
	waits := model.Step{When: model.Trigger{File: &model.FileTrigger{Process: "db"}}, Do: model.Fault{Isolate: "n1"}}
	for _, c := range []struct {
		on   *model.Testbed
		step model.Step
		want string
	}{
		{nil, gone, ""},
		{nil, waits, ""},
		{nil, model.Step{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: "n1", Process: "init"}}}, "target mine has no such server there"},
		{nil, model.Step{When: model.Trigger{File: &model.FileTrigger{Process: "bd"}}, Do: model.Fault{Isolate: "n1"}}, "file operation by bd, number 1: target mine has no such server there"},
		{&model.Testbed{Name: "rack", Hosts: hosts("ssh", "n2")}, gone, "host n2 of testbed rack is another one: use a lab"},
		{&model.Testbed{Name: "rack", Hosts: hosts(), Hooks: model.Hooks{Start: "systemctl start {{.Process}}"}}, waits, "on testbed rack hooks do: use a lab"},
		{&model.Testbed{Name: "rack", Hosts: hosts()}, gone, "testbed rack is somebody else's: use a lab"},
		{&model.Testbed{Name: "rack", Hosts: hosts()}, model.Step{Do: model.Fault{Isolate: "n1"}}, ""},
	} {
		s := &Service{store: storetest.New(t), cfg: Config{Testbed: c.on}}
		_, err := s.userScenario(model.CampaignSpec{Scenario: &model.Scenario{Steps: []model.Step{c.step}}}, target)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestSearchesForDisksAreOfLabs: elsewhere one is refused that needs disk gates, and no other.
func TestSearchesForDisksAreOfLabs(t *testing.T) {
	target := &model.Target{Name: "mine", Nodes: []model.NodeID{"n1", "n2"}, Timing: model.Timing{MaxCut: time.Second, Workload: time.Second}}
	for _, c := range []struct {
		strategy model.Strategy
		kind     model.PointFaultKind
		needs    bool
	}{
		{model.StrategySequences, model.PointDisk, true}, {model.StrategySequences, model.PointDiskError, true},
		{model.StrategySequences, model.PointPowerCut, true}, {model.StrategySequences, model.PointCrash, false},
		{model.StrategyRandom, model.PointDiskFailure, true}, {model.StrategyRandom, model.PointPowerCut, true}, {model.StrategyRandom, model.PointCrash, false},
	} {
		kind, needs := c.kind, c.needs
		for _, on := range []*model.Testbed{nil, {Name: "rack"}} {
			s := &Service{cfg: Config{Testbed: on}}
			spec := model.CampaignSpec{Strategy: c.strategy, Effect: model.Drop, Faults: []model.PointFaultKind{kind}, Clean: 2, Runs: 9, Depth: 1}
			_, err := s.source(spec, target)
			if refused := needs && on != nil; refused && (err == nil || !strings.Contains(err.Error(), "testbed rack is somebody else's: use a lab")) || !refused && err != nil {
				t.Errorf("%s of %s on %v: %v", kind, c.strategy, on, err)
			}
		}
	}
}
