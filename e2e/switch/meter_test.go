package ofswitch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/testbed/fabric"
)

// meters are those of the switch, as ovs-ofctl tells them.
func (b *bench) meters() string {
	b.tb.Helper()
	return b.ofctl("dump-meters", b.mgmt())
}

// downs counts the meters that are turned down.
func (b *bench) downs() int {
	b.tb.Helper()
	return strings.Count(b.meters(), "rate=1 ")
}

// long sends a frame that no meter turned down lets pass, by its length, over
// every link of the partition, and counts those that arrive; it waits for want
// of them, and for more.
func (b *bench) long(p model.Partition, want int) (arrived int) {
	b.tb.Helper()
	sent := map[uint32]*host{}
	for _, l := range p.Links() {
		n, f := frame("icmp", b.host(l.Src), b.host(l.Dst))
		b.host(l.Src).send(b.tb, append(f, make([]byte, 200)...))
		sent[n] = b.host(l.Dst)
	}
	count := func() (n int) {
		for probe, to := range sent {
			n += to.received(probe)
		}
		return n
	}
	for end := time.Now().Add(3 * time.Second); count() < want && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	return count()
}

// TestMeterOutlivesItsController: a controller is killed while nothing but
// meters holds what it cut, the one moment without a drop rule. The meters stay
// down for ever; the rules that name them do not. The next controller turns them
// up.
func TestMeterOutlivesItsController(t *testing.T) {
	b := newBench(t, 4)
	b.testbed.Gates = nil
	cut := shapes[0].p
	cmd := b.cutByChild(liftEnv + "=1")
	b.settled()
	links := len(cut.Links())
	if flows := b.flows(); strings.Contains(flows, "actions=drop") || strings.Count(flows, "hard_timeout=5") < 2*links {
		t.Fatalf("want no drop rule, and a timeout at each that names a meter:\n%s", flows)
	}
	if n := b.downs(); n != links {
		t.Fatalf("%d meters are down, want %d", n, links)
	}
	time.Sleep(6 * time.Second) // longer than the timeout: it is renewed
	if n := b.long(cut, 0); n != 0 {
		t.Errorf("%d frames passed meters that are down", n)
	}
	stopProcess(cmd)
	b.healsAlone()
	if n := b.downs(); n != links {
		t.Fatalf("%d meters are down with nobody to turn them up, want %d: this test shows nothing", n, links)
	}
	if n := b.long(cut, links); n != links {
		t.Errorf("%d of %d frames pass", n, links)
	}
	f, _ := b.start(fabric.Config{})
	if n := b.downs(); n != 0 {
		t.Errorf("%d meters are down under the next controller", n)
	}
	b.expect("with the next controller", everything)
	if err := f.Leave(); err != nil {
		t.Fatal(err)
	}
	if text := b.meters(); strings.Contains(text, "meter=") {
		t.Errorf("left behind: %s", text)
	}
	b.expect("left alone", everything)
}

// TestMetersCut: what a partition cuts is closed by its meters at once, before
// any revalidation; a lift keeps it closed, and a heal opens all of it at once.
// Somebody else's meter on the way has rules alone cut, and is left alone.
func TestMetersCut(t *testing.T) {
	b := newBench(t, 4)
	f, _ := b.start(fabric.Config{})
	b.expect("metered", everything)
	cut := shapes[3].p
	if err := f.Mechanism(cut); err != nil {
		t.Fatal("cuts by rules alone: ", err)
	}
	links := len(cut.Links())
	for id := range uint32(5) {
		id++
		if n := b.long(cut, links); n != links {
			t.Fatalf("%d of %d frames pass before cut %d", n, links, id)
		}
		if err := f.Cut(within(t), id, cut); err != nil {
			t.Fatal(err)
		}
		if n := b.long(cut, 0); n != 0 {
			t.Errorf("cut %d: %d frames passed after the switch had confirmed it", id, n)
		}
		b.settled()
		b.expect(fmt.Sprint("cut ", id), matrix(cut))
		if _, err := f.Lift(within(t), id, cut.ProbePackets()); err != nil {
			t.Fatal(err)
		}
		if n := b.long(cut, 0); n != 0 {
			t.Errorf("cut %d lifted: %d frames passed", id, n)
		}
		b.settled()
		if n := b.long(cut, 0); n != 0 {
			t.Errorf("cut %d lifted for good: %d frames passed", id, n)
		}
		if err := f.Heal(within(t), id); err != nil {
			t.Fatal(err)
		}
		if n := b.long(cut, links); n != links {
			t.Errorf("cut %d healed: %d of %d frames pass", id, n, links)
		}
	}
	b.expect("healed", everything)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b.ofctl("add-meter", b.mgmt(), "meter=262140,pktps,band=type=drop,rate=100000")
	f, _ = b.start(fabric.Config{})
	if err := f.Mechanism(cut); err == nil || !strings.Contains(err.Error(), "meter 262140 of the switch is somebody else's") {
		t.Errorf("why by rules alone: %v", err)
	}
	if err := f.Cut(within(t), 9, cut); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("cut by rules alone", matrix(cut))
	if text := b.meters(); strings.Count(text, "meter=") != 1 {
		t.Errorf("meters: %s", text)
	}
}
