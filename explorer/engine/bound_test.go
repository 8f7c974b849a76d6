package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// TestNoFaultBeginsAfterTheBound: neither a cut that waits for a message nor a message fault
// that has not acted on all that it may; a cut that began before goes on to its end.
func TestNoFaultBeginsAfterTheBound(t *testing.T) {
	const s = time.Second
	lose := model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "B"}, Every: 1}
	e := engine.New(model.Scenario{LastFault: 2 * s, Steps: []model.Step{
		{When: model.Trigger{Message: message("A", 1)}, Do: cutOff("n1"), Max: 2 * s},
		{When: model.Trigger{Message: message("A", 2)}, Do: cutOff("n2")},
		{Do: model.Fault{Message: &lose}},
	}})
	e.Step(model.Event{Kind: model.EventWorkload, At: s})
	num := uint64(0)
	var got []string
	for _, m := range []struct {
		at  time.Duration
		typ string
	}{{2 * s, "A"}, {2500 * time.Millisecond, "B"}, {3 * s, "B"}, {3500 * time.Millisecond, "A"}, {4 * s, "A"}} {
		num++
		e.Step(model.Event{Kind: model.EventMessage, At: m.at, Message: &model.Message{Num: num, Type: m.typ, From: "n2", To: "n3"}})
		for _, d := range e.Step(model.Event{Kind: model.EventPacket, At: m.at, Packet: &model.HeldPacket{Frame: num, From: "n2", To: "n3", Messages: []uint64{num}}}) {
			got = append(got, fmt.Sprintf("%v %s cut %v heal %v", m.at, d.Action, d.Cut, d.Heal))
		}
	}
	want := []string{"2s  cut true heal false", "2s pass cut false heal false", "2.5s drop cut false heal false", "3s pass cut false heal false",
		"3.5s pass cut false heal false", "4s pass cut false heal false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if r := e.Result().Steps; r[0].EndedBy != model.ReasonMaxCut || r[1].By != "" || r[2].By == "" {
		t.Errorf("steps went %+v", r)
	}
}
