package script

import (
	"errors"
	"strings"
	"testing"

	"netsplit/model"
)

// What could not be read is not known to be wrong: an assertion about it, or
// against it, ends the script and is no failure of the run.
func TestAnAssertionAboutWhatCouldNotBeRead(t *testing.T) {
	five := "5"
	read, timeout := Op{Type: model.OpOK, Value: "5"}, Op{Type: model.OpInfo, Error: "timeout"}
	p := &player{vars: map[string]value{"read": {op: &read}, "lost": {op: &timeout}}}
	lost := "$lost"
	if op := p.kept("$never"); op.OK() || !strings.Contains(op.Error, "left out") {
		t.Errorf("a name that no step has kept: %+v", op)
	}
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
		{name: "called and not read", op: timeout, a: AssertStep{Call: []string{"get"}, Gives: &five}, about: "n1: get: ", stuck: "let it become so with within"},
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
