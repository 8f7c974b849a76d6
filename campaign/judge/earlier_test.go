package judge

import (
	"os"
	"path/filepath"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// TestEarlierRecordsAreJudgedAsBefore: testdata/earlier has a record of each form that
// scenarios had before they were steps, with the verdict of then.
func TestEarlierRecordsAreJudgedAsBefore(t *testing.T) {
	dirs, err := filepath.Glob("testdata/earlier/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	points := 0
	for _, dir := range dirs {
		to := t.TempDir()
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "verdict.txt"))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := Dir(to, "netsplit replay")
		if got := string(sum.Verdict.Value) + ": " + sum.Verdict.Reason + "\n"; err != nil || got != string(want) {
			t.Errorf("%s: %v\n got %swant %s", filepath.Base(dir), err, got, want)
		}
		var p model.Profile
		if err := rundir.ReadJSON(filepath.Join(to, rundir.ProfileFile), &p); err != nil {
			t.Errorf("%s: %v", filepath.Base(dir), err)
		}
		points += len(p.Points)
		if page, err := os.ReadFile(filepath.Join(to, rundir.ReportFile)); err != nil || len(page) == 0 {
			t.Errorf("%s: no report: %v", filepath.Base(dir), err)
		}
	}
	if points == 0 {
		t.Error("none has a profile")
	}
}
