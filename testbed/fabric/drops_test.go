package fabric_test

import (
	"testing"

	"netsplit/model"
	"netsplit/testbed/fabric"
)

// segment is TCP from one host to another, to a port, without flags.
func segment(dst, src []byte, port uint16) []byte {
	return append(append(append([]byte{}, dst...), src...), 8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0x90, 0, byte(port>>8), byte(port), 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0)
}

// TestRulesOfTwoSwitchesAreCountedApart: hosts on ports of the same number have rules
// of the same key towards a third one; where that of one switch goes, the other's stands
// and is counted once.
func TestRulesOfTwoSwitchesAreCountedApart(t *testing.T) {
	tb := testbed("rig", 1, 2)
	tb.Gates = nil
	tb.Hosts = append(tb.Hosts[:3:3], tb.Hosts[4:7]...) // port 4 is the link
	tb.Links = []model.SwitchLink{{A: model.SwitchPort{Datapath: 1, Port: model.Port{Number: 4}}, B: model.SwitchPort{Datapath: 2, Port: model.Port{Number: 4}}}}
	r := newRig(t, fabric.Config{Testbed: tb}, 1, 2)
	ctx := soon(t)
	for id, p := range []model.Partition{
		{Effect: model.Drop, Groups: [][]model.NodeID{{"s1h3"}, {"s1h1", "s2h1"}}},
		{Effect: model.Reset, Groups: [][]model.NodeID{{"s1h1"}, {"s1h3"}}},
		{Effect: model.Reset, Groups: [][]model.NodeID{{"s2h1"}, {"s1h3"}}},
	} {
		p.Shape = model.Partial
		if err := r.f.Cut(ctx, uint32(id+1), p); err != nil {
			t.Fatal(err)
		}
	}
	send := func() {
		r.inject(1, 1, segment(mac(1, 3), mac(1, 1), 7000))
		for range 2 {
			r.inject(2, 1, segment(mac(1, 3), mac(2, 1), 7000))
		}
	}
	near, far := model.Link{Src: "s1h1", Dst: "s1h3"}, model.Link{Src: "s2h1", Dst: "s1h3"}
	expect := func(what string, id uint32, wantNear, wantFar uint64) {
		t.Helper()
		if n, err := r.dropped(id); err != nil || n[near] != wantNear || n[far] != wantFar {
			t.Errorf("%s: %d counts %v, want %d and %d: %v", what, id, n, wantNear, wantFar, err)
		}
	}
	send()
	expect("all stand", 1, 1, 2)
	expect("all stand", 3, 0, 2)
	if err := r.f.Heal(ctx, 2); err != nil {
		t.Fatal(err)
	}
	expect("one is healed", 1, 1, 2)
	expect("one is healed", 3, 0, 2)
	send()
	expect("and more came", 1, 2, 4)
	expect("and more came", 3, 0, 4)
}

// TestWhatARuleThatWentDroppedIsOfTheOldest: two partitions count a rule of a third
// one; once that went, its packets are still those of the older alone.
func TestWhatARuleThatWentDroppedIsOfTheOldest(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1)
	ctx, l := soon(t), model.Link{Src: "s1h1", Dst: "s1h2"}
	reset := pair12
	reset.Effect = model.Reset
	for id, p := range []model.Partition{pair12, pair12, reset} {
		if err := r.f.Cut(ctx, uint32(id+1), p); err != nil {
			t.Fatal(err)
		}
	}
	r.inject(1, 1, segment(mac(1, 2), mac(1, 1), 9))
	if err := r.f.Heal(ctx, 3); err != nil {
		t.Fatal(err)
	}
	for id := uint32(1); id <= 2; id++ {
		all, err := r.f.DropsBy(ctx, id)
		if n := model.ByLink(all)[l]; err != nil || n != 1 {
			t.Errorf("%d counts %v, %v", id, all, err)
		}
		for _, d := range all {
			if d.Link == l && d.Packets > 0 && d.Shared != (id == 2) {
				t.Errorf("%d: %+v", id, d)
			}
		}
	}
}
