package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/inference/store"
	"netsplit/model"
)

// TestPruneByCommand: days and sizes are taken as people write them, and what would be deleted
// is told first.
func TestPruneByCommand(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(storePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "c-1", "c-1-r0001")
	for _, err := range []error{
		st.PutCampaign(model.Campaign{ID: "c-1", State: model.CampaignDone}),
		st.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}, Ended: time.Now().Add(-40 * 24 * time.Hour)}),
		st.Close(), os.MkdirAll(record, 0o700), os.WriteFile(filepath.Join(record, "packets.pcapng"), make([]byte, 5000), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		says string
		left bool
	}{
		{"--keep-age 8w --runs-dir " + dir, exitPass, "records of 0 runs, 0 B, deleted; 5.0 kB left", true},
		{"--keep-age 30d --dry-run --runs-dir " + dir, exitPass, "records of 1 run, 5.0 kB, would be deleted; 0 B left", true},
		{"--keep-size 20GB --runs-dir " + dir, exitPass, "records of 0 runs", true},
		{"--runs-dir " + dir, exitUsage, "--keep-age, --keep-size or both", true},
		{"--keep-age soon --runs-dir " + dir, exitUsage, "36h, 30d or 8w", true},
		{"--keep-size much --runs-dir " + dir, exitUsage, "500MB or 20GiB", true},
		{"--keep-size 4KB -o json --runs-dir " + dir, exitPass, `"runs": 1`, false},
	} {
		code, out, errs := cli(t, append([]string{"store", "prune"}, strings.Fields(c.args)...)...)
		if _, err := os.Stat(record); code != c.code || !strings.Contains(out+errs, c.says) || (err == nil) != c.left {
			t.Errorf("%s: status %d, %q %q, record: %v; want status %d and %q", c.args, code, out, errs, err, c.code, c.says)
		}
	}
}
