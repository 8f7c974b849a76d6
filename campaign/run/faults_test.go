package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/internal/onecut"
	"netsplit/model"
)

func messageScenario(faults ...model.MessageFault) model.Scenario {
	return onecut.Scenario{ID: "s1", Faults: faults}.Model()
}

func (g *fakeGate) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.released, ", ")
}

// until waits for what the session's own clock does.
func (g *fakeGate) until(t *testing.T, want string) {
	t.Helper()
	for range 1000 {
		if g.log() == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("released %s, want %s", g.log(), want)
}

// What a delay keeps goes on by itself when its time has come, without a tick or
// a packet, and its bytes are those that came although the buffer is used again.
func TestAKeptPacketGoesOnByItself(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, messageScenario(
		model.MessageFault{Kind: model.FaultDelay, For: 50 * time.Millisecond, Match: model.MessageMatch{Type: "text A"}},
		model.MessageFault{Kind: model.FaultDuplicate, Copies: 2, Gap: 20 * time.Millisecond, Match: model.MessageMatch{Type: "text D"}}), gate)
	s.Mark(model.EventWorkload)
	f := frame(t, "n1", "n2", &layers.UDP{SrcPort: 7000, DstPort: 7000}, "A 1")
	came := s.now()
	s.Gate("n1", time.Now(), f)
	copy(f, bytes.Repeat([]byte{0xff}, len(f)))
	gossip(t, s, "n1", "n2", "B 2")
	gate.until(t, "n2: B 2, n2: A 1")
	gossip(t, s, "n1", "n2", "D 3")
	gate.until(t, "n2: B 2, n2: A 1, n2: D 3, n2: D 3, n2: D 3")
	s.mu.Lock()
	defer s.mu.Unlock()
	ps := s.engine.Result().Faults
	if h := ps[0].Hits[0]; h.Passed < came+50*time.Millisecond || h.Passed < h.Due || h.Why != model.ReasonDue {
		t.Errorf("came at %v: %+v", came, h)
	}
	if len(s.faults.kept) != 0 || ps[1].Copies != 2 {
		t.Errorf("kept %v, copies %+v", s.faults.kept, ps[1])
	}
}

// Every decision stands in the record before its packet goes on, and the record
// alone gives the same decisions, ticks of the session's own clock among them.
func TestTheRecordAloneGivesTheSameFaults(t *testing.T) {
	gate := &fakeGate{}
	scn := messageScenario(model.MessageFault{Kind: model.FaultLose, Every: 5, Match: model.MessageMatch{Type: "text B"}},
		model.MessageFault{Kind: model.FaultDelay, For: 10 * time.Millisecond, Every: 2, Match: model.MessageMatch{Type: "*"}},
		model.MessageFault{Kind: model.FaultReorder, Behind: 3, Limit: 15 * time.Millisecond, Every: 3, Match: model.MessageMatch{Type: "*", To: "n3"}})
	s := testSession(t, scn, gate)
	s.Mark(model.EventWorkload)
	for i := range 40 {
		gossip(t, s, "n1", []model.NodeID{"n2", "n3"}[i%2], fmt.Sprintf("%c %d", 'A'+i%3, i))
		time.Sleep(time.Millisecond)
	}
	s.Mark(model.EventStop)
	e := sameAgain(t, s, scn, 30)
	x, _ := json.Marshal(s.engine.Result().Faults)
	y, _ := json.Marshal(e.Result().Faults)
	if !bytes.Equal(x, y) {
		t.Errorf("faults %s\nagain  %s", x, y)
	}
	lost := s.engine.Result().Faults[0].Lost
	if got := len(strings.Split(gate.log(), ", ")); got != 40-lost || lost == 0 {
		t.Errorf("%d packets of 40 went on, %d are said to be lost", got, lost)
	}
}

func TestAReceiverLearnsWhenAKeptPacketGoesOn(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultDelay, For: 40 * time.Millisecond, Match: model.MessageMatch{Type: "text G"}}), gate)
	reported := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range s.table.Values() {
			if v.Var == (model.VarRef{Name: "told", About: "n1", Node: "n3"}) {
				return v.Value
			}
		}
		return ""
	}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=LEFT")
	if v := reported(); v != "" {
		t.Errorf("n3 was told %q by a message that is kept", v)
	}
	gate.until(t, "n3: G n1=LEFT")
	s.Tick()
	if v := reported(); v != "LEFT" {
		t.Errorf("n3 was told %q, want LEFT", v)
	}
}

// A message is lost for good: both ends are reset with what they expect, its
// bytes never pass, and a later connection is left alone.
func TestALostMessageResetsItsConnection(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultLose, Lose: model.LoseMessage, Match: model.MessageMatch{Type: "text B"}}), gate)
	s.Mark(model.EventWorkload)
	tcp := func(from, to model.NodeID, sp, dp layers.TCPPort, seq, ack uint32, syn bool, payload string) {
		l := &layers.TCP{SrcPort: sp, DstPort: dp, Seq: seq, Ack: ack, SYN: syn, ACK: ack != 0, PSH: payload != "", Window: 1000}
		s.Gate(from, time.Now(), frame(t, from, to, l, payload))
	}
	open := func(isn uint32) {
		tcp("n3", "n2", 4000, 7001, isn, 0, true, "")
		tcp("n2", "n3", 7001, 4000, 499, isn+1, true, "")
		tcp("n3", "n2", 4000, 7001, isn+1, 500, false, "A 1\n")
		tcp("n2", "n3", 7001, 4000, 500, isn+5, false, "")
	}
	open(99)
	gate.released = nil
	tcp("n3", "n2", 4000, 7001, 104, 500, false, "B 2\n")
	if got, want := gate.log(), "n2: RST true seq 104, n3: RST true seq 500"; got != want {
		t.Errorf("released %s, want %s", got, want)
	}
	gate.released = nil
	tcp("n3", "n2", 4000, 7001, 108, 500, false, "A 3\n") // on its way already
	tcp("n3", "n2", 4000, 7001, 104, 500, false, "B 2\n") // n3 did not take the reset
	if got := gate.log(); strings.Contains(got, "A 3") || strings.Contains(got, "B 2") || !strings.Contains(got, "RST") {
		t.Errorf("released %s behind the lost message, want resets alone", got)
	}
	gate.released = nil
	open(90000)
	tcp("n3", "n2", 4000, 7001, 90005, 500, false, "B 2\n")
	if got := gate.log(); !strings.HasSuffix(got, "n2: B 2\n") {
		t.Errorf("released %q on the next connection, want the message", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.engine.Result().Faults[0]; p.Acted != 1 || p.Hits[0].After != 2 || !p.Hits[0].Reset {
		t.Errorf("%+v", p)
	}
}

// A connection that is not open yet is refused to who opens it: a reset without
// an acknowledgement would be ignored there.
func TestALostSYNIsRefused(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultLose, Lose: model.LoseMessage, Match: model.MessageMatch{Type: "tcp syn *"}}), gate)
	s.Mark(model.EventWorkload)
	l := &layers.TCP{SrcPort: 4000, DstPort: 7001, Seq: 99, SYN: true, Window: 1000}
	s.Gate("n3", time.Now(), frame(t, "n3", "n2", l, ""))
	if got, want := gate.log(), "n3: RST true seq 0"; got != want {
		t.Errorf("released %s, want %s", got, want)
	}
}

// Packets that are kept when the switch is gone are not lost silently, and those
// that nobody decided about make the run unknown.
func TestKeptPacketsAreNotLostSilently(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultDelay, For: time.Hour, Match: model.MessageMatch{Type: "text A"}}), gate)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n2", "A 1")
	gate.mu.Lock()
	gate.fail = fmt.Errorf("switch gone")
	gate.mu.Unlock()
	s.Mark(model.EventStop)
	if len(s.incomplete) != 1 || !strings.Contains(s.incomplete[0], "could not be released") {
		t.Errorf("incomplete: %v, want that a held packet could not be released", s.incomplete)
	}
	s.close()
	if s.alarm(); len(s.faults.kept) != 0 {
		t.Errorf("kept after the end: %v", s.faults.kept)
	}
}

// Equal datagrams cannot be distinguished by who receives them, so they are counted
// together.
func TestEqualPacketsAreCountedTogether(t *testing.T) {
	s := testSession(t, messageScenario(model.MessageFault{Kind: model.FaultLose, Nth: 1, Match: model.MessageMatch{Type: "text A"}}), &fakeGate{})
	s.Mark(model.EventWorkload)
	for range 3 {
		gossip(t, s, "n1", "n2", "A")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []struct {
		arrived int
		wrong   int
	}{{2, 0}, {3, 1}, {1, 1}} {
		for _, w := range s.faults.watched {
			w.known, w.at = true, make([]time.Duration, c.arrived)
		}
		if p := s.faultProofs(s.engine.Result().Faults)[0]; p.Checked != 1 || p.Wrong != c.wrong || !p.Known {
			t.Errorf("%d of 3 arrived, one was lost: %+v, want %d wrong", c.arrived, p, c.wrong)
		}
	}
	for _, w := range s.faults.watched {
		w.known, w.blur = true, true // an equal one was on its way
	}
	if p := s.faultProofs(s.engine.Result().Faults)[0]; p.Known || p.Checked != 0 || p.Trouble != model.NoneChecked {
		t.Errorf("nobody can tell them apart: %+v", p)
	}
	for _, w := range s.faults.watched {
		w.known, w.blur = false, false
	}
	if p := s.faultProofs(s.engine.Result().Faults)[0]; p.Known || p.Trouble == "" {
		t.Errorf("nobody looked: %+v", p)
	}
}
