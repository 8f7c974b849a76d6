package testbed

import (
	"testing"
	"time"

	"netsplit/model"
)

// TestNoTwoCutsOfATestbedHaveOneID: a manual partition whose rules a switch may still have
// and a script's cut are told apart, and neither is taken for a cut at the gate.
func TestNoTwoCutsOfATestbedHaveOneID(t *testing.T) {
	b, last := &Testbed{}, uint32(0)
	for range 3 {
		c := b.NewCut(model.Partition{})
		if c.id <= last {
			t.Errorf("id %d after %d", c.id, last)
		}
		last = c.id
	}
}

// A heal is proved by what no other cut that stands takes.
func TestOtherCutsTakeTheirTrafficOnly(t *testing.T) {
	b, ab := &Testbed{}, model.Link{Src: "a", Dst: "b"}
	c := b.NewCut(model.Partition{Shape: model.Simplex, Groups: [][]model.NodeID{{"b"}, {"a"}}, Only: []model.Traffic{{Proto: "arp"}}}) // b reaches a
	b.standing.Store(c.id, c)
	for i, s := range (model.Partition{}).ProbePackets() { // ARP to everybody, TCP, TCP over IPv6
		if b.CutBy(ab, s) != (i == 0) || b.CutBy(ab.Reverse(), s) {
			t.Errorf("%+v: cut %v, and %v the other way", s, b.CutBy(ab, s), b.CutBy(ab.Reverse(), s))
		}
	}
}

// TestAClockThatGoesOnIsNotSetBack: its readings are as far apart as they should.
func TestAClockThatGoesOnIsNotSetBack(t *testing.T) {
	now := time.Now()
	if SetBack(now, now.Add(time.Second)) {
		t.Error("a clock that goes on was set back")
	}
}
