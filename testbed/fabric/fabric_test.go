package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// rig is a controller, model switches and a fabric over four hosts per switch.
type rig struct {
	t       *testing.T
	c       *controller.Controller
	f       *fabric.Fabric
	sw      map[model.DatapathID]*switchtest.Switch
	testbed model.Testbed

	mu       sync.Mutex
	pipes    map[model.DatapathID]net.Conn
	served   map[model.DatapathID]chan struct{} // closed once a model switch has left its last pipe
	delay    func(of13.Message) time.Duration   // of the switches' answers
	lines    map[model.DatapathID]*fakePort     // the gate ports' far ends
	noPort   error                              // of opening one
	faults   []string
	tampered []fabric.Tampering
	held     []string
	ready    int
}

func testbed(name string, ids ...model.DatapathID) model.Testbed {
	t := model.Testbed{Name: name}
	for _, id := range ids {
		for i := 1; i <= 4; i++ {
			t.Hosts = append(t.Hosts, model.TestbedHost{Name: model.NodeID(fmt.Sprintf("s%dh%d", id, i)), Datapath: id, Port: model.Port{Number: uint32(i)},
				MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", uint8(id), i), IP: netip.AddrFrom4([4]byte{10, 0, byte(id), byte(i)})})
		}
		t.Mirrors = append(t.Mirrors, model.MirrorPort{Datapath: id, Port: model.Port{Number: 9}})
		t.Gates = append(t.Gates, model.GatePort{Datapath: id, Port: model.Port{Number: gatePort}, Interface: "far"})
	}
	return t
}

func newRig(t *testing.T, cfg fabric.Config, ids ...model.DatapathID) *rig {
	t.Helper()
	r := &rig{t: t, c: controller.New(controller.Config{}), sw: map[model.DatapathID]*switchtest.Switch{},
		pipes: map[model.DatapathID]net.Conn{}, lines: map[model.DatapathID]*fakePort{}, testbed: testbed("rig", ids...)}
	t.Cleanup(func() { r.c.Close() })
	r.testbed.Cuts = cfg.Testbed.Cuts
	if len(cfg.Testbed.Hosts) > 0 {
		r.testbed = cfg.Testbed
	}
	cfg.Testbed, cfg.Controller = r.testbed, r.c
	if cfg.PacketIn == nil {
		cfg.PacketIn = func(host model.NodeID, _ time.Time, frame []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.held = append(r.held, string(host)+" "+string(frame[14:]))
		}
	}
	cfg.OpenPort = r.openPort
	cfg.Events.GateFault = func(_ model.DatapathID, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults = append(r.faults, err.Error())
	}
	cfg.Events.Tampered = func(_ model.DatapathID, x fabric.Tampering) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tampered = append(r.tampered, x)
	}
	cfg.Events.Ready = func(model.DatapathID) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ready++
	}
	for _, id := range ids {
		r.sw[id] = switchtest.New(switchtest.Config{Datapath: id, Ports: []uint32{1, 2, 3, 4, 9, gatePort}, PartSize: 50, Meters: topMeter, Delay: r.delayed,
			Names: map[uint32]string{1: "e1", 2: "e2", 3: "e3", 4: "e4", 9: "mirror", gatePort: "gate"}})
	}
	f, err := fabric.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.f = f
	t.Cleanup(func() { f.Close() })
	for _, id := range ids {
		r.connect(id)
	}
	if err := f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// delayed is how long an answer to m takes now.
func (r *rig) delayed(m of13.Message) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delay == nil {
		return 0
	}
	return r.delay(m)
}

// slow has the switches' answers take so long from now on.
func (r *rig) slow(delay func(of13.Message) time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

func (r *rig) serve(id model.DatapathID, cfg switchtest.Config, before func(*switchtest.Switch)) {
	r.sw, r.pipes = map[model.DatapathID]*switchtest.Switch{id: switchtest.New(cfg)}, map[model.DatapathID]net.Conn{}
	if before != nil {
		before(r.sw[id])
	}
	r.connect(id)
}

func (r *rig) connect(id model.DatapathID) {
	ours, theirs := net.Pipe()
	r.mu.Lock()
	r.pipes[id] = theirs
	if r.served == nil {
		r.served = map[model.DatapathID]chan struct{}{}
	}
	before, now := r.served[id], make(chan struct{})
	r.served[id] = now
	r.mu.Unlock()
	sw := r.sw[id]
	go func() {
		defer close(now)
		if before != nil {
			<-before
		}
		_ = sw.Serve(theirs)
	}()
	go func() { _ = r.c.Serve(ours) }()
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within a minute; tampered %v", what, r.reports())
		}
	}
}

func (r *rig) dropped(id uint32) (map[model.Link]uint64, error) {
	all, err := r.f.DropsBy(soon(r.t), id)
	return model.ByLink(all), err
}

func (r *rig) reports() []fabric.Tampering {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tampered)
}

func mac(id model.DatapathID, host int) []byte { return []byte{2, 0, 0, 0, byte(id), byte(host)} }

func frame(id model.DatapathID, from, to int, text string) []byte {
	return append(append(append(mac(id, to), mac(id, from)...), 0x12, 0x34), text...)
}

// ports is where a frame from one host to another leaves, comma separated.
func (r *rig) ports(id model.DatapathID, from, to int) string {
	var out []string
	for _, o := range r.inject(id, uint32(from), frame(id, from, to, "x")) {
		out = append(out, of13.PortNo(o.Port).String())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (r *rig) expect(what string, id model.DatapathID, from, to int, want string) {
	r.t.Helper()
	if got := r.ports(id, from, to); got != want {
		r.t.Errorf("%s: %d>%d on switch %d leaves by %q, want %q", what, from, to, id, got, want)
	}
}

var isolate1 = model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s1h2", "s1h3"}}}

func TestTapsCutsAndHeals(t *testing.T) { onBothGates(t, testTapsCutsAndHeals) }

func testTapsCutsAndHeals(t *testing.T, by model.Gate) {
	r := newRig(t, fabric.Config{Gate: by}, 1)
	gate := map[model.Gate]string{model.GateByPort: fmt.Sprint(gatePort), model.GateByPacketIn: of13.PortController.String()}[by]
	ctx := soon(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.expect("plain", 1, 1, 2, "2")
	must(r.f.SetTaps(ctx, []fabric.Pair{{A: "s1h1", B: "s1h2"}}, []fabric.Pair{{A: "s1h1", B: "s1h3"}}))
	r.expect("gated", 1, 2, 1, gate)
	r.expect("mirrored", 1, 1, 3, "3,9")
	gated, open := model.Link{Src: "s1h2", Dst: "s1h1"}, model.Link{Src: "s1h1", Dst: "s1h3"}
	met, err := r.f.Gated(ctx, []model.Link{gated, open}, model.Partition{}.ProbePackets())
	if err != nil || met[gated][1].Packets != 1 || met[gated][0].Rule == met[gated][1].Rule || met[open][1].Rule != "" {
		t.Errorf("the gate counts %+v: %v", met, err)
	}
	must(r.f.Cut(ctx, 5, isolate1))
	r.expect("cut", 1, 1, 2, "")
	r.expect("cut", 1, 3, 1, "")
	r.expect("not cut", 1, 1, 4, "4")
	must(r.f.Cut(ctx, 6, isolate1)) // a second one over the same pairs
	drops, err := r.dropped(5)
	if n := drops[model.Link{Src: "s1h1", Dst: "s1h2"}] + drops[model.Link{Src: "s1h3", Dst: "s1h1"}]; err != nil || n != 2 {
		t.Errorf("dropped %v, want one each way: %v", drops, err)
	}
	r.expect("cut twice", 1, 1, 2, "")
	for id, want := range map[uint32]uint64{5: 2, 6: 1} { // what was dropped before it was cut is not the second's
		drops, err := r.dropped(id)
		if l := (model.Link{Src: "s1h1", Dst: "s1h2"}); err != nil || drops[l] != want {
			t.Errorf("partition %d: dropped %v, want %d of %s: %v", id, drops, want, l, err)
		}
	}
	narrow := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s1h2"}}, Only: []model.Traffic{{Proto: "tcp"}}}
	must(r.f.Cut(ctx, 7, narrow))
	r.expect("cut by wider ones", 1, 1, 2, "")
	if drops, err := r.dropped(7); err != nil || len(drops) > 0 && drops[model.Link{Src: "s1h1", Dst: "s1h2"}] != 0 {
		t.Errorf("a partition of tcp counts %v of what wider ones dropped: %v", drops, err)
	}
	must(r.f.Heal(ctx, 7))
	must(r.f.Heal(ctx, 5))
	r.expect("still cut by the other", 1, 1, 2, "")
	if drops, err := r.dropped(6); err != nil || drops[model.Link{Src: "s1h1", Dst: "s1h2"}] != 3 {
		t.Errorf("the first is healed: the second dropped %v, want 3: %v", drops, err)
	}
	must(r.f.Heal(ctx, 5)) // again: nothing happens
	must(r.f.Heal(ctx, 6))
	r.expect("gated again", 1, 1, 2, gate)
	must(r.f.CutBehind(ctx, 7, isolate1))
	r.expect("gate decides, rules stand behind", 1, 1, 2, gate)
	r.expect("not gated, so cut", 1, 1, 3, "")
	for id := uint32(5); id <= 7; id++ {
		if _, err := r.f.Drops(ctx, id, nil); (err == nil) != (id == 7) {
			t.Errorf("in force is 7 alone; counts of %d: %v", id, err)
		}
	}
	must(r.f.Fence(ctx))
	must(r.f.Flush(ctx))
	for a := 1; a <= 4; a++ {
		for b := 1; b <= 4; b++ {
			if a != b {
				r.expect("flushed", 1, a, b, fmt.Sprint(b))
			}
		}
	}
	if reports := r.reports(); len(reports) > 0 {
		t.Errorf("tampering reported where there was none: %v", reports)
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	ctx := soon(t)
	before := fmt.Sprint(r.sw[1].Flows())
	if err := r.f.Cut(ctx, 0, isolate1); err == nil {
		t.Error("partition id 0 accepted")
	}
	if err := r.f.Cut(ctx, 1, model.Partition{Shape: "round", Effect: model.Drop}); err == nil {
		t.Error("unknown shape accepted")
	}
	if err := r.f.SetTaps(ctx, []fabric.Pair{{A: "s1h1", B: "nobody"}}, nil); err == nil {
		t.Error("unknown host accepted")
	}
	if _, err := r.f.DropsBy(ctx, 1); err == nil {
		t.Error("counts of a partition that is not in force")
	}
	for _, err := range []error{r.f.Release([]byte("short"), "s1h1"), r.f.Release(frame(1, 1, 2, ""), "nobody"), r.f.Release(frame(7, 7, 7, ""), "")} {
		if err == nil {
			t.Error("a release to nowhere succeeded")
		}
	}
	if after := fmt.Sprint(r.sw[1].Flows()); after != before {
		t.Errorf("rules changed:\n%s\n%s", before, after)
	}
}

func TestGateHoldsAndReleasesInOrder(t *testing.T) { onBothGates(t, testGateHoldsAndReleasesInOrder) }

func testGateHoldsAndReleasesInOrder(t *testing.T, by model.Gate) {
	r := newRig(t, fabric.Config{Gate: by}, 1)
	ctx := soon(t)
	if err := r.f.SetTaps(ctx, []fabric.Pair{{A: "s1h1", B: "s1h2"}}, nil); err != nil {
		t.Fatal(err)
	}
	const n = 200
	for i := range n {
		r.inject(1, 1, frame(1, 1, 2, fmt.Sprint(i)))
	}
	var held []string
	r.until("all held", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		held = slices.Clone(r.held)
		return len(held) == n
	})
	for i := range n {
		if got, want := held[i], fmt.Sprintf("s1h1 %d", i); got != want {
			t.Fatalf("packet %d is %q, want %q", i, got, want)
		}
		if err := r.f.Release(frame(1, 1, 2, fmt.Sprint(i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	broadcast := append([]byte{255, 255, 255, 255, 255, 255}, frame(1, 1, 2, "all")[6:]...)
	if err := errors.Join(r.f.Release(broadcast, ""), r.f.Inject(frame(1, 4, 3, "made"), "s1h3"), r.f.Fence(ctx)); err != nil {
		t.Fatal(err)
	}
	out := append(r.sw[1].Sent(), r.lines[1].sent()...)
	if len(out) != n+3+1 {
		t.Fatalf("%d frames left, want %d", len(out), n+4)
	}
	for i := range n {
		if string(out[i].Frame[14:]) != fmt.Sprint(i) || out[i].Port != 2 {
			t.Fatalf("frame %d: %q on port %d", i, out[i].Frame[14:], out[i].Port)
		}
	}
	if out[n].Port != 2 || out[n+1].Port != 3 || out[n+2].Port != 4 || out[n+3].Port != 3 {
		t.Errorf("broadcast and injected frame left by %v", out[n:])
	}
	if c := r.f.Counts(); c.Held != n || c.Released != n+1 || c.Injected != 1 || c.Strays != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestRestartedSwitchIsRepaired(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	ctx := soon(t)
	if err := r.f.Cut(ctx, 5, isolate1); err != nil {
		t.Fatal(err)
	}
	r.pipes[1].Close()
	r.until("down", func() bool { return r.c.Switch(1) == nil })
	if err := r.f.Fence(ctx); !errors.Is(err, fabric.ErrDown) {
		t.Errorf("fence on a switch that is down: %v", err)
	}
	if err := r.f.Cut(ctx, 6, model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h3"}, {"s1h4"}}}); !errors.Is(err, fabric.ErrDown) {
		t.Errorf("cut on a switch that is down: %v", err)
	}
	r.sw[1].Reset()
	r.connect(1)
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	r.expect("cut is back", 1, 1, 2, "")
	r.expect("the failed cut is not", 1, 4, 3, "3")
	r.expect("forwarding is back", 1, 1, 4, "4")
}

func TestTamperingIsRepairedAndReported(t *testing.T) {
	r := newRig(t, fabric.Config{HardTimeout: time.Hour}.Every(900*time.Millisecond, 20*time.Millisecond), 1)
	if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
		t.Fatal(err)
	}
	del := of13.NewFlowMod(of13.FlowDelete)
	del.TableID, del.Cookie, del.CookieMask = of13.TableAll, uint64(flowrules.NewCookie(flowrules.KindDrop, flowrules.LabID("rig"), 0)), flowrules.MaskKind
	r.sw[1].Do(del)
	r.until("cut is back", func() bool { return r.ports(1, 1, 2) == "" })
	r.until("reported", func() bool { return len(r.reports()) == 1 && r.reports()[0].Missing == 8 })

	normal := of13.NewFlowMod(of13.FlowAdd)
	normal.Priority, normal.Cookie = 1000, 0xbad
	normal.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}
	r.sw[1].Do(normal)
	r.until("reported", func() bool { return len(r.reports()) >= 2 })
	time.Sleep(100 * time.Millisecond)
	reports := r.reports()
	if len(reports) != 2 {
		t.Fatalf("the same conflict is reported again and again: %v", reports)
	}
	if c := reports[1].Conflicts; len(c) != 1 || c[0].Flow.Cookie != 0xbad || len(c[0].Defeats) == 0 {
		t.Errorf("reported %v", reports[1])
	}
	if !slices.ContainsFunc(r.sw[1].Flows(), func(s of13.FlowStats) bool { return s.Cookie == 0xbad }) {
		t.Error("the foreign rule was deleted")
	}
	if err := r.f.Close(); err != nil {
		t.Fatal(err)
	}
	if left := r.sw[1].Flows(); len(left) != 1 || left[0].Cookie != 0xbad {
		t.Errorf("Close left %v", left)
	}
}

func TestRulesAreRenewedAndExpireWithTheFabric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fabric.Config{HardTimeout: time.Second}.Every(200*time.Millisecond, time.Hour), 1)
		if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if r.ports(1, 1, 2) != "" {
				t.Fatal("the cut went away while it was to be in force")
			}
		}
		r.pipes[1].Close() // as if this process had died
		died := time.Now()
		r.until("healed", func() bool { return r.ports(1, 1, 2) == "2" })
		if d := time.Since(died); d > 1500*time.Millisecond {
			t.Errorf("healed after %v, rules live 1 s", d)
		}
	})
}

func TestSwitchesOfOneTestbedAndOfTwo(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1, 2)
	other, err := fabric.New(fabric.Config{Testbed: testbed("other", 3), Gate: model.GateByPacketIn, Controller: r.c})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := fabric.New(fabric.Config{Testbed: testbed("thief", 2), Gate: model.GateByPacketIn, Controller: r.c}); err == nil {
		t.Error("a datapath was given to two fabrics")
	}
	r.sw[3] = switchtest.New(switchtest.Config{Datapath: 3, Ports: []uint32{1, 2, 3, 4}})
	r.connect(3)
	ctx := soon(t)
	if err := other.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1", "s2h1"}, {"s1h2", "s2h2"}}}
	if err := r.f.Cut(ctx, 1, p); err != nil {
		t.Fatal(err)
	}
	r.expect("first switch", 1, 1, 2, "")
	r.expect("second switch", 2, 2, 1, "")
	r.expect("not ours", 3, 1, 2, "2")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if left := r.sw[3].Flows(); len(left) != 0 {
		t.Errorf("Close left %v", left)
	}
	r.expect("still cut", 1, 1, 2, "")
}

// A daemon that goes away must not be a partition itself.
func TestLeaveHealsAndLeavesTheNetworkWhole(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
		t.Fatal(err)
	}
	if r.ports(1, 1, 2) != "" {
		t.Fatal("the cut is not in force")
	}
	if err := r.f.Leave(); err != nil {
		t.Fatal(err)
	}
	if got := r.ports(1, 1, 2); got != "2" {
		t.Errorf("after Leave a packet from port 1 to port 2 goes to %q", got)
	}
	for _, f := range r.sw[1].Flows() {
		if f.HardTimeout != 0 {
			t.Errorf("Leave left a rule that expires: %v", f)
		}
	}
}

func TestLeaveGivesASwitchWithRulesOfOthersBackToThem(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	normal := of13.NewFlowMod(of13.FlowAdd)
	normal.Priority, normal.Cookie = 1, 0xbad
	normal.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}
	r.sw[1].Do(normal)
	if err := r.f.Leave(); err != nil {
		t.Fatal(err)
	}
	if left := r.sw[1].Flows(); len(left) != 1 || left[0].Cookie != 0xbad {
		t.Errorf("Leave left %v", left)
	}
}

// TestARuleThatGoesIsStillCounted: a partition of all of a pair counts what a younger
// one's reset rule has dropped, also once that one is healed or lifted, and goes on
// where the same rule comes back; nobody is older than it.
func TestARuleThatGoesIsStillCounted(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	ctx, l := soon(t), model.Link{Src: "s1h1", Dst: "s1h2"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tcp := []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 1, 1, 10, 0, 1, 2, 0, 7, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 4, 0, 0, 0, 0, 0, 0}
	send := func(frame []byte) { r.inject(1, 1, frame) }
	segment := append(append(append(mac(1, 2), mac(1, 1)...), 8, 0), tcp...)
	counts := func(what string, id uint32, want uint64) []model.RuleDrops {
		t.Helper()
		all, err := r.f.DropsBy(ctx, id)
		if n := model.ByLink(all)[l]; err != nil || n != want {
			t.Errorf("%s: %d counts %v, want %d: %v", what, id, all, want, err)
		}
		return all
	}
	reset := pair12
	reset.Effect = model.Reset
	must(r.f.Cut(ctx, 1, pair12))
	send(frame(1, 1, 2, "x"))
	for i := range uint64(2) {
		id := uint32(2 + i)
		must(r.f.Cut(ctx, id, reset))
		if by := r.f.CountedFor([]model.Link{l}, pair12.ProbePackets())[l]; fmt.Sprint(by) != fmt.Sprintf("[[1 %[1]d] [1 %[1]d] [1 %[1]d]]", id) {
			t.Errorf("probe packets count for %v", by)
		}
		send(segment)
		send(segment)
		for _, d := range counts("both stand", 1, 1+2*i+2) {
			if d.Shared {
				t.Errorf("%+v: nobody is older", d)
			}
		}
		for _, d := range counts("both stand", id, 2) {
			if !d.Shared && d.Link == l {
				t.Errorf("%+v: the older one counts it", d)
			}
		}
		if i == 0 {
			if _, err := r.f.Lift(ctx, id, nil); err != nil {
				t.Fatal(err)
			}
			counts("the younger one is lifted", 1, 3)
		}
		must(r.f.Heal(ctx, id))
		counts("the younger one is healed", 1, 1+2*i+2)
	}
	send(segment)
	counts("alone again", 1, 6)
}
