package campaign

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestCompare: findings are new, still there or gone by check and signature; what it is
// compared with is a campaign like it.
func TestCompare(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, store: storetest.New(t)}
	put := func(id string, at int, spec model.CampaignSpec, state model.CampaignState, signatures ...string) {
		t.Helper()
		errs := []error{s.store.PutCampaign(model.Campaign{ID: id, Spec: spec, State: state, Created: time.Unix(int64(at), 0)})}
		for i, sig := range signatures {
			errs = append(errs, s.store.PutFinding(model.Finding{ID: id + "-" + sig, Campaign: id, Rank: i + 1, Failure: model.Failure{Check: "lost", Signature: sig}}))
		}
		for i, v := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictUnknown, model.VerdictVacuous, model.VerdictPass} {
			r := model.RunSummary{RunMeta: model.RunMeta{Campaign: id, Run: fmt.Sprintf("%s-r%d", id, i), Scenario: model.Scenario{Strategy: model.StrategyCoFI}}, Verdict: model.Verdict{Value: v}}
			if i == 4 {
				r.Scenario.Strategy = model.StrategyClean
			}
			errs = append(errs, s.store.PutRun(r))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	spec := model.CampaignSpec{Target: "mine:0123456789ab@1.0", Strategy: model.StrategyCoFI}
	later, other, set := spec, spec, spec
	later.Target, other.Target, set.Args = "mine:ffff00000000@2.0", "yours", map[string]string{"bug": "true"}
	put("c-1", 1, spec, model.CampaignDone, "a", "b")
	put("c-2", 2, other, model.CampaignDone, "a")
	put("c-3", 3, set, model.CampaignDone)
	put("c-4", 4, spec, model.CampaignFailed)
	put("c-5", 5, later, model.CampaignDone, "b", "c", "d")
	put("c-6", 6, spec, model.CampaignDone)
	for _, before := range []string{"", "c-1"} {
		c, err := s.Compare(t.Context(), "c-5", before)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, list := range [][]model.Finding{c.New, c.Still, c.Gone} {
			for _, f := range list {
				got = append(got, f.ID)
			}
			got = append(got, "|")
		}
		if want := "c-5-c c-5-d | c-5-b | c-1-a |"; strings.Join(got, " ") != want || c.Campaign != (model.Compared{ID: "c-5", Judged: 2}) || c.Before != (model.Compared{ID: "c-1", Judged: 2}) {
			t.Errorf("%v, %+v, %+v; want %s", got, c.Campaign, c.Before, want)
		}
	}
	script := model.CampaignSpec{Target: "mine", Strategy: model.StrategyScripted, Script: &model.ScriptFile{Name: "a.yaml", Text: "a"}}
	another, onStage := script, script
	another.Script, onStage.Script = &model.ScriptFile{Name: "a.yaml", Text: "b"}, nil
	put("c-11", 11, script, model.CampaignDone, "a")
	put("c-12", 12, onStage, model.CampaignDone, "b")
	put("c-13", 13, another, model.CampaignDone)
	put("c-14", 14, onStage, model.CampaignDone)
	put("c-15", 15, script, model.CampaignDone)
	if c, err := s.Compare(t.Context(), "c-15", ""); err != nil || c.Before.ID != "c-11" || len(c.Gone) != 1 {
		t.Errorf("of the same script: %+v, %v", c, err)
	}
	for _, c := range []struct {
		id, before string
		want       error
	}{{"c-13", "", model.ErrNotFound}, {"c-14", "", model.ErrNotFound}, {"c-5", "c-2", model.ErrInvalid}, {"c-5", "c-9", model.ErrNotFound}, {"c-9", "", model.ErrNotFound}, {"c-1", "", model.ErrNotFound}, {"c-3", "", model.ErrNotFound}} {
		if _, err := s.Compare(t.Context(), c.id, c.before); !errors.Is(err, c.want) {
			t.Errorf("%s with %q: %v, want %v", c.id, c.before, err, c.want)
		}
	}
}

// TestOtherStrategiesOnTheSameTarget: the newest search of each, done, on the same release and
// with the same settings.
func TestOtherStrategiesOnTheSameTarget(t *testing.T) {
	s := bookkeeper(t)
	at := time.Unix(1e9, 0)
	add := func(id string, spec model.CampaignSpec, state model.CampaignState) model.Campaign {
		at = at.Add(time.Minute)
		c := model.Campaign{ID: id, Spec: spec, State: state, Created: at, Done: 3}
		r := failedRun(1)
		r.Campaign, r.Run, r.Target = id, id+"-r0001", "hdfs"
		_, r.Release, _ = strings.Cut(spec.Target, "@")
		if err := errors.Join(s.store.PutCampaign(c), s.store.PutRun(r)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	spec := func(target string, strategy model.Strategy, args map[string]string) model.CampaignSpec {
		return model.CampaignSpec{Target: target, Strategy: strategy, Args: args}
	}
	a := map[string]string{"x": "1"}
	add("c-1", spec("hdfs@3.3.0", model.StrategyRandom, a), model.CampaignDone)
	add("c-2", spec("hdfs@3.3.0", model.StrategyRandom, a), model.CampaignDone)
	add("c-3", spec("hdfs@3.4.1", model.StrategySequences, a), model.CampaignDone)
	add("c-4", spec("hdfs@3.3.0", model.StrategySequences, nil), model.CampaignDone)
	add("c-5", spec("hdfs@3.3.0", model.StrategySequences, a), model.CampaignFailed)
	add("c-6", spec("hdfs@3.3.0", model.StrategyClean, a), model.CampaignDone)
	add("c-7", model.CampaignSpec{Target: "hdfs@3.3.0", Replay: "c-1-r0001", Args: a}, model.CampaignDone)
	c := add("c-8", spec("hdfs@3.3.0", model.StrategyCoFI, a), model.CampaignDone)
	deep := spec("hdfs@3.3.0", model.StrategySequences, a)
	deep.Depth = 2
	deep.Target = "/srv/hdfs@3.3.0" // the same target by its path
	add("c-9", deep, model.CampaignDone)
	others, err := s.otherStrategies(&c)
	if err != nil || len(others) != 2 || others[0].Campaign.ID != "c-9" || others[1].Campaign.ID != "c-2" || others[1].Judged != 1 {
		t.Errorf("%+v, %v", others, err)
	}
}
