package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/campaign/record"
	"netsplit/model"
)

func TestRemineTakesTheRunsTheCampaignMined(t *testing.T) {
	dir := t.TempDir()
	put := func(run string, s model.Strategy, v model.VerdictValue) {
		at := filepath.Join(dir, run)
		meta := model.RunMeta{Run: run, Scenario: model.Scenario{Strategy: s}}
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, what := range map[string]any{record.MetaFile: meta, record.SummaryFile: model.RunSummary{RunMeta: meta, Verdict: model.Verdict{Value: v}},
			record.TargetFile: model.Target{}, record.TestbedFile: model.Testbed{}, record.EvidenceFile: record.Evidence{}} {
			if err := record.WriteJSON(filepath.Join(at, name), what); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{record.EventsFile, record.DecisionsFile, record.HistoryFile, record.LogLinesFile} {
			if err := os.WriteFile(filepath.Join(at, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("r1", model.StrategyClean, model.VerdictPass)
	put("r2", model.StrategyClean, model.VerdictUnknown)
	put("r3", model.StrategyClean, model.VerdictFail)
	put("r4", model.StrategyCoFI, model.VerdictPass)
	r, err := Remine(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"r1", "r3"}; !slices.Equal(r.Runs, want) {
		t.Errorf("mined %v, want %v", r.Runs, want)
	}
}

func TestRemineSaysThatThereIsNothingToMine(t *testing.T) {
	if _, err := Remine(t.TempDir()); err == nil || !strings.Contains(err.Error(), "give the directory of a campaign") {
		t.Errorf("got %v, want an error that says what to give", err)
	}
}
