package judge

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestAFailureWithoutACutIsAProblem, unless somebody described it.
func TestAFailureWithoutACutIsAProblem(t *testing.T) {
	for _, c := range []struct {
		name          string
		v             model.Verdict
		told          bool
		problem, fact string
	}{
		{"pass", model.Verdict{Value: model.VerdictPass}, false, "", ""},
		{"broken", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "process-died", Class: model.Broken, Summary: "it died"}}}, false,
			"check process-died failed though nothing was cut: it died", ""},
		{"known", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "process-died", Class: model.Broken, Known: "X-1", Summary: "it died"}}}, false,
			"", "known as X-1: it died"},
		{"documented", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "lost", Class: model.Documented, Summary: "one of two"}}}, false,
			"", "as the documentation admits: one of two"},
		{"unknown", model.Verdict{Value: model.VerdictUnknown, Reason: "nothing to judge"}, false, "could not be judged: nothing to judge", ""},
		{"unknown, as told", model.Verdict{Value: model.VerdictUnknown, Reason: "a switch was lost"}, true, "", ""},
	} {
		x := &Examination{}
		x.verdict(c.v, c.told)
		problems, facts := strings.Join(x.Problems, "|"), strings.Join(x.Facts, "|")
		if !strings.Contains(problems, c.problem) || (problems == "") != (c.problem == "") || !strings.Contains(facts, c.fact) || (facts == "") != (c.fact == "") {
			t.Errorf("%s: problems %q, facts %q", c.name, problems, facts)
		}
	}
}
