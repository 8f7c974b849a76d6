package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

func named() model.Testbed {
	t := testbed("rig", 1)
	for i := range t.Hosts {
		t.Hosts[i].Port = model.Port{Name: fmt.Sprintf("e%d", i+1)}
	}
	t.Mirrors[0].Port, t.Gates[0].Port = model.Port{Name: "mirror"}, model.Port{Name: "gate"}
	return t
}

// recorder gathers what is told of ports.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (h *recorder) add(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf("%s: %v", what, err))
}

// has says whether the last that was told of what has the text.
func (h *recorder) has(what, text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Backward(h.all) {
		if strings.HasPrefix(s, what+": ") {
			return strings.Contains(s, text)
		}
	}
	return false
}

func (h *recorder) events() fabric.Events {
	return fabric.Events{HostPort: func(_ model.DatapathID, host model.NodeID, err error) { h.add(string(host), err) },
		OtherPort: func(_ model.DatapathID, p model.Port, err error) { h.add(p.Name, err) }}
}

// leaves is by which ports a frame that came in by a port leaves.
func (r *rig) leaves(in uint32, from, to int) []uint32 {
	var out []uint32
	for _, o := range r.inject(1, in, frame(1, from, to, "x")) {
		out = append(out, o.Port)
	}
	return out
}

// notReady is what the fabric waits for.
func (r *rig) notReady() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	return fmt.Sprint(r.f.Ready(ctx))
}

// TestPortsByName: a port that is named is found, with its cut, under whatever
// number it has; what else gets its old number is nobody; and nothing is cut of a
// host whose port is not known.
func TestPortsByName(t *testing.T) { onBothGates(t, testPortsByName) }

func testPortsByName(t *testing.T, by model.Gate) {
	var logged recorder
	r := newRig(t, fabric.Config{Testbed: named(), Timeout: time.Minute, Gate: by, Events: logged.events()}, 1)
	sw := r.sw[1]
	if got := r.f.Testbed(); got.Hosts[0].Port != (model.Port{Number: 1, Name: "e1"}) || got.Gates[0].Port.Number != gatePort || got.Mirrors[0].Port.Number != 9 {
		t.Errorf("it is at %+v", got)
	}
	r.expect("forwarding", 1, 1, 2, "2")
	if err := r.f.Cut(soon(t), 1, isolate1); err != nil {
		t.Fatal(err)
	}
	r.expect("cut", 1, 1, 2, "")
	r.expect("beside the cut", 1, 1, 4, "4")

	sw.RemovePort(1)
	r.until("told that it is gone", func() bool {
		return logged.has("s1h1", `no port called "e1": it has "e2" (2), "e3" (3), "e4" (4), "mirror" (9), "gate" (`)
	})
	sw.AddPort(1, "stranger")
	r.until("no rule has the number that was its", func() bool { return len(r.leaves(1, 1, 4)) == 0 && len(r.leaves(4, 4, 1)) == 0 })
	r.until("the other port is known", func() bool { return strings.Contains(r.notReady(), `"stranger" (1)`) })
	if why := r.notReady(); !strings.Contains(why, `host s1h1: the switch has no port called "e1"`) || !errors.Is(errors.Join(r.f.Refused()...), fabric.ErrPorts) {
		t.Errorf("ready: %s; refused: %v", why, r.f.Refused())
	}
	if err := r.f.Cut(soon(t), 2, isolate1); !errors.Is(err, fabric.ErrPorts) || !strings.Contains(err.Error(), `"stranger" (1)`) {
		t.Errorf("a host on no port is cut: %v", err)
	}
	other := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h2"}, {"s1h3"}}}
	if err := r.f.Cut(soon(t), 3, other); err != nil {
		t.Errorf("other hosts: %v", err)
	}
	r.expect("other hosts", 1, 2, 3, "")
	if err := r.f.Heal(soon(t), 3); err != nil {
		t.Fatal(err)
	}
	if err := r.f.Release(frame(1, 2, 1, "x"), "s1h1"); err == nil {
		t.Error("released to a host on no port")
	}

	sw.AddPort(12, "e1")
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	r.until("told that it is back", func() bool { return logged.has("s1h1", "<nil>") })
	if out := r.leaves(12, 1, 2); len(out) > 0 {
		t.Errorf("back under another number it is not cut: %v", out)
	}
	if a, b := r.leaves(12, 1, 4), r.leaves(4, 4, 1); !slices.Equal(a, []uint32{4}) || !slices.Equal(b, []uint32{12}) || len(r.leaves(1, 1, 4)) > 0 {
		t.Errorf("back under another number: to s1h4 %v, from it %v, by the old one %v", a, b, r.leaves(1, 1, 4))
	}
	if err := r.f.Release(frame(1, 2, 1, "x"), "s1h1"); err != nil {
		t.Error(err)
	}

	// Another port of the same name: which is meant nobody knows.
	sw.AddPort(13, "e1")
	r.until("told of two", func() bool { return logged.has("s1h1", `2 ports called "e1", numbers 12 13`) })
	sw.RemovePort(13)
	r.until("told of one", func() bool { return logged.has("s1h1", "<nil>") })
	if err := r.f.Heal(soon(t), 1); err != nil {
		t.Fatal(err)
	}

	// Numbers that change while the session is down.
	r.mu.Lock()
	pipe := r.pipes[1]
	r.mu.Unlock()
	pipe.Close()
	r.until("session gone", func() bool { return r.c.Switch(1) == nil })
	sw.RemovePort(12)
	sw.AddPort(12, "e5")
	sw.AddPort(14, "e1")
	r.connect(1)
	r.until("found after a reconnect", func() bool { return slices.Equal(r.leaves(14, 1, 2), []uint32{2}) && len(r.leaves(12, 1, 2)) == 0 })
}

// TestAPortThatComesLater: the rest of the testbed does not wait for it, runs do.
func TestAPortThatComesLater(t *testing.T) {
	var logged recorder
	tb := named()
	tb.Hosts[3].Port.Name = "late"
	r := newRigUnready(t, fabric.Config{Testbed: tb, Timeout: time.Minute, Events: logged.events()})
	r.until("told", func() bool { return logged.has("s1h4", `no port called "late": it has "e1" (1)`) })
	r.until("the others are joined", func() bool { return slices.Equal(r.leaves(1, 1, 2), []uint32{2}) })
	if why := r.notReady(); !strings.Contains(why, "host s1h4") {
		t.Errorf("ready: %s", why)
	}
	r.sw[1].AddPort(33, "late")
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	if out := r.leaves(1, 1, 4); !slices.Equal(out, []uint32{33}) {
		t.Errorf("to the one that came late: %v", out)
	}
}

// TestASwitchThatHasNotConnectedIsCalledSo, not one with other ports than the file has.
func TestASwitchThatHasNotConnectedIsCalledSo(t *testing.T) {
	r := newRig(t, fabric.Config{Testbed: testbed("other", 7)}, 7)
	f, err := fabric.New(fabric.Config{Testbed: named(), Controller: r.c, OpenPort: r.openPort, Gate: model.GateByPacketIn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	err = f.Cut(soon(t), 1, model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s1h2"}}})
	if !errors.Is(err, fabric.ErrDown) || errors.Is(err, fabric.ErrPorts) {
		t.Errorf("cut before it connects: %v", err)
	}
}

// newRigUnready is newRig for a testbed of one switch, whose ports are not all
// there: it does not wait.
func newRigUnready(t *testing.T, cfg fabric.Config) *rig {
	t.Helper()
	full := cfg.Testbed
	r := newRig(t, fabric.Config{Testbed: testbed("other", 7), Events: fabric.Events{}}, 7)
	cfg.Testbed, cfg.Controller, cfg.OpenPort, cfg.Gate = full, r.c, r.openPort, model.GateByPacketIn
	r.sw[1] = switchtest.New(switchtest.Config{Datapath: 1, Ports: []uint32{1, 2, 3, 4, 9, gatePort}, PartSize: 50,
		Names: map[uint32]string{1: "e1", 2: "e2", 3: "e3", 4: "e4", 9: "mirror", gatePort: "gate"}})
	f, err := fabric.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r.f = f
	r.connect(1)
	return r
}

// TestTheGatePortMoves: held packets go to the gate port wherever it is; without
// it nothing is held and that is told.
func TestTheGatePortMoves(t *testing.T) {
	var logged recorder
	r := newRig(t, fabric.Config{Testbed: named(), Timeout: time.Minute, Gate: model.GateByPort, Events: logged.events()}, 1)
	if err := r.f.SetTaps(soon(t), []fabric.Pair{{A: "s1h1", B: "s1h2"}}, nil); err != nil {
		t.Fatal(err)
	}
	if out := r.leaves(1, 1, 2); !slices.Equal(out, []uint32{gatePort}) {
		t.Fatalf("gated, it leaves by %v", out)
	}
	r.sw[1].RemovePort(gatePort)
	r.until("told", func() bool { return logged.has("gate", `no port called "gate"`) && len(r.logged()) > 0 })
	r.until("nothing has its number", func() bool { return slices.Equal(r.leaves(1, 1, 2), []uint32{2}) })
	r.sw[1].AddPort(500, "gate")
	r.until("gated by its new number", func() bool { return slices.Equal(r.leaves(1, 1, 2), []uint32{500}) })
	r.until("told that it is back", func() bool { return logged.has("gate", "<nil>") })
}
