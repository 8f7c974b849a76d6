package service

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// netns lists the network namespaces that have names.
func netns(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob("/run/netns/*")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCampaignsByREST creates, lists, shows and cancels; kills the daemon in
// the middle of a run and goes on with another.
func TestCampaignsByREST(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	d := serve(t, "--runs-dir", dir)
	spec := wire.CampaignSpec{Target: d.Upload(gossip(t)), Strategy: "random", Seed: 8, Labs: 2, Clean: 1, Runs: 3}
	var made wire.Campaign
	d.Call("POST", "/v1/campaigns", spec, &made)
	d.until(made.ID, time.Minute, "a fault run is under way", func(c wire.Campaign) bool { return c.Done >= 1 && len(c.Running) == 2 })
	var list wire.Campaigns
	d.Call("GET", "/v1/campaigns", nil, &list)
	if len(list.Items) != 1 || list.Items[0].ID != made.ID || list.Items[0].State != "running" {
		t.Errorf("listed: %+v", list)
	}

	// A second daemon must not touch what the first has.
	second := harness.Run(t, "serve", "--runs-dir", dir, "--listen", "127.0.0.1:0", "--openflow", "127.0.0.1:0")
	if second.Code != 1 || !strings.Contains(second.Stderr, d.Socket) || !strings.Contains(second.Stderr, "netsplit.db") {
		t.Errorf("a second daemon on the same store must name the store and the socket of the first (%s): %s", d.Socket, second)
	}

	interrupted := d.campaign(made.ID).Running
	before := netns(t)
	d.Kill()
	if len(before) < 8 || len(interrupted) == 0 {
		t.Fatalf("killed with %d namespaces and runs %v: not in the middle of anything", len(before), interrupted)
	}
	killed, err := filepath.Glob(filepath.Join(dir, made.ID, "*", "events.jsonl"))
	if err != nil || len(killed) < 2 {
		t.Fatalf("records of the killed daemon: %v %v", killed, err)
	}
	recorded := map[string]int64{} // what had reached the files
	for _, f := range killed {
		fi, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		recorded[f] = fi.Size()
	}

	d = serve(t, "--runs-dir", dir)
	for _, id := range interrupted {
		var r wire.Run
		d.Call("GET", "/v1/runs/"+id, nil, &r)
		if r.Verdict.Value != "unknown" || r.Verdict.Reason == "" {
			t.Errorf("the daemon was killed in run %s: its verdict is %q: %s", id, r.Verdict.Value, r.Verdict.Reason)
		}
	}
	harness.Until(t, time.Minute, "labs of the dead daemon are gone", func() error {
		for _, n := range before {
			if slices.Contains(netns(t), n) {
				return os.ErrExist
			}
		}
		return nil
	})
	c := d.until(made.ID, 3*time.Minute, "the campaign ends", ended)
	if c.State != "done" {
		t.Errorf("%s: %s", c.State, c.Reason)
	}
	// What was under way is run again, and nothing twice or not at all.
	done := map[string]int{}
	for _, r := range d.runs(made.ID) {
		if slices.Contains(interrupted, r.ID) || r.Scenario.Strategy == "clean" {
			continue
		}
		if r.Verdict.Value == "pass" || r.Verdict.Value == "vacuous" {
			done[r.Scenario.ID]++
		}
		if r.Proof != nil && (r.Proof.Leaked != 0 || !r.Proof.LeakKnown) {
			t.Errorf("%s: %+v", r.ID, r.Proof)
		}
	}
	for _, id := range []string{"s0002", "s0003", "s0004"} {
		if done[id] != 1 {
			t.Errorf("scenario %s was judged %d times: %+v", id, done[id], d.runs(made.ID))
		}
	}
	for _, f := range killed {
		if fi, err := os.Stat(f); err != nil || fi.Size() < recorded[f] {
			t.Errorf("the record of the killed daemon is gone: %s: %v", f, err)
		}
	}

	cancelled(t, d)
	// The daemon goes down in order.
	d.Signal(t, syscall.SIGTERM)
	if r := d.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("SIGTERM: %s", r)
	}
}

// cancelled cancels a campaign in the middle of a run.
func cancelled(t *testing.T, d *daemon) {
	var made wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(gossip(t)), Strategy: "random", Seed: 6, Clean: 1, Runs: 50}, &made)
	d.until(made.ID, time.Minute, "a run is under way", func(c wire.Campaign) bool { return len(c.Running) > 0 })
	d.Call("DELETE", "/v1/campaigns/"+made.ID, nil, nil)
	c := d.until(made.ID, time.Minute, "it is cancelled", ended)
	if c.State != "cancelled" || len(c.Running) != 0 {
		t.Errorf("after cancelling: %+v", c)
	}
	if left := netns(t); len(left) > 0 {
		t.Errorf("after cancelling: %v", left)
	}
	d.Call("DELETE", "/v1/campaigns/"+made.ID, nil, nil) // again is harmless
	status, b, err := d.Try("DELETE", "/v1/campaigns/c-none", nil)
	var p struct{ Detail string }
	if err != nil || status != 404 || json.Unmarshal(b, &p) != nil || p.Detail == "" {
		t.Errorf("cancelling what is not there: %d %s %v", status, b, err)
	}
}

// TestInterrupt sends ^C, and what a shell that closes sends, to a campaign
// in the middle of a run and in the middle of making its labs.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		when   func(t *testing.T, dir string) bool
	}{
		{"in a run", syscall.SIGINT, func(t *testing.T, dir string) bool {
			logs, _ := filepath.Glob(filepath.Join(dir, "c-*", "*", "logs", "*"))
			return len(logs) > 0
		}},
		{"making labs", syscall.SIGTERM, func(t *testing.T, dir string) bool { return len(netns(t)) > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			p := harness.Start(t, "campaign", gossip(t), "--runs-dir", dir, "--labs", "2", "--progress", "plain")
			harness.Until(t, time.Minute, c.name, func() error {
				if !c.when(t, dir) {
					return os.ErrNotExist
				}
				return nil
			})
			p.Signal(t, c.signal)
			r := p.Wait(t, time.Minute)
			if r.Code != 130 || !strings.Contains(r.Stdout, "cancelled") {
				t.Errorf("%s", r)
			}
			// What was recorded is there to be read.
			again := harness.Run(t, "invariants", "--runs-dir", dir)
			if again.Code != 0 {
				t.Errorf("the store after an interruption: %s", again)
			}
		})
	}
}
