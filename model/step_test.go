package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestScenariosOfEarlierFormsAreSteps: testdata/scenarios has one of each form, as it was
// written before there were steps.
func TestScenariosOfEarlierFormsAreSteps(t *testing.T) {
	want := map[string]string{
		"clean":      "",
		"cofi-never": "cut complete n1 | n2,n3; when status[n1]@n1 == status[n1]@n3 is {LEFT, NORMAL}; at most 1.5s",
		"cofi-came":  "cut complete n2 | n1,n3; when status[n1]@n2 == status[n1]@n3 is {LEFT, ∅}; until a message of class text GOSSIP n3>n2 at {NORMAL, ∅}; at most 1.5s",
		"random":     "cut complete n1 | n2,n3; when 2.374017496s into the workload; until 2.879762318s into the workload",
		"messages":   "delay by 500ms: text G* n1>n2, number 3|lose: text * *>*, all from number 1 on, at most 5, while status[n1]@n2 == status[n1]@n3 is {LEFT, NORMAL}, from 1s into the workload on",
		"scripted":   "cut complete n1 | n2,n3",
		"cofi-seen":  "cut complete n1 | n2,n3; when status[n1]@n1 == status[n1]@n3 is {LEFT, ∅}; until a message of a class beyond the 0 known; at most 1.5s",
	}
	want["messages-and-cut"] = want["messages"] + "|cut simplex n1 | n2,n3; when 2s into the workload; at most 1s"
	want["cofi-heal-at"] = want["cofi-came"]
	files, err := filepath.Glob("testdata/scenarios/*.json")
	if err != nil || len(files) != len(want) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s, again Scenario
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		if got := said(s); got != want[name] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want[name])
		}
		if name == "cofi-came" && !s.Substituted || name == "cofi-seen" && s.Steps[0].Until.Unseen == nil || name == "random" && s.Steps[0].Do.Isolate != "n1" {
			t.Errorf("%s: %+v", name, s)
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &again); err != nil || said(again) != said(s) || again.Faulty() != (name != "clean") {
			t.Errorf("%s, written in steps and read: %v: %s", name, err, said(again))
		}
	}
}

func said(s Scenario) string {
	var out []string
	for i := range s.Steps {
		out = append(out, s.Steps[i].String())
	}
	return strings.Join(out, "|")
}

// TestAStepThatMakesNoSenseIsRefused.
func TestAStepThatMakesNoSenseIsRefused(t *testing.T) {
	hosts := []NodeID{"n1", "n2"}
	cut := Fault{Cut: &Partition{}}
	lose := Fault{Message: &MessageFault{Kind: FaultLose, Match: MessageMatch{Type: "A"}}}
	m := &MessageTrigger{Match: MessageMatch{Type: "A", From: "n1"}}
	at := &FaultCondition{Invariant: Invariant{A: VarRef{Name: "x", Node: "n1"}, B: VarRef{Name: "x", Node: "n2"}}}
	for want, s := range map[string]Step{
		"":                      {When: Trigger{After: 1, Message: m}, Do: cut, Until: Trigger{Message: m}},
		"a step does one thing": {Do: Fault{Cut: &Partition{}, Message: lose.Message}},
		"silent belongs to the crash of a whole machine": {Do: Fault{Cut: &Partition{}, Isolate: "n1", Node: &NodeFault{Verb: NodeKill, Host: "n1", Process: "db"}}},
		"the ends of the message":                        {When: Trigger{After: 1}, Do: Fault{Node: &NodeFault{Verb: NodeKill, Host: RoleSender}, Roles: []string{RoleSender}}},
		"the first step follows none":                    {When: Trigger{Follows: FollowsEnd}, Do: cut},
		"unknown follows":                                {When: Trigger{Follows: "x"}, Do: cut},
		"belong to when, class and unseen to until":      {Do: cut, Until: Trigger{State: at}},
		"must not be negative":                           {Do: cut, Max: -1},
		"let it end later":                               {When: Trigger{At: time.Second}, Do: cut, Until: Trigger{At: time.Second}},
		"give a state or a message, not both":            {When: Trigger{State: at, Message: m}, Do: cut},
		"selects its messages by match":                  {When: Trigger{Message: m}, Do: lose},
		"a class needs a cut that begins at a state":     {Do: cut, Until: Trigger{Class: &Class{}}},
		"names no invariant":                             {When: Trigger{State: &FaultCondition{}}, Do: cut},
		"is not inconsistent":                            {When: Trigger{State: &FaultCondition{Invariant: at.Invariant, State: &State{}}}, Do: cut},
		`no host "n9"`:                                   {When: Trigger{Message: &MessageTrigger{Match: MessageMatch{Type: "A", To: "n9"}}}, Do: cut},
		"ends before one passes":                         {Do: cut, Until: Trigger{Message: &MessageTrigger{Match: MessageMatch{Type: "A"}, Side: SideReceive}}},
		"delay needs for":                                {Do: Fault{Message: &MessageFault{Kind: FaultDelay, Match: MessageMatch{Type: "A"}}}},
	} {
		if err := s.Validate(hosts, 1); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
