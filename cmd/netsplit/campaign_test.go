package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/api/wire"
)

// TestWhenSeen: two findings of one check, whose summaries may read alike, say
// what they are distinguished by.
func TestWhenSeen(t *testing.T) {
	finding := func(id, check, signature string) wire.Finding {
		return wire.Finding{ID: id, FirstAfter: 6, Failure: wire.Failure{Check: check, Signature: signature}}
	}
	cut, heal, other := finding("1", "stale-read", "old values while cut"), finding("2", "stale-read", "old values after heal"), finding("3", "leaders", "two lead")
	other.Clean, other.Failure.Known, other.Failure.KnownBy = true, "X-1", "symptom"
	for _, c := range []struct {
		of    wire.Finding
		found []wire.Finding
		want  string
	}{
		{cut, []wire.Finding{cut}, "first seen in run 6"},
		{cut, []wire.Finding{cut, other}, "first seen in run 6"},
		{heal, []wire.Finding{cut, heal, other}, "old values after heal; first seen in run 6"},
		{other, []wire.Finding{cut, other}, "looks like X-1, by its symptom; first seen in run 6, also without any fault"},
	} {
		if got := whenSeen(c.of, c.found); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestFindingsAreALineForEachCause: the costliest first, whatever order they come
// in; what a cause brought beside stands below it.
func TestFindingsAreALineForEachCause(t *testing.T) {
	finding := func(id, cause, severity, class, summary string) wire.Finding {
		return wire.Finding{ID: id, CauseID: cause, Severity: severity, Class: class, Run: "r-" + id, FirstAfter: 2, Runs: []string{"r-" + id},
			Failure: wire.Failure{Check: "check-" + id, Severity: severity, Class: class, Summary: summary}}
	}
	var out strings.Builder
	found := []wire.Finding{
		finding("1", "a", "error", "broken", "1 of 283 operations get failed"),
		finding("2", "b", "data", "documented", "3 writes lost"),
		finding("3", "c", "data", "broken", strings.Repeat("long ", 60)+"end"),
		finding("4", "a", "error", "broken", "1 of 9 operations put failed"),
	}
	printHeadline(&out, found)
	printFindings(&out, found, (&daemonFlags{}).place("runs"))
	lines := strings.Split(out.String(), "\n")
	long := strings.Repeat("long ", 60)
	for i, want := range []string{"", "data (broken): " + long[:124] + "…", "and findings of 2 more causes, below", "", "4 findings of 3 causes, the costliest first",
		"  1. data (broken): " + long[:124] + "…", "  2. error (broken): 1 of 283 operations get failed", "  3. data (documented): 3 writes lost"} {
		if lines[i] != want {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
	for _, want := range []string{"1. check-3: " + long + "end\n   first seen in run 2; in 1 run\n   replay: ",
		"   same cause: check-4, error (broken): 1 of 9 operations put failed; first seen in run 2; in 1 run, the first r-4\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// TestReplaysAreCountedByCause: the same loss in other words is the same one; what
// the run did not show is told beside.
func TestReplaysAreCountedByCause(t *testing.T) {
	run := func(id string, failures ...[2]string) (r wire.RunRow) {
		r.ID = id
		for _, f := range failures {
			r.Verdict.Failures = append(r.Verdict.Failures, wire.Failure{Check: "gone", Class: "broken", Severity: "data", Signature: f[0], Cause: f[1], Summary: "sum " + f[0]})
		}
		return r
	}
	lost, again, back, stop := [2]string{"gone while cut", "gone"}, [2]string{"gone before the cut", "gone"}, [2]string{"back", "back"}, [2]string{"stop", "stop"}
	runs := []wire.RunRow{run("r1", lost), run("r2", again, stop), run("r3"), run("r4", stop, [2]string{"stop again", "stop"})}
	want := []string{"  2/4: data, gone (broken): gone", "  0/4: data, gone (broken): back", "other failure: data, gone (broken): sum stop; in r2, r4"}
	if diff := cmp.Diff(want, replayLines(run("o", lost, back, again).Verdict, runs)); diff != "" {
		t.Error(diff)
	}
}
