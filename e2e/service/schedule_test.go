package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestScheduleAndPause: a schedule makes its campaign over a restart of the daemon, and the
// campaign that is paused in the middle of a run makes all of its runs once it is resumed.
func TestScheduleAndPause(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	d := serve(t, "--runs-dir", dir)
	netsplit := func(args ...string) string {
		t.Helper()
		r := harness.Run(t, append(args, "--api", "unix:"+d.Socket)...)
		if r.Code != 0 {
			t.Fatalf("%v: %s", args, r)
		}
		return r.Stdout
	}
	at := time.Now().Add(3 * time.Second)
	netsplit("campaign", "schedule", "soon", gossip(t), "--at", at.Format(time.RFC3339Nano), "--strategy", "random", "--clean", "1", "--faults", "2", "--labs", "2", "--seed", "8")
	netsplit("campaign", "schedule", "yearly", gossip(t), "--cron", "0 0 1 1 *", "--time-zone", "UTC", "--strategy", "clean")
	if out := netsplit("schedule", "list"); !strings.Contains(out, "soon ") || !strings.Contains(out, "0 0 1 1 * UTC") {
		t.Errorf("%s", out)
	}
	d.Kill()
	time.Sleep(time.Until(at) + time.Second)
	d = serve(t, "--runs-dir", dir)
	var made wire.Campaign
	harness.Until(t, time.Minute, "the campaign that was missed is made", func() error {
		var list wire.Campaigns
		d.Call("GET", "/v1/campaigns?schedule=soon", nil, &list)
		if len(list.Items) != 1 || len(list.Items[0].Running) == 0 {
			return fmt.Errorf("%d campaigns", len(list.Items))
		}
		made = list.Items[0]
		return nil
	})
	if out := netsplit("campaign", "pause", made.ID); !strings.Contains(out, made.ID+" is paused after ") {
		t.Errorf("%s", out)
	}
	c := d.campaign(made.ID)
	if c.State != "paused" || len(c.Running) > 0 || c.Schedule != "soon" {
		t.Errorf("%+v", c)
	}
	harness.Until(t, 20*time.Second, "no lab of it is left", func() error {
		if n := netns(t); len(n) > 0 {
			return fmt.Errorf("%v", n)
		}
		return nil
	})
	if out := netsplit("campaign", "list", "--state", "paused"); !strings.Contains(out, made.ID) {
		t.Errorf("%s", out)
	}
	d.Kill() // it stays paused
	d = serve(t, "--runs-dir", dir)
	if c = d.campaign(made.ID); c.State != "paused" {
		t.Fatalf("after a restart: %+v", c)
	}
	var resumed wire.Campaign
	d.Call("POST", "/v1/campaigns/"+made.ID+"/resume", nil, &resumed)
	c = d.until(made.ID, 2*time.Minute, "it is done", func(c wire.Campaign) bool { return c.State == "done" })
	judged := 0
	for _, r := range d.runs(made.ID) {
		if r.Verdict.Value == "pass" || r.Verdict.Value == "fail" || r.Verdict.Value == "vacuous" {
			judged++
		}
	}
	if judged != 3 {
		t.Errorf("%d runs were judged, want 3: %+v", judged, c)
	}
	netsplit("schedule", "delete", "yearly")
	if out := netsplit("schedule", "list", "-o", "jsonl"); strings.Count(out, "\n") != 1 || !strings.Contains(out, `"last":"`+made.ID+`"`) {
		t.Errorf("%s", out)
	}
}
