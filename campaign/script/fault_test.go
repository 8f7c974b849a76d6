package script

import (
	"errors"
	"strings"
	"testing"

	"netsplit/campaign/run"
	"netsplit/model"
	"netsplit/sut"
)

// Every mistake about a message fault is told with its line and what to write instead.
func TestMistakesAboutFaults(t *testing.T) {
	_, err := parse("x.yaml", []byte(`name: x
target: redis-sentinel
steps:
  - let: {side: n1 c1}
  - fault: {kind: lose, match: {type: A}}
  - fault: {name: b, kind: loose, match: {type: A, from: n7, to: $who}}
  - fault: {name: c, kind: delay, for: 2 elections, match: {type: A, from: $side}}
  - fault: {name: d, kind: delay, match: {type: A, to: master}}
  - fault: {name: e, kind: lose, for: 1s, match: {type: A}}
  - fault: {name: e, kind: lose, match: {from: n1}, every: 1}
  - await: {fault: z, within: 1s}
  - await: {fault: d, packets: 2, within: 1s}
  - await: {fault: e, packets: 0, within: 1s}
  - await: {conditions: [all], packets: 2, within: 1s}
  - end: z
  - end: d
  - end: d
  - fault: {name: f, kind: lose, match: {type: A, from: n1, to: n1}}
  - await: {message: {from: n7, to: $side}, within: 1s}
`), asNamed, loadHere)
	var list *sut.Error
	if !errors.As(err, &list) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		`x.yaml:5: steps[1].fault.name: the message fault has no name: give one, for end and await`,
		`x.yaml:6: steps[2].fault.kind: unknown kind "loose": use one of [delay duplicate reorder lose]`,
		`x.yaml:6: steps[2].fault.match.from: no host and no role "n7": the target has hosts n1, n2, n3, c1, c2 and roles master`,
		`x.yaml:6: steps[2].fault.match.to: no step before this one gives $who a meaning`,
		`x.yaml:7: steps[3].fault.for: target redis-sentinel has no period "elections"`,
		`x.yaml:7: steps[3].fault.match.from: $side is a group of hosts: name a host or a role`,
		`x.yaml:8: steps[4].fault: delay needs for`,
		`x.yaml:9: steps[5].fault: lose has no for: that belongs to delay`,
		`x.yaml:10: steps[6].fault.name: a message fault named "e" acts here already`,
		`x.yaml:10: steps[6].fault.match.type: type is missing: say which messages`,
		`x.yaml:11: steps[7].await.fault: no message fault named "z" acts at this step: there are b, c, d, e`,
		`x.yaml:12: steps[8].await.packets: it acts on 1 packet(s) at most, and 2 never come: give the fault times: 2 or more`,
		`x.yaml:13: steps[9].await.packets: packets 0: wait for one or more`,
		`x.yaml:14: steps[10].await.packets: packets goes with fault`,
		`x.yaml:15: steps[11].end: no message fault named "z" acts at this step`,
		`x.yaml:17: steps[13].end: no message fault named "d" acts at this step`,
		`x.yaml:18: steps[14].fault: from and to are both n1`,
		`x.yaml:19: steps[15].await.message.type: type is missing`,
		`x.yaml:19: steps[15].await.message.from: no host and no role "n7"`,
		`x.yaml:19: steps[15].await.message.to: $side is a group of hosts`,
	} {
		if !strings.Contains(list.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(list)
	}
	if _, err := parse("x.yaml", []byte("name: x\ntarget: redis-sentinel\nsteps:\n  - fault: {name: a, kind: lose, while: x, match: {type: A}}\n"), asNamed, loadHere); err == nil || !strings.Contains(err.Error(), `x.yaml:4: steps[0].fault: unknown key "while"`) {
		t.Errorf("%v", err)
	}
}

// A file's faults are those of the run, begun and ended where the file says, and left out
// with the step that begins them.
func TestFaultsOfAFile(t *testing.T) {
	lost := map[string]run.OpResult{"set n1 x lost": {Type: model.OpInfo, Error: "timeout"}}
	const no = "  - do: {on: c1, call: [set, n1, x, lost], as: no}\n"
	for _, c := range []playCase{
		{name: "until it has hit", acts: 3, steps: `  - let: {old: n2}
  - fault: {name: a, kind: delay, for: 2 failover, match: {type: "resp *", from: $old, to: master}, nth: 2, every: 1, times: 9}
  - await: {fault: a, packets: 3, within: failover}
  - end: a
`, did: "fault a: delay by 2ms: resp * n2>master, all from number 2 on, at most 9, awaited a, end a", says: "it acted on 3 of 5 message(s) that it met; the receiving hosts confirm it for 3"},
		{name: "again under its name", acts: 1, steps: `  - fault: {name: a, kind: duplicate, copies: 2, gap: 5ms, match: {type: A}}
  - end: a
  - fault: {name: a, kind: reorder, behind: 2, limit: 1s, match: {type: A, to: n1}}
  - fault: {name: b, kind: lose, lose: message, match: {type: A}}
`, did: "fault a: duplicate 2× every 5ms: A *>*, number 1, end a, fault a: reorder behind 2: A *>n1, number 1, fault b: lose for good: A *>*, number 1"},
		{name: "it does not hit", acts: 1, steps: `  - fault: {name: a, kind: lose, again: 3, match: {type: A}, times: 2}
  - await: {fault: a, packets: 2, within: failover}
`, did: "fault a: lose 4×: A *>*, numbers 1 to 2, awaited a", says: "not within 1ms: it acted on 1, and met 5 message(s) (A *>*)", stuck: true},
		{name: "a message", acts: 1, steps: `  - let: {old: n2}
  - await: {message: {type: "A*", from: $old, to: master}, within: failover}
`, did: "awaited message A* n2>master", says: "message 7, A from n2 to n1 at"},
		{name: "no message", steps: `  - await: {message: {type: A}, within: failover}
`, did: "awaited message A *>*", says: "none came within 1ms", stuck: true},
		{name: "vacuous", steps: `  - fault: {name: a, kind: lose, match: {type: A}}
  - end: a
`, did: "fault a: lose: A *>*, number 1, end a", says: "VACUOUS: it met 5 message(s) and acted on none"},
		{name: "left out", steps: no + `  - {if: $no, fault: {name: a, kind: lose, match: {type: A}}}
  - end: a
`, did: "c1 set n1 x lost", says: "message fault a was left out (x.yaml:5)"},
		{name: "left out, and waited for", steps: no + `  - {if: $no, fault: {name: a, kind: lose, match: {type: A}}}
  - await: {fault: a, within: failover}
`, did: "c1 set n1 x lost", says: "the step that begins it was left out (x.yaml:5)", stuck: true},
	} {
		c.holds(t, &fakeRun{ops: lost, acts: c.acts})
	}
}
