package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/api/wire"
)

// TestWhenSeen: two findings of one check, whose summaries may read alike, say
// what they are told apart by.
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
		{other, []wire.Finding{cut, other}, "looks like X-1, by its symptom; first seen in run 6, also without any cut"},
	} {
		if got := whenSeen(c.of, c.found); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestEachOf: where a run failed twice over, the rare failure is counted by itself.
func TestEachOf(t *testing.T) {
	run := func(signatures ...string) (r wire.Run) {
		for _, s := range signatures {
			r.Verdict.Failures = append(r.Verdict.Failures, wire.Failure{Check: "stale-read", Class: "broken", Signature: s})
		}
		return r
	}
	row := func(signatures ...string) wire.RunRow { return wire.RunRow{Verdict: run(signatures...).Verdict} }
	again := []wire.RunRow{row("a"), row("a", "b"), row(), row("c")}
	if got := eachOf(run("a"), again); got != nil {
		t.Errorf("one failure: %q", got)
	}
	if diff := cmp.Diff([]string{"  2/4: stale-read (broken): a", "  1/4: stale-read (broken): b"}, eachOf(run("a", "b"), again)); diff != "" {
		t.Error(diff)
	}
}
