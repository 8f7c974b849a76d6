package check

import (
	"maps"
	"slices"
	"testing"

	"netsplit/model"
)

// TestEveryCheckHasASeverity: of a check that is not in the table what it reports
// would be an error, however much is lost.
func TestEveryCheckHasASeverity(t *testing.T) {
	if got := slices.Sorted(maps.Keys(costs)); !slices.Equal(got, Names()) {
		t.Errorf("costs has %v, the checks are %v", got, Names())
	}
	for _, c := range costs {
		for _, s := range append(slices.Collect(maps.Values(c.others)), c.severity) {
			if !slices.Contains(severities, s) {
				t.Errorf("severity %q has no place in the order", s)
			}
		}
	}
	for _, c := range []struct {
		check, signature string
		want             model.Severity
	}{
		{"leaders", "more than 1 lead after recovery", model.SeveritySplitBrain},
		{"leaders", "fewer than 1 lead after recovery", model.SeverityNotRecovered},
		{"not-finished", "what submit handed in is lost: NOTFOUND after recovery", model.SeverityData},
		{"not-finished", "what submit handed in does not end: RUNNING after recovery", model.SeverityNotRecovered},
		{"workload-hang", "workload w did not end", model.SeverityNotRecovered},
		{"of a later version", "it", model.SeverityError},
	} {
		if got := SeverityOf(model.Failure{Check: c.check, Signature: c.signature}); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.check, c.signature, got, c.want)
		}
	}
}

// TestAReplayShowsACauseInOtherWords: an acknowledgement that came just before the
// cut in one run and just after in another is one loss.
func TestAReplayShowsACauseInOtherWords(t *testing.T) {
	lost := func(when string) model.Failure {
		return model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost: acknowledged " + when + " by the isolated node"}
	}
	op := func(signature, cause string) model.Failure {
		return model.Failure{Check: "operations", Signature: signature, Cause: cause}
	}
	get := "get failed with Timeout although all it needs was reached, while cut"
	for _, c := range []struct {
		orig, again model.Failure
		want        bool
	}{
		{lost("before the cut"), lost("during the cut"), true},
		{lost("before the cut"), model.Failure{Check: "gone", Signature: lost("before the cut").Signature}, false},
		{lost("before the cut"), model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost though no other node ever led"}, false},
		{lost("before the cut"), model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost: acknowledged, acknowledged by an unknown node"}, false},
		{model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost, acknowledged by an unknown node"}, model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost, acknowledged by the isolated node"}, true},
		{model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost, acknowledged by a node that was not isolated"}, model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost, acknowledged by the isolated node"}, false},
		{model.Failure{Check: "workload-hang", Signature: "workload workload w on c1 did not end within 17s of its start (timing.workload) did not end"}, model.Failure{Check: "workload-hang", Signature: "workload w on c1 did not end"}, true},
		{op(get, ""), op("put failed with Timeout although all it needs was reached", ""), true},
		{op(get, ""), op(get, "process-died: process s ended with status 1"), true}, // judged by an older version
		{op(get, ""), op("put failed with Refused although all it needs was reached", ""), false},
		{op(get, "process-died: process s ended with status 1"), op("put failed with Timeout although all it needs was reached", ""), false},
	} {
		if got := Shows(model.Verdict{Failures: []model.Failure{{Check: "gone", Signature: "other"}, c.again}}, c.orig); got != c.want {
			t.Errorf("%v again as %v: %v", c.orig, c.again, got)
		}
	}
}

// TestTheLargestLossComesFirst of those of one check; lost writes come before copies that differ.
func TestTheLargestLossComesFirst(t *testing.T) {
	fs := []model.Failure{
		{Check: "copies-equal", Signature: "a", Amount: 9, Class: model.Broken},
		{Check: "lost-acknowledged-writes", Signature: "b", Amount: 1, Class: model.Broken},
		{Check: "lost-acknowledged-writes", Signature: "c", Amount: 528, Class: model.Broken},
	}
	if f, _ := Costliest(model.Verdict{Failures: fs}); f.Signature != "c" {
		t.Errorf("the costliest is %+v", f)
	}
	slices.SortFunc(fs, compareFailures)
	if fs[1].Signature != "b" || fs[2].Signature != "a" {
		t.Errorf("sorted %+v", fs)
	}
}
