package ofswitch

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/internal/labtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// wire is a TCP connection between switch and controller that can be cut.
type wire struct {
	to string
	ln net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// wireTo listens beside the switch and passes on to the controller.
func (b *bench) wireTo(addr string) *wire {
	b.tb.Helper()
	w := &wire{to: addr}
	if err := labtest.In(b.sw(), func() (err error) { w.ln, err = net.Listen("tcp", "127.0.0.1:0"); return err }); err != nil {
		b.tb.Fatal(err)
	}
	go func() {
		for {
			from, err := w.ln.Accept()
			if err != nil {
				return
			}
			var to net.Conn
			if err := labtest.In(b.sw(), func() (err error) { to, err = net.Dial("tcp", w.to); return err }); err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, from, to)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			go func() { _, _ = io.Copy(from, to); from.Close() }()
		}
	}()
	b.tb.Cleanup(func() { w.ln.Close(); w.drop() })
	return w
}

// drop ends the connections there are; the switch may make new ones.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// TestConnectionDropsWhilePacketsAreHeld: what is held when the control
// connection goes is neither sent by anybody else nor lost without a word.
func TestConnectionDropsWhilePacketsAreHeld(t *testing.T) { onBothGates(t, testConnectionDrops) }

func testConnectionDrops(t *testing.T, by model.Gate) {
	b := newBench(t, 3)
	type held struct {
		frame []byte
		to    model.NodeID
	}
	var mu sync.Mutex
	var hands []held
	var f *fabric.Fabric
	down, ready := make(chan error, 10), make(chan struct{}, 10)
	c := b.listen(controller.Config{})
	f, err := fabric.New(fabric.Config{Testbed: b.testbed, Controller: c, Gate: by,
		PacketIn: func(_ model.NodeID, _ time.Time, frame []byte) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(frame), marker) {
				hands = append(hands, held{append([]byte(nil), frame...), "h2"})
			}
		},
		Events: fabric.Events{
			SwitchDown: func(_ model.DatapathID, err error) { down <- err },
			Ready:      func(model.DatapathID) { ready <- struct{}{} },
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := b.wireTo(c.Addr().String())
	b.connect(w.ln.Addr().String())
	b.vsctl("set", "controller", bridge, "max_backoff=1000")
	if err := f.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	<-ready
	if err := f.SetTaps(within(t), []fabric.Pair{{A: "h1", B: "h2"}}, nil); err != nil {
		t.Fatal(err)
	}
	b.settled()
	const n = 20
	sent := map[uint32]bool{}
	send := func() {
		for range n {
			num, fr := frame("udp", b.host("h1"), b.host("h2"))
			b.host("h1").send(t, fr)
			sent[num] = true
		}
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(hands) }
	send()
	b.until("packets are held", func() error {
		if count() != n {
			return fmt.Errorf("%d of %d", count(), n)
		}
		return nil
	})
	w.drop()
	select {
	case err := <-down:
		t.Log("told:", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the end of the connection was not told within 30 s")
	}
	// Its owner releases what it holds: each is sent, or refused with a reason.
	released, refused := 0, 0
	mu.Lock()
	for _, h := range hands {
		if err := f.Release(h.frame, h.to); err != nil {
			refused++
		} else {
			released++
		}
	}
	hands = nil
	mu.Unlock()
	if by == model.GateByPacketIn && released != 0 {
		t.Errorf("%d packets were released to a switch that is gone", released)
	}
	arrived := func() (once int) {
		for num := range sent {
			switch b.host("h2").received(num) {
			case 0:
			case 1:
				once++
			default:
				t.Errorf("probe %d arrived twice", num)
			}
		}
		return once
	}
	b.until("what was released arrives", func() error {
		if got := arrived(); got != released {
			return fmt.Errorf("%d of %d", got, released)
		}
		return nil
	})
	t.Logf("%d released, %d refused", released, refused)
	select {
	case <-ready:
	case <-time.After(30 * time.Second):
		t.Fatal("the switch did not come back")
	}
	// The gate is there again, and holds.
	send()
	b.until("packets are held again", func() error {
		if count() != n {
			return fmt.Errorf("%d of %d", count(), n)
		}
		return nil
	})
	if got := arrived(); got != released {
		t.Errorf("%d packets passed a gate that released none", got-released)
	}
}

// TestFullTable: a cut that the switch has no room for is refused, leaves
// nothing behind and can be made when there is room.
func TestFullTable(t *testing.T) {
	b := newBench(t, 4)
	f, _ := b.start(fabric.Config{})
	before := strings.Count(b.flows(), "cookie=")
	b.vsctl("--", "--id=@t", "create", "Flow_Table", "name=small", fmt.Sprintf("flow_limit=%d", rulesIn(b, 1)+2), "overflow_policy=refuse",
		"--", "set", "bridge", bridge, "flow_tables:1=@t")
	err := f.Cut(within(t), 1, shapes[1].p)
	if err == nil || !strings.Contains(strings.ToUpper(err.Error()), "TABLE_FULL") && !strings.Contains(err.Error(), "full") {
		t.Fatalf("a cut of %d links in a table with room for 2 rules: %v; want a refusal that says so", len(shapes[1].p.Links()), err)
	}
	t.Log(err)
	b.settled()
	b.expect("after the refusal", everything)
	if after := strings.Count(b.flows(), "cookie="); after != before {
		t.Errorf("%d rules, before the refused cut %d:\n%s", after, before, b.flows())
	}
	b.vsctl("clear", "bridge", bridge, "flow_tables")
	if err := f.Cut(within(t), 2, shapes[1].p); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("with room", matrix(shapes[1].p))
}

func rulesIn(b *bench, table int) int {
	b.tb.Helper()
	return strings.Count(b.ofctl("dump-flows", b.mgmt(), fmt.Sprintf("table=%d", table)), "cookie=")
}

// TestAPortGoesAndComesBack: a host's port that is taken away is told; with its
// old number it finds its cut again, with another one that is told too.
func TestAPortGoesAndComesBack(t *testing.T) {
	b := newBench(t, 4)
	reported := make(chan error, 10)
	f, _ := b.start(fabric.Config{Events: fabric.Events{HostPort: func(_ model.DatapathID, h model.NodeID, err error) {
		if h != "h1" {
			err = fmt.Errorf("told of %s: %v", h, err)
		}
		reported <- err
	}}})
	next := func(want string) {
		t.Helper()
		select {
		case err := <-reported:
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("told %v, want %q", err, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("not told within 30 s; want %q", want)
		}
	}
	p := shapes[0].p // h1 against the rest
	if err := f.Cut(within(t), 1, p); err != nil {
		t.Fatal(err)
	}
	b.vsctl("del-port", bridge, "p1")
	next("removed")
	b.vsctl("add-port", bridge, "p1", "--", "set", "interface", "p1", "ofport_request=1")
	next("")
	b.settled()
	b.expect("cut, its port taken and put back", matrix(p))
	if err := f.Heal(within(t), 1); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("healed", everything)

	b.vsctl("del-port", bridge, "p1")
	next("removed")
	b.vsctl("add-port", bridge, "p1", "--", "set", "interface", "p1", "ofport_request=77")
	next("came back as port 77")
	b.vsctl("del-port", bridge, "p1")
	next("removed")
	b.vsctl("add-port", bridge, "p1", "--", "set", "interface", "p1", "ofport_request=1")
	next("")
	b.do("ip", "-n", b.host("h1").ns, "link", "set", "e0", "down")
	next("no link")
	b.do("ip", "-n", b.host("h1").ns, "link", "set", "e0", "up")
	next("")
	b.settled()
	b.expect("back", everything)
}

// longCycles makes TestManyCutsLeaveNothing long.
const longCycles = "NETSPLIT_E2E_LONG"

// TestManyCutsLeaveNothing cuts and heals over and over: rules, meters, goroutines,
// files and memory are at the end what they were.
func TestManyCutsLeaveNothing(t *testing.T) {
	b := newBench(t, 4)
	cycles := 300
	if os.Getenv(longCycles) != "" {
		cycles = 10_000
	}
	f, _ := b.start(fabric.Config{})
	cycle := func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		s := shapes[i%len(shapes)]
		if err := f.Cut(ctx, uint32(i+1), s.p); err != nil {
			t.Fatalf("cut %d: %v", i, err)
		}
		if err := f.Heal(ctx, uint32(i+1)); err != nil {
			t.Fatalf("heal %d: %v", i, err)
		}
	}
	for i := range 100 { // until pools and buffers have their size
		cycle(i)
	}
	before := taken(b)
	for i := range cycles {
		cycle(100 + i)
	}
	after := taken(b)
	t.Logf("%d cycles: before %+v, after %+v", cycles, before, after)
	if before.meters == 0 || before.downs != 0 {
		t.Errorf("before: %+v; want meters, none of them turned down", before)
	}
	if after.rules != before.rules || after.meters != before.meters || after.downs != before.downs || after.goroutines > before.goroutines+2 || after.files > before.files+2 {
		t.Errorf("%d cycles: before %+v, after %+v\n%s\n%s", cycles, before, after, b.flows(), b.meters())
	}
	if grown := int64(after.heap) - int64(before.heap); grown > 2<<20 {
		t.Errorf("the heap grew by %d bytes in %d cycles", grown, cycles)
	}
	b.settled()
	b.expect("after the last heal", everything)
}

// things that are taken: by the switch, by this process.
type things struct {
	rules, meters, downs, goroutines, files int // downs: meters turned down
	heap                                    uint64
}

func taken(b *bench) things {
	b.tb.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		b.tb.Fatal(err)
	}
	return things{strings.Count(b.flows(), "cookie="), strings.Count(b.meters(), "meter="), b.downs(), runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}
