package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// TestAMachineThatFallsSilentSendsNothingMore: its servers die while the message waits, which
// does not leave it; its own kernel alone is told that its connections are gone, nothing of it
// passes, and it starts again once the cut is healed.
func TestAMachineThatFallsSilentSendsNothingMore(t *testing.T) {
	cut := model.Isolate("n2", testNodes, model.Drop)
	gate := &fakeGate{}
	s := testSession(t, model.Scenario{Steps: []model.Step{{
		When:  model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text B*"}}},
		Do:    model.Fault{Cut: &cut, Isolate: "n2", Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}},
		Until: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text C"}}},
	}}}, gate)
	f := &fakeServers{s: s, gate: gate}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db"}}
	s.Mark(model.EventWorkload)
	tcp := func(from, to model.NodeID, sp, dp layers.TCPPort, seq, ack uint32, flags string, payload string) {
		l := &layers.TCP{SrcPort: sp, DstPort: dp, Seq: seq, Ack: ack, SYN: flags == "S", FIN: flags == "F", ACK: ack != 0, Window: 1000}
		s.Gate(from, time.Now(), frame(t, from, to, l, payload))
	}
	tcp("n3", "n2", 4000, 7001, 99, 0, "S", "")
	tcp("n2", "n3", 7001, 4000, 499, 100, "S", "")
	tcp("n3", "n2", 4000, 7001, 100, 500, "", "A 1\n")
	gate.released = nil
	tcp("n2", "n3", 7001, 4000, 500, 104, "", "B 2\n") // it crashes before this leaves
	tcp("n2", "n3", 7001, 4000, 500, 104, "F", "")
	tcp("n3", "n2", 4000, 7001, 104, 500, "", "A 3\n")
	tcp("n2", "n1", 7001, 4000, 104, 0, "", "late\n")
	gossip(t, s, "n1", "n3", "D") // not of it
	gossip(t, s, "n1", "n3", "C")
	<-s.gateCuts[0].confirmed
	s.lifted.Wait()
	gossip(t, s, "n2", "n3", "E")
	if got, want := gate.log(), "n2: RST true seq 104, n3: D, n3: C, n3: E"; got != want {
		t.Errorf("released %s, want %s", got, want)
	}
	if want := []string{"kill db, 0 released", "start db"}; !slices.Equal(f.did, want) {
		t.Errorf("%q, want %q", f.did, want)
	}
	p := s.gateCuts[0].result().Proof
	if got := fmt.Sprintf("%d of %d", p.Dropped, p.Wanted); got != "4 of 4" || s.nodes.slips[1] != 1 || len(s.incomplete) != 0 {
		t.Errorf("%s dropped, slip %d, %v", got, s.nodes.slips[1], s.incomplete)
	}
}

// TestARestartThatFailsMakesTheRunUnknown, and says which step and which server.
func TestARestartThatFailsMakesTheRunUnknown(t *testing.T) {
	s := testSession(t, model.Scenario{Steps: []model.Step{{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}},
		Until: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text C"}}}}}}, &fakeGate{})
	f := &fakeServers{s: s, gate: &fakeGate{}, restart: "port 7000 is in use"}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db1", "db2"}}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n3", "C")
	s.lifted.Wait()
	want := "step 1 (crash n2): db1 could not be started again: port 7000 is in use; step 1 (crash n2): db2 could not be started again: port 7000 is in use"
	if got := strings.Join(s.incomplete, "; "); got != want || s.whole() {
		t.Errorf("%q, want %q", got, want)
	}
}
