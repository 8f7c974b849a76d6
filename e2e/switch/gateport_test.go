package ofswitch

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/inference/tap"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// longVar asks for the long form: 1,000 cuts at the gate.
const longVar = "NETSPLIT_E2E_LONG"

// odd makes frames that a gate could spoil: of other protocols, lengths and
// tags. Each carries its number at the end.
func odd(from, to *host) map[string][]byte {
	tag := func(tpid, tci uint16, f []byte) []byte {
		out := binary.BigEndian.AppendUint16(slices.Clone(f[:12]), tpid)
		return append(binary.BigEndian.AppendUint16(out, tci), f[12:]...)
	}
	eth := func(typ uint16, size int) []byte {
		f := append(append([]byte{}, to.mac[:]...), from.mac[:]...)
		f = binary.BigEndian.AppendUint16(f, typ)
		for i := len(f); i < size-len(marker)-4; i++ {
			f = append(f, byte(i))
		}
		return append(f, marker+"0000"...)
	}
	ipv6 := func(next byte, body []byte) []byte {
		f := eth(0x86dd, 0)[:14]
		f = append(f, 0x60, 0, 0, 0, 0, byte(len(body)), next, 255)
		for _, h := range []*host{from, to} {
			f = append(append(append(f, 0xfd), make([]byte, 14)...), h.mac[5])
		}
		return append(f, body...)
	}
	payload := []byte(marker + "0000")
	_, udp := frame("udp", from, to)
	_, fragment := frame("fragment", from, to)
	_, reply := frame("arp reply", from, to)
	_, request := frame("arp request", from, to)
	_, tcp := frame("tcp", from, to)
	_, icmp := frame("icmp", from, to)
	many := func(group [6]byte, f []byte) []byte { return append(slices.Clone(group[:]), f[6:]...) }
	solicitation := ipv6(58, append(append([]byte{135, 0, 0xba, 0xd0, 0, 0, 0, 0, 0xfd}, make([]byte, 15)...), payload...))
	return map[string][]byte{
		"tcp": tcp, "icmp": icmp,
		"tcp6":                 ipv6(6, append([]byte{0x9c, 0x40, 0x23, 0x28, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0}, payload...)),
		"icmp6":                ipv6(58, append([]byte{129, 0, 0xba, 0xd0, 0, 1, 0, 1}, payload...)),
		"solicitation to many": many([6]byte{0x33, 0x33, 0xff, 0, 0, to.mac[5]}, solicitation),
		"multicast":            many([6]byte{1, 0, 0x5e, 0, 0, 7}, udp),
		"broadcast":            many([6]byte{255, 255, 255, 255, 255, 255}, udp),
		"tagged broadcast":     tag(0x8100, 0x602a, many([6]byte{255, 255, 255, 255, 255, 255}, udp)),
		"unknown type to many": many([6]byte{3, 0, 0, 0, 0, 1}, eth(0x88b5, 60)),
		"udp":                  udp, "fragment": fragment, "arp reply": reply, "arp request": request,
		"udp6":                        ipv6(17, append([]byte{0x9c, 0x40, 0x23, 0x28, 0, byte(8 + len(payload)), 0xba, 0xd0}, payload...)),
		"fragment6":                   ipv6(44, append([]byte{17, 0, 3, 0x20, 0, 0, 0, 1}, payload...)),
		"neighbour advertisement":     ipv6(58, append(append([]byte{136, 0, 0xba, 0xd0, 0x60, 0, 0, 0, 0xfd}, make([]byte, 15)...), payload...)),
		"neighbour solicitation":      solicitation,
		"unknown type":                eth(0x88b5, 60),
		"shorter than Ethernet sends": eth(0x88b5, 40),
		"full":                        eth(0x88b5, 1514),
		"tagged":                      tag(0x8100, 0x602a, udp),
		"tagged as by the gate":       tag(0x8100, uint16(from.port), udp),
		"tagged as a fence":           tag(0x8100, 4094, eth(0x88b5, 60)),
		"priority only":               tag(0x8100, 0xe000, udp),
		"tagged by a provider":        tag(0x88a8, 7, udp),
		"tagged twice":                tag(0x88a8, 7, tag(0x8100, 0x602a, udp)),
		"tagged three times":          tag(0x8100, 1, tag(0x8100, 2, tag(0x8100, 3, udp))),
		"tagged arp request":          tag(0x8100, 42, request),
		"tagged and full":             tag(0x8100, 42, eth(0x88b5, 1514)),
	}
}

// gated starts a fabric with every pair gated; decide is called for every held
// packet and says whether it is let through.
func (b *bench) gated(t *testing.T, by model.Gate, cfg fabric.Config, decide func(from model.NodeID, frame []byte) bool) *fabric.Fabric {
	t.Helper()
	var mu sync.Mutex
	var f *fabric.Fabric
	cfg.Gate = by
	cfg.PacketIn = func(from model.NodeID, _ time.Time, frame []byte) {
		mu.Lock()
		defer mu.Unlock()
		to := []model.NodeID{""}
		if frame[0]&1 != 0 {
			to = f.Receivers(from, true)
		}
		if !decide(from, frame) {
			return
		}
		for _, h := range to {
			if err := f.Release(frame, h); err != nil {
				t.Errorf("release: %v", err)
			}
		}
	}
	mu.Lock()
	f, _ = b.start(cfg)
	mu.Unlock()
	if f.Gate() != string(by) {
		t.Fatalf("the gate is by %s, want %s", f.Gate(), by)
	}
	if err := f.SetTaps(within(t), allPairs(b.testbed.Names()), nil); err != nil {
		t.Fatal(err)
	}
	b.settled()
	return f
}

// TestFramesComeOutOfTheGateAsTheyWentIn compares bytes, whatever the protocol,
// the length and the tags of a frame.
func TestFramesComeOutOfTheGateAsTheyWentIn(t *testing.T) {
	onBothGates(t, func(t *testing.T, by model.Gate) {
		b := newBench(t, 2)
		held := 0
		f := b.gated(t, by, fabric.Config{}, func(model.NodeID, []byte) bool { held++; return true })
		from, to := b.hosts[0], b.hosts[1]
		r, err := tap.Open("e0", to.ns)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		frames := odd(from, to)
		for name, sent := range frames {
			from.send(t, sent)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			var got [][]byte
			if err := r.Read(ctx, func(_ time.Time, g []byte) {
				if bytes.Contains(g, []byte(marker)) {
					got = append(got, slices.Clone(g))
					cancel()
				}
			}); err != nil {
				t.Fatal(err)
			}
			cancel()
			if len(got) != 1 || !bytes.Equal(got[0], sent) {
				t.Errorf("%s came out as\n%x, went in as\n%x\n%s", name, got, sent, b.flows())
			}
		}
		if err := f.Fence(within(t)); err != nil {
			t.Fatal(err)
		}
		if c := f.Counts(); c.Held < uint64(len(frames)) || c.Held != c.Released || c.Strays != 0 {
			t.Errorf("%d frames, counts %+v", len(frames), c)
		}
	})
}

// TestCutsAtTheGateLeakNothing cuts and heals between two packets, again and
// again, while both hosts send. Every frame has a number: what the gate let
// through arrives once, and nothing else does. Frames of a kind arrive in the
// order in which they were sent; Open vSwitch's userspace datapath takes up to
// 32 frames at once and sends them on cached flow by cached flow, and frames of
// different Ethernet types, tags or fragment offsets are in different ones.
func TestCutsAtTheGateLeakNothing(t *testing.T) {
	cuts := 50
	if os.Getenv(longVar) != "" {
		cuts = 1000
	}
	onBothGates(t, func(t *testing.T, by model.Gate) {
		b := newBench(t, 2)
		// The gate's owner: cut or not, by a word of the test; what it decided.
		var mu sync.Mutex
		cut := false
		passed, refused := map[uint32]bool{}, map[uint32]bool{}
		kind := map[uint32]string{}
		reported := fabric.Events{GateFault: func(_ model.DatapathID, err error) { t.Error(err) }}
		f := b.gated(t, by, fabric.Config{Events: reported}, func(_ model.NodeID, frame []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			at := bytes.Index(frame, []byte(marker))
			if at < 0 {
				return true // a kernel's own
			}
			n := binary.BigEndian.Uint32(frame[at+len(marker):])
			if cut {
				refused[n] = true
			} else {
				passed[n] = true
			}
			return !cut
		})
		for _, h := range b.hosts {
			h.mu.Lock()
			h.order = []uint32{}
			h.mu.Unlock()
		}

		stop := make(chan struct{})
		var sending sync.WaitGroup
		sent := make([]int, 2)
		for i := range 2 {
			from, to := b.hosts[i], b.hosts[1-i]
			frames := odd(from, to)
			var names []string
			for n := range frames {
				names = append(names, n)
			}
			slices.Sort(names)
			sending.Add(1)
			go func() {
				defer sending.Done()
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
					}
					for range 4 {
						f := slices.Clone(frames[names[sent[i]%len(names)]])
						n := lastProbe.Add(1)
						mu.Lock()
						kind[n] = names[sent[i]%len(names)]
						mu.Unlock()
						binary.BigEndian.PutUint32(f[len(f)-4:], n)
						from.send(t, f)
						sent[i]++
					}
				}
			}()
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range cuts {
			for _, c := range []bool{true, false} {
				time.Sleep(time.Duration(1+rng.IntN(8)) * time.Millisecond)
				mu.Lock()
				cut = c
				mu.Unlock()
			}
		}
		close(stop)
		sending.Wait()
		// A switch that is short of time loses frames on its way to the gate, at
		// the hosts' ports or in the queue of its session; at a gate port not
		// without a word.
		decided := 0
		b.until("no more frames come to the gate", func() error {
			mu.Lock()
			n := len(passed) + len(refused)
			mu.Unlock()
			if n == decided && n > 0 {
				return nil
			}
			decided = n
			time.Sleep(500 * time.Millisecond)
			return fmt.Errorf("%d of %d so far", n, sent[0]+sent[1])
		})
		var got []uint32
		b.until("all that passed has arrived", func() error {
			got = nil
			for _, h := range b.hosts {
				h.mu.Lock()
				got = append(got, h.order...)
				h.mu.Unlock()
			}
			if len(got) < len(passed) {
				return fmt.Errorf("%d of %d", len(got), len(passed))
			}
			return nil
		})
		if err := f.CheckGate(within(t)); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		leaked, twice := 0, 0
		for _, h := range b.hosts {
			h.mu.Lock()
			seen, last := map[uint32]bool{}, map[string]uint32{}
			for _, n := range h.order {
				if !passed[n] {
					leaked++
				}
				if seen[n] {
					twice++
				}
				seen[n] = true
				if k := kind[n]; n < last[k] {
					t.Errorf("%s got %s %d after %d", h.id, k, n, last[k])
				}
				last[kind[n]] = max(n, last[kind[n]])
			}
			h.mu.Unlock()
		}
		if leaked > 0 || twice > 0 || len(got) != len(passed) {
			t.Errorf("%d leaked, %d came twice, %d of %d arrived", leaked, twice, len(got), len(passed))
		}
		if len(refused) < cuts || len(passed) < cuts {
			t.Errorf("%d cuts refused %d frames and let %d pass: too few to show anything", cuts, len(refused), len(passed))
		}
		t.Logf("%d cuts: of %d frames %d passed, %d were refused, %d did not come to the gate; %d leaked",
			cuts, sent[0]+sent[1], len(passed), len(refused), sent[0]+sent[1]-decided, leaked)
	})
}

// TestWhatGoesToManyIsHeldForSome: a multicast reaches at once whom no gate keeps it from,
// and the others when the gate lets it, each once.
func TestWhatGoesToManyIsHeldForSome(t *testing.T) {
	onBothGates(t, func(t *testing.T, by model.Gate) {
		b := newBench(t, 3)
		var passes atomic.Bool
		f := b.gated(t, by, fabric.Config{}, func(_ model.NodeID, frame []byte) bool {
			return passes.Load() || !bytes.Contains(frame, []byte(marker))
		})
		h := b.hosts
		if err := f.SetTaps(within(t), []fabric.Pair{{A: h[0].id, B: h[1].id}}, nil); err != nil {
			t.Fatal(err)
		}
		b.settled()
		for name, template := range odd(h[0], h[1]) {
			if template[0]&1 == 0 || strings.HasSuffix(name, "arp request") { // those ask for b
				continue
			}
			for _, pass := range []bool{false, true} {
				passes.Store(pass)
				n, fr := lastProbe.Add(1), slices.Clone(template)
				binary.BigEndian.PutUint32(fr[len(fr)-4:], n)
				before := f.Counts().Held
				h[0].send(t, fr)
				b.until(name+" has come to the gate", func() error {
					if c := f.Counts(); c.Held == before {
						return fmt.Errorf("%+v", c)
					}
					return nil
				})
				time.Sleep(50 * time.Millisecond)
				want := 0
				if pass {
					want = 1
				}
				if got, other := h[1].received(n), h[2].received(n); got != want || other != 1 {
					t.Errorf("%s, passes %v: the gated host has it %d times, the other %d", name, pass, got, other)
				}
			}
		}
	})
}

// TestTheTransportChangesUnderLoad changes it between packets: what was released
// arrives by the one or the other.
func TestTheTransportChangesUnderLoad(t *testing.T) {
	b := newBench(t, 2)
	var mu sync.Mutex
	var held []uint32
	f := b.gated(t, model.GateByPort, fabric.Config{Events: fabric.Events{GateFault: func(_ model.DatapathID, err error) { t.Error(err) }}},
		func(_ model.NodeID, frame []byte) bool {
			if at := bytes.Index(frame, []byte(marker)); at >= 0 {
				mu.Lock()
				defer mu.Unlock()
				held = append(held, binary.BigEndian.Uint32(frame[at+len(marker):]))
			}
			return true
		})
	stop, done := make(chan struct{}), make(chan int)
	from, to := b.hosts[0], b.hosts[1]
	go func() {
		sent := 0
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- sent
				return
			case <-tick.C:
			}
			for range 3 {
				_, f := frame("udp", from, to)
				from.send(t, f)
				sent++
			}
		}
	}()
	for i := range 10 {
		time.Sleep(50 * time.Millisecond)
		by := []model.Gate{model.GateByPacketIn, model.GateByPort}[i%2]
		if err := f.UseGate(within(t), by); err != nil {
			t.Fatal(err)
		}
		if f.Gate() != string(by) {
			t.Errorf("the gate is by %s, want %s", f.Gate(), by)
		}
	}
	close(stop)
	sent := <-done
	b.until("all have arrived", func() error {
		mu.Lock()
		defer mu.Unlock()
		arrived := 0
		for _, n := range held {
			arrived += min(1, to.received(n))
		}
		if len(held) != sent || arrived != sent {
			return fmt.Errorf("%d sent, %d held, %d arrived", sent, len(held), arrived)
		}
		return nil
	})
}

// TestNothingGoesRoundAtTheGatePort writes to the gate port what would go round
// if a rule let it: frames between gated hosts with every kind of tag.
func TestNothingGoesRoundAtTheGatePort(t *testing.T) {
	b := newBench(t, 3)
	// What a host's kernel answers is no concern here.
	f, _ := b.start(fabric.Config{PacketIn: func(from model.NodeID, _ time.Time, frame []byte) {
		if bytes.Contains(frame, []byte(marker)) {
			t.Errorf("a frame from %s came to the gate again: %x", from, frame)
		}
	}})
	if err := f.SetTaps(within(t), allPairs(b.testbed.Names()), nil); err != nil {
		t.Fatal(err)
	}
	b.settled()
	p, err := tap.OpenPort(gateReader, b.sw())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h := b.hosts
	_, request := frame("arp request", h[0], h[1])
	_, unicast := frame("udp", h[0], h[1])
	_, back := frame("udp", h[1], h[0])
	for _, template := range [][]byte{request, unicast, back} {
		for vid := range uint16(1001) {
			if vid == gatePort || vid == 0 || vid > 20 && vid%100 != 0 {
				continue
			}
			n := lastProbe.Add(1)
			fr := slices.Clone(template)
			binary.BigEndian.PutUint32(fr[len(fr)-4:], n)
			if err := p.Write(vid, fr); err != nil {
				t.Fatal(err)
			}
			for _, o := range h {
				want := 0
				if o.port == uint32(vid) {
					want = 1
				}
				b.until(fmt.Sprintf("tag %d", vid), func() error {
					if got := o.received(n); got < want {
						return fmt.Errorf("%s received it %d times", o.id, got)
					}
					return nil
				})
			}
		}
	}
	for _, vid := range []uint16{0, gatePort, 4093, 4095} {
		if err := p.Write(vid, unicast); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	for _, o := range h {
		o.mu.Lock()
		for n, times := range o.got {
			if times != 1 {
				t.Errorf("%s received %d %d times", o.id, n, times)
			}
		}
		o.mu.Unlock()
	}
	if c := f.Counts(); c.Strays != 0 {
		t.Errorf("%d frames came to the gate port with a tag of no host", c.Strays)
	}
}

// TestAGatePortThatGoesDownIsToldAndOpensThePairs holds packets, takes the gate
// port down and up again.
func TestAGatePortThatGoesDownIsToldAndOpensThePairs(t *testing.T) {
	b := newBench(t, 2)
	faults := make(chan error, 100)
	hold := func(model.NodeID, []byte) bool { return false }
	f := b.gated(t, model.GateByPort, fabric.Config{Events: fabric.Events{GateFault: func(_ model.DatapathID, err error) { faults <- err }}}, hold)
	b.expect("all held", func(model.NodeID, model.NodeID) bool { return false })
	b.do("ip", "-n", b.sw(), "link", "set", gateReader, "down")
	var reported []string
	for deadline := time.After(30 * time.Second); !strings.Contains(strings.Join(reported, "\n"), "went down"); {
		select {
		case err := <-faults:
			reported = append(reported, err.Error())
		case <-deadline:
			t.Fatalf("not told within 30 s; told %q", reported)
		}
	}
	t.Logf("told %q", reported)
	b.until("the pairs are open", func() error {
		if rules := b.flows(); strings.Contains(rules, "push_vlan") {
			return fmt.Errorf("gated still:\n%s", rules)
		}
		return nil
	})
	b.settled()
	b.expect("open", everything)
	b.do("ip", "-n", b.sw(), "link", "set", gateReader, "up")
	if err := f.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	b.until("gated again", func() error {
		if rules := b.flows(); !strings.Contains(rules, "push_vlan") {
			return fmt.Errorf("open:\n%s", rules)
		}
		return nil
	})
	b.settled()
	b.expect("all held again", func(model.NodeID, model.NodeID) bool { return false })
}
