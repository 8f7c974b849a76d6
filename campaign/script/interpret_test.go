package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"netsplit/campaign/run"
	"netsplit/model"
)

// What could not be read is not known to be wrong: an assertion about it, or
// against it, ends the script and is no failure of the run.
func TestAnAssertionAboutWhatCouldNotBeRead(t *testing.T) {
	five := "5"
	read, timeout := Op{Type: model.OpOK, Value: "5"}, Op{Type: model.OpInfo, Error: "timeout"}
	p := &player{vars: map[string]value{"read": {op: &read}, "lost": {op: &timeout}}}
	lost := "$lost"
	for _, c := range []struct {
		name   string
		op     Op
		a      AssertStep
		about  string
		holds  bool
		failed bool   // the run fails
		stuck  string // the script ends
	}{
		{name: "kept and equal", op: read, a: AssertStep{That: "$read", Gives: &five}, holds: true},
		{name: "kept and another", op: Op{Type: model.OpOK, Value: "6"}, a: AssertStep{That: "$read", Gives: &five}, failed: true},
		{name: "kept and not read", op: timeout, a: AssertStep{That: "$lost", Gives: &five}, stuck: "$lost it ended unknown: timeout"},
		{name: "kept and not read, against not", op: timeout, a: AssertStep{That: "$lost", Not: &five}, stuck: "$lost it ended unknown: timeout"},
		{name: "kept, and its outcome is asked for", op: timeout, a: AssertStep{That: "$lost", Outcome: "ok"}, failed: true},
		{name: "called and not read", op: timeout, a: AssertStep{Call: []string{"get"}, Gives: &five}, about: "n1: get: ", stuck: "give it time with within"},
		{name: "compared with what was not read", op: read, a: AssertStep{Call: []string{"get"}, Gives: &lost}, about: "n1: get: ", stuck: "it is compared with $lost"},
		{name: "not what was not read", op: read, a: AssertStep{That: "$read", Not: &lost}, holds: true, stuck: "it is compared with $lost"},
	} {
		_, so := p.wanted(&c.a)
		if so(c.op) != c.holds {
			t.Errorf("%s: holds: %v", c.name, so(c.op))
		}
		err := p.judge(c.op, &c.a, c.holds, c.about)
		var not errNot
		switch failed := errors.As(err, &not); {
		case failed != c.failed, c.stuck == "" && !failed && err != nil, c.stuck != "" && (err == nil || !strings.Contains(err.Error(), c.stuck)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// playFile plays the steps of a file on a fake run. The error is a panic's.
func playFile(t *testing.T, r *fakeRun, steps string) error {
	t.Helper()
	f, err := parse("x.yaml", []byte("name: x\ntarget: redis-sentinel\nsteps:\n"+steps), asNamed, loadHere)
	if err != nil {
		t.Fatal(err)
	}
	return (&Script{ctx: t.Context(), live: r}).play(f.Play)
}

// Every verb of a file is the one of the node that it names.
func TestVerbsOfNodes(t *testing.T) {
	r := &fakeRun{}
	if err := playFile(t, r, `  - stop: n1
  - start: n1
  - restart: n2
  - pause: n3
  - sleep: 1ms
  - resume: n3
  - crash: n2 redis
`); err != nil {
		t.Fatal(err)
	}
	if got, want := r.done(), "stop n1, start n1, stop n2, start n2, pause n3, slept, resume n3, kill n2"; got != want {
		t.Errorf("did %s\nwant %s", got, want)
	}
}

// A role stands for who has it when the step is done.
func TestRolesInPlaceOfHosts(t *testing.T) {
	r := &fakeRun{}
	if err := playFile(t, r, `  - cut: {name: a, shape: complete, groups: [[master, c1], [rest]]}
  - crash: master redis
`); err != nil {
		t.Fatal(err)
	}
	if got, want := r.done(), "cut a, kill n2"; got != want || r.steps[0].Do != "role" {
		t.Errorf("did %s, want %s: %+v", got, want, r.steps)
	}
	if got, want := fmt.Sprint(r.parted[0].Groups), "[[n2 c1] [n1 n3 c2]]"; got != want {
		t.Errorf("cut %s, want %s", got, want)
	}
}

// What a step gives is not there where the step was left out: an if on it leaves
// its step out too, a heal of such a cut is left out, and whoever needs the name
// ends the script with a word.
func TestStepsThatAreLeftOut(t *testing.T) {
	lost := map[string]run.OpResult{"set n1 x lost": {Type: model.OpInfo, Error: "timeout"}, "get n1 lost": {Type: model.OpInfo, Error: "timeout"}}
	const no = "  - do: {on: c1, call: [set, n1, x, lost], as: no}\n"
	const yes = "  - do: {on: c1, call: [set, n1, x, v1], as: yes}\n"
	for _, c := range []playCase{
		{name: "acknowledged", steps: yes + "  - {if: $yes, crash: n3}\n", did: "c1 set n1 x v1, kill n3"},
		{name: "not acknowledged", steps: no + "  - {if: $no, crash: n3}\n", did: "c1 set n1 x lost", says: "$no was unknown: timeout"},
		{name: "a chain", steps: no + `  - {if: $no, do: {on: c1, call: [get, n1, x], as: a}}
  - {if: $a, do: {on: c1, call: [get, n1, y], as: b}}
  - {if: $b, crash: n3}
`, did: "c1 set n1 x lost", says: "the step that gives $b a meaning was left out (x.yaml:6)"},
		{name: "a chain that holds", steps: yes + `  - {if: $yes, do: {on: c1, call: [get, n1, x], as: a}}
  - {if: $a, crash: n3}
`, did: "c1 set n1 x v1, c1 get n1 x, kill n3"},
		{name: "kept before", steps: yes + no + `  - {if: $no, do: {on: c1, call: [get, n1, lost], as: yes}}
  - {if: $yes, crash: n3}
`, did: "c1 set n1 x v1, c1 set n1 x lost, kill n3"},
		{name: "a cut", steps: no + `  - {if: $no, cut: {name: a, shape: partial, groups: [[n1], [n2]]}}
  - heal: a
`, did: "c1 set n1 x lost", says: "cut a was left out (x.yaml:5)"},
		{name: "a cut of that name was healed before", steps: no + `  - cut: {name: a, shape: partial, groups: [[n1], [n2]]}
  - heal: a
  - {if: $no, cut: {name: a, shape: partial, groups: [[n1], [n2]]}}
  - heal: a
`, did: "c1 set n1 x lost, cut a, heal a", says: "cut a was left out (x.yaml:7)"},
		{name: "a cut that is made", steps: yes + `  - {if: $yes, cut: {name: a, shape: partial, groups: [[n1], [n2]]}}
  - heal: a
`, did: "c1 set n1 x v1, cut a, heal a"},
		{name: "await a role", steps: no + `  - {if: $no, await: {role: master, as: new, within: failover}}
  - do: {on: c1, call: [get, $new, x]}
`, did: "c1 set n1 x lost", says: "the step that gives $new a meaning was left out (x.yaml:5)", stuck: true},
		{name: "let", steps: no + `  - {if: $no, let: {side: n1 c1}}
  - let: {old: n2, more: $side}
`, did: "c1 set n1 x lost", says: "gives $side a meaning was left out (x.yaml:5)", stuck: true},
		{name: "a group", steps: no + `  - {if: $no, let: {side: n1 c1}}
  - cut: {name: a, shape: partial, groups: [[$side], [rest]]}
`, did: "c1 set n1 x lost", says: "gives $side a meaning was left out (x.yaml:5)", stuck: true},
		{name: "a server", steps: no + `  - {if: $no, await: {role: master, as: new, within: failover}}
  - crash: $new redis
`, did: "c1 set n1 x lost", says: "gives $new a meaning was left out (x.yaml:5)", stuck: true},
		{name: "asserted", steps: no + `  - {if: $no, do: {on: c1, call: [get, n1, x], as: a}}
  - assert: {that: $a, outcome: ok}
`, did: "c1 set n1 x lost", says: "gives $a a meaning was left out (x.yaml:5)", stuck: true},
		{name: "asserted to be unknown", steps: no + `  - {if: $no, do: {on: c1, call: [get, n1, x], as: a}}
  - assert: {that: $a, outcome: info}
`, did: "c1 set n1 x lost", says: "gives $a a meaning was left out (x.yaml:5)", stuck: true},
		{name: "no value", steps: `  - do: {on: c1, call: [get, n1, lost], as: a}
  - do: {on: c1, call: [set, n1, y, $a]}
`, did: "c1 get n1 lost", says: "it has no value, it ended unknown: timeout", stuck: true},
		{name: "awaited and without a value", steps: `  - do: {on: c1, call: [get, n1, lost], as: a}
  - await: {on: c1, call: [get, n1, y], gives: $a, within: failover}
`, did: "c1 get n1 lost", says: "it has no value, it ended unknown: timeout", stuck: true},
	} {
		c.holds(t, &fakeRun{ops: lost})
	}
}

// playCase is what a file does when it is played.
type playCase struct {
	name, steps string
	acts        int // messages that a fault acts on
	did         string
	says        string // the last step
	stuck       bool   // it ends the script
}

func (c playCase) holds(t *testing.T, r *fakeRun) {
	t.Helper()
	if err := playFile(t, r, c.steps); err != nil {
		t.Errorf("%s: %v", c.name, err)
		return
	}
	last := r.steps[len(r.steps)-1]
	if got := r.done(); got != c.did {
		t.Errorf("%s: did %s, want %s", c.name, got, c.did)
	}
	if !strings.Contains(last.Result, c.says) || (last.Outcome == model.StepStuck) != c.stuck {
		t.Errorf("%s: the last step is %+v, want %s", c.name, last, c.says)
	}
}
