package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// TestATallySumsUp what a run says to its metrics.
func TestATallySumsUp(t *testing.T) {
	var m Metrics = NewTally()
	ab, ba := model.Link{Src: "a", Dst: "b"}, model.Link{Src: "b", Dst: "a"}
	m.KnownLinks([]model.Link{ba, ab})
	m.CutStarted(model.Complete, []model.Link{ab, ba})
	m.CutStarted(model.Simplex, []model.Link{ab})
	time.Sleep(2 * time.Millisecond)
	if d := cmp.Diff(map[model.Shape]int{model.Complete: 1, model.Simplex: 1}, m.(*Tally).InForce()); d != "" {
		t.Errorf("in force (-want +got):\n%s", d)
	}
	m.CutEnded(model.ReasonTime, []model.Link{ab})
	m.CutEnded(model.ReasonTime, []model.Link{ab, ba})
	m.CutEnded(model.ReasonLost, []model.Link{{Src: "a", Dst: "c"}}) // it was not started
	m.PacketFate(ab, model.FateWanted, 2)
	m.PacketFate(ab, model.FateWanted, 1)
	m.PacketFate(ab, model.FateDropped, 3)
	m.MessageSeen("ping", "pass")
	m.MessageSeen("ping", "pass")
	m.MessageFault(model.FaultDelay, model.ReasonDue)
	for _, d := range []time.Duration{100, 120, 5000} {
		m.GateDelay("port", d)
	}
	m.HealTime(7)
	got := m.(*Tally).Sum()
	for _, c := range got.CutTime {
		if c.Time < 2*time.Millisecond || c.Time > time.Minute {
			t.Errorf("%v was cut for %v", c.Link, c.Time)
		}
	}
	if len(got.CutTime) != 2 || got.LastCut.IsZero() {
		t.Errorf("%+v", got)
	}
	got.CutTime, got.LastCut = nil, time.Time{}
	want := model.RunMetrics{
		Links: []model.Link{ab, ba}, Cuts: map[model.Shape]int{model.Complete: 1, model.Simplex: 1},
		Heals:    []model.MetricCount{{Name: model.ReasonLost, N: 1}, {Name: model.ReasonTime, N: 2}},
		Packets:  []model.MetricPackets{{Link: ab, Fate: model.FateDropped, N: 3}, {Link: ab, Fate: model.FateWanted, N: 3}},
		Messages: []model.MetricCount{{Name: "ping", Of: "pass", N: 2}}, Faults: []model.MetricCount{{Name: "delay", Of: model.ReasonDue, N: 1}},
		Gate: []model.MetricDelays{{Name: "port", N: 2, Sum: 220}, {Name: "port", N: 1, Sum: 5000}}, HealTimes: []time.Duration{7}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
