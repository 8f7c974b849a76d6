package judge

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/inference/invariant"
	"netsplit/model"
	"netsplit/record/rundir"
)

// lines writes a record's lines.
func lines(events []model.Event) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := json.NewEncoder(w)
		for _, e := range events {
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
}

// commits is a run in which two servers each learn of every commit once, when it is made,
// and otherwise send one another pings.
func commits(run int, tells string) (*model.Target, []model.Event) {
	target := &model.Target{Nodes: []model.NodeID{"n1", "n2"}, Variables: []model.Variable{{Name: "committed", Kind: "commit", MaxAge: time.Second,
		Sources: []model.VarSource{{Type: "commit", Field: "index", Tells: tells}}}}}
	events := []model.Event{{Kind: model.EventWorkload}}
	message := uint64(0)
	ping := func(at time.Duration) {
		message++
		events = append(events, model.Event{Kind: model.EventMessage, At: at, Message: &model.Message{Num: message, At: at, From: "n1", To: "n2", Type: "ping", Bytes: 1}})
	}
	for i := range 6 {
		at := time.Duration(i*4+i%3+run%2) * time.Second
		for _, n := range target.Nodes {
			events = append(events, model.Event{Kind: model.EventObserve, At: at, Observation: &model.Observation{At: at,
				Var: model.VarRef{Name: "committed", Node: n}, Kind: "commit", Value: fmt.Sprint(10*run + i), Lasts: tells == model.TellsChanges}})
		}
		for k := range 2 {
			ping(at + time.Duration(k+1)*time.Second)
		}
	}
	return target, append(events, model.Event{Kind: model.EventStop, At: time.Minute})
}

// TestWhatIsSeenOnlyWhenItChangesIsMined where its source says that it tells every change.
func TestWhatIsSeenOnlyWhenItChangesIsMined(t *testing.T) {
	mine := func(tells string) []model.Invariant {
		dir, runs := t.TempDir(), []string{"r1", "r2", "r3"}
		var target *model.Target
		for i, r := range runs {
			var events []model.Event
			target, events = commits(i, tells)
			if err := os.Mkdir(filepath.Join(dir, r), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := rundir.WriteFile(filepath.Join(dir, r, rundir.EventsFile), lines(events)); err != nil {
				t.Fatal(err)
			}
		}
		m, err := Mine(target, runs, func(run string) string { return filepath.Join(dir, run) }, invariant.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Invariants
	}
	if got := mine(""); len(got) != 0 {
		t.Errorf("nobody knows what it was between two sights, and it is mined: %v", got)
	}
	got := mine(model.TellsChanges)
	if len(got) != 1 || got[0].String() != "committed@n1 == committed@n2" || got[0].Changes < 10 {
		t.Errorf("mined %+v, want committed@n1 == committed@n2 with its changes", got)
	}
}

func TestAnExaminationTellsWhoIsSeenOnlyWhenItChanges(t *testing.T) {
	said := func(tells string, more ...model.Event) string {
		target, events := commits(0, tells)
		x := &Examination{}
		x.changes(&runFiles{target: *target, events: append(events, more...)})
		return strings.Join(append(x.Facts, x.Problems...), "\n")
	}
	probed := func(value string) model.Event {
		return model.Event{Kind: model.EventObserve, At: time.Minute, Observation: &model.Observation{At: time.Minute, Var: model.VarRef{Name: "committed", Node: "n2"}, Value: value}}
	}
	if got := said(""); !strings.Contains(got, "seen only when it changed (committed@n1)") || !strings.Contains(got, "tells: changes") {
		t.Errorf("said %q", got)
	}
	if got := said(model.TellsChanges, probed("5")); got != "" {
		t.Errorf("all is well, and said %q", got)
	}
	if got := said(model.TellsChanges, probed("77")); !strings.Contains(got, "did not tell: committed@n2 was 5") {
		t.Errorf("said %q", got)
	}
}
