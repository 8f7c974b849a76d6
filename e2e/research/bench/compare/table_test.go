package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// put writes the summaries of one campaign below dir. A run is its failures'
// signatures, "clean" marks one without a cut, "of X" a replay of run X.
func put(t *testing.T, dir, target, strategy, seed string, done bool, runs ...string) {
	t.Helper()
	root := filepath.Join(dir, target, strategy, seed)
	for i, r := range runs {
		sum := model.RunSummary{Ended: time.Unix(int64(i), 0)}
		sum.Run = fmt.Sprintf("c%s-r%04d", seed, i+1)
		sum.Scenario.Strategy = model.Strategy(strategy)
		sum.Verdict.Value = model.VerdictPass
		if of, rest, ok := strings.Cut(strings.TrimPrefix(r, "of "), ":"); ok {
			sum.ReplayOf, r = of, rest
		}
		for _, sig := range strings.Fields(r) {
			if sig == "clean" {
				sum.Scenario.Strategy = model.StrategyClean
				continue
			}
			sum.Verdict.Value = model.VerdictFail
			sum.Verdict.Failures = append(sum.Verdict.Failures, model.Failure{Check: "check", Signature: sig, Class: model.Broken})
		}
		b, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		d := filepath.Join(root, "camp", sum.Run)
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "summary.json"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if done {
		if err := os.WriteFile(filepath.Join(root, doneFile), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "gossip", "cofi", "1", true, "clean", "", "lost", "lost", "of c1-r0003:lost", "of c1-r0003:")
	put(t, dir, "gossip", "cofi", "2", true, "clean", "lost", "", "")
	put(t, dir, "gossip", "cofi", "3", true, "clean stale", "", "", "")
	put(t, dir, "gossip", "random", "1", true, "clean", "", "", "stale")
	put(t, dir, "gossip", "random", "2", true, "clean", "", "lost", "stale")
	put(t, dir, "gossip", "random", "3", true, "clean", "", "", "")
	put(t, dir, "gossip", "random", "4", false, "clean", "lost")

	all, unfinished, err := load(dir)
	if err != nil || len(all) != 6 || len(unfinished) != 1 {
		t.Fatalf("%d campaigns, unfinished %v, %v", len(all), unfinished, err)
	}
	found := aggregate(all)
	if len(found) != 2 || found[0].signature != "lost" || found[1].signature != "stale" || !found[1].clean || found[0].clean {
		t.Fatalf("%+v", found)
	}
	cofi, random := found[0].by["cofi"], found[0].by["random"]
	// Runs 2, 1 and never: the second of them. Replays of another campaign's
	// run than the one that saw it first do not count.
	for what, got := range map[string][2]string{
		"cofi":          {cofi.String(), "2 (2 of 3 campaigns)"},
		"random":        {random.String(), "not in 3 (1 of 3 campaigns)"},
		"ratio":         {ratio(cofi, random), "< 0.67"},
		"other way":     {ratio(random, cofi), "> 1.50"},
		"run to replay": {cofi.run, "c2-r0002"},
		"not replayed":  {cofi.replay(), "-"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", what, got[0], got[1])
		}
	}
	// What a clean run showed does not count as found by a cut.
	if c := found[1].by["cofi"]; c.seen() != 0 || c.run != "" {
		t.Errorf("stale by cofi: %+v", c)
	}
	p := func(s string) string { return filepath.Join(dir, "gossip", s) }
	want := p("cofi/2") + "\tc2-r0002\t10\n" + p("random/1") + "\tc1-r0004\t10\n" + p("random/2") + "\tc2-r0003\t10\n"
	if got := plan(found, 10); got != want {
		t.Errorf("plan:\n%swant:\n%s", got, want)
	}
	var out, errs strings.Builder
	if err := run([]string{"table", dir}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gossip, cofi: 3 campaigns (seeds 1 2 3), 9 fault runs", "stale (also without a cut)", "not in 3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if !strings.Contains(errs.String(), p("random/4")) {
		t.Errorf("the unfinished campaign was not named: %q", errs.String())
	}
}

func TestReplaysAreCountedBySignature(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "redis", "cofi", "1", true, "lost", "", "of c1-r0001:lost", "of c1-r0001:other", "of c1-r0001:", "of c1-r0002:lost")
	all, _, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := aggregate(all)
	if len(found) != 1 || found[0].by["cofi"].replay() != "1/3" {
		t.Errorf("%+v", found[0].by["cofi"])
	}
	if got := plan(found, 3); got != "" {
		t.Errorf("enough replays, and yet: %q", got)
	}
	if got := plan(found, 10); !strings.HasSuffix(got, "\tc1-r0001\t7\n") {
		t.Errorf("%q", got)
	}
}

func TestEmptyCampaignIsAnError(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "redis", "cofi", "1", true, "clean")
	if _, _, err := load(dir); err == nil || !strings.Contains(err.Error(), "run the campaign again") {
		t.Error(err)
	}
	if err := run([]string{"table", t.TempDir()}, &strings.Builder{}, &strings.Builder{}); err == nil {
		t.Error("a table of nothing")
	}
}
