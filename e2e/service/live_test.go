package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestWatchARun: while a run is under way, its live state shows the cut and what it drops, and
// watch prints the same until the run ends. Its campaign has a report meanwhile.
func TestWatchARun(t *testing.T) {
	harness.LeavesNothing(t)
	target := gossip(t)
	t.Chdir(t.TempDir())
	d := serve(t, "--runs-dir", "runs") // processes of the target have working directories of their own
	var made wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(target), Strategy: "random", Seed: 8, Clean: 1, Runs: 1}, &made)
	if status, body, err := d.Try("GET", "/v1/campaigns/"+made.ID+"/report", nil); status != 404 || !strings.Contains(string(body), "has no report yet") {
		t.Errorf("the report of a campaign without a run: %d %s %v", status, body, err)
	}
	c := d.until(made.ID, time.Minute, "the fault run is under way", func(c wire.Campaign) bool { return c.Done == 1 && len(c.Running) == 1 })
	run := c.Running[0]
	watching := harness.Start(t, "watch", run, "--api", "unix:"+d.Socket)
	harness.Until(t, 10*time.Second, "the campaign under way has a report", func() error {
		if status, body, err := d.Try("GET", "/v1/campaigns/"+made.ID+"/report", nil); status != 200 || !strings.Contains(string(body), "… running") {
			return fmt.Errorf("%d %.300s %v", status, body, err)
		}
		return nil
	})

	var cut, dropped wire.LiveState
	for ends := time.Now().Add(time.Minute); time.Now().Before(ends) && (cut.Run == "" || dropped.Run == ""); time.Sleep(100 * time.Millisecond) {
		var l wire.LiveState
		status, body, err := d.Try("GET", "/v1/runs/"+run+"/live", nil)
		if err != nil || status != 200 || json.Unmarshal(body, &l) != nil {
			break
		}
		if len(l.Cuts) > 0 {
			cut = l
		}
		for _, e := range l.Events {
			if e.Action == "drop" {
				dropped = l
			}
		}
	}
	if len(cut.Cuts) == 0 || len(cut.Cuts[0].Links) == 0 || cut.Phase != "workload" || len(cut.Nodes) == 0 || len(cut.Steps) != 1 || cut.Steps[0].By == "" || cut.Steps[0].EndedBy != "" || dropped.Run == "" {
		t.Errorf("no look showed a cut, or what it dropped: %+v, %+v", cut, dropped)
	}
	d.until(made.ID, 2*time.Minute, "the campaign ends", ended)
	if status, body, err := d.Try("GET", "/v1/runs/"+run+"/live", nil); status != 409 {
		t.Errorf("the live state of a run that has ended: %d %s %v", status, body, err)
	}
	res := watching.Wait(t, time.Minute)
	if res.Code != 0 || !strings.Contains(res.Stderr, "netsplit: step 1: ") || !strings.Contains(res.Stdout, "cut: step 1 ") || !strings.Contains(res.Stdout, "bytes: drop") || !strings.Contains(res.Stdout, "heal: step 1") || !strings.Contains(res.Stderr, "has ended") {
		t.Errorf("watch: %s", res)
	}
	if res := harness.Run(t, "watch", run, "--api", "unix:"+d.Socket); res.Code != 1 || !strings.Contains(res.Stderr, "has ended") {
		t.Errorf("watch of a run that has ended: %s", res)
	}

	// What a search of sequences could do at what the clean run showed.
	var all, some wire.FaultPoints
	d.Call("GET", "/v1/campaigns/"+made.ID+"/points", nil, &all)
	d.Call("POST", "/v1/campaigns/"+made.ID+"/points", wire.PointsQuery{Policies: &wire.PolicyFile{Name: "p.yaml", Text: "policy: [crash-before-send]"}}, &some)
	if all.Runs != 1 || all.Kept == 0 || all.Kept != len(all.Items) || len(some.Items) != all.Kept || some.Kept == 0 || some.Kept == all.Kept {
		t.Errorf("%d of %d faults at points of %d runs, %d of %d with a policy", all.Kept, len(all.Items), all.Runs, some.Kept, len(some.Items))
	}
	if status, body, _ := d.Try("POST", "/v1/campaigns/"+made.ID+"/points", wire.PointsQuery{Policies: &wire.PolicyFile{Name: "p.star", Text: "def filter(s):\n  return random()\n"}}); status != 422 || !strings.Contains(string(body), "p.star:2:10") {
		t.Errorf("a policy that is wrong: %d %s", status, body)
	}

	campaignReport(t, d, "runs", made.ID, run)
}
