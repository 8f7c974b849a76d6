package fabric_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// topMeter is the greatest number of a meter of the model switches.
const topMeter = 1000

// pair12 cuts two hosts from one another.
var pair12 = model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s1h2"}}}

// said lists what the switch was told since the first n messages, one word for
// each change, those in a row that are the same once. A rule's word ends in
// "for 5s" if it expires.
func said(sw *switchtest.Switch, n int) (string, int) {
	all := sw.Received()
	var out []string
	for _, m := range all[n:] {
		w := ""
		switch m := m.(type) {
		case *of13.BarrierRequest:
			w = "barrier"
		case *of13.MeterMod:
			w = "down"
			if len(m.Bands) == 1 {
				w = "up"
			}
		case *of13.FlowMod:
			k := flowrules.Cookie(m.Cookie).Kind()
			if k == flowrules.KindFresh || k == flowrules.KindFlood || k == flowrules.KindDefault {
				continue
			}
			w = k.String()
			if m.Command == of13.FlowDeleteStrict || m.Command == of13.FlowDelete {
				w = "no " + w
			} else if m.HardTimeout > 0 {
				w += fmt.Sprintf(" for %v", m.HardTimeout)
			}
		default:
			continue
		}
		if len(out) == 0 || out[len(out)-1] != w {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", "), len(all)
}

// TestMetersOnTheWire: what the switch is told at a cut, at its lift and at its
// heal, in order and with a barrier in between.
func TestMetersOnTheWire(t *testing.T) {
	r := newRig(t, fabric.Config{HardTimeout: 2 * time.Hour}.Every(time.Hour, time.Hour), 1)
	_, n := said(r.sw[1], 0)
	expect := func(what, want string) {
		t.Helper()
		var got string
		if got, n = said(r.sw[1], n); got != want {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.expect("before", 1, 1, 2, "2")
	ok(r.f.Mechanism(pair12))
	ok(r.f.Cut(soon(t), 5, pair12))
	expect("cut", "hold for 2h0m0s, barrier, down, barrier, drop for 2h0m0s, barrier")
	r.expect("cut", 1, 1, 2, "")
	links, err := r.f.Lift(soon(t), 5, pair12.ProbePackets())
	ok(err)
	if len(links) != 2 {
		t.Errorf("held by meters alone: %v; want both links", links)
	}
	expect("lift", "hold for 2h0m0s, barrier, no drop, barrier, meter, barrier")
	r.expect("lifted", 1, 1, 2, "")
	held, err := r.f.Held(soon(t), 5, pair12.ProbePackets())
	ok(err)
	l := model.Link{Src: "s1h1", Dst: "s1h2"}
	if of := held[l]; len(of) != 3 || of[0].Rule == "" || of[1].Rule == of[0].Rule || of[1].Packets == 0 || of[2] != of[1] {
		t.Errorf("packets that came to the meters: %v", held)
	}
	if links, err := r.f.Lift(soon(t), 5, pair12.ProbePackets()); err != nil || len(links) != 0 {
		t.Errorf("lifted twice: %v, %v", links, err)
	}
	_, n = said(r.sw[1], 0)
	ok(r.f.Heal(soon(t), 5))
	expect("heal", "up, barrier, meter, barrier")
	r.expect("healed", 1, 1, 2, "2")

	ok(r.f.Cut(soon(t), 6, pair12))
	ok(r.f.Cut(soon(t), 7, pair12))
	if links, err := r.f.Lift(soon(t), 6, pair12.ProbePackets()); err != nil || len(links) != 0 {
		t.Errorf("lifted under another partition: %v, %v; want no link", links, err)
	}
	ok(r.f.Heal(soon(t), 6))
	r.expect("the other holds", 1, 1, 2, "")
	_, n = said(r.sw[1], 0)
	ok(r.f.Heal(soon(t), 7))
	expect("heal at once", "no drop, barrier, up, barrier, meter, barrier")
	r.expect("both healed", 1, 1, 2, "2")

	tcp := pair12
	tcp.Only = []model.Traffic{{Proto: "tcp"}}
	ok(r.f.Cut(soon(t), 8, pair12))
	ok(r.f.Cut(soon(t), 9, tcp))
	under, err := r.f.Lift(soon(t), 8, pair12.ProbePackets())
	if l := (model.Link{Src: "s1h1", Dst: "s1h2"}); err != nil || len(under) != 2 || fmt.Sprint(under[l]) != "[true false false]" {
		t.Errorf("lifted beside a partition of tcp: %v, %v; want meters alone to hold ARP, not TCP", under, err)
	}
	ok(r.f.Heal(soon(t), 8))
	ok(r.f.Heal(soon(t), 9))
	if err := r.f.Mechanism(tcp); err == nil || !strings.Contains(err.Error(), "some traffic") {
		t.Errorf("some traffic: %v", err)
	}
	ok(r.f.Close())
	if left := r.sw[1].Meters(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// down are the meters that are turned down.
func down(sw *switchtest.Switch) (n int) {
	for _, m := range sw.Meters() {
		if len(m.Bands) == 2 && m.Bands[0].Rate == 1 {
			n++
		}
	}
	return n
}

// TestMetersAreRepaired: meters that somebody changed or deleted are put right
// and reported, on the session and after the switch came back without any.
func TestMetersAreRepaired(t *testing.T) {
	r := newRig(t, fabric.Config{HardTimeout: time.Hour}.Every(900*time.Millisecond, 20*time.Millisecond), 1)
	if err := r.f.Cut(soon(t), 5, pair12); err != nil {
		t.Fatal(err)
	}
	changed := topMeter - 2 // some other pair's: down, by somebody
	r.sw[1].Do(&of13.MeterMod{Command: of13.MeterModify, Flags: of13.MeterKbps, Meter: of13.MeterID(changed), Bands: []of13.MeterBand{{Type: of13.BandDrop, Rate: 1}}})
	r.until("the change is reported", func() bool { return len(r.reports()) == 1 && r.reports()[0].Changed == 1 })
	r.until("it is mended", func() bool { return down(r.sw[1]) == 2 })
	r.sw[1].Do(&of13.MeterMod{Command: of13.MeterDelete, Meter: of13.MeterAll})
	r.expect("drop rules hold without meters", 1, 1, 2, "")
	r.until("the deletion is reported", func() bool { // if between the meters and the rules of one reading, by the next
		last := r.reports()[len(r.reports())-1]
		return last.Missing == 12+24
	})
	r.until("they are back", func() bool { return len(r.sw[1].Meters()) == 12 && down(r.sw[1]) == 2 })
	// A cut that finds them gone puts them back itself.
	r.sw[1].Do(&of13.MeterMod{Command: of13.MeterDelete, Meter: of13.MeterAll})
	if err := r.f.Cut(soon(t), 6, model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h3"}, {"s1h4"}}}); err != nil {
		t.Fatal(err)
	}
	r.until("both cuts have theirs", func() bool { return down(r.sw[1]) == 4 })

	r.mu.Lock()
	conn := r.pipes[1]
	r.mu.Unlock()
	conn.Close()
	r.until("it is gone", func() bool { return r.f.Meters(1) != nil })
	r.sw[1].Reset()
	r.connect(1)
	r.until("the switch has its meters again", func() bool { return r.f.Meters(1) == nil && down(r.sw[1]) == 4 })
	r.until("what is cut is cut again", func() bool { return r.ports(1, 1, 2) == "" && r.ports(1, 3, 4) == "" })
}

// TestWithoutMeters: a switch without meters, or without enough, or with
// somebody else's in the way, cuts by rules alone and says why.
func TestWithoutMeters(t *testing.T) {
	theirs := func(sw *switchtest.Switch) {
		sw.Do(&of13.MeterMod{Command: of13.MeterAdd, Flags: of13.MeterPktps, Meter: topMeter - 5, Bands: []of13.MeterBand{{Type: of13.BandDrop, Rate: 50}}})
	}
	for _, c := range []struct {
		says   string
		cuts   model.CutBy
		meters uint32
		before func(*switchtest.Switch)
		left   int
	}{
		{"the testbed says so", model.CutByRules, topMeter, nil, 0},
		{"has no meters", "", 0, nil, 0},
		{"has 11 meters, 4 hosts need 12", "", 11, nil, 0},
		{"meter 995 of the switch is somebody else's", "", topMeter, theirs, 1},
	} {
		ctrl := controller.New(controller.Config{})
		t.Cleanup(func() { ctrl.Close() })
		r := &rig{t: t, c: ctrl, testbed: testbed("rig", 1), lines: map[model.DatapathID]*fakePort{}}
		r.testbed.Cuts, r.testbed.Gates = c.cuts, nil
		f, err := fabric.New(fabric.Config{Testbed: r.testbed, Controller: r.c}.Every(0, 20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r.f = f
		r.serve(1, switchtest.Config{Datapath: 1, Ports: []uint32{1, 2, 3, 4, 9}, PartSize: 50, Meters: c.meters}, c.before)
		if err := f.Ready(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := f.Cut(soon(t), 5, pair12); err != nil {
			t.Fatal(err)
		}
		for _, why := range []error{f.Mechanism(pair12), f.Meters(1)} {
			if why == nil || !strings.Contains(why.Error(), c.says) {
				t.Errorf("why: %v; want %q", why, c.says)
			}
		}
		r.expect(c.says, 1, 1, 2, "")
		r.expect(c.says, 1, 1, 3, "3")
		if left := r.sw[1].Meters(); len(left) != c.left {
			t.Errorf("%s: meters %v", c.says, left)
		}
		if links, err := f.Lift(soon(t), 5, pair12.ProbePackets()); err != nil || len(links) > 0 {
			t.Errorf("%s: lift: %v, %v", c.says, links, err)
		}
		if err := f.Heal(soon(t), 5); err != nil {
			t.Fatal(err)
		}
		r.expect(c.says, 1, 1, 2, "2")
		if slices.ContainsFunc(r.sw[1].Flows(), func(s of13.FlowStats) bool {
			k := flowrules.Cookie(s.Cookie).Kind()
			return k == flowrules.KindMeter || k == flowrules.KindHold
		}) {
			t.Errorf("%s: a rule names a meter", c.says)
		}
	}
}

// TestMetersReachOverLinks: hosts behind other switches need meters too. A switch
// with too few for them cuts by rules alone; one with just enough has them all.
func TestMetersReachOverLinks(t *testing.T) {
	for _, c := range []struct {
		meters uint32
		says   string
	}{
		{4*7 - 1, "has 27 meters, 4 hosts with 4 on other switches need 28"},
		{4 * 7, ""},
	} {
		r := &rig{t: t, c: controller.New(controller.Config{}), testbed: testbed("rig", 1, 2), pipes: map[model.DatapathID]net.Conn{}, sw: map[model.DatapathID]*switchtest.Switch{}}
		t.Cleanup(func() { r.c.Close() })
		r.testbed.Gates = nil
		r.testbed.Links = []model.SwitchLink{{A: model.SwitchPort{Datapath: 1, Port: model.Port{Number: 20}}, B: model.SwitchPort{Datapath: 2, Port: model.Port{Number: 20}}}}
		f, err := fabric.New(fabric.Config{Testbed: r.testbed, Controller: r.c}.Every(0, 20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r.f = f
		for _, id := range []model.DatapathID{1, 2} {
			r.sw[id] = switchtest.New(switchtest.Config{Datapath: id, Ports: []uint32{1, 2, 3, 4, 9, 20}, PartSize: 50, Meters: c.meters})
			r.connect(id)
		}
		if err := f.Ready(soon(t)); err != nil {
			t.Fatal(err)
		}
		r.until("the switches have told", func() bool {
			return f.Meters(1) == nil == (c.says == "") && (c.says == "" || strings.Contains(f.Meters(1).Error(), c.says))
		})
		p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s1h2", "s2h1"}}}
		if err := f.Cut(soon(t), 5, p); err != nil {
			t.Fatalf("%d meters: %v", c.meters, err)
		}
		far := append(append(mac(2, 1), mac(1, 1)...), 0x12, 0x34, 'x')
		r.expect("cut", 1, 1, 2, "")
		if out := r.inject(1, 1, far); len(out) > 0 {
			t.Errorf("cut, but to the other switch it leaves by %v", out)
		}
		if err := f.Heal(soon(t), 5); err != nil {
			t.Fatal(err)
		}
		r.expect("healed", 1, 1, 2, "2")
		if out := r.inject(1, 1, far); len(out) != 1 || out[0].Port != 20 {
			t.Errorf("healed, but to the other switch it leaves by %v", out)
		}
	}
}
