package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

func TestMain(m *testing.M) { harness.Main(m) }

const target = "../targets/lines/target.yaml"

// got is a line as the receiver printed it.
type got struct {
	at         time.Time
	from, line string
}

func received(t *testing.T, dir string) []got {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, rundir.LogsDir, "n1-receiver.log"))
	if err != nil {
		t.Fatal(err)
	}
	var out []got
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		f := strings.SplitN(l, " ", 3)
		ns, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || len(f) != 3 {
			t.Fatalf("the receiver printed %q", l)
		}
		out = append(out, got{time.Unix(0, ns), f[1], f[2]})
	}
	return out
}

func lines(gs []got, from string) string {
	var out []string
	for _, g := range gs {
		if g.from == from {
			out = append(out, g.line)
		}
	}
	return strings.Join(out, ", ")
}

// runScenario runs a scenario once and returns its record.
func runScenario(t *testing.T, gate, scenario string, set ...string) (harness.Result, harness.Record) {
	t.Helper()
	return runOn(t, target, gate, scenario, set...)
}

func runOn(t *testing.T, target, gate, scenario string, set ...string) (harness.Result, harness.Record) {
	t.Helper()
	harness.LeavesNothing(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "scenario.yaml")
	if err := os.WriteFile(file, []byte(scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", target, "--scenario", file, "--gate", gate, "--runs-dir", dir, "--progress", "plain"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	res := harness.Run(t, args...)
	if log, err := os.ReadFile(filepath.Join(dir, "netsplit.log")); err != nil || strings.Contains(string(log), "did not go down") {
		t.Errorf("a lab did not go down: %v, %s", err, log)
	}
	return res, harness.Records(t, dir, harness.CampaignID(t, res))[0]
}

// sent reads from the history when the talker sent a line.
func sent(t *testing.T, r harness.Record, line string) time.Time {
	t.Helper()
	entries, _, err := rundir.ReadLines[record.Entry](r.Dir, rundir.HistoryFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == model.OpInvoke && e.Value == line {
			return r.Started.Add(e.Time)
		}
	}
	t.Fatalf("%q was never sent", line)
	return time.Time{}
}

// ends is what became of the talker's connections.
func ends(t *testing.T, r harness.Record) []string {
	t.Helper()
	entries, _, err := rundir.ReadLines[record.Entry](r.Dir, rundir.HistoryFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.F == "end" && e.Type == model.OpInfo {
			out = append(out, e.Error)
		}
	}
	return out
}

func eachGate(t *testing.T, f func(t *testing.T, gate string)) {
	for _, gate := range []string{"port", "packet-in"} {
		t.Run(gate, func(t *testing.T) { f(t, gate) })
	}
}

// proved checks of every fault that it acted, and that each packet it acted on
// arrived as often as was decided, as counted by the receiving host's agent.
func proved(t *testing.T, r harness.Record, want int) []model.FaultProof {
	t.Helper()
	if len(r.Faults) != want {
		t.Fatalf("%d faults in the record, want %d: %s", len(r.Faults), want, r.Verdict.Reason)
	}
	for _, p := range r.Faults {
		if p.Acted == 0 || !p.Known || p.Wrong != 0 || p.Checked != len(p.Hits) {
			t.Errorf("fault %d is not proved: %+v", p.Fault, p)
		}
	}
	if r.Verdict.Value != model.VerdictPass {
		t.Errorf("%s: %s", r.Verdict.Value, r.Verdict.Reason)
	}
	return r.Faults
}

// What datagrams show: a receiver sees all of it.
func TestDatagrams(t *testing.T) {
	eachGate(t, func(t *testing.T, gate string) {
		_, r := runScenario(t, gate, `
faults:
  - {kind: delay, for: 400ms, match: {type: "text SLOW", from: c1, to: n1}}
  - {kind: duplicate, copies: 2, gap: 100ms, match: {type: "text TWICE"}}
  - {kind: reorder, match: {type: "text SWAP", to: n1}}
  - {kind: lose, match: {type: "text GO*"}}
`, "every=80ms", `"udp=SLOW 1,A 2,TWICE 3,SWAP 4,A 5,GONE 6,A 7"`)
		ps := proved(t, r, 4)
		gs := received(t, r.Dir)
		at := func(line string) []time.Time {
			var out []time.Time
			for _, g := range gs {
				if g.line == line {
					out = append(out, g.at)
				}
			}
			return out
		}
		slow, next := at("SLOW 1"), at("A 2")
		if len(slow) != 1 || len(next) != 1 || slow[0].Sub(sent(t, r, "SLOW 1")) < 400*time.Millisecond || slow[0].Before(next[0]) {
			t.Errorf("SLOW 1 was sent at %v and arrived at %v, A 2 at %v: want 400 ms later, and after it", sent(t, r, "SLOW 1"), slow, next)
		}
		if twice := at("TWICE 3"); len(twice) != 3 || twice[2].Sub(twice[0]) < 150*time.Millisecond {
			t.Errorf("TWICE 3 arrived at %v, want three times within 200 ms", twice)
		}
		order := lines(gs, "udp")
		if i, j := strings.Index(order, "SWAP 4"), strings.Index(order, "A 5"); i < 0 || j < 0 || i < j {
			t.Errorf("received %s: want SWAP 4 behind A 5", order)
		}
		if len(at("GONE 6")) != 0 || len(at("A 7")) != 1 {
			t.Errorf("received %s: want no GONE 6, and A 7", order)
		}
		if h := ps[0].Hits[0]; len(h.Arrived) != 1 || h.Arrived[0] < h.At+400*time.Millisecond || h.Passed < h.Due {
			t.Errorf("the record of the delay: %+v", h)
		}
		if h := ps[1].Hits[0]; len(h.Arrived) != 3 || len(h.Copies) != 2 {
			t.Errorf("the record of the copies: %+v", h)
		}
		if h := ps[2].Hits[0]; h.Why != model.ReasonOvertaken || h.Behind != 1 || len(h.Arrived) != 1 {
			t.Errorf("the record of the order: %+v", h)
		}
		if h := ps[3].Hits[0]; len(h.Arrived) != 0 || h.Passed != 0 {
			t.Errorf("the record of the loss: %+v", h)
		}
		page, err := os.ReadFile(filepath.Join(r.Dir, rundir.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"was delayed", "2 copies", "overtook", "was lost"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("the report does not say %q", want)
			}
		}
		// The same verdict from the record alone.
		if res := harness.Run(t, "judge", r.Dir); !strings.Contains(res.Stdout, "pass") || res.Code != 0 {
			t.Errorf("judged again: %s", res)
		}
	})
}

// What TCP hides, and what it does not.
func TestStreams(t *testing.T) {
	eachGate(t, func(t *testing.T, gate string) {
		_, r := runScenario(t, gate, `
faults:
  - {kind: delay, for: 400ms, match: {type: "text SLOW", to: n1}}
  - {kind: duplicate, match: {type: "text TWICE", to: n1}}
  - {kind: reorder, match: {type: "text SWAP", to: n1}, every: 1, times: 3}
  - {kind: lose, match: {type: "text BACK", to: n1}, again: 1}
  - {kind: lose, lose: message, match: {type: "text GONE", to: n1}}
`, "every=80ms", "udp=", `"tcp=SLOW 1,A 2,A 3,A 4,A 5,A 6,A 7,TWICE 8,SWAP 9,A 10,SWAP 11,A 12,SWAP 13,A 14/BACK 1,A 2/A 1,GONE 2,A 3/A 1,GONE 2"`)
		ps := proved(t, r, 5)
		gs := received(t, r.Dir)
		// Delay, copies and order do not reach the program, but for the time.
		if want := "SLOW 1, A 2, A 3, A 4, A 5, A 6, A 7, TWICE 8, SWAP 9, A 10, SWAP 11, A 12, SWAP 13, A 14"; !strings.HasPrefix(lines(gs, "tcp1"), want) {
			t.Errorf("first connection: received %s, want %s", lines(gs, "tcp1"), want)
		}
		if h := ps[0].Hits[0]; gs[0].at.Sub(sent(t, r, "SLOW 1")) < 400*time.Millisecond || h.Behind == 0 {
			t.Errorf("SLOW 1 was sent at %v and arrived at %v; behind it waited %d", sent(t, r, "SLOW 1"), gs[0].at, h.Behind)
		}
		if h := ps[1].Hits[0]; len(h.Arrived) != 2 {
			t.Errorf("the copy of TWICE 8 did not reach the host: %+v", h)
		}
		// A busy machine may send what is to overtake after TCP has sent the message again.
		if !slices.ContainsFunc(ps[2].Hits, func(h model.FaultHit) bool { return h.Why == model.ReasonOvertaken || h.Why == model.ReasonCameAgain }) {
			t.Errorf("the record of the order: %+v", ps[2].Hits)
		}
		// A lost packet comes again, and the record says how often.
		if h := ps[3].Hits[0]; h.Returned < 2 || h.LostAgain != 1 || h.Through == 0 || len(h.Arrived) != 0 {
			t.Errorf("BACK 1 was to come again twice: %+v", h)
		}
		if want := "BACK 1, A 2"; !strings.HasPrefix(lines(gs, "tcp2"), want) {
			t.Errorf("second connection: received %s, want %s", lines(gs, "tcp2"), want)
		}
		// A message is lost for good with its connection, and with what is behind it.
		if got := lines(gs, "tcp3"); got != "A 1, RESET" {
			t.Errorf("third connection: received %s, want A 1, RESET", got)
		}
		if h := ps[4].Hits[0]; !h.Reset || ps[4].Acted != 1 || len(h.Arrived) != 0 {
			t.Errorf("the record of the reset: %+v", ps[4])
		}
		// The next connection is another one.
		if got := lines(gs, "tcp4"); !strings.HasPrefix(got, "A 1, GONE 2") {
			t.Errorf("fourth connection: received %s", got)
		}
		if got := ends(t, r); len(got) != 4 || got[2] != "RESET" || slices.Contains(append(got[:2:2], got[3]), "RESET") {
			t.Errorf("the talker's connections ended %q: want only the third reset", got)
		}
	})
}

// began is when the workload of a run began, since the run did.
func began(t *testing.T, r harness.Record) time.Duration {
	t.Helper()
	events, _, err := rundir.ReadLines[model.Event](r.Dir, rundir.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(events, func(e model.Event) bool { return e.Kind == model.EventWorkload })
	if i < 0 {
		t.Fatal("no workload in the record")
	}
	return events[i].At
}

// TestWhichMessages: by their number, from a time on, and what TCP says of itself.
func TestWhichMessages(t *testing.T) {
	eachGate(t, func(t *testing.T, gate string) {
		_, r := runScenario(t, gate, `
faults:
  - {kind: lose, match: {type: "text SOME", to: n1}, nth: 2, every: 2, times: 2}
  - {kind: lose, match: {type: "text LATE", to: n1}, after: 700ms}
  - {kind: delay, for: 500ms, match: {type: "tcp syn *", to: n1}}
`, "every=80ms", `"udp=SOME 1,SOME 2,SOME 3,SOME 4,SOME 5,SOME 6,LATE 7,LATE 8,LATE 9,LATE 10,LATE 11,LATE 12,LATE 13,LATE 14,LATE 15,LATE 16"`, `"tcp=A 1"`)
		ps, gs, start := proved(t, r, 3), received(t, r.Dir), began(t, r)
		order := lines(gs, "udp")
		if want := "SOME 1, SOME 3, SOME 5, SOME 6, LATE "; !strings.HasPrefix(order, want) || ps[0].Met != 6 || ps[0].Acted != 2 {
			t.Errorf("received %s; want %s first; %+v", order, want, ps[0])
		}
		late := ps[1]
		for i := 7; i <= 16; i++ {
			line := fmt.Sprintf("LATE %d", i)
			at, lost := sent(t, r, line).Sub(r.Started), !strings.Contains(order+",", line+",")
			switch hit := late.Hits[0].At; {
			case at < start+650*time.Millisecond && lost:
				t.Errorf("%s was lost %v after the start of the workload", line, at-start)
			case hit < start+700*time.Millisecond:
				t.Errorf("acted %v after the start of the workload", hit-start)
			}
		}
		if lost := 10 - strings.Count(order, "LATE "); lost != 1 || late.Acted != 1 {
			t.Errorf("%d were lost: %s; %+v", lost, order, late)
		}
		i := slices.IndexFunc(gs, func(g got) bool { return g.from == "tcp1" })
		if h := ps[2].Hits[0]; i < 0 || h.Passed < h.At+500*time.Millisecond || gs[i].at.Before(r.Started.Add(h.Passed)) {
			t.Errorf("the connection: %+v; received %v", h, gs)
		}
	})
}

// TestWhileAnInvariantDoesNotHold: only messages of that time are lost; they say so, since
// in this system they are what carries the state. Which message tells the second node is chance: if
// an answer does, no GOSSIP comes in that time (once in some three hundred runs).
func TestWhileAnInvariantDoesNotHold(t *testing.T) {
	var r harness.Record
	for range 3 {
		if _, r = runOn(t, "../targets/gossip/target.yaml", "port",
			`faults: [{kind: lose, match: {type: "text GOSSIP"}, while: {invariant: "status[n1]@n2 == status[n1]@n3"}, every: 1, times: 3}]`); r.Verdict.Value != model.VerdictVacuous {
			break
		}
	}
	for _, h := range proved(t, r, 1)[0].Hits {
		events, _, err := rundir.ReadLines[model.Event](r.Dir, rundir.EventsFile)
		if err != nil {
			t.Fatal(err)
		}
		now := map[model.NodeID]string{} // what n2 and n3 know of n1, as observed before
		for _, e := range events {
			if e.At > h.At {
				break
			}
			if o := e.Observation; o != nil && o.Var.Name == "status" && o.Var.About == "n1" {
				now[o.Var.Node] = o.Value
			}
		}
		if now["n2"] == now["n3"] {
			t.Errorf("a message was lost at %v, when both knew %q", h.At, now["n2"])
		}
	}
}

// TestACutOfSomeTraffic: at the gate too, a partition of datagrams only leaves
// streams alone.
func TestACutOfSomeTraffic(t *testing.T) {
	eachGate(t, func(t *testing.T, gate string) {
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprintf("A %d", i+1))
		}
		text := strings.Join(all, ",")
		_, r := runScenario(t, gate, `cut: {partition: {shape: partial, groups: [[c1], [n1]], only: [{proto: udp}]}, after: 600ms, atMost: 20s}`,
			"every=80ms", `"udp=`+text+`"`, `"tcp=`+text+`"`)
		if r.Verdict.Value != model.VerdictPass || r.Proof == nil || r.Proof.Dropped == 0 || r.Proof.Wanted != r.Proof.Dropped || r.Proof.Leaked != 0 || !r.Proof.LeakKnown {
			t.Errorf("%s: %s; %+v", r.Verdict.Value, r.Verdict.Reason, r.Proof)
		}
		gs := received(t, r.Dir)
		if got := lines(gs, "tcp1"); got != strings.Join(all, ", ")+", EOF" {
			t.Errorf("over TCP: received %s, want all of it", got)
		}
		if got := strings.Count(lines(gs, "udp"), "A "); got == 0 || got == len(all) {
			t.Errorf("by UDP: received %d of %d lines, want those before the cut", got, len(all))
		}
	})
}

// A fault that never meets its message makes a run that says nothing, and the
// replay of a run repeats its faults.
func TestVacuousAndReplayed(t *testing.T) {
	res, r := runScenario(t, "port", `faults: [{kind: lose, match: {type: "text NEVER", to: n1}}]`, "every=20ms")
	if r.Verdict.Value != model.VerdictVacuous || !strings.Contains(r.Verdict.Reason, "never met its message") || res.Code != 4 {
		t.Errorf("%s: %s; exit status %d", r.Verdict.Value, r.Verdict.Reason, res.Code)
	}
	_, r = runScenario(t, "port", `faults: [{kind: lose, match: {type: "text A", to: n1}, nth: 2}]`, "every=20ms")
	if got := lines(received(t, r.Dir), "udp"); got != "A 1, A 3" {
		t.Fatalf("received %s", got)
	}
	dir := filepath.Dir(filepath.Dir(r.Dir))
	res = harness.Run(t, "replay", r.Run, "-n", "1", "--runs-dir", dir, "--progress", "plain")
	found, err := filepath.Glob(filepath.Join(dir, "c-*", "*", rundir.MetaFile))
	if err != nil || len(found) != 2 {
		t.Fatalf("records %v, %v: %s", found, err, res)
	}
	for _, f := range found {
		if got := lines(received(t, filepath.Dir(f)), "udp"); got != "A 1, A 3" {
			t.Errorf("%s: received %s", f, got)
		}
	}
}

// What a scenario file says wrongly is told, before anything is started.
func TestWrongScenariosAreRefused(t *testing.T) {
	for _, c := range []struct{ scenario, says string }{
		{`faults: [{kind: delay, match: {type: "text A"}}]`, "delay needs for"},
		{`faults: [{kind: lose, match: {type: "text A", to: n9}}]`, `no host "n9"`},
		{`faults: [{kind: lose, match: {type: "text A"}, copies: 2}]`, "that belongs to duplicate"},
		{`faults: [{kind: lose, match: {type: "text A"}, while: {invariant: "x@n1 == x@c1"}}]`, `no variable "x"`},
		{`faults: [{kind: lose, matches: 3}]`, "matches"},
		{`{}`, "does nothing"},
		{"steps:\n  - {do: {crash: n1}}\n  - {when: {at: 50ms}, do: {crash: n1}}\n", "s.yaml:3: invalid request: scenario: step 2 (crash n1) finds no server of n1 that runs: step 1 (crash n1)"},
		{"steps:\n  - {do: {crash: n1}}\n  - {when: {at: 50ms}, do: {crash: n1}}\n", "(step 1: line 2)"},
		{`steps: [{when: {message: {type: "resp PING"}}, do: {isolate: n1}}]`, `s.yaml:1: invalid request: scenario: step 1: no message of target lines has a type like "resp PING"`},
		{`steps: [{when: {at: 10m}, do: {isolate: n1}}]`, "step 1 (isolate n1) can never begin: its time is 10m0s into the workload"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "s.yaml")
		if err := os.WriteFile(file, []byte(c.scenario), 0o644); err != nil {
			t.Fatal(err)
		}
		res := harness.Run(t, "run", target, "--scenario", file, "--runs-dir", filepath.Join(dir, "runs"))
		if res.Code != 2 || !strings.Contains(fmt.Sprint(res), c.says) {
			t.Errorf("%s: want exit status 2 and %q: %s", c.scenario, c.says, res)
		}
	}
}
