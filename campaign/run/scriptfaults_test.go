package run

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket/layers"

	"netsplit/model"
	"netsplit/sut/nodes"
	"netsplit/testbed"
)

// scripted is a script's run whose gate holds all between n1 and n2 already.
func scripted(t *testing.T, gate gateway) *Live {
	t.Helper()
	target := &model.Target{Nodes: testNodes, Roles: map[string]model.Role{"leader": {Hosts: testNodes}}}
	s := testSession(t, model.Scenario{ID: "s1", Strategy: model.StrategyScripted}, gate)
	r := &run{s: s, rec: s.rec, target: target, c: Config{Metrics: noMetrics{}, Testbed: &testbed.Testbed{}}}
	r.c.Scenario.Strategy = model.StrategyScripted
	r.procs = nodes.New(nodes.Config{Kit: &nodes.Kit{Target: target}, Testbed: r.c.Testbed})
	s.faulty = true
	s.gated.links = map[model.Link]bool{{Src: "n1", Dst: "n2"}: true, {Src: "n2", Dst: "n1"}: true}
	s.gated.since = time.Hour
	s.Mark(model.EventWorkload)
	return &Live{r: r}
}

func slow(d time.Duration) model.MessageFault {
	return model.MessageFault{Kind: model.FaultDelay, For: d, Every: 1, Match: model.MessageMatch{Type: "text A", From: "n1", To: "n2"}}
}

// TestAScriptBeginsAFaultAndEndsIt: what comes before it and after it passes, and what it
// keeps goes on when it ends, or when the script does.
func TestAScriptBeginsAFaultAndEndsIt(t *testing.T) {
	gate := &fakeGate{}
	l := scripted(t, gate)
	gossip(t, l.r.s, "n1", "n2", "A 1")
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err == nil || !strings.Contains(err.Error(), "end it first") {
		t.Errorf("two of one name: %v", err)
	}
	acted := make(chan int)
	go func() {
		n, _, _ := l.Acted(t.Context(), "late", 2, time.Minute)
		acted <- n
	}()
	gossip(t, l.r.s, "n1", "n2", "A 2")
	gossip(t, l.r.s, "n1", "n2", "B 3")
	gossip(t, l.r.s, "n1", "n2", "A 4")
	if n := <-acted; n != 2 {
		t.Errorf("acted on %d", n)
	}
	gate.until(t, "n2: A 1, n2: B 3")
	// No agent is on the host, so nobody confirms what it did.
	if _, err := l.End(t.Context(), "late"); err == nil || !strings.Contains(err.Error(), "what the fault did is not proved: host n2 could not say what arrived") {
		t.Errorf("ended: %v", err)
	}
	gossip(t, l.r.s, "n1", "n2", "A 5")
	gate.until(t, "n2: A 1, n2: B 3, n2: A 2, n2: A 4, n2: A 5")
	if _, err := l.End(t.Context(), "late"); err == nil || !strings.Contains(err.Error(), `no message fault named "late" acts: there are no others`) {
		t.Errorf("ended twice: %v", err)
	}
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err != nil {
		t.Fatal(err)
	}
	gossip(t, l.r.s, "n1", "n2", "A 6")
	l.r.s.Mark(model.EventStop)
	gate.until(t, "n2: A 1, n2: B 3, n2: A 2, n2: A 4, n2: A 5, n2: A 6")
	if n := len(l.r.s.scn.Steps); n != 2 || len(l.r.s.faults.kept) != 0 {
		t.Errorf("%d faults, kept %v", n, l.r.s.faults.kept)
	}
}

// TestAFaultThatMetNothingHasNothingToProve: that it is vacuous is for the judge.
func TestAFaultThatMetNothingHasNothingToProve(t *testing.T) {
	l := scripted(t, &fakeGate{})
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err != nil {
		t.Fatal(err)
	}
	gossip(t, l.r.s, "n2", "n1", "A 1")
	if p, err := l.End(t.Context(), "late"); err != nil || p.Acted+p.Met != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWhatAFaultKeepsDoesNotCrossACut of the script: nor does what comes to the gate before
// the rules are in force. The gate books what it refuses.
func TestWhatAFaultKeepsDoesNotCrossACut(t *testing.T) {
	gate := &fakeGate{}
	l := scripted(t, gate)
	s := l.r.s
	if _, err := l.Fault(t.Context(), "late", slow(50*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := inForce(s, "b", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: []model.Traffic{{Proto: "tcp"}}})
	gossip(t, s, "n1", "n2", "A 1")
	a := inForce(s, "a", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: []model.Traffic{{Proto: "udp", Port: 7000}}})
	gossip(t, s, "n1", "n2", "B 2")
	gossip(t, s, "n1", "n3", "B 3")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		kept := len(s.faults.kept)
		s.mu.Unlock()
		if kept == 0 || time.Now().After(deadline) {
			break
		}
	}
	link := model.Link{Src: "n1", Dst: "n2"}
	want := map[model.Link]int{link: 2, link.Reverse(): 0}
	if d := cmp.Diff(want, s.refused(a)); d != "" || s.refused(b)[link] != 0 {
		t.Errorf("refused %s of tcp %v", d, s.refused(b))
	}
	s.endCut(a, "a")
	gossip(t, s, "n1", "n2", "B 4")
	gate.until(t, "n3: B 3, n2: B 4")
	s.mu.Lock()
	p := s.engine.Result().Faults[0]
	s.mu.Unlock()
	if p.Acted != 1 || p.Cut != 1 {
		t.Errorf("%+v", p)
	}
	events := logged(t, s)
	var kinds []string
	for _, e := range events {
		switch {
		case e.Fault != nil:
			kinds = append(kinds, "fault "+e.Fault.Name)
		case e.RuleCut != nil && e.RuleCut.Partition != nil:
			kinds = append(kinds, "cut "+e.RuleCut.Name)
		case e.RuleCut != nil:
			kinds = append(kinds, "heal "+e.RuleCut.Name)
		}
	}
	if got := strings.Join(kinds, ", "); got != "fault late, cut b, cut a, heal a" {
		t.Errorf("the record has %s", got)
	}
	// Its rules are the script's to install.
	if s.lifted.Wait(); len(gate.cut)+len(gate.healed) != 0 {
		t.Errorf("behind the gate: %d cuts, healed %v", len(gate.cut), gate.healed)
	}
}

// TestAFaultBehindACut is found by its place among the steps.
func TestAFaultBehindACut(t *testing.T) {
	l := scripted(t, &fakeGate{})
	inForce(l.r.s, "a", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n3"}}})
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if p, err := l.End(t.Context(), "late"); err != nil || p.Fault != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWhatPassesTheGateBy ends the proof: it was to hold all.
func TestWhatPassesTheGateBy(t *testing.T) {
	l := scripted(t, &fakeGate{})
	s := l.r.s
	mirrored := func(from, to model.NodeID) {
		s.Mirror(time.Now(), frame(t, from, to, &layers.UDP{SrcPort: 7000, DstPort: 7000}, "A"))
	}
	mirrored("n1", "n2") // on its way when the gate was taken
	s.gated.since = 0
	mirrored("n1", "n3")
	if !s.whole() {
		t.Fatalf("%q", s.incomplete)
	}
	mirrored("n2", "n1")
	if s.whole() || !strings.Contains(s.incomplete[0], "a packet from n2 to n1 passed the gate by") {
		t.Errorf("%q", s.incomplete)
	}
}

// TestFaultsThatAScriptCannotHave are refused with what to do.
func TestFaultsThatAScriptCannotHave(t *testing.T) {
	l := scripted(t, &fakeGate{})
	for want, f := range map[string]model.MessageFault{
		"leave out while and after": {Kind: model.FaultLose, Match: model.MessageMatch{Type: "*"}, After: time.Second},
		`no host and no role "boss": there are hosts [n1 n2 n3] and roles [leader]`: {Kind: model.FaultLose, Match: model.MessageMatch{Type: "*", From: "boss"}},
		"delay needs for": {Kind: model.FaultDelay, Match: model.MessageMatch{Type: "*"}},
	} {
		if _, err := l.Fault(t.Context(), "f", f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// TestProbePacketsAreNoMessages of a script's run: no fault acts on them.
func TestProbePacketsAreNoMessages(t *testing.T) {
	gate := &fakeGate{}
	l := scripted(t, gate)
	if _, err := l.Fault(t.Context(), "all", model.MessageFault{Kind: model.FaultLose, Every: 1, Match: model.MessageMatch{Type: "*", From: "n1", To: "n2"}}); err != nil {
		t.Fatal(err)
	}
	for _, port := range []layers.TCPPort{9, 7001} {
		l.r.s.Gate("n1", time.Now(), frame(t, "n1", "n2", &layers.TCP{SrcPort: 7, DstPort: port, RST: true}, ""))
	}
	if acted, met := l.r.s.engine.Acted(1); acted != 1 || met != 1 || gate.log() != "n2: RST true seq 0" {
		t.Errorf("acted on %d of %d, passed %s", acted, met, gate.log())
	}
}

// TestNoMessageIsMissedWhileARoleIsAskedFor, however many come and however long it takes.
func TestNoMessageIsMissedWhileARoleIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := scripted(t, &fakeGate{})
		l.r.c.Testbed.Testbed = model.Testbed{Mirrors: []model.MirrorPort{{Datapath: 1}}, Hosts: []model.TestbedHost{{Name: "n1", Datapath: 1}}}
		asked := 0
		l.r.s.holders = func(string) (model.Holders, error) {
			if asked++; asked == 1 {
				for range 150 {
					gossip(t, l.r.s, "n1", "n3", "A 2")
				}
				gossip(t, l.r.s, "n2", "n3", "A 3")
				time.Sleep(2 * time.Minute) // longer than the limit
			}
			return model.Holders{Have: []model.NodeID{"n2"}}, nil
		}
		go func() {
			synctest.Wait()
			gossip(t, l.r.s, "n1", "n3", "A 1")
		}()
		m, ok, err := l.AwaitMessage(t.Context(), time.Minute, model.MessageMatch{Type: "text A", From: "leader"})
		if !ok || err != nil || m.From != "n2" || asked != 2 {
			t.Errorf("%+v, %v, %v; asked %d times", m, ok, err, asked)
		}
	})
}

// TestAMessageIsAwaited from now on, by whichever tap it is read, and by the role that its
// sender has when it has come.
func TestAMessageIsAwaited(t *testing.T) {
	l := scripted(t, &fakeGate{})
	l.r.c.Testbed.Testbed = model.Testbed{Mirrors: []model.MirrorPort{{Datapath: 1}}, Hosts: []model.TestbedHost{{Name: "n1", Datapath: 1}}}
	say := func(from, to model.NodeID, text string) {
		l.r.s.Mirror(time.Now(), frame(t, from, to, &layers.UDP{SrcPort: 7000, DstPort: 7000}, text))
	}
	say("n1", "n3", "A 1")
	got := make(chan model.Message)
	go func() {
		m, ok, err := l.AwaitMessage(t.Context(), time.Minute, model.MessageMatch{Type: "text A", To: "n3"})
		if !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		got <- m
	}()
	waits := func() {
		for waiting := false; !waiting; time.Sleep(time.Millisecond) {
			l.r.s.mu.Lock()
			waiting = l.r.s.waits != nil
			l.r.s.mu.Unlock()
		}
	}
	waits()
	say("n1", "n2", "A 2")
	say("n1", "n3", "B 3")
	gossip(t, l.r.s, "n2", "n3", "A 4")
	if m := <-got; m.From != "n2" || m.To != "n3" || m.Type != "text A" {
		t.Errorf("%+v", m)
	}
	if m, ok, err := l.AwaitMessage(t.Context(), time.Millisecond, model.MessageMatch{Type: "text A"}); ok || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	// The first comes from who leads no more, and nobody can tell of the second.
	asked := 0
	l.r.s.holders = func(string) (model.Holders, error) {
		if asked++; asked == 1 {
			gossip(t, l.r.s, "n2", "n3", "A 6")
			return model.Holders{Have: []model.NodeID{"n2"}}, nil
		}
		return model.Holders{}, errors.New("no answer")
	}
	go func() {
		_, _, err := l.AwaitMessage(t.Context(), time.Minute, model.MessageMatch{Type: "text A", From: "leader"})
		if err == nil || !strings.Contains(err.Error(), "n2 to n3) came, and who has a role could not be told: no answer") {
			t.Errorf("%v", err)
		}
		close(got)
	}()
	waits()
	gossip(t, l.r.s, "n1", "n3", "A 5")
	<-got
	if _, _, err := l.AwaitMessage(t.Context(), time.Minute, model.MessageMatch{Type: "*", From: "boss"}); err == nil || !strings.Contains(err.Error(), `no host and no role "boss"`) {
		t.Errorf("%v", err)
	}
	l.r.c.Testbed.Testbed.Mirrors = nil
	if _, _, err := l.AwaitMessage(t.Context(), time.Minute, model.MessageMatch{Type: "*"}); err == nil || !strings.Contains(err.Error(), "with a mirror port") {
		t.Errorf("%v", err)
	}
}

// TestAFaultIsNotProvedByWhatAHostSaidBefore it could not be asked any more.
func TestAFaultIsNotProvedByWhatAHostSaidBefore(t *testing.T) {
	l := scripted(t, &fakeGate{})
	s := l.r.s
	if _, err := l.Fault(t.Context(), "late", slow(time.Hour)); err != nil {
		t.Fatal(err)
	}
	gossip(t, s, "n1", "n2", "A 1")
	s.mu.Lock()
	for _, w := range s.faults.watched {
		w.known = true
	}
	s.mu.Unlock()
	l.r.proveFaults(t.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.faultProofs(s.engine.Result().Faults)[0]; p.Acted != 1 || p.Known {
		t.Errorf("%+v", p)
	}
}
