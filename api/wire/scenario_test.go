package wire

import (
	"reflect"
	"slices"
	"strings"
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
	all := MessageFault{Kind: "delay", Answer: true, Match: MessageMatch{Type: "A", From: "n1", To: "n2"}, While: while, After: s, Nth: 2, Every: 3, Times: 4,
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
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()) + cmp.Diff(&all, back.Steps[0].Do.Message); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	trigger := &MessageTrigger{Type: "A", From: "n1", To: "n2", Nth: 2, Side: "receive"}
	file := FileTrigger{Op: "write", Path: "*.aof", Host: "n1", Process: "db", Thread: "bio*", Nth: 2}
	disk := DiskFault{Fault: "short", Host: "n1", Process: "db", Bytes: 3, Path: "x"}
	role := &RoleTrigger{Name: "leader", Changes: true, Is: "n1"}
	step := Step{Do: Do{Isolate: "n3", Effect: "reset", Cut: &Partition{Shape: "partial", Groups: [][]string{{"n1"}, {"n2"}}}, Message: &all, Disk: &disk}, Max: Span(s),
		When:  &When{Follows: "end", At: s, After: 2 * s, State: while, Message: trigger, Role: role, File: &file},
		Until: &Until{At: 3 * s, After: 4 * s, Message: trigger, Role: role, File: &file, Class: &model.Class{Type: "A"}, Unseen: &Unseen{Seen: []model.Class{{Type: "B"}}}}}
	nodes := []string{"Crash", "Pause", "Process", "Silent", "IfRunning"} // tried below
	for _, part := range []any{step, step.Do, *step.When, *step.Until, *trigger, *role, file, disk} {
		for i, v := 0, reflect.ValueOf(part); i < v.NumField(); i++ {
			if v.Field(i).IsZero() && !slices.Contains(nodes, v.Type().Field(i).Name) {
				t.Errorf("%s.%s is not tried", v.Type().Name(), v.Type().Field(i).Name)
			}
		}
	}
	want, err := (&ScenarioSpec{Steps: []Step{step}}).Model()
	if err != nil {
		t.Fatal(err)
	}
	got, err := fromScenarioSpec(want).Model()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	// What fails is of the host and server whose operation it is.
	once, err := (&ScenarioSpec{Steps: []Step{{When: &When{File: &file}, Do: Do{Disk: &DiskFault{Fault: "eio"}}}}}).Model()
	if d := once.Steps[0].Do.Disk; err != nil || d.Host != "n1" || d.Process != "db" {
		t.Errorf("%+v, %v", d, err)
	}
	anyones := FileTrigger{Op: "write"}
	once, err = (&ScenarioSpec{Steps: []Step{{When: &When{File: &anyones}, Do: Do{Disk: &DiskFault{Fault: "eio"}}}}}).Model()
	if d := once.Steps[0].Do.Disk; err != nil || d.Host != model.RoleFileHost {
		t.Errorf("%+v, %v", d, err)
	}
	pause, err := (&ScenarioSpec{Steps: []Step{{Do: Do{Pause: "n1"}}}}).Model()
	if back := fromScenarioSpec(pause); err != nil || pause.Steps[0].Do.Node.Verb != model.NodePause || back.Steps[0].Do.Pause != "n1" || back.Steps[0].Do.Crash != "" {
		t.Errorf("%+v, %v", pause, err)
	}
	for _, do := range []Do{{Crash: "n1", Silent: true}, {Crash: "n1", Process: "db"}, {Pause: "n1", Process: "db", IfRunning: true}} {
		there, err := (&ScenarioSpec{Steps: []Step{{Do: do}}}).Model()
		if back := fromScenarioSpec(there); err != nil || there.Steps[0].Do.Silent() != do.Silent || back.Steps[0].Do != do {
			t.Errorf("%+v, %+v, %v", there.Steps[0], back.Steps[0], err)
		}
	}
	for _, do := range []Do{{Isolate: "n1", Silent: true}, {Pause: "n1", Silent: true}, {Crash: "n1", Isolate: "n1", Silent: true}} {
		if _, err := (&ScenarioSpec{Steps: []Step{{Do: do}}}).Model(); err == nil || !strings.Contains(err.Error(), "silent belongs to crash") {
			t.Errorf("%+v: %v", do, err)
		}
	}
	power := Do{Disk: &DiskFault{Fault: "power-cut", Host: "n1"}, IfRunning: true}
	there, err := (&ScenarioSpec{Steps: []Step{{Do: power}}}).Model()
	if back := fromScenarioSpec(there); err != nil || !there.Steps[0].Do.IfRunning || !back.Steps[0].Do.IfRunning {
		t.Errorf("%+v, %v", there, err)
	}
	for _, do := range []Do{{Isolate: "n1", IfRunning: true}, {Disk: &DiskFault{Fault: "full", Host: "n1"}, IfRunning: true}} {
		if _, err := (&ScenarioSpec{Steps: []Step{{Do: do}}}).Model(); err == nil || !strings.Contains(err.Error(), "ifRunning belongs to crash") {
			t.Errorf("%+v: %v", do, err)
		}
	}
	// The service fills in defaults, such as effect.
	plain, err := (&ScenarioSpec{Steps: []Step{{Do: Do{Effect: "drop", Message: &all}}, {Do: Do{Effect: "drop", Cut: &Partition{Shape: "ring", Effect: "reset"}}}}}).Model()
	if err != nil || plain.Steps[0].Do.Cut != nil || plain.Steps[1].Do.Cut.Effect != model.Reset {
		t.Errorf("%+v, %v", plain, err)
	}
	if _, err := (&ScenarioSpec{Steps: []Step{step}, Faults: []MessageFault{all}}).Model(); err == nil {
		t.Error("steps and faults at once")
	}
}
