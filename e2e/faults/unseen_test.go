package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// messagesOf counts the messages of a type in a record.
func messagesOf(t *testing.T, dir, typ string) int {
	t.Helper()
	events, _, err := rundir.ReadLines[model.Event](dir, rundir.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Message != nil && e.Message.Type == typ {
			n++
		}
	}
	return n
}

func evidenceOf(t *testing.T, dir string) record.Evidence {
	t.Helper()
	var ev record.Evidence
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.EvidenceFile), &ev); err != nil {
		t.Fatal(err)
	}
	return ev
}

// TestWhatIsNotHeldIsReadAlong: the run's fault is about a message between nodes; what
// clients say is not held, and read all the same.
func TestWhatIsNotHeldIsReadAlong(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	// One more node, which only the fault is about.
	two := strings.Replace(string(b), "nodes: [n1]", "nodes: [n1, n2]", 1)
	if two == string(b) {
		t.Fatal("the target has no line nodes: [n1]")
	}
	file := filepath.Join(dir, "target.yaml")
	if err := os.WriteFile(file, []byte(two), 0o644); err != nil {
		t.Fatal(err)
	}
	eachGate(t, func(t *testing.T, gate string) {
		_, r := runOn(t, file, gate, `
faults:
  - {kind: lose, match: {type: "tcp syn *", from: n1, to: n2}}
`, `"udp=A 1,A 2,A 3"`, `"tcp=B 1,B 2"`)
		if r.Tap != "gate" || r.Verdict.Value != model.VerdictVacuous {
			t.Errorf("tap %s, %s: %s", r.Tap, r.Verdict.Value, r.Verdict.Reason)
		}
		if a, b := messagesOf(t, r.Dir, "text A"), messagesOf(t, r.Dir, "text B"); a != 3 || b != 2 {
			t.Errorf("%d and %d messages of the client were read, want 3 and 2", a, b)
		}
		ports := evidenceOf(t, r.Dir).Ports
		if len(ports) != 2 {
			t.Fatalf("ports %+v", ports)
		}
		for _, p := range ports {
			if !p.Known || p.Arrived == 0 || p.Read != p.Arrived || p.Held != 0 {
				t.Errorf("%+v: want all of it read and nothing held", p)
			}
		}
		page, err := os.ReadFile(filepath.Join(r.Dir, rundir.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		if want := "udp port 7100: 100.0 %"; !strings.Contains(string(page), want) {
			t.Errorf("the report does not say %q", want)
		}
	})
}

// TestACutOfMessagesIsProved: what carries something is lost, bare acknowledgements are
// neither counted as wanting to cross nor as leaks, and the connection outlives the cut.
func TestACutOfMessagesIsProved(t *testing.T) {
	_, r := runScenario(t, "port", `
cut: {partition: {shape: simplex, groups: [[n1], [c1]], only: [{proto: tcp, messages: true}]}, after: 700ms, atMost: 900ms}
`, "every=100ms", `"tcp=A 1,A 2,A 3,A 4,A 5,A 6,A 7,A 8,A 9,A 10,A 11,A 12"`)
	p := r.Proof
	if p == nil || p.Wanted == 0 || p.Dropped != p.Wanted || p.Leaked != 0 || !p.LeakKnown {
		t.Fatalf("%s: %s; proof %+v", r.Verdict.Value, r.Verdict.Reason, p)
	}
	if got := lines(received(t, r.Dir), "tcp1"); got != "A 1, A 2, A 3, A 4, A 5, A 6, A 7, A 8, A 9, A 10, A 11, A 12, EOF" {
		t.Errorf("received %s: want all lines, those of the cut once TCP has sent them again", got)
	}
}
