package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func wants(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// TestACampaignThatFailsDoesNotEndTheOthers: they are run, the table is printed,
// and the error is returned.
func TestACampaignThatFailsDoesNotEndTheOthers(t *testing.T) {
	dir := t.TempDir()
	plan := `
faults: 1
replays: 1
replay: known
seeds: [1]
campaigns: [{name: bad, target: bad@1}, {name: good, target: good@1}]
bugs: []
`
	program := `#!/bin/sh
[ "$2" = good@1 ] || { echo "no such target" >&2; exit 1; }
echo "campaign c-1 on good: done after 3 runs (3 pass): no invariant can be told from chance; seed 1"
`
	for name, text := range map[string]string{"plan.yaml": plan, "netsplit": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	err := run(t.Context(), []string{"-dir", dir, "-runs", filepath.Join(dir, "runs"), "-netsplit", filepath.Join(dir, "netsplit"), "-strategies", "cofi", "run"}, &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "campaign bad, cofi, seed 1 failed: ") {
		t.Errorf("error %v", err)
	}
	wants(t, errs.String(), "no such target", "going on with the next")
	wants(t, out.String(), "good, cofi: no fault run: no invariant can be told from chance")
	done, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil || len(done) != 1 || done[0].Campaign != "good" {
		t.Errorf("%+v, %v", done, err)
	}
}
