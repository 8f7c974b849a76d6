// Package cluster tests a daemon with runners: processes of their own, with labs of their own.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/campaign"
	"netsplit/e2e/harness"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m) }

// team is a daemon with its runners.
type team struct {
	*testing.T
	dir string
	d   *harness.Daemon
}

func newTeam(t *testing.T) *team {
	harness.LeavesNothing(t)
	e := &team{T: t, dir: t.TempDir()}
	e.serve("127.0.0.1:0")
	return e
}

func (e *team) serve(address string) {
	e.d = harness.Serve(e.T, "--cluster-address", address, "--runs-dir", e.dir, "--listen", "127.0.0.1:0")
}

func (e *team) invitation(name string) string {
	e.Helper()
	file := filepath.Join(e.dir, name+".join")
	if r := harness.Run(e.T, "cluster", "invite", name, "--runs-dir", e.dir, "-f", file); r.Code != 0 {
		e.Fatalf("%s", r)
	}
	return file
}

func (e *team) joins(name string, args ...string) *harness.Process {
	e.Helper()
	return harness.Start(e.T, append([]string{"runner", "--join", e.invitation(name), "--dir", filepath.Join(e.dir, "runner-"+name)}, args...)...)
}

func (e *team) begins(spec wire.CampaignSpec) wire.Campaign {
	e.Helper()
	var c wire.Campaign
	e.d.Call("POST", "/v1/campaigns", spec, &c)
	return c
}

func (e *team) until(limit time.Duration, id, what string, ok func(wire.Campaign) bool) (c wire.Campaign) {
	e.Helper()
	harness.Until(e.T, limit, what, func() error {
		status, b, err := e.d.Try("GET", "/v1/campaigns/"+id, nil)
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %v", status, b, err)
		}
		c = wire.Campaign{}
		if err := json.Unmarshal(b, &c); err != nil {
			return err
		}
		if c.State == string(model.CampaignFailed) {
			e.Fatalf("the campaign failed: %s", c.Reason)
		}
		if !ok(c) {
			return fmt.Errorf("%s, %d runs done, %v under way: %s", c.State, c.Done, c.Running, c.Reason)
		}
		return nil
	})
	return c
}

// TestRunnersMakeACampaign through the death of a runner and of the daemon: each run is made
// and judged, once, and nothing stays anywhere.
func TestRunnersMakeACampaign(t *testing.T) {
	e := newTeam(t)
	target := e.d.Upload("../targets/gossip/target.yaml")
	c := e.begins(wire.CampaignSpec{Target: target, Strategy: "random", Clean: 2, Runs: 7, Seed: 3})
	e.until(time.Minute, c.ID, "it says that there is no runner", func(c wire.Campaign) bool { return strings.Contains(c.Reason, "none has joined") })

	var health model.Health
	e.d.Call("GET", "/healthz", nil, &health)
	checks := map[string]string{}
	for _, h := range health.Checks {
		checks[h.Name] = h.Detail
	}
	if waits, ok := checks["controller"]; ok || checks["cluster"] == "" {
		t.Errorf("the daemon makes no runs, and waits for switches: %q, of %v", waits, checks)
	}

	theirs := filepath.Join(e.dir, "runner-m1", "c-20260102-030405-1", "c-20260102-030405-1-r0001") // of a daemon whose folder it is
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	m1 := e.joins("m1", "--labs", "2")
	m2 := e.joins("m2", "--labs", "1")
	e.until(2*time.Minute, c.ID, "both make runs", func(c wire.Campaign) bool { return len(c.Running) == 3 })
	harness.Until(t, time.Minute, "a run is seen live", func() error {
		var live wire.LiveState
		status, b, err := e.d.Try("GET", "/v1/runs/"+c.ID+"-r0003/live", nil)
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %v", status, b, err)
		}
		if err := json.Unmarshal(b, &live); err != nil || len(live.Nodes) != 3 || len(live.Events) == 0 {
			return fmt.Errorf("%s %v", b, err)
		}
		return nil
	})
	m1.Kill()
	e.until(2*time.Minute, c.ID, "a run is judged", func(c wire.Campaign) bool { return c.Done > 0 })
	e.d.Kill()
	e.serve(e.d.Cluster)
	m1 = e.joins("m1", "--labs", "2")
	c = e.until(4*time.Minute, c.ID, "it is done", func(c wire.Campaign) bool { return c.State == string(model.CampaignDone) })

	runs := harness.Records(t, e.dir, c.ID)
	if len(runs) != 9 || c.Done != 9 {
		t.Errorf("%d records, %d runs are counted, want 9: %s", len(runs), c.Done, harness.Verdicts(runs))
	}
	scenarios := map[string]bool{}
	for _, r := range runs {
		scenarios[r.Scenario.ID] = true
		if r.CutShort || r.Verdict.Value == model.VerdictUnknown {
			t.Errorf("%s: %+v", r.Run, r.Verdict)
		}
	}
	if len(scenarios) != 9 {
		t.Errorf("%d scenarios were run, want 9", len(scenarios))
	}
	if harness.CheckProofs(t, runs) == 0 {
		t.Error("no run has a proof of its cut")
	}
	harness.Until(t, time.Minute, "its runners are idle: they know that it has ended", func() error {
		var list wire.Runners
		e.d.Call("GET", "/v1/runners", nil, &list)
		idle := 0
		for _, r := range list.Items {
			if r.State == string(model.RunnerIdle) {
				idle++
			}
		}
		if idle != 2 {
			return fmt.Errorf("%+v", list.Items)
		}
		return nil
	})
	// The daemon counts what runs of runners did since it began.
	status, metrics, err := e.d.Try("GET", "/metrics", nil)
	for _, want := range []string{`netsplit_cuts_total\{.*\} [1-9]`, `netsplit_link_packets_total\{.*fate="dropped".*\} [1-9]`, `netsplit_messages_total\{.*\} [1-9]`, `netsplit_gate_delay_seconds_count\{transport="port"\} [1-9]`} {
		if status != 200 || err != nil || !regexp.MustCompile(want).Match(metrics) {
			t.Errorf("%d, %v: no metric is like %s", status, err, want)
		}
	}
	// They play scripts, too.
	c = e.begins(wire.CampaignSpec{Runs: 2, Script: &wire.ScriptFile{Name: "mine.yaml", Text: `name: mine
target: redis-sentinel
steps:
  - do: {on: c1, call: [set, n1, x, v1], expect: ok}
  - assert: {on: c2, call: [get, n1, x], gives: v1, words: it is there}
`}})
	e.until(2*time.Minute, c.ID, "it is done", func(c wire.Campaign) bool { return c.State == string(model.CampaignDone) })
	if runs := harness.Records(t, e.dir, c.ID); len(runs) != 2 || runs[0].Verdict.Value != model.VerdictPass || runs[1].Verdict.Value != model.VerdictPass {
		t.Errorf("%s", harness.Verdicts(runs))
	}
	for name, p := range map[string]*harness.Process{"m1": m1, "m2": m2} {
		p.Signal(t, syscall.SIGTERM)
		if r := p.Wait(t, time.Minute); r.Code != 0 {
			t.Errorf("runner %s: %s", name, r)
		}
		if left, err := filepath.Glob(filepath.Join(e.dir, "runner-"+name, campaign.UnderWay, "c-*", "*")); err != nil || len(left) > 0 {
			t.Errorf("runner %s keeps %v, %v", name, left, err)
		}
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("a runner removed a record that is not its own: %v", err)
	}
}

// TestWhatARunnerLacksIsSaid: by the campaign that waits for it, and by the list of runners.
func TestWhatARunnerLacksIsSaid(t *testing.T) {
	e := newTeam(t)
	target := e.d.Upload("../targets/gossip/target.yaml")
	m1 := e.joins("m1", "--labs", "1")
	c := e.begins(wire.CampaignSpec{Target: target, Strategy: "clean", Clean: 1, Needs: []string{"hardware-switch"}})
	e.until(time.Minute, c.ID, "it says what is missing", func(c wire.Campaign) bool {
		return strings.Contains(c.Reason, "m1: the campaign needs a runner with hardware-switch, and this one has lab, root")
	})
	r := harness.Run(t, "cluster", "runners", "--api", "unix:"+e.d.Socket)
	if r.Code != 0 || !strings.Contains(r.Stdout, "unfit") || !strings.Contains(r.Stdout, "hardware-switch") {
		t.Errorf("the list of runners: %s", r)
	}
	m2 := e.joins("m2", "--labs", "1", "--has", "hardware-switch")
	e.until(2*time.Minute, c.ID, "the one that has it makes the run", func(c wire.Campaign) bool { return c.State == string(model.CampaignDone) })
	if runs := harness.Records(t, e.dir, c.ID); len(runs) != 1 || runs[0].Verdict.Value != model.VerdictPass {
		t.Errorf("%s", harness.Verdicts(runs))
	}

	// A runner whose invitation is withdrawn is sent away.
	if r := harness.Run(t, "cluster", "revoke", "m2", "--runs-dir", e.dir); r.Code != 0 {
		t.Errorf("%s", r)
	}
	harness.Until(t, time.Minute, "it is gone", func() error {
		var list wire.Runners
		e.d.Call("GET", "/v1/runners", nil, &list)
		if len(list.Items) != 1 || list.Items[0].Name != "m1" {
			return fmt.Errorf("%+v", list.Items)
		}
		return nil
	})
	// What others can read is no invitation.
	file := filepath.Join(e.dir, "m1.join")
	if err := errors.Join(os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	if r := harness.Run(t, "runner", "--join", file, "--dir", t.TempDir()); r.Code != 2 || !strings.Contains(r.Stderr, "chmod 600") {
		t.Errorf("an invitation that others can read: %s", r)
	}
	if r := m2.Wait(t, time.Minute); r.Code != 2 || !strings.Contains(r.Stderr, "refuses this runner") {
		t.Errorf("one that is not invited any more: %s", r)
	}
	m1.Signal(t, syscall.SIGTERM)
	if r := m1.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
}

// TestARunnerWithATestbed drives the switch and the hosts of a testbed of its own.
func TestARunnerWithATestbed(t *testing.T) {
	e := newTeam(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	openflow := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	name, file := fmt.Sprintf("rack%d", os.Getpid()), filepath.Join(e.dir, "rack.yaml")
	defer func() {
		if r := harness.Run(t, "lab", "down", name); r.Code != 0 {
			t.Errorf("%s", r)
		}
	}()
	if r := harness.Run(t, "lab", "up", name, "--hosts", "n1,n2,n3,c1", "--controller", "tcp:"+openflow, "--testbed", file); r.Code != 0 {
		t.Fatalf("%s", r)
	}
	target := e.d.Upload("../targets/gossip/target.yaml")
	m1 := e.joins("m1", "--testbed", file, "--openflow", openflow)
	c := e.begins(wire.CampaignSpec{Target: target, Strategy: "random", Clean: 1, Runs: 3, Seed: 5, Needs: []string{"testbed"}})
	e.until(3*time.Minute, c.ID, "it is done", func(c wire.Campaign) bool { return c.State == string(model.CampaignDone) })
	runs := harness.Records(t, e.dir, c.ID)
	cut := 0
	for _, r := range runs {
		if r.Lab != name {
			t.Errorf("%s was made on %q", r.Run, r.Lab)
		}
		if r.Proof != nil && r.Proof.Wanted > 0 {
			cut++
			if r.Proof.Leaked > 0 || !r.Proof.LeakKnown {
				t.Errorf("%s: %+v", r.Run, r.Proof)
			}
		}
	}
	if len(runs) < 4 || cut == 0 {
		t.Errorf("%d runs, %d with a cut that kept packets: %s", len(runs), cut, harness.Verdicts(runs))
	}
	m1.Signal(t, syscall.SIGTERM)
	if r := m1.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
}

// TestADiskThatFillsAndIsEmptied: where the daemon's disk was full, its broker stores again once
// there is room, and the campaign goes on by itself.
func TestADiskThatFillsAndIsEmptied(t *testing.T) {
	harness.LeavesNothing(t)
	e := &team{T: t, dir: t.TempDir()}
	harness.SmallDisk(t, e.dir, "160m")
	e.serve("127.0.0.1:0")
	target := e.d.Upload("../targets/gossip/target.yaml")
	file, far := e.invitation("m1"), t.TempDir()
	m1 := harness.Start(t, "runner", "--join", file, "--dir", far, "--labs", "3")
	c := e.begins(wire.CampaignSpec{Target: target, Strategy: "random", Clean: 1, Runs: 4, Seed: 4})
	e.until(2*time.Minute, c.ID, "runs are judged", func(c wire.Campaign) bool { return c.Done >= 2 })
	empty := harness.Fill(t, e.dir)
	e.until(time.Minute, c.ID, "it waits for room", func(c wire.Campaign) bool {
		return c.State == string(model.CampaignRunning) && strings.Contains(c.Reason, "the disk is full")
	})
	empty()
	e.until(3*time.Minute, c.ID, "it is done", func(c wire.Campaign) bool { return c.State == string(model.CampaignDone) })
	judged := map[string]bool{} // scenarios
	for _, r := range harness.Records(t, e.dir, c.ID) {
		if !strings.Contains(r.Verdict.Reason, "no space left") {
			judged[r.Scenario.ID] = true
		}
	}
	if len(judged) != 5 {
		t.Errorf("%d scenarios were judged, want 5", len(judged))
	}
	m1.Signal(t, syscall.SIGTERM)
	if r := m1.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
	if left, err := filepath.Glob(filepath.Join(far, "c-*", "*")); err != nil || len(left) > 0 {
		t.Errorf("the runner keeps %v, %v", left, err)
	}
}
