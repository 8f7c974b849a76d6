package campaign

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer/check"
	"netsplit/explorer/report"
	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// fill sets everything in v to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(1e9+*n), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("word", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n) * 1e6)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	}
}

// TestABriefRunHasAllThatIsLookedAt: findings and the report of a campaign are the
// same, whether they are made from whole runs or from what is kept of them.
func TestABriefRunHasAllThatIsLookedAt(t *testing.T) {
	var whole, kept []model.RunSummary
	n := 0
	for i := range 8 {
		var r model.RunSummary
		fill(reflect.ValueOf(&r).Elem(), &n)
		r.Run, r.ReplayOf = fmt.Sprintf("c-1-r%04d", i), ""
		r.Verdict.Failures[0].Signature, r.Verdict.Failures[0].BeforeCut = "one", i < 3
		r.Verdict.Value = []model.VerdictValue{model.VerdictFail, model.VerdictPass, model.VerdictUnknown, model.VerdictVacuous}[i%4]
		r.Scenario.Strategy = []model.Strategy{model.StrategyCoFI, model.StrategyClean}[i%2]
		if i < 4 {
			r.Scenario.Steps[0].Until.Class, r.Scenario.Steps[0].Until.Unseen = nil, nil
		}
		r.Result.HealClass = []*model.Class{r.Result.HealClass, nil}[i/2%2]
		if i == 6 {
			r.Proof = nil
		}
		whole, kept = append(whole, r), append(kept, brief(r))
	}
	if diff := cmp.Diff(check.Merge("c-1", whole), check.Merge("c-1", kept)); diff != "" {
		t.Errorf("findings: %s", diff)
	}
	page := func(runs []model.RunSummary) string {
		var out bytes.Buffer
		in := report.CampaignInput{Runs: runs, Findings: check.Merge("c-1", runs), Campaign: model.Campaign{ID: "c-1", State: model.CampaignDone}}
		if err := report.Campaign(&out, in); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if diff := cmp.Diff(page(whole), page(kept)); diff != "" {
		t.Errorf("report: %s", diff)
	}
}

func bookkeeper(t *testing.T) *Service {
	return &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
}

func failedRun(n int) model.RunSummary {
	r := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n), Started: time.Unix(int64(1e9+n), 0)}}
	r.Verdict = model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Signature: "lost", Summary: "lost"}}}
	r.Scenario.Strategy, r.Proof = model.StrategyRandom, &model.Proof{}
	return r
}

// TestRunsAreReadOnce: what the store has of runs that were booked is not looked at
// again; a daemon that was restarted reads them once.
func TestRunsAreReadOnce(t *testing.T) {
	s := bookkeeper(t)
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	s.runFinished(j, failedRun(1))
	other := failedRun(1)
	other.Verdict.Failures[0].Signature = "read again"
	if err := s.store.PutRun(other); err != nil {
		t.Fatal(err)
	}
	s.runFinished(j, failedRun(2))
	found, err := s.allFindings("c-1")
	if err != nil || len(found) != 1 || !cmp.Equal(found[0].Runs, []string{"c-1-r0001", "c-1-r0002"}) || j.c.Findings != 1 {
		t.Errorf("%+v, %v", found, err)
	}

	again := &job{c: j.c}
	s.runFinished(again, failedRun(3))
	if found, err = s.allFindings("c-1"); err != nil || len(found) != 2 || again.c.Findings != 2 || again.c.Done != 3 {
		t.Errorf("after a restart: %d findings, %+v, %v", len(found), again.c, err)
	}
}

// TestAFindingKeepsItsReplays when another run shows it.
func TestAFindingKeepsItsReplays(t *testing.T) {
	s := bookkeeper(t)
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	s.runFinished(j, failedRun(1))
	found, err := s.allFindings("c-1")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	found[0].Replays, found[0].Reproduced = 10, 7
	if err := s.store.PutFinding(found[0]); err != nil {
		t.Fatal(err)
	}
	s.runFinished(j, failedRun(2))
	if f, err := s.store.GetFinding(found[0].ID); err != nil || f.Replays != 10 || f.Reproduced != 7 || len(f.Runs) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTheReportOfACampaignTakesABoundedShare: what took long is not written after each
// run, but is at the end.
func TestTheReportOfACampaignTakesABoundedShare(t *testing.T) {
	s := bookkeeper(t)
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	if err := os.MkdirAll(filepath.Join(s.cfg.RunsDir, "c-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.cfg.RunsDir, "c-1", rundir.ReportFile)
	written := func() bool {
		_, err := os.Stat(path)
		_ = os.Remove(path)
		return err == nil
	}
	s.runFinished(j, failedRun(1))
	if !written() {
		t.Error("not after the first run")
	}
	j.books.took = time.Hour
	s.runFinished(j, failedRun(2))
	if written() {
		t.Error("after a run, though the last one took an hour")
	}
	s.ended(j, nil)
	if !written() {
		t.Error("not at the end")
	}
}
