package run

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/inference"
	"netsplit/model"
	"netsplit/record/rundir"
)

// fragile is a pipeline with a dissector that fails at what begins as fuzz does.
type fragile struct{ reader }

func (f fragile) Read(fr model.Frame) *inference.Result {
	if i := bytes.Index(fr.Data, []byte("FUZZ")); i >= 0 {
		_ = fr.Data[i+int(fr.Data[i+4])<<8] // believes a length that it reads
	}
	return f.reader.Read(fr)
}

func (f fragile) Probe(variable string, source int, h model.NodeID, at time.Duration, answer string) []model.Observation {
	if strings.HasPrefix(answer, "FUZZ") {
		_ = answer[len(answer)+1:]
	}
	return f.reader.Probe(variable, source, h, at, answer)
}

func breakable(s *session) (ended chan error) {
	ended = make(chan error, 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pipe, s.abort = fragile{s.pipe}, func(err error) { ended <- err }
	return ended
}

// TestPanicAtTheGate: a frame at which a reader fails ends the run, with the frame and
// the stack in its record. It passes, with what was kept before it, and so does all
// that comes after.
func TestPanicAtTheGate(t *testing.T) {
	onBothGates(t, func(t *testing.T, by model.Gate) {
		b := newBench(t, by, messageScenario(model.MessageFault{Kind: model.FaultDelay, For: time.Hour, Match: model.MessageMatch{Type: "text SLOW"}}))
		ended := breakable(b.s)
		b.gossip("n1", "n2", "A 1")
		b.gossip("n1", "n2", "SLOW 2")
		b.gossip("n2", "n3", "FUZZ\xff")
		b.until("n2: A 1", "n3: FUZZ\xff", "n2: SLOW 2")
		b.gossip("n3", "n1", "FUZZ\xff") // is not read
		b.sends("n1", "", toAll(t, "n1", "ALL 3"))
		b.until("n2: A 1", "n3: FUZZ\xff", "n2: SLOW 2", "n1: FUZZ\xff", "n2: ALL 3", "n3: ALL 3")

		err := <-ended
		if err == nil || !strings.Contains(err.Error(), rundir.PanicFile) || !strings.Contains(err.Error(), "index out of range") {
			t.Errorf("the run ended with %v", err)
		}
		kept, err := os.ReadFile(filepath.Join(b.s.rec.Dir, rundir.PanicFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"from host n2", "46 55 5a 5a", "fragile.Read", "index out of range"} {
			if !strings.Contains(string(kept), want) {
				t.Errorf("%s lacks %q:\n%s", rundir.PanicFile, want, kept)
			}
		}
		if len(ended) > 0 || b.s.whole() {
			t.Errorf("ended %d times more, whole: %v", len(ended), b.s.whole())
		}
	})
}

// TestPanicHeals: what is cut when a reader fails is cut no more.
func TestPanicHeals(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	ended := breakable(s)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL") // cut
	gossip(t, s, "n1", "n2", "FUZZ\xff")
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL") // would be refused
	if err := <-ended; err == nil {
		t.Error("the run goes on")
	}
	if s.cutting() {
		t.Error("it is cut still")
	}
	s.lifted.Wait()
	if got := gate.released[2:]; !slices.Equal(got, []string{": FUZZ\xff", ": G n1=LEFT n2=NORMAL n3=NORMAL"}) { // to where their addresses say
		t.Errorf("released %q", got)
	}
	s.Tick()
	s.Note("still there")
	s.flush()
	events := logged(t, s)
	for _, e := range events {
		if e.Note == "still there" {
			t.Errorf("event %d was entered after the end", e.Num)
		}
	}
}

// TestPanicElsewhere: a reader that fails at the mirror, or at the answer of a probe,
// ends the run, too.
func TestPanicElsewhere(t *testing.T) {
	for what, do := range map[string]func(t *testing.T, s *session){
		"mirror": func(t *testing.T, s *session) {
			s.Mirror(time.Now(), frame(t, "n1", "n2", &layers.UDP{SrcPort: 7000, DstPort: 7000}, "FUZZ\xff"))
		},
		"probe": func(t *testing.T, s *session) { s.Probed("status", 0, "n1", "FUZZ") },
	} {
		t.Run(what, func(t *testing.T) {
			s := testSession(t, leftScenario(model.Drop), &fakeGate{})
			ended := breakable(s)
			do(t, s)
			do(t, s)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("the run ended with %v", err)
			}
			if len(ended) > 0 {
				t.Error("it ended twice")
			}
		})
	}
}
