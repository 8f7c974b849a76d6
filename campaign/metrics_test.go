package campaign

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// logged keeps what metrics are told of before.
type logged struct {
	Metrics
	runs     map[string]int
	findings []string
	before   int
	lastCut  time.Time
	gone     []model.DatapathID
}

func (m *logged) RunsDone(target string, strategy model.Strategy, v model.VerdictValue, n int) {
	m.runs[fmt.Sprint(target, " ", strategy, " ", v)] += n
}
func (m *logged) Finding(f model.Finding)                { m.findings = append(m.findings, f.ID) }
func (m *logged) FoundBefore(string, model.FailureClass) { m.before++ }
func (m *logged) LastCut(at time.Time)                   { m.lastCut = at }
func (m *logged) SwitchGone(id model.DatapathID)         { m.gone = append(m.gone, id) }
func (m *logged) SwitchConnected(model.DatapathID, bool) {}

// TestMetricsHaveWhatTheStoreHas, after a restart: runs by verdict, the last findings,
// and when the last cut was.
func TestMetricsHaveWhatTheStoreHas(t *testing.T) {
	m := &logged{runs: map[string]int{}}
	s := &Service{store: storetest.New(t), metrics: m, cfg: Config{RunsDir: t.TempDir()}}
	cells := []model.MapCell{{Type: "a"}, {Type: "b", Outcomes: []model.MapOutcome{{Kind: model.MetCut, Passed: 2}}}, {Type: "c", Outcomes: []model.MapOutcome{{Kind: model.MetCut, Passed: 1}, {Kind: model.MetCrash, Failed: 1}}}}
	for _, c := range []model.Campaign{{ID: "c-1", Done: 5}, {ID: "c-2", Done: 1, Spec: model.CampaignSpec{Replay: "c-1-r0001"}}, {ID: "c-3"}} {
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(s.cfg.RunsDir, "c-1"), 0o700), rundir.WriteJSON(s.mapFile("c-1"), model.PartitionMap{Cells: cells})); err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1e9, 0)
	for i := range 5 {
		r := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprint("r", i), Target: "mine", Started: began.Add(time.Duration(i) * time.Minute)},
			Verdict: model.Verdict{Value: model.VerdictPass}, Proof: &model.Proof{CutAt: time.Second}}
		r.Scenario.Strategy = model.StrategyCoFI
		if i == 4 {
			r.Verdict.Value, r.Proof = model.VerdictFail, nil
		}
		if err := s.store.PutRun(r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range shownFindings + 3 {
		f := model.Finding{ID: fmt.Sprintf("f-%04d", i), Campaign: fmt.Sprintf("c-%04d", i)}
		if err := s.store.PutFinding(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.restoreMetrics(); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"mine cofi pass": 4, "mine cofi fail": 1}; !maps.Equal(m.runs, want) {
		t.Errorf("runs: %v, want %v", m.runs, want)
	}
	if n := len(m.findings); n != shownFindings || m.before != 3 || m.findings[0] != "f-0003" || m.findings[n-1] != fmt.Sprintf("f-%04d", shownFindings+2) {
		t.Errorf("%d findings, from %s to %s", n, m.findings[0], m.findings[n-1])
	}
	if want := (model.MapCount{Never: 1, Met: 1, Failed: 1}); s.State().Map != want {
		t.Errorf("the map has %+v, want %+v", s.State().Map, want)
	}
	if want := began.Add(3*time.Minute + time.Second); !m.lastCut.Equal(want) {
		t.Errorf("the last cut was at %v, want %v", m.lastCut, want)
	}
}

func TestTheSwitchOfALabThatIsGoneIsForgotten(t *testing.T) {
	m := &logged{}
	s := &Service{metrics: m, switches: map[model.DatapathID]time.Time{7: time.Unix(1, 0), 8: time.Unix(1, 0)}}
	s.forgetSwitches(&model.Testbed{Hosts: []model.TestbedHost{{Name: "n1", Datapath: 7}}})
	if len(m.gone) != 1 || m.gone[0] != 7 || len(s.switches) != 1 || s.switches[7] != (time.Time{}) {
		t.Errorf("gone %v, known still %v", m.gone, s.switches)
	}
}
