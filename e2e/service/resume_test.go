package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
	"netsplit/record/rundir"
)

// TestResumeAfterAKilledCommand: another command leaves the campaign alone and says how it is
// continued, and it continues with the runs that it had.
func TestResumeAfterAKilledCommand(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	args := []string{"campaign", gossip(t), "--runs-dir", dir, "--strategy", "random", "--clean", "1", "--labs", "2", "--seed", "3", "--progress", "plain"}
	p := harness.Start(t, append(args, "--faults", "5")...)
	done := func() []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "c-*", "*", rundir.SummaryFile))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	harness.Until(t, 2*time.Minute, "a run is judged", func() error {
		if len(done()) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	p.Kill()
	before := done()
	id := filepath.Base(filepath.Dir(filepath.Dir(before[0])))
	other := harness.Start(t, append(args, "--faults", "1")...).Wait(t, 2*time.Minute)
	if other.Code == 1 || !strings.Contains(other.Stderr, "netsplit campaign resume "+id) {
		t.Errorf("another campaign: %s", other)
	}
	if now := harness.Records(t, dir, id); len(now) != len(before) {
		t.Errorf("%d runs of the killed one, there were %d", len(now), len(before))
	}
	again := harness.Start(t, "campaign", "resume", id, "--runs-dir", dir, "--progress", "plain").Wait(t, 3*time.Minute)
	if again.Code == 1 || !strings.Contains(again.Stdout, "campaign "+id) || !strings.Contains(again.Stdout, ": done after ") {
		t.Fatalf("resumed: %s", again)
	}
	scenarios := map[string]bool{}
	for _, r := range harness.Records(t, dir, id) {
		scenarios[r.Scenario.ID] = true
	}
	if len(scenarios) != 6 {
		t.Errorf("%d scenarios were run, want 6", len(scenarios))
	}
}

// TestResumeAfterFullDisk: a campaign whose disk becomes full says so, and what has
// passed is whole. Once there is room it goes on, and makes all the runs that it was
// asked for.
func TestResumeAfterFullDisk(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	// The store takes half a megabyte, so does a run on gossip.
	harness.SmallDisk(t, dir, "4m")
	const faults = 14
	r := harness.Start(t, "campaign", gossip(t), "--runs-dir", dir, "--strategy", "random", "--clean", "1", "--faults", "14", "--labs", "4",
		"--seed", "8", "--progress", "plain").Wait(t, 2*time.Minute)
	id := harness.CampaignID(t, r)
	said := r.Stdout + r.Stderr
	full := strings.Contains(said, "disk") && (strings.Contains(said, "full") || strings.Contains(said, "no space left"))
	if r.Code != 1 || !full || !strings.Contains(said, "netsplit campaign resume "+id) {
		t.Fatalf("want exit status 1, why, and how to go on: %s", r)
	}
	before := harness.Records(t, dir, id)
	passed := 0
	for _, run := range before {
		if run.Verdict.Value != model.VerdictPass && run.Verdict.Value != model.VerdictVacuous {
			continue
		}
		passed++
		if events, cut, err := rundir.ReadLines[model.Event](run.Dir, rundir.EventsFile); err != nil || cut || len(events) == 0 {
			t.Errorf("%s passed and its record is broken: %d events, cut off %v, %v", run.Run, len(events), cut, err)
		}
	}
	if passed == 0 {
		t.Errorf("no run before the disk was full: %s", harness.Verdicts(before))
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	again := harness.Start(t, "campaign", "resume", id, "--runs-dir", dir, "--progress", "plain").Wait(t, 3*time.Minute)
	if again.Code != 0 && again.Code != 3 || !strings.Contains(again.Stdout, "campaign "+id) || !strings.Contains(again.Stdout, ": done after ") {
		t.Fatalf("resumed: %s", again)
	}
	cut := map[string]bool{} // runs that the full disk made unknown
	for _, run := range before {
		cut[run.Run] = run.Verdict.Value == "unknown"
	}
	judged := map[string]bool{} // scenarios
	for _, run := range harness.Records(t, dir, id) {
		if !cut[run.Run] {
			judged[run.Scenario.ID] = true
		}
	}
	if len(judged) != faults+1 {
		t.Errorf("%d scenarios were judged, want %d", len(judged), faults+1)
	}
	t.Logf("%d runs had a record when the disk was full, %s now", len(before), harness.Verdicts(harness.Records(t, dir, id)))
	if done := harness.Run(t, "campaign", "resume", id, "--runs-dir", dir); done.Code != 1 || !strings.Contains(done.Stderr, "cannot be resumed") {
		t.Errorf("resumed once it was done: %s", done)
	}
}

// TestADiskThatFillsAndIsEmptied: a daemon's campaign waits for room and goes on by itself.
func TestADiskThatFillsAndIsEmptied(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	harness.SmallDisk(t, dir, "160m")
	d := harness.Serve(t, "--runs-dir", dir, "--listen", "127.0.0.1:0")
	const clean, faults = 1, 7
	var c wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(gossip(t)), Strategy: "random", Clean: clean, Runs: faults, Labs: 3, Seed: 8}, &c)
	state := func(limit time.Duration, what string, ok func() bool) {
		t.Helper()
		harness.Until(t, limit, what, func() error {
			status, b, err := d.Try("GET", "/v1/campaigns/"+c.ID, nil)
			if err != nil || status != 200 {
				return fmt.Errorf("%d %s %v", status, b, err)
			}
			c = wire.Campaign{}
			if err := json.Unmarshal(b, &c); err != nil || !ok() {
				return fmt.Errorf("%s, %d runs done: %s, %v", c.State, c.Done, c.Reason, err)
			}
			return nil
		})
	}
	state(time.Minute, "runs are judged", func() bool { return c.Done >= 2 })
	empty := harness.Fill(t, dir)
	state(time.Minute, "it waits for room", func() bool {
		return c.State == string(model.CampaignRunning) && strings.Contains(c.Reason, "the disk is full") && len(c.Running) == 0
	})
	empty()
	state(2*time.Minute, "it is done", func() bool { return c.State == string(model.CampaignDone) })
	judged := map[string]bool{} // scenarios
	for _, r := range harness.Records(t, dir, c.ID) {
		if !strings.Contains(r.Verdict.Reason, "no space left") {
			judged[r.Scenario.ID] = true
		}
	}
	if len(judged) != clean+faults {
		t.Errorf("%d scenarios were judged, want %d", len(judged), clean+faults)
	}
}
