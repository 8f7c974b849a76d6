package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// TestARecordIsExaminedOffline: what it does not show is told, and nothing in it
// changes.
func TestARecordIsExaminedOffline(t *testing.T) {
	dir := t.TempDir()
	for file, v := range map[string]any{rundir.MetaFile: model.RunMeta{}, rundir.TargetFile: model.Target{}, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: record.Evidence{}} {
		if err := rundir.WriteJSON(filepath.Join(dir, file), v); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := cli(t, "judge", dir, "--examine")
	if code != exitFindings || !strings.Contains(out, "PROBLEM: the workload did not start") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 4 {
		t.Errorf("%v %v", files, err)
	}
}
