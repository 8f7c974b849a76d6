package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/controller"
	"netsplit/inference/tap"
	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed/fabric"
)

// Message faults from a port of a switch to another: the model switch holds by its
// rules, the session decides, and what leaves the switch is looked at. All between
// goes as bytes of OpenFlow, or with a tag through the gate port.

// bench is a session whose gate is a model switch with the test hosts on it: n1
// on port 1, n2 on port 2, ….
type bench struct {
	t  *testing.T
	sw *switchtest.Switch
	f  *fabric.Fabric
	s  *session
	by model.Gate
	// far is the gate port's far end.
	far *farEnd

	left []string // the switch, as "n2: A 1", by packet-outs
}

const benchGate = 9

func onBothGates(t *testing.T, f func(*testing.T, model.Gate)) {
	for _, by := range []model.Gate{model.GateByPacketIn, model.GateByPort} {
		t.Run(string(by), func(t *testing.T) { f(t, by) })
	}
}

func newBench(t *testing.T, by model.Gate, scn model.Scenario) *bench {
	t.Helper()
	b := &bench{t: t, by: by}
	tb := model.Testbed{Name: "bench", Gates: []model.GatePort{{Datapath: 7, Port: model.Port{Name: "gate"}, Interface: "far"}}}
	names, ports := map[uint32]string{benchGate: "gate"}, []uint32{benchGate}
	for i, h := range testHosts {
		h.Datapath, h.Port, h.MAC = 7, model.Port{Name: "e" + string(h.Name)}, fmt.Sprintf("02:00:00:00:00:%02x", h.Name[1])
		tb.Hosts = append(tb.Hosts, h)
		names[uint32(i+1)], ports = h.Port.Name, append(ports, uint32(i+1))
	}
	b.sw = switchtest.New(switchtest.Config{Datapath: 7, Ports: ports, Names: names, PartSize: 50})
	b.far = &farEnd{sw: b.sw, come: make(chan []byte, 1000)}
	ctrl := controller.New(controller.Config{})
	t.Cleanup(func() { ctrl.Close() })
	held := make(chan *session, 1) // until the session is there
	f, err := fabric.New(fabric.Config{Testbed: tb, Controller: ctrl, Gate: by, Timeout: time.Minute,
		OpenPort: func(model.GatePort) (fabric.Port, error) { return b.far, nil },
		PacketIn: func(host model.NodeID, at time.Time, frame []byte) {
			s := <-held
			held <- s
			s.Gate(host, at, frame)
		},
		Events: fabric.Events{GateFault: func(_ model.DatapathID, err error) { t.Errorf("gate port: %v", err) },
			SwitchError: func(_ model.DatapathID, err error) { t.Errorf("the switch refused: %v", err) }}})
	if err != nil {
		t.Fatal(err)
	}
	b.f = f
	ours, theirs := net.Pipe()
	go func() { _ = b.sw.Serve(theirs) }()
	go func() { _ = ctrl.Serve(ours) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	pairs := []fabric.Pair{{A: "n1", B: "n2"}, {A: "n1", B: "n3"}, {A: "n2", B: "n3"}}
	if err := f.SetTaps(ctx, pairs, nil); err != nil {
		t.Fatal(err)
	}
	b.s = testSession(t, scn, switchGate{f})
	t.Cleanup(func() { f.Close() }) // before the session's record
	held <- b.s
	b.s.Mark(model.EventWorkload)
	return b
}

// switchGate is the gate of a session on a fabric.
type switchGate struct{ f *fabric.Fabric }

func (g switchGate) Release(frame []byte, to model.NodeID) error { return g.f.Release(frame, to) }
func (g switchGate) Cut(p model.Partition) (uint32, error) {
	return 1, g.f.CutBehind(context.Background(), 1, p)
}
func (g switchGate) Heal(id uint32) error { return g.f.Heal(context.Background(), id) }
func (g switchGate) HostOf(mac [6]byte) model.NodeID {
	h, _ := g.f.HostOf(mac[:])
	return h
}
func (g switchGate) Receivers(from model.NodeID, held bool) []model.NodeID {
	return g.f.Receivers(from, held)
}
func (g switchGate) MAC(h model.NodeID) (net.HardwareAddr, bool) {
	return net.HardwareAddr{2, 0, 0, 0, 0, h[1]}, true
}

// farEnd reads and writes the gate port of the model switch.
type farEnd struct {
	sw   *switchtest.Switch
	come chan []byte

	mu   sync.Mutex
	left []string
}

func (p *farEnd) Read(ctx context.Context, f func(time.Time, uint16, []byte)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-p.come:
			f(time.Now(), binary.BigEndian.Uint16(b[14:])&0xfff, append(slices.Clone(b[:12]), b[16:]...))
		}
	}
}

func (p *farEnd) Write(vid uint16, frame []byte) error {
	b := binary.BigEndian.AppendUint16(slices.Clone(frame[:12]), 0x8100)
	b = append(binary.BigEndian.AppendUint16(b, vid), frame[12:]...)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.sw.Inject(benchGate, b) {
		if o.Port == benchGate {
			p.come <- o.Frame
			continue
		}
		p.left = append(p.left, leaves(o))
	}
	return nil
}

func (p *farEnd) Stats() (tap.PortStats, error) { return tap.PortStats{}, nil }
func (p *farEnd) Close() error                  { return nil }

// leaves is what leaves the switch, and to whom.
func leaves(o switchtest.Output) string {
	return fmt.Sprintf("n%d: %s", o.Port, payload(o.Frame))
}

// sends lets a frame come in on the port of its sender. It must be held.
func (b *bench) sends(from, to model.NodeID, frame []byte) {
	b.t.Helper()
	out := b.sw.Inject(uint32(from[1]-'0'), frame)
	if len(out) != 1 || out[0].Port <= uint32(len(testHosts)) {
		b.t.Fatalf("%s to %s is not held: it leaves by %+v", from, to, out)
	}
	if out[0].Port == benchGate {
		b.far.come <- out[0].Frame
	}
}

func (b *bench) gossip(from, to model.NodeID, text string) {
	b.t.Helper()
	b.sends(from, to, frame(b.t, from, to, &layers.UDP{SrcPort: 7000, DstPort: 7000}, text))
}

// passed is what has left the switch by now, in order.
func (b *bench) passed() []string {
	for _, o := range b.sw.Sent() {
		b.left = append(b.left, leaves(o))
	}
	b.far.mu.Lock()
	defer b.far.mu.Unlock()
	if b.by == model.GateByPort {
		return slices.Clone(b.far.left)
	}
	return slices.Clone(b.left)
}

// until waits until exactly this has left the switch.
func (b *bench) until(want ...string) {
	b.t.Helper()
	for range 6000 {
		got := b.passed()
		if slices.Equal(got, want) {
			return
		}
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatalf("the switch let pass %q, want %q", b.passed(), want)
}

// decided lists the recorded decisions of faults, in order: place, action and
// reason.
func (b *bench) decided() string {
	b.t.Helper()
	if err := b.s.rec.Flush(); err != nil {
		b.t.Fatal(err)
	}
	ds, _, err := rundir.ReadLines[model.Decision](b.s.rec.Dir, rundir.DecisionsFile)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, d := range ds {
		if d.Fault > 0 {
			out = append(out, fmt.Sprintf("%d %s %s", d.Fault, d.Action, d.Reason))
		}
	}
	return strings.Join(out, ", ")
}

// TestAMulticastOnASwitch is held once, and lost on its way to one of its receivers
// only.
func TestAMulticastOnASwitch(t *testing.T) {
	onBothGates(t, func(t *testing.T, by model.Gate) {
		b := newBench(t, by, messageScenario(model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "text GONE", To: "n3"}}))
		b.sends("n1", "", toAll(t, "n1", "GONE 1"))
		b.sends("n1", "", toAll(t, "n1", "A 2"))
		b.sends("n3", "", toAll(t, "n3", "A 3"))
		b.until("n2: GONE 1", "n2: A 2", "n3: A 2", "n1: A 3", "n2: A 3")
	})
}

// TestFaultsOfDatagramsOnASwitch: what leaves a switch by which port in what order
// when single messages are delayed, duplicated, reordered and lost.
func TestFaultsOfDatagramsOnASwitch(t *testing.T) { onBothGates(t, testFaultsOfDatagramsOnASwitch) }

func testFaultsOfDatagramsOnASwitch(t *testing.T, by model.Gate) {
	scn := messageScenario( // whose times do not depend on how fast the machine is
		model.MessageFault{Kind: model.FaultDelay, For: time.Hour, Match: model.MessageMatch{Type: "text SLOW", From: "n1", To: "n2"}},
		model.MessageFault{Kind: model.FaultReorder, Behind: 2, Limit: time.Hour, Match: model.MessageMatch{Type: "text SWAP"}},
		model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "text GONE"}},
		model.MessageFault{Kind: model.FaultDuplicate, Copies: 2, Gap: time.Millisecond, Match: model.MessageMatch{Type: "text TWICE"}})
	b := newBench(t, by, scn)
	b.gossip("n3", "n2", "SLOW 0") // from another
	b.gossip("n1", "n2", "SLOW 1")
	b.gossip("n1", "n2", "A 2")
	b.gossip("n1", "n2", "SWAP 3")
	b.gossip("n2", "n1", "A 4") // another way: overtakes nothing
	b.gossip("n1", "n2", "A 5")
	b.gossip("n1", "n2", "GONE 6")
	b.gossip("n1", "n2", "A 7")
	b.gossip("n1", "n2", "SWAP 8") // the first only
	b.gossip("n1", "n3", "A 9")
	want := []string{"n2: SLOW 0", "n2: A 2", "n1: A 4", "n2: A 5", "n2: A 7", "n2: SWAP 3", "n2: SWAP 8", "n3: A 9"}
	b.until(want...)
	b.gossip("n1", "n2", "TWICE 10")
	want = append(want, "n2: TWICE 10", "n2: TWICE 10", "n2: TWICE 10")
	b.until(want...)
	b.gossip("n1", "n2", "TWICE 11")
	want = append(want, "n2: TWICE 11")
	b.until(want...)
	b.s.Mark(model.EventStop) // what is kept goes on
	b.until(append(want, "n2: SLOW 1")...)

	e := sameAgain(t, b.s, scn, 8)
	if got, want := b.decided(), "1 hold fault-delay, 2 hold fault-reorder, 3 drop fault-lose, 2 pass overtaken, "+
		"4 pass fault-duplicate, 4 copy fault-duplicate, 4 copy fault-duplicate, 1 pass workload-ended"; got != want {
		t.Errorf("decided %s\nwant    %s", got, want)
	}
	ps := e.Result().Faults
	for i, p := range ps {
		if p.Acted != 1 || len(p.Hits) != 1 {
			t.Errorf("fault %d in the record: %+v", i+1, p)
		}
	}
	if ps[2].Lost != 1 || ps[3].Copies != 2 {
		t.Errorf("lost %+v, copies %+v", ps[2], ps[3])
	}
	if c := b.f.Counts(); c.Held != 12 || c.Released != 13 || c.Strays != 0 {
		t.Errorf("the fabric counts %+v", c)
	}
}

// TestADelayEndsOnASwitch: a message that is kept goes on when its time has come,
// by the port of its receiver, without anything else that happens.
func TestADelayEndsOnASwitch(t *testing.T) { onBothGates(t, testADelayEndsOnASwitch) }

func testADelayEndsOnASwitch(t *testing.T, by model.Gate) {
	const late = 60 * time.Millisecond
	scn := messageScenario(model.MessageFault{Kind: model.FaultDelay, For: late, Match: model.MessageMatch{Type: "text SLOW"}})
	b := newBench(t, by, scn)
	came := b.s.now()
	b.gossip("n3", "n1", "SLOW 1")
	b.until("n1: SLOW 1")
	left := b.s.now()
	b.s.Mark(model.EventStop)
	h := sameAgain(t, b.s, scn, 2).Result().Faults[0].Hits[0]
	if h.Passed < came+late || h.Passed > left || h.Passed < h.Due || h.Why != model.ReasonDue || b.decided() != "1 hold fault-delay, 1 pass due" {
		t.Errorf("came after %v, had left by %v: %+v; decided %s", came, left, h, b.decided())
	}
}

// TestAMessageLostForGoodOnASwitch: its connection is reset at both ends, by the
// ports that they are on, and neither it nor what follows leaves the switch.
func TestAMessageLostForGoodOnASwitch(t *testing.T) { onBothGates(t, testAMessageLostForGoodOnASwitch) }

func testAMessageLostForGoodOnASwitch(t *testing.T, by model.Gate) {
	scn := messageScenario(model.MessageFault{Kind: model.FaultLose, Lose: model.LoseMessage, Match: model.MessageMatch{Type: "text B"}})
	b := newBench(t, by, scn)
	tcp := func(from, to model.NodeID, sp, dp layers.TCPPort, seq, ack uint32, syn bool, text string) {
		t.Helper()
		l := &layers.TCP{SrcPort: sp, DstPort: dp, Seq: seq, Ack: ack, SYN: syn, ACK: ack != 0, PSH: text != "", Window: 1000}
		b.sends(from, to, frame(t, from, to, l, text))
	}
	tcp("n3", "n2", 4000, 7001, 99, 0, true, "")
	tcp("n2", "n3", 7001, 4000, 499, 100, true, "")
	tcp("n3", "n2", 4000, 7001, 100, 500, false, "A 1\n")
	tcp("n2", "n3", 7001, 4000, 500, 104, false, "")
	want := []string{"n2: RST false seq 99", "n3: RST false seq 499", "n2: A 1\n", "n3: RST false seq 500"}
	b.until(want...)
	tcp("n3", "n2", 4000, 7001, 104, 500, false, "B 2\n")
	want = append(want, "n2: RST true seq 104", "n3: RST true seq 500")
	b.until(want...)
	tcp("n3", "n2", 4000, 7001, 108, 500, false, "A 3\n") // was on its way already
	b.gossip("n3", "n2", "behind it")
	for range 6000 {
		if slices.Contains(b.passed(), "n2: behind it") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	got := b.passed()
	if got[len(got)-1] != "n2: behind it" || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "A 3") || strings.Contains(s, "B 2") }) {
		t.Errorf("the switch let pass %q", got)
	}
	b.s.Mark(model.EventStop)
	p := sameAgain(t, b.s, scn, 2).Result().Faults[0]
	if p.Acted != 1 || len(p.Hits) != 1 || !p.Hits[0].Reset || p.Hits[0].After != 1 {
		t.Errorf("in the record: %+v", p)
	}
}
