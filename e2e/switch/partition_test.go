package ofswitch

import (
	"context"
	"sync"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// shapes of partitions over four hosts.
var shapes = []struct {
	name string
	p    model.Partition
}{
	{"complete one against three", model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"h1"}, {"h2", "h3", "h4"}}}},
	{"complete two against two", model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"h1", "h4"}, {"h2", "h3"}}}},
	{"complete in three", model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"h1"}, {"h2"}, {"h3", "h4"}}}},
	{"partial", model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"h1"}, {"h2", "h3"}}}},
	{"simplex", model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"h1", "h2"}, {"h3"}}}},
}

func everything(model.NodeID, model.NodeID) bool { return true }

// start connects the bench to a fabric and waits until it is ready.
func (b *bench) start(cfg fabric.Config) (*fabric.Fabric, *controller.Controller) {
	b.tb.Helper()
	c := b.listen(controller.Config{})
	cfg.Testbed, cfg.Controller = b.testbed, c
	f, err := fabric.New(cfg)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.connect(c.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := f.Ready(ctx); err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.tb.Log("closing the fabric:", err)
		}
	})
	return f, c
}

func within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// settled waits until Open vSwitch's cache of decisions agrees with its rules. The
// first round may have begun before they changed, and later ones miss some of the newest
// decisions where they forget many: so the cache is emptied, once nothing is on its way to it.
func (b *bench) settled() {
	for range 2 {
		b.appctl("revalidator/wait")
	}
	b.appctl("revalidator/purge")
	b.appctl("revalidator/wait")
}

func TestWhatPassesIsWhatThePartitionSays(t *testing.T) {
	b := newBench(t, 4)
	f, _ := b.start(fabric.Config{})
	b.expect("nothing cut", everything)
	for i, s := range shapes {
		id, ctx := uint32(i+1), within(t)
		b.settled() // so that what passed before is not counted as dropped
		if err := f.Cut(ctx, id, s.p); err != nil {
			t.Fatal(err)
		}
		b.settled()
		b.expect(s.name, matrix(s.p))
		drops, err := f.DropsBy(ctx, id)
		var n uint64
		for _, d := range drops {
			n += d.Packets
		}
		// The hosts' kernels may have added an ARP request or reply per link.
		links := uint64(len(s.p.Links()))
		if want := links * uint64(len(kinds)); err != nil || n < want || n > want+2*links {
			t.Errorf("%s: drop rules counted %d packets, the probes were %d: %v", s.name, n, want, err)
		}
		if err := f.Heal(ctx, id); err != nil {
			t.Fatal(err)
		}
		b.settled()
		b.expect(s.name+", healed", everything)
	}
}

// gatekeeper releases what its partition lets pass.
type gatekeeper struct {
	mu   sync.Mutex
	pass func(from, to model.NodeID) bool
	f    *fabric.Fabric
	b    *bench
	held int
	late int // releases that failed
}

func (g *gatekeeper) packetIn(from model.NodeID, _ time.Time, frame []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held++
	to, ok := g.f.HostOf(frame)
	if !ok { // an ARP request: its target says
		for _, h := range g.b.hosts {
			if string(h.ip.AsSlice()) == string(frame[38:42]) {
				to = h.id
			}
		}
	}
	if g.pass(from, to) && g.f.Release(frame, to) != nil {
		g.late++
	}
}

func (g *gatekeeper) set(pass func(from, to model.NodeID) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass = pass
}

func allPairs(hosts []model.NodeID) []fabric.Pair {
	var out []fabric.Pair
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			out = append(out, fabric.Pair{A: a, B: b})
		}
	}
	return out
}

// onBothGates runs a test with each transport of the gate.
func onBothGates(t *testing.T, f func(*testing.T, model.Gate)) {
	for _, g := range []model.Gate{model.GateByPort, model.GateByPacketIn} {
		t.Run(string(g), func(t *testing.T) { f(t, g) })
	}
}

func TestGateDecidesEveryPacket(t *testing.T) { onBothGates(t, testGateDecidesEveryPacket) }

func testGateDecidesEveryPacket(t *testing.T, by model.Gate) {
	b := newBench(t, 4)
	g := &gatekeeper{b: b, pass: everything}
	g.mu.Lock()
	f, _ := b.start(fabric.Config{PacketIn: g.packetIn, Gate: by})
	g.f = f
	g.mu.Unlock()
	if f.Gate() != string(by) {
		t.Fatalf("the gate is by %s", f.Gate())
	}
	ctx := within(t)
	if err := f.SetTaps(ctx, allPairs(b.testbed.Names()), nil); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("gate lets all pass", everything)
	if g.mu.Lock(); g.held < 12*len(kinds) {
		t.Errorf("only %d packets came to the gate", g.held)
	}
	g.mu.Unlock()
	for i, s := range shapes {
		g.set(matrix(s.p)) // in force between two packets: no waiting
		b.expect("gate, "+s.name, matrix(s.p))
		if err := f.CutBehind(ctx, uint32(i+1), s.p); err != nil {
			t.Fatal(err)
		}
		b.expect("gate and rules behind it, "+s.name, matrix(s.p))
		g.set(everything)
		if err := f.Heal(ctx, uint32(i+1)); err != nil {
			t.Fatal(err)
		}
		b.expect("gate healed, "+s.name, everything)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.late > 0 {
		t.Errorf("%d releases failed", g.late)
	}
}
