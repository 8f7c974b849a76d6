package judge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// TestRelationsAreJudged: a violation is a failure with the messages that it links to,
// on the page too; a query that fails leaves the run unknown, and says where.
func TestRelationsAreJudged(t *testing.T) {
	events := `{"n":1,"t":1000000,"k":"workload"}
{"n":2,"t":2000000,"k":"message","msg":{"num":7,"from":"n1","to":"n2","stream":"s","type":"append","fields":[{"name":"term","value":"3"}]}}
{"n":3,"t":3000000,"k":"message","msg":{"num":8,"from":"n2","to":"n1","stream":"s","type":"append","fields":[{"name":"term","value":"3"}]}}
{"n":4,"t":4000000,"k":"stop"}
`
	facts := "facts:\n  append: {message: append, columns: [term int]}\nchecks:\n"
	check := "  - {name: one-leader, class: broken, quote: One leader., select: \"select term, min(num) num, max(num) last_num from append group by term having count(distinct src) > "
	for text, want := range map[string]struct {
		value  model.VerdictValue
		reason string
	}{
		facts + check + "1\"}": {model.VerdictFail, "one-leader: term=3 num=7 last_num=8 at 4ms"},
		facts + check + "2\"}": {model.VerdictPass, "all checks hold"},
		facts + check + "2\"}\n  - {name: never, class: broken, quote: q, at: none, select: select 1}\nviews:\n  none: select n from event where n < 0": {model.VerdictPass, "nothing to judge for never"},
		facts + check + "1\", unless: append}": {model.VerdictUnknown, "check one-leader could not decide: append: n=2 num=7"},
		facts + check + "nosuch\"}":            {model.VerdictUnknown, "relations: r.yaml:4: check one-leader: SQL logic error: no such column: nosuch"},
	} {
		dir := written(t, model.RunMeta{Run: "r1", Scenario: model.Scenario{Strategy: model.StrategyClean}}, record.Evidence{}, events)
		if err := rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), model.Target{Relations: "r.yaml", RelationsText: text}); err != nil {
			t.Fatal(err)
		}
		sum, err := Dir(dir, "")
		page, perr := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
		if err := errors.Join(err, perr); err != nil {
			t.Fatal(err)
		}
		v := sum.Verdict
		if v.Value != want.value || !strings.Contains(v.Reason, want.reason) {
			t.Errorf("%s:\n%s: %s; want %s: %s", text, v.Value, v.Reason, want.value, want.reason)
		}
		if v.Value != model.VerdictFail {
			continue
		}
		f := v.Failures[0]
		if f.Check != "one-leader" || f.Class != model.Broken || f.Quote != "One leader." || f.Amount != 1 || f.Detail[0] != "4ms, event 4: term=3 num=7 last_num=8 [m7 m8]" {
			t.Errorf("%+v", f)
		}
		if !strings.Contains(string(page), `<a href="#m=7">m7</a> <a href="#m=8">m8</a>`) {
			t.Error("the page does not link to the messages")
		}
	}
}

// TestRelationsOfAnIncompleteRun are not asked: what is missing may be what they miss.
func TestRelationsOfAnIncompleteRun(t *testing.T) {
	text := "checks:\n  - {name: c, class: broken, quote: q, select: select 1}"
	for _, ev := range []record.Evidence{{Incomplete: []string{"a switch was lost"}}, {Unread: []string{"the writer died"}}} {
		dir := written(t, model.RunMeta{Run: "r1"}, ev, "")
		if err := rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), model.Target{Relations: "r.yaml", RelationsText: text}); err != nil {
			t.Fatal(err)
		}
		if sum, err := Dir(dir, ""); err != nil || sum.Verdict.Value != model.VerdictUnknown || len(sum.Verdict.Failures) > 0 {
			t.Errorf("%+v, %v", sum.Verdict, err)
		}
	}
}

// TestRelationsAreExamined: a clean run that violates one shows a check that is too
// strict. What a script did to the nodes no step may tell.
func TestRelationsAreExamined(t *testing.T) {
	for strategy, problem := range map[model.Strategy]bool{model.StrategyClean: true, model.StrategyScripted: false} {
		dir := written(t, model.RunMeta{Run: "r1", Scenario: model.Scenario{Strategy: strategy}}, record.Evidence{}, `{"n":1,"k":"start"}`+"\n")
		text := "checks:\n  - {name: mine, class: broken, quote: q, select: select 1}"
		if err := rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), model.Target{Relations: "r.yaml", RelationsText: text}); err != nil {
			t.Fatal(err)
		}
		x, err := Examine(dir)
		if err != nil || strings.Contains(strings.Join(x.Problems, "\n"), "check mine failed though nothing was cut") != problem ||
			strings.Contains(strings.Join(x.Facts, "\n"), "check mine failed in this run, which is no clean one") == problem {
			t.Errorf("%s: %+v, %v", strategy, x, err)
		}
	}
}
