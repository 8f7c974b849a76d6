package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/campaign/record"
	"netsplit/model"
)

// TestARecordThatMakesNoSenseIsAnError: it names the record and ends nobody.
func TestARecordThatMakesNoSenseIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, what := range map[string]any{record.MetaFile: model.RunMeta{Run: "r1"}, record.TargetFile: model.Target{}, record.TestbedFile: model.Testbed{}, record.EvidenceFile: record.Evidence{}} {
		if err := record.WriteJSON(filepath.Join(dir, name), what); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{record.EventsFile: `{"n":1,"k":"node"}` + "\n", record.DecisionsFile: "", record.HistoryFile: "", record.LogLinesFile: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Dir(dir, ""); err == nil || !strings.Contains(err.Error(), dir+" cannot be judged") || !strings.Contains(err.Error(), "judge.go:") {
		t.Errorf("judged: %v", err)
	}
}
