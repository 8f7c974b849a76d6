package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualPages: each command has one, and they are the same when they are made again.
func TestManualPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795000000")
	read := func() map[string]string {
		dir := filepath.Join(t.TempDir(), "man1")
		if code, _, errs := cli(t, "man", dir); code != exitPass {
			t.Fatalf("status %d, %s", code, errs)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name()] = string(b)
		}
		return out
	}
	first, second := read(), read()
	for c := range commands(rootCommand()) {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if page := first[name]; !strings.Contains(page, ".TH") || !strings.Contains(page, "Nov 2026") || page != second[name] {
			t.Errorf("%s: %.200q", name, page)
		}
	}
}
