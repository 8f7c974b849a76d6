package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/explorer/engine"
	"netsplit/inference"
	"netsplit/inference/pcap"
	"netsplit/inference/state"
	"netsplit/internal/onecut"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// fakeGate is a switch that remembers what was released.
type fakeGate struct {
	mu       sync.Mutex
	released []string // host: payload or flags
	cut      []model.Partition
	healed   []uint32 // by their places in cut, from 1
	fail     error
}

func (g *fakeGate) Release(frame []byte, to model.NodeID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released = append(g.released, string(to)+": "+payload(frame))
	return g.fail
}

// payload is what a packet says, or its flags.
func payload(frame []byte) string {
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if app := p.ApplicationLayer(); app != nil {
		return strings.TrimRight(string(app.Payload()), "\x00") // short frames are filled up
	}
	if tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP); ok {
		if tag, ok := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok {
			return fmt.Sprintf("RST %v seq %d vlan %d", tcp.RST, tcp.Seq, tag.VLANIdentifier)
		}
		return fmt.Sprintf("RST %v seq %d", tcp.RST, tcp.Seq)
	}
	return ""
}

func (g *fakeGate) Cut(p model.Partition) (uint32, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = append(g.cut, p)
	return uint32(len(g.cut)), nil
}

func (g *fakeGate) Heal(id uint32) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.healed = append(g.healed, id)
	return nil
}

func (g *fakeGate) HostOf(mac [6]byte) model.NodeID {
	if mac[0]&1 == 1 {
		return ""
	}
	return model.NodeID([]byte{'n', mac[5]})
}

func (g *fakeGate) Receivers(from model.NodeID, _ bool) []model.NodeID {
	return slices.DeleteFunc(slices.Clone(testNodes), func(n model.NodeID) bool { return n == from || from == "" })
}

func (g *fakeGate) MAC(h model.NodeID) (net.HardwareAddr, bool) {
	return net.HardwareAddr{2, 0, 0, 0, 0, h[1]}, true
}

var testHosts = []model.TestbedHost{
	{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}, {Name: "n2", IP: netip.MustParseAddr("10.0.0.2")}, {Name: "n3", IP: netip.MustParseAddr("10.0.0.3")},
}

var testNodes = []model.NodeID{"n1", "n2", "n3"}

// statusVariable is the gossip of a member's status: "G n1=LEFT n2=NORMAL".
var statusVariable = model.Variable{Name: "status", Kind: "status", MaxAge: time.Minute, Sources: []model.VarSource{
	{Type: "text *", Field: "text", Regexp: `(?P<about>n[0-9])=(?P<value>[A-Z]+)`, AbsentFor: "nodes"}}}

// reportedVariable is what a member was last told about another.
var reportedVariable = model.Variable{Name: "told", Kind: "told", MaxAge: time.Minute, Sources: []model.VarSource{
	{Type: "text *", Of: "receiver", Field: "text", Regexp: `(?P<about>n[0-9])=(?P<value>[A-Z]+)`}}}

func testSession(t testing.TB, scn model.Scenario, gate gateway) *session {
	t.Helper()
	vars := []model.Variable{statusVariable, reportedVariable}
	pipe, err := inference.New(inference.Config{Hosts: testHosts, Nodes: testNodes, Variables: vars,
		Protocols: []model.Protocol{{Port: 7000, Transport: "udp", Dissector: "text"}, {Port: 7001, Transport: "tcp", Dissector: "text"}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	rec, err := rundir.Create(dir, model.RunMeta{Run: "r", Scenario: scn})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	packets, err := pcap.Create(filepath.Join(dir, rundir.PacketsFile), start)
	if err != nil {
		t.Fatal(err)
	}
	rec.Capture(packets)
	s := &session{start: start, clock: clock{start: start}, gate: gate, metrics: noMetrics{}, rec: rec, pipe: pipe, table: state.NewTable(vars),
		engine: engine.New(scn), scn: scn, messages: map[string]int{}, faulty: scn.Messages()}
	t.Cleanup(func() {
		s.mu.Lock()
		cuts := s.gateCuts
		s.mu.Unlock()
		for _, c := range cuts {
			<-c.confirmed // both write to the record
		}
		s.lifted.Wait()
		s.rec.Close()
	})
	return s
}

// TestWhatIsNoEventTakesANumberOfItsOwn, without waiting for whoever holds the order; a
// decision names the event that it follows, and not what came since.
func TestWhatIsNoEventTakesANumberOfItsOwn(t *testing.T) {
	s := testSession(t, model.Scenario{}, &fakeGate{})
	s.Mark(model.EventStart)
	s.mu.Lock() // as while a process is ended
	got := s.Number()
	s.mu.Unlock()
	s.Mark(model.EventWorkload)
	after := s.Number()
	events := logged(t, s)
	if len(events) != 2 || events[0].Num != 1 || got != 2 || events[1].Num != 3 || after != 4 || s.last != 3 {
		t.Errorf("%+v, numbers %d and %d, last event %d", events, got, after, s.last)
	}
}

type noMetrics struct{}

func (noMetrics) KnownLinks([]model.Link)                {}
func (noMetrics) CutStarted(model.Shape, []model.Link)   {}
func (noMetrics) CutEnded(string, []model.Link)          {}
func (noMetrics) PacketFate(model.Link, model.Fate, int) {}
func (noMetrics) MessageSeen(string, string)             {}
func (noMetrics) GateDelay(string, time.Duration)        {}
func (noMetrics) MessageFault(model.FaultKind, string)   {}
func (noMetrics) HealTime(time.Duration)                 {}

func host(n model.NodeID) model.TestbedHost {
	for _, h := range testHosts {
		if h.Name == n {
			return h
		}
	}
	panic(n)
}

func frame(t testing.TB, from, to model.NodeID, transport gopacket.SerializableLayer, payload string) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, SrcIP: host(from).IP.AsSlice(), DstIP: host(to).IP.AsSlice()}
	switch l := transport.(type) {
	case *layers.UDP:
		ip.Protocol = layers.IPProtocolUDP
		_ = l.SetNetworkLayerForChecksum(ip)
	case *layers.TCP:
		ip.Protocol = layers.IPProtocolTCP
		_ = l.SetNetworkLayerForChecksum(ip)
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, from[1]}, DstMAC: []byte{2, 0, 0, 0, 0, to[1]}, EthernetType: layers.EthernetTypeIPv4},
		ip, transport, gopacket.Payload(payload))
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gossip(t *testing.T, s *session, from, to model.NodeID, text string) {
	t.Helper()
	s.Gate(from, time.Now(), frame(t, from, to, &layers.UDP{SrcPort: 7000, DstPort: 7000}, text))
}

func leftScenario(effect model.Effect) model.Scenario {
	a, b := model.VarRef{Name: "status", About: "n1", Node: "n2"}, model.VarRef{Name: "status", About: "n1", Node: "n3"}
	inv := model.Invariant{ID: model.InvariantID(model.RelationEqual, a, b), Relation: model.RelationEqual, A: a, B: b}
	return onecut.Scenario{ID: "s1", Strategy: model.StrategyCoFI, Isolate: "n3", Invariant: &inv, State: &model.State{A: "LEFT", B: "NORMAL"},
		Partition: model.Isolate("n3", testNodes, effect), Observe: []model.Invariant{inv},
		Seen: []model.Class{{Type: "text G", From: "n2", To: "n3", State: model.State{A: "LEFT", B: "NORMAL"}}}}.Model()
}

// The state occurs with the very message that reveals it; that message must
// not pass. The first message of an unseen class heals and is the first to
// pass.
func TestTheCutAndTheHealFallBetweenTwoPackets(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL")   // reveals the state: cut
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL")   // a seen class
	gossip(t, s, "n1", "n2", "G n1=LEFT n2=NORMAL n3=NORMAL")   // does not cross
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL") // unseen: heals
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL")

	want := []string{
		"n3: G n1=NORMAL n2=NORMAL n3=NORMAL", "n2: G n1=NORMAL n2=NORMAL n3=NORMAL",
		"n2: G n1=LEFT n2=NORMAL n3=NORMAL", "n2: G n1=NORMAL n2=NORMAL n3=NORMAL", "n3: G n1=LEFT n2=NORMAL n3=NORMAL",
	}
	if got := fmt.Sprint(gate.released); got != fmt.Sprint(want) {
		t.Errorf("released\n%v\nwant\n%v", got, want)
	}
	<-s.gateCuts[0].confirmed
	if s.gateCuts[0].proof.Wanted != 3 || s.gateCuts[0].proof.Dropped != 2 {
		t.Errorf("wanted %d, dropped %d: want 3 and 2", s.gateCuts[0].proof.Wanted, s.gateCuts[0].proof.Dropped)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res := s.engine.Result()
	if !res.Reached || res.HealClass == nil || res.HealClass.From != "n3" {
		t.Errorf("result %+v", res)
	}
}

// Where the state came about with other nodes, it is another one that is cut off,
// at the gate and behind it, and whose packets are counted.
func TestTheCutIsOfTheNodesItCameAboutTo(t *testing.T) {
	gate, scn := &fakeGate{}, leftScenario(model.Drop)
	scn.Or = []model.Renaming{{"n2": "n3", "n3": "n2"}}
	s := testSession(t, scn, gate)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n3", "n2", "G n1=LEFT n2=NORMAL n3=NORMAL")   // it is n3 that knows: n2 is cut off
	gossip(t, s, "n3", "n2", "G n1=LEFT n2=NORMAL n3=NORMAL")   // what n2 to n3 is in Seen
	gossip(t, s, "n3", "n1", "G n1=LEFT n2=NORMAL n3=NORMAL")   // does not cross
	gossip(t, s, "n2", "n1", "G n1=NORMAL n2=NORMAL n3=NORMAL") // unseen: heals
	s.Mark(model.EventStop)
	<-s.gateCuts[0].confirmed
	s.lifted.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := model.Isolate("n2", testNodes, model.Drop); len(gate.cut) != 1 || gate.cut[0].String() != want.String() {
		t.Errorf("cut %v, want %s", gate.cut, want)
	}
	var dropped []string
	for _, l := range s.gateCuts[0].result().Proof.PerLink {
		if l.Dropped > 0 {
			dropped = append(dropped, fmt.Sprintf("%s %d of %d", l.Link, l.Dropped, l.Wanted))
		}
	}
	if fmt.Sprint(dropped) != "[n3>n2 2 of 2]" || s.gateCuts[0].proof.Wanted != 3 || len(s.gateCuts[0].proof.Links) != 4 {
		t.Errorf("dropped %v, proof %+v", dropped, s.gateCuts[0].proof)
	}
	res := s.engine.Result().RunResult(scn.ID, model.Verdict{})
	if met := engine.Met(scn, res); met.Cut().Do.Isolate != "n2" || res.HealClass == nil || res.HealClass.From != "n2" || *res.CutState != (model.State{A: "NORMAL", B: "LEFT"}) {
		t.Errorf("result %+v of %+v", res, met)
	}
	if requested := engine.InTerms(res, scn); *requested.CutState != *scn.Waits().When.State.State || requested.HealClass.From != "n3" {
		t.Errorf("asked for %+v", requested)
	}
}

// A packet is entered at the time the kernel stamped it, not when it is read.
func TestAPacketKeepsItsTime(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	time.Sleep(20 * time.Millisecond)
	stamp := time.Now().Add(-15 * time.Millisecond)
	s.Gate("n1", stamp.Round(0), frame(t, "n1", "n2", &layers.UDP{SrcPort: 7000, DstPort: 7000}, "G n1=NORMAL"))
	events := logged(t, s)
	if len(events) == 0 {
		t.Fatal("no event")
	}
	if at, want := events[len(events)-1].At, stamp.Sub(s.start); (at - want).Abs() > clockSlack {
		t.Errorf("entered at %s, stamped at %s", at, want)
	}
}

// What servers say while they are stopped is no message: the rest of a connection
// would be one of no known type. It goes its way, by the gate and by the mirror.
func TestWhatComesBehindTheEndIsNoMessage(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	s.Mark(model.EventWorkload)
	tcp := func(seq, ack uint32, syn bool, payload string) []byte {
		return frame(t, "n3", "n2", &layers.TCP{SrcPort: 4000, DstPort: 7001, Seq: seq, Ack: ack, SYN: syn, ACK: ack != 0, PSH: payload != "", Window: 1000}, payload)
	}
	s.Gate("n3", time.Now(), tcp(99, 0, true, ""))
	s.Gate("n3", time.Now(), tcp(100, 500, false, "G n1=NORMAL\nG n2="))
	s.flush()
	s.Gate("n3", time.Now(), tcp(114, 500, false, "NORMAL\n"))
	s.Mirror(time.Now(), tcp(121, 500, false, "G n3=NORMAL\n"))
	events := logged(t, s)
	var types []string
	for _, e := range events {
		if e.Kind == model.EventMessage {
			types = append(types, e.Message.Type)
		}
	}
	if want := []string{"tcp syn :7001", "text G", "text G"}; !slices.Equal(types, want) { // the last one as it stood at the end
		t.Errorf("messages %q, want %q", types, want)
	}
	if n := len(gate.released); n != 3 || gate.released[2] != "n2: NORMAL\n" {
		t.Errorf("released %q, want all three", gate.released)
	}
}

// A receiver learns nothing from a message before it has passed, be it sent
// again.
func TestAReceiverLearnsWhenThePacketHasPassed(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.Mark(model.EventWorkload)
	tcp := func(from, to model.NodeID, sp, dp layers.TCPPort, seq, ack uint32, syn bool, payload string) {
		l := &layers.TCP{SrcPort: sp, DstPort: dp, Seq: seq, Ack: ack, SYN: syn, ACK: ack != 0, PSH: payload != "", Window: 1000}
		s.Gate(from, time.Now(), frame(t, from, to, l, payload))
	}
	reported := func() string {
		events := logged(t, s)
		value := ""
		for _, e := range events {
			if e.Observation != nil && e.Observation.Var == (model.VarRef{Name: "told", About: "n1", Node: "n3"}) {
				value = e.Observation.Value
			}
		}
		return value
	}
	tcp("n3", "n2", 4000, 7001, 99, 0, true, "")
	tcp("n2", "n3", 7001, 4000, 499, 100, true, "")
	tcp("n3", "n2", 4000, 7001, 100, 500, false, "G n1=NORMAL n2=NORMAL n3=NORMAL\n")
	tcp("n2", "n3", 7001, 4000, 500, 132, false, "G n1=NORMAL n2=NORMAL n3=NORMAL\n")
	if v := reported(); v != "NORMAL" {
		t.Fatalf("n3 was told %q in a message that passed, want NORMAL", v)
	}
	left := "G n1=LEFT n2=NORMAL n3=NORMAL\n"
	tcp("n2", "n3", 7001, 4000, 532, 132, false, left) // cuts, is refused
	if v := reported(); v != "NORMAL" {
		t.Errorf("n3 was told %q in a message that did not pass, want NORMAL", v)
	}
	tcp("n3", "n2", 4000, 7001, 132, 532, false, "G n1=NORMAL n2=NORMAL n3=NORMAL\n") // an unseen class heals
	tcp("n2", "n3", 7001, 4000, 532, 132, false, left)                                // sent again
	if v := reported(); v != "LEFT" {
		t.Errorf("n3 was told %q in a message that passed the second time, want LEFT", v)
	}
}

// What is in the record, stepped through a new engine, gives the same
// decisions byte for byte.
func TestTheRecordAloneGivesTheSameDecisions(t *testing.T) {
	scn := leftScenario(model.Drop)
	s := testSession(t, scn, &fakeGate{})
	s.Mark(model.EventWorkload)
	for i := range 20 {
		gossip(t, s, "n2", "n3", fmt.Sprintf("G n1=%s n2=NORMAL n3=NORMAL", map[bool]string{true: "LEFT", false: "NORMAL"}[i > 5]))
		gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
		s.Tick()
	}
	s.Mark(model.EventStop)
	sameAgain(t, s, scn, 3)
}

// logged is what is in the event log of a session's record by now.
func logged(t *testing.T, s *session) []model.Event {
	t.Helper()
	if err := s.rec.Flush(); err != nil {
		t.Fatal(err)
	}
	events, _, err := rundir.ReadLines[model.Event](s.rec.Dir, rundir.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// sameAgain steps what is in the record through a new engine, which it returns:
// the decisions are the recorded ones byte for byte, and at least so many.
func sameAgain(t *testing.T, s *session, scn model.Scenario, least int) *engine.Engine {
	t.Helper()
	events := logged(t, s)
	recorded, _, err := rundir.ReadLines[model.Decision](s.rec.Dir, rundir.DecisionsFile)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(scn)
	var again []model.Decision
	for _, ev := range events {
		for _, d := range e.Step(ev) {
			if telling(d) {
				again = append(again, d)
			}
		}
	}
	a, _ := json.Marshal(recorded)
	b, _ := json.Marshal(again)
	if len(recorded) < least || !bytes.Equal(a, b) {
		t.Errorf("recorded %s\nagain    %s", a, b)
	}
	return e
}

// Time passes with whatever event comes next, so
// what it decides must be carried out whatever the event is.
func TestEveryEventMayCutAndHeal(t *testing.T) {
	s := testSession(t, onecut.Scenario{ID: "s1", Strategy: model.StrategyRandom, Isolate: "n3", CutAfter: 1, HealAfter: 2,
		Partition: model.Isolate("n3", testNodes, model.Drop)}.Model(), &fakeGate{})
	s.Mark(model.EventStart)
	s.Mark(model.EventWorkload)
	s.Note("time has passed")
	if len(s.gateCuts) != 1 || s.cutting() {
		t.Errorf("the core cut and healed (%+v), the session did not", s.engine.Result())
	}
}

// A reset is only accepted at exactly the next sequence number the receiver
// expects; the held packet was not delivered, so it does not count. Where hosts
// speak in a VLAN it has its tag.
func TestResetUsesTheSequenceNumbersTheReceiversExpect(t *testing.T) {
	for want, tags := range map[string][]byte{
		"[n2: RST true seq 132 n3: RST true seq 500]":               nil,
		"[n2: RST true seq 132 vlan 5 n3: RST true seq 500 vlan 5]": {0x81, 0, 0, 5},
	} {
		gate := &fakeGate{}
		s := testSession(t, leftScenario(model.Reset), gate)
		s.Mark(model.EventWorkload)
		tcp := func(from, to model.NodeID, sp, dp layers.TCPPort, seq, ack uint32, syn bool, payload string) {
			l := &layers.TCP{SrcPort: sp, DstPort: dp, Seq: seq, Ack: ack, SYN: syn, ACK: ack != 0, PSH: payload != "", Window: 1000}
			s.Gate(from, time.Now(), slices.Insert(frame(t, from, to, l, payload), 12, tags...))
		}
		tcp("n3", "n2", 4000, 7001, 99, 0, true, "")
		tcp("n2", "n3", 7001, 4000, 499, 100, true, "")
		tcp("n3", "n2", 4000, 7001, 100, 500, false, "G n1=NORMAL n2=NORMAL n3=NORMAL\n")
		gate.released = nil
		tcp("n2", "n3", 7001, 4000, 500, 132, false, "G n1=LEFT n2=NORMAL n3=NORMAL\n") // held, cuts
		if got := fmt.Sprint(gate.released); got != want {
			t.Errorf("released %s, want %s", got, want)
		}
		<-s.gateCuts[0].confirmed
		if s.gateCuts[0].proof.ResetConns != 1 {
			t.Errorf("%d connections reset, want 1", s.gateCuts[0].proof.ResetConns)
		}
	}
}

// A packet that the switch did not take is not silently lost.
func TestAFailedReleaseMakesTheRunUnjudgeable(t *testing.T) {
	s := testSession(t, model.Scenario{Strategy: model.StrategyClean}, &fakeGate{fail: errors.New("switch gone")})
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	if len(s.incomplete) != 1 {
		t.Errorf("incomplete: %v, want one reason", s.incomplete)
	}
}

// TestAWorkloadThatIsNotHeardInFullLeavesTheRunWhole: what does not follow from
// operations can still be judged.
func TestAWorkloadThatIsNotHeardInFullLeavesTheRunWhole(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.Unread("final %s on %s: %v", "reader", "n1", errors.New("exit status 1"))
	var ev record.Evidence
	s.mu.Lock()
	s.report(&ev)
	s.mu.Unlock()
	if want := "final reader on n1: exit status 1"; len(ev.Unread) != 1 || ev.Unread[0] != want || len(ev.Incomplete) > 0 || !s.whole() {
		t.Errorf("unheard %q, incomplete %q, want %q and nothing", ev.Unread, ev.Incomplete, want)
	}
}

// A frame without addresses of IP crosses the cut as any other.
func TestTheCutHoldsForEveryEthernetType(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL") // cuts
	gate.released = nil
	lldp := append([]byte{2, 0, 0, 0, 0, '2', 2, 0, 0, 0, 0, '3', 0x88, 0xcc}, make([]byte, 50)...)
	s.Gate("n3", time.Now(), lldp)
	if len(gate.released) != 0 {
		t.Errorf("a frame of another Ethernet type passed the cut: %v", gate.released)
	}
}

// Frames that are no packets must neither stop the loop nor pass unseen.
func TestGarbageAtTheGateIsHandled(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, leftScenario(model.Drop), gate)
	for n := range 60 {
		s.Gate("n1", time.Now(), bytes.Repeat([]byte{0xff, 0x08, byte(n)}, n))
	}
	if s.frames != 4+2*56 { // those with addresses are for everybody, and there are two
		t.Errorf("%d frames counted, want 116", s.frames)
	}
}

func TestLeaksAreCountedOnlyWhileTheCutWasInForce(t *testing.T) {
	for _, c := range []struct {
		name     string
		proof    model.Proof
		from, to time.Duration
		known    bool
	}{
		{"in force", model.Proof{CutAt: 5, InForceAt: 7, HealAt: 9}, 7, 9, true},
		{"never confirmed", model.Proof{CutAt: 5, HealAt: 9}, 9, 9, false},
	} {
		if from, to, known := leakWindow(c.proof); from != c.from || to != c.to || known != c.known {
			t.Errorf("%s: %d to %d, known: %v", c.name, from, to, known)
		}
	}
}

// TestRecoveryDoesNotWaitForWhoLeft: what a node that left knows of others is no
// invariant that has to hold again.
func TestRecoveryDoesNotWaitForWhoLeft(t *testing.T) {
	inv, _, err := model.ParseInvariant("schema[n2]@n2 == schema[n2]@n3")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{start: time.Now(), table: state.NewTable([]model.Variable{{Name: "status", Gone: []string{"LEFT"}}, {Name: "schema"}}), scn: model.Scenario{Observe: []model.Invariant{inv}}}
	s.table.Set(model.Observation{Var: inv.A, Value: "new"})
	s.table.Set(model.Observation{Var: inv.B, Value: "old"})
	if v := s.violated(); len(v) != 1 {
		t.Fatalf("%v, want it violated", v)
	}
	s.table.Set(model.Observation{Var: model.VarRef{Name: "status", About: "n3", Node: "n3"}, Value: "LEFT"})
	if v := s.violated(); len(v) != 0 {
		t.Errorf("%v, though n3 has left", v)
	}
}
