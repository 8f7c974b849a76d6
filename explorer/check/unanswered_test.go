package check

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// unansweredRows are, for each check of what workloads did, histories in which
// only what an operation without an answer may have done explains what was seen.
// The line with ? is that operation: once it is info, once it has no line at all.
var unansweredRows = []struct{ check, with, why, history string }{
	{"lost-acknowledged-writes", "", "a delete of the key", `
		1.0 w/0 ok write a
		? w/1 delete a
		20 r/0 ok final-read-done`},
	{"lost-acknowledged-writes", "delete=poll", "a poll, whose answer would have named the key", `
		1.0 w/0 ok write a
		? w/1 poll
		20 r/0 ok final-read-done`},
	{"lost-acknowledged-writes", "", "the final read of that key", `
		1.0 w/0 ok write a
		? w/1 final-read a
		20 r/0 ok final-read-done`},
	{"gone", "", "a delete of the key", `
		1.0 w/0 invoke create a
		1.1 w/0 ok create a
		? w/1 delete a
		20 r/0 ok final-list-done`},
	{"gone", "create=offer delete=poll", "a poll, whose answer would have named the key", `
		1.0 w/0 invoke offer a
		1.1 w/0 ok offer a
		? w/1 poll
		20 r/0 ok final-list-done`},
	{"gone", "create=offer delete=poll", "an offer, which its answer would have named", `
		1.0 w/0 ok offer a
		1.5 w/0 ok poll a
		? w/1 offer
		20 r/0 ok final-list a
		20 r/0 ok final-list-done`},
	{"gone", "", "the final look at that key", `
		1.0 w/0 invoke create a
		1.1 w/0 ok create a
		? w/1 final-list a
		20 r/0 ok final-list-done`},
	{"not-finished", "", "the last question for the state", `
		1.0 w/0 ok submit j
		1.5 w/0 ok final-status j value=RUNNING
		? w/1 final-status j`},
	{"copies-equal", "", "the last read of a node's copy", `
		1.0 r/0 ok final-state k value=1 @n1
		1.1 r/0 ok final-state k value=2 @n2
		1.2 r/0 ok final-state k value=2 @n3
		? r/1 final-state k @n1`},
	{"resurrected", "", "a removal that may have done nothing", `
		? w/1 decommission n1
		2.5 w/2 ok status value=n2=NORMAL @n2
		4.0 w/0 invoke decommission n1
		5.0 w/0 ok decommission n1
		6.0 w/2 ok status value=n1=NORMAL @n2
		20 r/0 ok final-status value=n2=NORMAL @n2`},
	{"double", "take=lock release=unlock", "a release of the thing", `
		1.0 w/0 ok lock a
		? w/0 unlock a
		3.0 w/2 invoke lock a
		3.1 w/2 ok lock a`},
	{"double", "take=lock release=unlock", "a release of all that its process held", `
		1.0 w/0 ok lock a
		? w/0 unlock
		3.0 w/2 invoke lock a
		3.1 w/2 ok lock a`},
	{"stale-read", "", "a write of the value that was read", `
		1.0 w/0 ok write a value=1
		1.1 w/2 ok write a value=2
		? w/1 write a value=1
		3.0 w/0 invoke read a
		3.1 w/0 ok read a value=1`},
	{"stale-read", "delete=flush", "a delete of all there is", `
		1.0 w/0 ok write a value=1
		? w/1 flush
		3.0 w/0 invoke read a
		3.1 w/0 ok read a`},
	{"linearizable", "", "a write of the value that was read", `
		1.0 w/0 ok write a value=1
		? w/1 write a value=2
		3.0 w/0 ok read a value=2`},
	{"linearizable", "delete=flush", "a delete of all there is", `
		1.0 w/0 ok write a value=1
		? w/1 flush
		3.0 w/0 ok read a`},
	{"leaders", "least=1", "the question to the node that may lead", `
		20 r/0 ok final-role value=follower @n1
		20 r/0 ok final-role value=follower @n2
		? r/1 final-role @n3`},
	{"leaders", "", "the last question to a node that led", `
		1.0 r/0 ok final-role value=leader @n1
		1.0 r/0 ok final-role value=leader @n2
		? r/1 final-role @n1`},
	{"two-leaders", "", "the last question to a node that led", `
		1.0 r/0 ok final-role value=master @n1
		1.0 r/0 ok final-role value=master @n2
		? r/1 final-role @n1`},
	{"operations", "", "the operation itself", `
		? w/1 write a needs=c1:1:n1
		20 r/0 ok write b needs=c1:1:n1`},
}

// TestUnansweredIsNoEvidence: no row fails its check, and each would if the
// operation had failed: if it were known to have done nothing.
func TestUnansweredIsNoEvidence(t *testing.T) {
	covered := map[string]bool{}
	for _, row := range unansweredRows {
		covered[row.check] = true
		for _, answer := range []string{"info", "none", "fail"} {
			t.Run(fmt.Sprintf("%s/%s/%s", row.check, row.why, answer), func(t *testing.T) {
				r := Record{Target: &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Clients: []model.NodeID{"c1"}}, Bounds: noBounds}
				spec := model.CheckSpec{Name: row.check, Class: model.Broken, With: map[string]string{}}
				for _, kv := range strings.Fields(row.with) {
					k, v, _ := strings.Cut(kv, "=")
					spec.With[k] = v
				}
				r.Target.Checks = []model.CheckSpec{spec}
				for _, l := range strings.Split(strings.TrimSpace(row.history), "\n") {
					who, ours := strings.CutPrefix(strings.TrimSpace(l), "? ")
					if !ours {
						r.History = append(r.History, historyLine(t, l)...)
						continue
					}
					process, rest, _ := strings.Cut(who, " ")
					r.History = append(r.History, historyLine(t, "2.0 "+process+" invoke "+rest)...)
					if answer != "none" {
						r.History = append(r.History, historyLine(t, "2.5 "+process+" "+answer+" "+rest)...)
					}
				}
				v := Judge(r)
				if failed := len(v.Failures) > 0; failed != (answer == "fail") && !(answer == "fail" && knowsNoFail[row.check]) {
					t.Errorf("failed: %v: %+v", failed, v)
				}
			})
		}
	}
	for _, c := range registry() {
		if c.history && c.name != Script && !covered[c.name] { // a script says itself what it saw
			t.Errorf("no row for check %s", c.name)
		}
	}
}

// knowsNoFail are checks of whose rows none becomes a failure where the operation
// is known to have done nothing: a release that was tried ends what is sure, and
// a removal that failed is none.
var knowsNoFail = map[string]bool{"double": true, "resurrected": true}

// TestUnansweredNeverAccuses: operations without an answer that are added to a
// history make no failure, and an answer that is taken away makes none. What
// operations and workload-hang say of a missing answer itself is not about what
// it may have done.
func TestUnansweredNeverAccuses(t *testing.T) {
	target := &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Clients: []model.NodeID{"", "c1"}}
	for _, c := range registry() {
		if c.history && c.name != Script {
			spec := model.CheckSpec{Name: c.name, Class: model.Broken}
			switch c.name {
			case "leaders":
				spec.With = map[string]string{"least": "1", "leads": "master"}
			case "gone":
				spec.With = map[string]string{"every": "false"}
				target.Checks = append(target.Checks, model.CheckSpec{Name: c.name, Class: model.Broken})
			}
			target.Checks = append(target.Checks, spec)
		}
	}
	fs := []string{"write", "read", "delete", "cas", "create", "submit", "kill", "take", "release", "decommission", "status",
		"final-read", "final-read-done", "final-list", "final-list-done", "final-status", "final-role", "final-state", "final-state-done"}
	keys := []string{"k0", "k1", "n1", ""}
	values := []string{"master", "n1=NORMAL n2=LEFT", "RUNNING", "1", "2", "1>2", ""}
	failed, tried := map[string]int{}, 0
	for seed := range uint64(700) {
		rng := rand.New(rand.NewPCG(seed, 9))
		op := func(process int, at time.Duration, typ model.OpType) record.Entry {
			return record.Entry{Workload: "w", Operation: model.Operation{Process: process, Type: typ, F: fs[rng.IntN(len(fs))], Key: keys[rng.IntN(3)],
				Value: values[rng.IntN(len(values))], Time: at, Node: target.Nodes[rng.IntN(3)]}}
		}
		r := Record{Target: target, Bounds: noBounds}
		now := time.Duration(0)
		for i := range 8 + rng.IntN(20) { // each by a process of its own, so that an answer finds its invocation
			ask := op(i, now, model.OpInvoke)
			now += time.Millisecond
			answer := ask
			answer.Time, answer.Type = now+time.Duration(rng.IntN(3))*time.Millisecond, []model.OpType{model.OpOK, model.OpOK, model.OpOK, model.OpFail}[rng.IntN(4)]
			r.History = append(r.History, ask, answer)
		}
		before := amounts(r, failed)
		more := r
		for i := range 1 + rng.IntN(3) {
			ask := op(100+i, time.Duration(rng.Int64N(int64(now))), model.OpInvoke)
			ask.Key = keys[rng.IntN(len(keys))] // "": its answer would have named it
			more.History = append(slices.Clone(more.History), ask)
			if rng.IntN(2) == 0 {
				ask.Type, ask.Time = model.OpInfo, ask.Time+time.Duration(rng.IntN(9))*time.Millisecond
				more.History = append(more.History, ask)
			}
		}
		less := r
		less.History = slices.Clone(r.History)
		for range 1 + rng.IntN(2) {
			if i := rng.IntN(len(less.History)); less.History[i].Type == model.OpOK {
				less.History[i].Type, tried = model.OpInfo, tried+1
			}
		}
		for what, h := range map[string]Record{"an operation without an answer more": more, "an answer less": less} {
			for check, n := range amounts(h, nil) {
				if n > before[check] {
					t.Fatalf("seed %d: with %s, %s finds %d wrong in place of %d:\n%s\n%s", seed, what, check, n, before[check], printVerdict(Judge(r)), printVerdict(Judge(h)))
				}
			}
		}
	}
	for _, c := range target.Checks {
		if failed[c.Name] == 0 && c.Name != "operations" {
			t.Errorf("check %s never failed: the test shows nothing of it", c.Name)
		}
	}
	if tried < 250 {
		t.Errorf("only %d answers were taken away", tried)
	}
}

// amounts is how much each check finds wrong.
func amounts(r Record, failed map[string]int) map[string]int {
	out := map[string]int{}
	for _, f := range Judge(r).Failures {
		out[f.Check] += f.Amount
		if failed != nil {
			failed[f.Check]++
		}
	}
	return out
}

// TestWhatWaitedInAQueueIsNotHeldAtTheEnd: a message that waited since the cut shows an
// older view than the probe before it. Where nothing probes the view, messages count.
func TestWhatWaitedInAQueueIsNotHeldAtTheEnd(t *testing.T) {
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	of := func(n model.NodeID) model.VarRef { return model.VarRef{Name: "view", Node: n} }
	for _, probe := range []*model.Probe{nil, {}} {
		for _, stable := range []bool{true, false} {
			r := &Record{Target: &model.Target{Variables: []model.Variable{{Name: "view", Kind: "leader", MaxAge: at(5), Sources: []model.VarSource{{Type: "hello"}, {Probe: probe}}}}},
				Recovery: record.Recovery{HealedAt: at(5), Limit: at(20), Stable: stable, StableAt: at(9),
					Final: []model.VarValue{{Var: of("n1"), Value: "n2"}, {Var: of("n3"), Value: "n1"}}},
				Observations: []model.Observation{
					{At: at(10), Var: of("n1"), Value: "n2", Probe: "view#1"}, {At: at(10), Var: of("n3"), Value: "n2", Probe: "view#1"},
					{At: at(11), Var: of("n3"), Value: "n1", Message: 7}}}
			if _, differ := viewsAtEnd(r, "view"); differ != (probe == nil) {
				t.Errorf("probed %v, stable %v: views differ: %v", probe != nil, stable, differ)
			}
		}
	}
}

// TestWhatNoProbeReadIsNotKnownAtTheEnd: a node that answered no probe, and said before the
// cut that it leads, is not known to lead when recovery is over.
func TestWhatNoProbeReadIsNotKnownAtTheEnd(t *testing.T) {
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	of := func(n model.NodeID) model.VarRef { return model.VarRef{Name: "leader", Node: n} }
	r := &Record{Target: &model.Target{Variables: []model.Variable{{Name: "leader", Kind: "leader", MaxAge: at(5), Sources: []model.VarSource{{Type: "hello"}, {Probe: &model.Probe{}}}}}},
		Recovery: record.Recovery{HealedAt: at(5), Limit: at(20), Final: []model.VarValue{{Var: of("n1"), Value: "n1"}, {Var: of("n2"), Value: "n2"}}},
		Observations: []model.Observation{
			{At: at(1), Var: of("n1"), Value: "n1", Message: 3}, {At: at(24), Var: of("n2"), Value: "n2", Probe: "leader#1"}}}
	if f, two := leadersAtEnd(r, settings{"leader": "leader"}); two {
		t.Errorf("two leaders: %s", f.Summary)
	}
	if _, old := atEnd(r); len(old) != 1 || old[0] != of("n1") {
		t.Errorf("not known at the end: %v, want that of n1", old)
	}
}

// TestANodeThatLedAndIsSilentAtTheEnd may lead beside the one that does: nobody knows.
func TestANodeThatLedAndIsSilentAtTheEnd(t *testing.T) {
	silent := []string{"22 n1 n1", "22 n2 n1", "30 n2 n2"}
	atLimit := func(r *Record) {
		r.Recovery.Stable = false
		for _, n := range []model.NodeID{"n1", "n2"} {
			r.Recovery.Final = append(r.Recovery.Final, model.VarValue{Var: model.VarRef{Name: "role", Node: n}, Value: string(n)})
		}
	}
	final := []record.Entry{{Workload: "r", Operation: model.Operation{Type: model.OpOK, F: "final-role", Value: "follower", Node: "n1", Time: 31 * time.Second}}}
	for name, c := range map[string]struct {
		lines   []string
		change  func(r *Record)
		unknown bool
	}{
		"silent in the last round":             {lines: silent, unknown: true},
		"silent since before the run was over": {lines: []string{"4 n1 n1", "30 n2 n2"}, unknown: true},
		"at the limit":                         {lines: []string{"22 n1 n1", "24.5 n2 n2"}, change: atLimit, unknown: true},
		"two of them, beside followers":        {lines: []string{"22 n1 n1", "22 n2 n2", "30 n3 n2"}, unknown: true},
		"the only leader":                      {lines: []string{"22 n1 n1", "30 n2 n1"}},
		"it followed before":                   {lines: append([]string{"23 n1 n2"}, silent...)},
		"it told its role":                     {lines: silent, change: func(r *Record) { r.History = final }},
		"its server has ended":                 {lines: silent, change: func(r *Record) { r.Exits = []record.Exit{{Host: "n1", At: 23 * time.Second, Expected: true}} }},
		"not probed":                           {lines: silent, change: func(r *Record) { r.Target.Variables[0].Sources = nil }},
	} {
		for check, with := range map[string]map[string]string{"two-leaders": {"leader": "role"}, "leaders": {"variable": "role", "leads": "$self"}} {
			r := led(t, check, with, c.lines...)
			r.Target.Variables[0].Sources = []model.VarSource{{Probe: &model.Probe{}}}
			if c.change != nil {
				c.change(&r)
			}
			v := Judge(r)
			if said := notObserved.MatchString(v.Reason); said != c.unknown || said != (v.Value == model.VerdictUnknown) && r.Recovery.Stable {
				t.Errorf("%s: %s: %+v", check, name, v)
			}
			for _, f := range v.Failures {
				if f.Check == check {
					t.Errorf("%s: %s: %+v", check, name, f)
				}
			}
		}
	}
}

var notObserved = regexp.MustCompile(`n[12] was not observed then: it led at|not observed then, but leading before: n[12]`)
