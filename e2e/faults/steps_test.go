package faults

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// threeSteps cuts from one message to another, then, once that is over, from behind a
// message to another one; meanwhile it loses a message.
const threeSteps = `
steps:
  - when: {message: {type: "text C", to: n1}}
    do: {cut: {shape: simplex, groups: [[n1], [c1]]}}
    until: {message: {type: "text E", to: n1}}
  - when: {follows: end, message: {type: "text G", to: n1, side: receive}}
    do: {cut: {shape: partial, groups: [[c1], [n1]], only: [{proto: udp}]}}
    until: {message: {type: "text I", to: n1}}
  - do: {message: {kind: lose, match: {type: "text F", to: n1}}}
`

// TestStepsOfOneRun: each cut begins and ends between the packets that its step names, and is
// proved by itself; a replay does the same.
func TestStepsOfOneRun(t *testing.T) {
	eachGate(t, func(t *testing.T, gate string) {
		_, r := runScenario(t, gate, threeSteps, `"udp=A,B,C,D,E,F,G,H,I,J"`)
		again := func(dir string) {
			if got := lines(received(t, dir), "udp"); got != "A, B, E, G, I, J" {
				t.Errorf("%s: received %s", dir, got)
			}
		}
		again(r.Dir)
		if r.Verdict.Value != model.VerdictPass || r.Proof == nil || r.Proof.Leaked != 0 || !r.Proof.LeakKnown {
			t.Errorf("%s: %s; %+v", r.Verdict.Value, r.Verdict.Reason, r.Proof)
		}
		var ev record.Evidence
		if err := rundir.ReadJSON(filepath.Join(r.Dir, rundir.EvidenceFile), &ev); err != nil {
			t.Fatal(err)
		}
		if len(ev.Cuts) != 2 || ev.Cuts[0].Name != "step 1" || ev.Cuts[1].Name != "step 2" {
			t.Fatalf("cuts %+v", ev.Cuts)
		}
		for i, want := range []struct{ wanted, dropped int }{{3, 2}, {2, 1}} {
			if p := ev.Cuts[i].Proof; p.Wanted < want.wanted || p.Dropped < want.dropped || p.Wanted != p.Dropped+1 || p.Leaked != 0 || !p.LeakKnown || p.InForceAt == 0 {
				t.Errorf("step %d: %+v", i+1, p)
			}
		}
		for i, s := range r.Result.Steps {
			if s.Step != i+1 || s.By != model.ReasonMessage || (i < 2) != (s.EndedBy == model.ReasonMessage) {
				t.Errorf("step %d: %+v", i+1, s)
			}
		}
		if gate != "port" {
			return
		}
		dir := filepath.Dir(filepath.Dir(r.Dir))
		res := harness.Run(t, "replay", r.Run, "-n", "1", "--runs-dir", dir, "--progress", "plain")
		found, err := filepath.Glob(filepath.Join(dir, "c-*", "*", rundir.MetaFile))
		if err != nil || len(found) != 2 {
			t.Fatalf("records %v, %v: %s", found, err, res)
		}
		for _, f := range found {
			again(filepath.Dir(f))
		}
	})
}

// TestAStepThatNeverBeganIsVacuous: the answer says which, and why.
func TestAStepThatNeverBeganIsVacuous(t *testing.T) {
	res, r := runScenario(t, "port", `
steps:
  - when: {message: {type: "text A", to: n1}}
    do: {isolate: n1}
    until: {after: 200ms}
  - when: {message: {type: "text NEVER"}}
    do: {isolate: n1}
`, "every=20ms")
	if r.Verdict.Value != model.VerdictVacuous || !strings.HasPrefix(r.Verdict.Reason, "step 2 (cut ") || !strings.Contains(r.Verdict.Reason, "text NEVER") || res.Code != 4 {
		t.Errorf("%s: %s; exit status %d", r.Verdict.Value, r.Verdict.Reason, res.Code)
	}
	if !strings.Contains(res.Stdout, "step 2: cut ") || !strings.Contains(res.Stdout, "never began") {
		t.Errorf("the run is told so: %s", res.Stdout)
	}
}

// TestACrashAtAMessage: the receiver dies while the message waits at the gate, so it never
// reads it, and reads again once its step has started it.
func TestACrashAtAMessage(t *testing.T) {
	t.Run("of a host", func(t *testing.T) { crashAtC(t, "n1", "[]") })
	t.Run("of whoever gets it", func(t *testing.T) { crashAtC(t, "receiver", "[{receiver [n1]}]") })
}

func crashAtC(t *testing.T, host, roles string) {
	_, r := runScenario(t, "port", `
steps:
  - when: {message: {type: "text C"}}
    do: {crash: `+host+`}
    until: {after: 400ms}
`, `"udp=A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,X,Y"`)
	got := strings.Split(lines(received(t, r.Dir), "udp"), ", ")
	if len(got) < 4 || got[0] != "A" || got[1] != "B" || slices.Contains(got, "C") || got[len(got)-1] != "Y" {
		t.Errorf("received %s", got)
	}
	if s := r.Result.Steps; r.Verdict.Value != model.VerdictPass || len(s) != 1 || s[0].By != model.ReasonMessage || s[0].EndedBy != model.ReasonTime || fmt.Sprint(s[0].Roles) != roles {
		t.Errorf("%s: %s; %+v", r.Verdict.Value, r.Verdict.Reason, s)
	}
}
