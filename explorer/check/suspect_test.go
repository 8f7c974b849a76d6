package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netsplit/internal/onecut"
	"netsplit/model"
)

func TestMarksOfAWrongTargetFile(t *testing.T) {
	target := &model.Target{Timing: model.Timing{MaxCut: 10 * time.Second, Recover: 30 * time.Second}}
	// story is a search of n fault runs, the first failing ones of which fail so; cleanFails says that a clean run does too.
	story := func(n, failing, vacuous int, class model.FailureClass, cleanFails bool) (kinds []model.WarningKind) {
		var y Tally
		var runs []model.RunSummary
		failure := func(i int) []model.Failure {
			return []model.Failure{{Check: "operations", Class: class, Signature: fmt.Sprintf("op%d failed with Timeout although all it needs was reached", i%2), Summary: "s"}}
		}
		for i := range n {
			r := model.RunSummary{RunMeta: model.RunMeta{Run: fmt.Sprintf("r%02d", i), Scenario: onecut.Scenario{Strategy: model.StrategyCoFI}.Model()}, Proof: &model.Proof{},
				Verdict: model.Verdict{Value: model.VerdictPass}}
			switch {
			case i < failing: // of two signatures, and one cause
				r.Verdict = model.Verdict{Value: model.VerdictFail, Failures: failure(i)}
			case i < failing+vacuous:
				r.Verdict.Value = model.VerdictVacuous
			}
			runs = append(runs, r)
		}
		clean := model.RunSummary{RunMeta: model.RunMeta{Run: "clean", Scenario: model.Scenario{Strategy: model.StrategyClean}}, Verdict: model.Verdict{Value: model.VerdictPass}}
		if cleanFails {
			clean.Verdict = model.Verdict{Value: model.VerdictFail, Failures: failure(0)}
		}
		for _, r := range append(runs, clean) {
			y.Add(&r)
			y.Add(&r)
		}
		for _, w := range y.Suspect(target, Merge("c", append(runs, clean))) {
			if w.Text == "" || w.Advice == "" || w.About == "" {
				t.Errorf("%+v lacks words", w)
			}
			kinds = append(kinds, w.Kind)
		}
		return kinds
	}
	for _, c := range []struct {
		n, failing, vacuous int
		class               model.FailureClass
		clean               bool
		want                []model.WarningKind
	}{
		{n: 6, failing: 3, class: model.Broken, want: []model.WarningKind{model.WarnHalf}},
		{n: 6, failing: 2, class: model.Broken},
		{n: 5, failing: 5, class: model.Broken},                                                        // too few to say
		{n: 8, failing: 3, vacuous: 2, class: model.Broken, want: []model.WarningKind{model.WarnHalf}}, // 3 of 6 that could be judged
		{n: 6, failing: 6, class: model.Documented, clean: true},
		{n: 6, failing: 1, class: model.Broken, clean: true, want: []model.WarningKind{model.WarnClean}},
		{n: 6, failing: 4, class: model.BrokenBound, clean: true, want: []model.WarningKind{model.WarnClean, model.WarnHalf}},
	} {
		if got := story(c.n, c.failing, c.vacuous, c.class, c.clean); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestRunsThatCannotBeJudgedAreToldOf while the search goes on: so many for one reason.
func TestRunsThatCannotBeJudgedAreToldOf(t *testing.T) {
	for _, c := range []struct {
		unknown, other, pass int
		want                 string
	}{
		{4, 0, 4, "4 of 8 fault runs could not be judged: the record is not complete: workload operator ended"},
		{3, 3, 3, "3 of 9 fault runs could not be judged: the record is not complete: workload operator ended"},
		{5, 0, 0, ""}, // too few to say
		{3, 0, 7, ""},
	} {
		var y Tally
		add := func(n int, v model.VerdictValue, reason string) {
			for i := range n {
				y.Add(&model.RunSummary{RunMeta: model.RunMeta{Run: fmt.Sprintf("%s%.5s%d", v, reason, i), Scenario: onecut.Scenario{Strategy: model.StrategyCoFI}.Model()},
					Verdict: model.Verdict{Value: v, Reason: reason}})
			}
		}
		add(c.unknown, model.VerdictUnknown, "the record is not complete: workload operator ended")
		add(c.other, model.VerdictVacuous, "nothing wanted to cross")
		add(c.pass, model.VerdictPass, "")
		got := ""
		for _, w := range y.Suspect(&model.Target{}, nil) {
			if got += w.Text; w.Kind != model.WarnUnjudged || w.About != "the record is not complete: workload operator ended" || w.Advice == "" {
				t.Errorf("%+v", w)
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestLimitsThatAreAsLongAsACut(t *testing.T) {
	base := func() *model.Target {
		return &model.Target{Timing: model.Timing{MaxCut: 10 * time.Second, Recover: 30 * time.Second, Workload: 10 * time.Second},
			Args: map[string]model.TargetArg{"rate": {Default: "10"}, "session": {Default: "3s"}}}
	}
	for name, change := range map[string]func(*model.Target){
		"setting session 10s": func(t *model.Target) { t.Args["session"] = model.TargetArg{Default: "10s"} },
		"setting wait 10s": func(t *model.Target) {
			t.Args["wait"] = model.TargetArg{Default: "10000", Help: "timeout, milliseconds"}
		},
		"period failure-detector 9.8s": func(t *model.Target) { t.Periods = map[string]model.Period{"failure-detector": {Length: "9800ms"}} },
		"file a.cfg, zookeeper.session.timeout.ms 10s": func(t *model.Target) {
			t.Processes = []model.Process{{Name: "p", Files: map[string]string{"a.cfg": "x=10\nzookeeper.session.timeout.ms = 10000\n"}}}
		},
		"process p, --lease-timeout 10s": func(t *model.Target) {
			t.Processes = []model.Process{{Name: "p", Command: []string{"p", "--port=10", "--lease-timeout", "10s"}}}
		},
		"workload w, --timeout 10s": func(t *model.Target) {
			t.Workloads = []model.Workload{{Name: "w", Command: []string{"w", "--timeout=10"}}}
		},
		"check workload-hang, limit 10s": func(t *model.Target) {
			t.Checks = []model.CheckSpec{{Name: "workload-hang", With: map[string]string{"limit": "10s"}}}
		},
		"timing.recover 10s": func(t *model.Target) { t.Timing.Recover = 10 * time.Second },
		"": func(t *model.Target) {
			t.Args["session"] = model.TargetArg{Default: "11s"}
			t.Checks = []model.CheckSpec{{Name: "operations", With: map[string]string{"recover": "10s", "notice": "8s"}}}
			t.Workloads = []model.Workload{{Name: "w", Command: []string{"w", "--timeout", "{{.Args.session}}", "--count=10"}}}
		},
	} {
		tg := base()
		change(tg)
		var want []string
		if name != "" {
			want = []string{name}
		}
		if got := LimitsLikeMaxCut(tg); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
