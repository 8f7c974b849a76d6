package judge

import (
	"slices"
	"testing"

	"netsplit/explorer/check"
	"netsplit/model"
)

// TestMessagesOfTheWorkloadAreHeard, by the port on which one end listens, where a step waits
// for any.
func TestMessagesOfTheWorkloadAreHeard(t *testing.T) {
	f := &runFiles{target: model.Target{Protocols: []model.Protocol{{Port: 7000}}}}
	add := func(kind model.EventKind, m *model.Message) {
		f.events = append(f.events, model.Event{Kind: kind, Message: m})
	}
	message := func(typ string, from, to uint16) *model.Message {
		return &model.Message{Type: typ, From: "n1", To: "n2", FromPort: from, ToPort: to}
	}
	add(model.EventMessage, message("early", 4000, 7000))
	add(model.EventWorkload, nil)
	add(model.EventMessage, message("ask", 4000, 7000))
	add(model.EventMessage, message("ask", 4001, 7000))
	add(model.EventMessage, message("answer", 7000, 4000))
	add(model.EventMessage, message("other", 4000, 90))
	add(model.EventStop, nil)
	add(model.EventMessage, message("late", 4000, 7000))
	if got := f.heard(); got != nil {
		t.Errorf("no step waits for a message: %v", got)
	}
	f.meta.Scenario.Steps = []model.Step{{Do: model.Fault{Message: &model.MessageFault{}}}}
	want := []check.Heard{{Type: "answer", From: "n1", To: "n2", Port: 7000, Count: 1}, {Type: "ask", From: "n1", To: "n2", Port: 7000, Count: 2}, {Type: "other", From: "n1", To: "n2", Port: 90, Count: 1}}
	if got := f.heard(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
