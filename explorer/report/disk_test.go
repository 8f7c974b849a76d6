package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestAStepAboutADiskIsTold: at which operation, how often, and what became of files.
func TestAStepAboutADiskIsTold(t *testing.T) {
	write := model.Event{Num: 7, At: time.Second, Kind: model.EventFile, File: &model.FileOperation{Host: "n1", Process: "db", Op: model.FileWrite, Path: "log.7", Kind: "log.#", Bytes: 9}}
	steps := []model.Step{{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: "n1"}}}, {Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n2"}}}}
	damage := model.DiskDamage{Kind: model.DiskPowerCut, Host: "n2", Step: 2}
	for i := range maxDamaged + 2 {
		damage.Files = append(damage.Files, model.FileDamage{Path: fmt.Sprint("f", i), Size: 9, Kept: 4})
	}
	in := &Input{Events: []model.Event{{Num: 1, Kind: model.EventWorkload}, write, {Num: 9, Kind: model.EventDisk, Disk: &damage}},
		Decisions: []model.Decision{
			{Event: 1, Step: 1, Disk: model.DiskGone, Reason: model.ReasonTime},
			{Event: 7, Step: 1, Reason: model.ReasonDisk, File: &model.FileAnswer{Errno: "EIO"}},
			{Event: 9, Step: 1, Disk: model.DiskGone, Verb: model.NodeStart, Reason: model.ReasonStop},
		}}
	in.Summary.Scenario.Steps = steps
	in.Summary.Result.Steps = []model.StepResult{{Step: 1, By: model.ReasonTime, EndedBy: model.ReasonStop, Failed: 2}, {Step: 2, By: model.ReasonTime, EndedBy: model.ReasonStop}}
	rows := scenarioRows(in)
	for i, want := range []string{"n1 db: write 9 bytes to log.# fails with EIO; 2 operations failed in all", "f0: 4 of 9 bytes are left; f1: 4 of 9 bytes are left; "} {
		if !strings.Contains(rows[i].Result, want) {
			t.Errorf("%q, want %q", rows[i].Result, want)
		}
	}
	if !strings.HasSuffix(rows[1].Result, "; 2 more files") {
		t.Errorf("%q", rows[1].Result)
	}
	decisions, _ := decisionRows(in)
	var got []string
	for _, d := range decisions {
		got = append(got, strings.TrimSpace(d.Do+" | "+d.What))
	}
	if want := "gone |, fails with EIO | n1 db: write 9 bytes to log.#, end of gone |"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if said := otherSteps(&in.Summary); said != " Step 1 (disk gone on n1) began at 0.000 s. Step 2 (power cut on n2) began at 0.000 s." {
		t.Errorf("%q", said)
	}
	if story := strings.Join(actionsStory(in), " "); story != "Steps cut the power of n2 (parts of 8 files were not synced) at 0.000 s." {
		t.Errorf("%q", story)
	}
	// A kill by a step is no workload's.
	if story := strings.Join(actionsStory(&Input{Summary: in.Summary, Events: []model.Event{{Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeKill, Process: "db", Host: "n2"}}}}), " "); !strings.HasPrefix(story, "Steps killed db on n2") {
		t.Errorf("%q", story)
	}
}
