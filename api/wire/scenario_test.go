package wire

import (
	"reflect"
	"testing"
	"time"

	"netsplit/model"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestAScenarioGoesThereAndBack: nothing that a user asks for is lost on the way, whatever
// is added to it.
func TestAScenarioGoesThereAndBack(t *testing.T) {
	s := Duration(time.Second)
	while := &FaultCondition{Invariant: "status[n1]@n2 == status[n1]@n3", State: &model.State{A: "LEFT", B: "NORMAL"}, Nth: 2}
	all := MessageFault{Kind: "delay", Match: MessageMatch{Type: "A", From: "n1", To: "n2"}, While: while, After: s, Nth: 2, Every: 3, Times: 4,
		For: Span(s), Copies: 5, Gap: s, Behind: 6, Limit: Span(s), Lose: "message", Again: 7}
	for i, v := 0, reflect.ValueOf(all); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	for _, cut := range []*CutSpec{
		nil,
		{Isolate: "n3", Effect: "drop", After: s, AtMost: Span(s)},
		{Isolate: "n3", Effect: "drop", When: while, HealAt: &model.Class{Type: "A", From: "n1", To: "n3", State: model.State{A: "LEFT", B: "NORMAL"}}, AtMost: Span(s)},
	} {
		want, err := (&ScenarioSpec{Faults: []MessageFault{all}, Cut: cut, Seed: 8}).Model()
		if err != nil {
			t.Fatal(err)
		}
		back := fromScenarioSpec(want)
		got, err := back.Model()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()) + cmp.Diff([]MessageFault{all}, back.Faults); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
