package fabric_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/inference/tap"
	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

const gatePort = 10

// onBothGates runs a test with each transport of the gate.
func onBothGates(t *testing.T, f func(*testing.T, model.Gate)) {
	for _, g := range []model.Gate{model.GateByPort, model.GateByPacketIn} {
		t.Run(string(g), func(t *testing.T) { f(t, g) })
	}
}

// fakePort is the far end of a model switch's gate port.
type fakePort struct {
	sw   *switchtest.Switch
	come chan []byte
	end  chan error

	mu     sync.Mutex
	left   []switchtest.Output // what was written and left the switch
	stats  tap.PortStats
	deaf   bool // the switch takes nothing from it
	closed bool
}

func (r *rig) openPort(g model.GatePort) (fabric.Port, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noPort != nil {
		return nil, r.noPort
	}
	p := &fakePort{sw: r.sw[g.Datapath], come: make(chan []byte, 1000), end: make(chan error, 1)}
	r.lines[g.Datapath] = p
	return p, nil
}

// inject lets a frame come in; what leaves by the gate port comes to its end.
func (r *rig) inject(id model.DatapathID, port uint32, frame []byte) []switchtest.Output {
	out := r.sw[id].Inject(port, frame)
	r.mu.Lock()
	p := r.lines[id]
	r.mu.Unlock()
	for _, o := range out {
		if o.Port == gatePort && p != nil {
			select {
			case p.come <- o.Frame:
			default: // nobody reads it
			}
		}
	}
	return out
}

func (p *fakePort) Read(ctx context.Context, f func(time.Time, uint16, []byte)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.end:
			return err
		case b := <-p.come:
			f(time.Now(), binary.BigEndian.Uint16(b[14:])&0xfff, append(slices.Clone(b[:12]), b[16:]...))
		}
	}
}

func (p *fakePort) Write(vid uint16, frame []byte) error {
	p.mu.Lock()
	deaf := p.deaf
	p.mu.Unlock()
	if deaf {
		return nil
	}
	b := binary.BigEndian.AppendUint16(slices.Clone(frame[:12]), 0x8100)
	b = append(binary.BigEndian.AppendUint16(b, vid), frame[12:]...)
	for _, o := range p.sw.Inject(gatePort, b) {
		if o.Port == gatePort {
			p.come <- o.Frame
			continue
		}
		p.mu.Lock()
		p.left = append(p.left, o)
		p.mu.Unlock()
	}
	return nil
}

func (p *fakePort) Stats() (tap.PortStats, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats, nil
}

func (p *fakePort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

func (p *fakePort) sent() []switchtest.Output {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.left)
}

func (r *rig) logged() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

func TestGatePortThatGoesAwayIsToldAndOpensThePairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fabric.Config{}.Every(20*time.Millisecond, 0), 1)
		ctx := soon(t)
		if err := r.f.SetTaps(ctx, []fabric.Pair{{A: "s1h1", B: "s1h2"}}, nil); err != nil {
			t.Fatal(err)
		}
		gate := fmt.Sprint(gatePort)
		r.expect("gated", 1, 1, 2, gate)
		r.mu.Lock()
		r.noPort = errors.New("no such interface")
		p := r.lines[1]
		r.mu.Unlock()
		p.end <- errors.New("the interface went down")
		r.until("told", func() bool { return len(r.logged()) == 1 })
		if text := r.logged()[0]; !strings.Contains(text, "what was on its way") || !strings.Contains(text, "the interface went down") {
			t.Errorf("told %q", text)
		}
		r.until("open", func() bool { return r.ports(1, 1, 2) == "2" })
		if err := r.f.Release(frame(1, 1, 2, "held"), ""); !errors.Is(err, fabric.ErrGateDown) {
			t.Errorf("a release while the gate port is down: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if err := r.f.Ready(short); !errors.Is(err, fabric.ErrGateDown) || !strings.Contains(err.Error(), "no such interface") {
			t.Errorf("ready while the gate port is down: %v", err)
		}
		r.mu.Lock()
		r.noPort = nil
		r.mu.Unlock()
		if err := r.f.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		r.until("gated again", func() bool { return r.ports(1, 1, 2) == gate })
		if len(r.logged()) != 1 {
			t.Errorf("told %q", r.logged())
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed {
			t.Error("the port that went away was not closed")
		}
	})
}

func TestLossesAtTheGatePortAreToldOnce(t *testing.T) {
	r := newRig(t, fabric.Config{}.Every(0, time.Hour), 1)
	p := r.lines[1]
	for i, want := range []string{"3 held packets were lost", "2 held packets were lost"} {
		p.mu.Lock()
		p.stats.Dropped += uint64(3 - i)
		p.mu.Unlock()
		for range 2 {
			if err := r.f.CheckGate(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		if logged := r.logged(); len(logged) != i+1 || !strings.Contains(logged[i], want) {
			t.Fatalf("told %q, want %q", logged, want)
		}
	}
}

func TestLossesOfTheSwitchAreTold(t *testing.T) {
	r := newRig(t, fabric.Config{}.Every(0, time.Hour), 1)
	for i, want := range []string{"", "", "7 held packets were lost: the switch could not send them out of port 10"} {
		r.sw[1].Drop(gatePort, []uint64{5, 0, 7}[i]) // what came before the first look is older
		r.sw[1].Drop(2, 100)
		for range 2 {
			if err := r.f.CheckGate(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		if logged := strings.Join(r.logged(), "|"); logged != want {
			t.Fatalf("told %q, want %q", logged, want)
		}
	}
}

func TestLossesAreToldWhileTheRunLasts(t *testing.T) {
	r := newRig(t, fabric.Config{}.Every(0, 10*time.Millisecond), 1)
	p := r.lines[1]
	p.mu.Lock()
	p.stats.Truncated = 1
	p.mu.Unlock()
	r.until("told", func() bool {
		return len(r.logged()) == 1 && strings.Contains(r.logged()[0], "1 held packets were longer")
	})
}

func TestPacketsThatHaveNoHostAreStrays(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	p := r.lines[1]
	for _, vid := range []uint16{0, 5, 9, gatePort, 4095} {
		b := binary.BigEndian.AppendUint16([]byte("abcdefghijkl"), 0x8100)
		p.come <- append(binary.BigEndian.AppendUint16(b, vid), "rest of it"...)
	}
	r.until("counted", func() bool { return r.f.Counts() == fabric.Counts{Strays: 5} })
	if out := p.sent(); len(out) > 0 {
		t.Errorf("sent %v", out)
	}
}

// A fence is there so that what was released has left when it returns.
func TestAFenceThatDoesNotComeBackIsAnError(t *testing.T) {
	r := newRig(t, fabric.Config{Timeout: 200 * time.Millisecond, HardTimeout: time.Hour}.Every(time.Minute, time.Minute), 1)
	if err := r.f.Inject(frame(1, 1, 2, "x"), ""); err != nil {
		t.Fatal(err)
	}
	if err := r.f.Fence(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.f.Inject(frame(1, 1, 2, "x"), ""); err != nil {
		t.Fatal(err)
	}
	r.lines[1].mu.Lock()
	r.lines[1].deaf = true
	r.lines[1].mu.Unlock()
	if err := r.f.Fence(soon(t)); err == nil || !strings.Contains(err.Error(), "did not turn a frame back") {
		t.Errorf("fence: %v", err)
	}
}

// TestADeadSwitchTurnsNoFrameBack: it is called not connected, at once, whether it died
// before a frame was to come back or meanwhile, and holds up nobody who wants nothing
// from it.
func TestADeadSwitchTurnsNoFrameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fabric.Config{Timeout: 4 * time.Second, HardTimeout: time.Hour}.Every(time.Minute, time.Minute), 1, 2)
		use := func() {
			t.Helper()
			if err := r.f.Inject(frame(1, 1, 2, "x"), ""); err != nil {
				t.Fatal(err)
			}
		}
		quick := func(what string, do func() error) error {
			t.Helper()
			began := time.Now()
			err := do()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s took %v", what, took)
			}
			return err
		}
		use()
		r.lines[1].mu.Lock()
		r.lines[1].deaf = true
		r.lines[1].mu.Unlock()
		use()
		time.AfterFunc(300*time.Millisecond, func() { r.pipes[1].Close() })
		if err := quick("a fence", func() error { return r.f.Fence(soon(t)) }); !errors.Is(err, fabric.ErrDown) || strings.Contains(err.Error(), "turn a frame back") {
			t.Errorf("the switch died while a fence was out: %v", err)
		}
		there := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h3"}, {"s1h4"}}}
		err := quick("a cut there", func() error { return r.f.Cut(soon(t), 6, there) })
		if !errors.Is(err, fabric.ErrDown) || strings.Contains(err.Error(), "turn a frame back") {
			t.Errorf("cut there: %v", err)
		}
		elsewhere := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s2h3"}, {"s2h4"}}}
		if err := quick("a cut elsewhere", func() error { return r.f.Cut(soon(t), 7, elsewhere) }); err != nil {
			t.Errorf("cut on the other switch: %v", err)
		}
	})
}

func TestTheTransportIsChosen(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1, 2)
	ctx := soon(t)
	if err := r.f.SetTaps(ctx, []fabric.Pair{{A: "s1h1", B: "s1h2"}}, nil); err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(gatePort)
	for _, c := range []struct {
		by         model.Gate
		says, want string
	}{{"", "port", port}, {model.GateByPacketIn, "packet-in", of13.PortController.String()}, {model.GateByPort, "port", port}} {
		if err := r.f.UseGate(ctx, c.by); err != nil {
			t.Fatal(err)
		}
		if got := r.f.Gate(); got != c.says {
			t.Errorf("%q: the gate is by %s, want %s", c.by, got, c.says)
		}
		r.expect(string(c.by), 1, 1, 2, c.want)
	}
	if err := r.f.UseGate(ctx, "pigeon"); err == nil || !strings.Contains(err.Error(), "packet-in") {
		t.Errorf("pigeon: %v", err)
	}
}

func TestGatePortsThatAreNotThere(t *testing.T) {
	c := controller.New(controller.Config{})
	defer c.Close()
	refused := func(cfg fabric.Config, says ...string) {
		t.Helper()
		cfg.Controller = c
		f, err := fabric.New(cfg)
		if err == nil {
			f.Close()
			t.Errorf("want an error that says %q", says)
			return
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%v: does not say %q", err, s)
			}
		}
	}
	none := testbed("none", 1, 2)
	none.Gates = none.Gates[:1]
	refused(fabric.Config{Testbed: none, Gate: model.GateByPort}, "testbed none has no gate port on switch 0000000000000002", "packet-in")
	refused(fabric.Config{Testbed: testbed("x", 1)}, "gate port of switch 0000000000000001", "no such interface", "packet-in")
	refused(fabric.Config{Testbed: testbed("x", 1), Gate: "pigeon"}, "pigeon")
	high := testbed("high", 1)
	high.Hosts[3].Port.Number = 5000
	refused(fabric.Config{Testbed: high, OpenPort: func(model.GatePort) (fabric.Port, error) { return &fakePort{}, nil }}, "port 5000", "1 to 4093")

	f, err := fabric.New(fabric.Config{Testbed: none, Controller: c, OpenPort: func(model.GatePort) (fabric.Port, error) {
		return &fakePort{end: make(chan error), come: make(chan []byte)}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Gate(); got != "packet-in,port" {
		t.Errorf("one switch of two has a gate port: %s", got)
	}
	f.Close()
	// By packet-in no gate port is opened, so none is missed.
	f, err = fabric.New(fabric.Config{Testbed: testbed("x", 1), Controller: c, Gate: model.GateByPacketIn})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.UseGate(t.Context(), model.GateByPort); err == nil || !strings.Contains(err.Error(), "--gate packet-in") {
		t.Errorf("gate ports that were not opened: %v", err)
	}
}
