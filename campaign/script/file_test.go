package script

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
	"netsplit/sut"
)

// Every mistake of a file is told with its line and what to write instead.
func TestMistakesOfAFile(t *testing.T) {
	_, err := parse("x.yaml", []byte(`name: x
target: redis-sentinel
class: documented
steps:
  - let: {old: role master, more: n1 n7}
  - do: {on: c1, call: [sett, $old, x, v1]}
  - do: {on: c1, call: [set, $old, x]}
  - do: {on: c3, call: [get, $new, x], as: w, expect: yes}
  - cut: {name: a, shape: partal, groups: [[rest], [rest]], only: [tcp/0]}
  - cut: {name: a, shape: partial, groups: [[n1], [n2]], size: 0}
  - heal: b
  - sleep: 2 elections
  - await: {role: boss, conditions: [ready], within: soon}
  - crash: n1 mysql
  - assert: {that: $old, on: c1, call: [get, n1, x]}
  - {heal: a, sleep: 1s}
  - {if: $old, sleep: -1s}
  - {if: $w, let: {w: n1}}
  - cut: {name: c, shape: partial, groups: [[n1], [n2], [n3]], only: [tcp/6379-messages], effect: hide}
`), asNamed, loadHere)
	var list *sut.Error
	if !errors.As(err, &list) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		`x.yaml:3: class: a documented failure needs quote`,
		`x.yaml:5: steps[0].let.more[1]: no host "n7": the target has n1, n2, n3, c1, c2`,
		`x.yaml:6: steps[1].do.call[0]: target redis-sentinel has no operation "sett" (did you mean "set"?): it has set, get, push, pop`,
		`x.yaml:7: steps[2].do.call: operation set takes 3 argument(s), node, key, value, but has 2 here`,
		`x.yaml:8: steps[3].do.on: no host "c3"`,
		`x.yaml:8: steps[3].do.call[1]: no step before this one gives $new a meaning (let or as): known are more, old`,
		`x.yaml:8: steps[3].do.expect: unknown outcome "yes": use ok`,
		`x.yaml:9: steps[4].cut.shape: unknown shape "partal"`,
		`x.yaml:9: steps[4].cut.groups: 2 groups are the rest: only one can be`,
		`x.yaml:9: steps[4].cut.only[0]: partition: "tcp/0": want a port from 1 to 65535`,
		`x.yaml:10: steps[5].cut.name: a cut named "a" is in force here already`,
		`x.yaml:10: steps[5].cut.size: size 0: cut off one host or more`,
		`x.yaml:11: steps[6].heal: no cut named "b" before this step: there are a`,
		`x.yaml:12: steps[7].sleep: target redis-sentinel has no period "elections"`,
		`x.yaml:13: steps[8].await: wait for exactly one of conditions, role, call, fault and message; this step has 2 of them`,
		`x.yaml:13: steps[8].await.role: target redis-sentinel has no role "boss": it has master; add it under roles of the target file`,
		`x.yaml:13: steps[8].await.conditions[0]: no condition "ready": stable of the target has replicated`,
		`x.yaml:13: steps[8].await.within: target redis-sentinel has no period "soon"`,
		`x.yaml:14: steps[9].crash: no server "mysql": the target has redis, sentinel`,
		`x.yaml:15: steps[10].assert: assert exactly one thing`,
		`x.yaml:15: steps[10].assert: state the expectation by exactly one of gives`,
		`x.yaml:16: steps[11]: a step has one verb, and this one has heal and sleep`,
		`x.yaml:17: steps[12].if: "$old" is no outcome of an operation`,
		`x.yaml:18: steps[13].let.w: $w is already the outcome of an operation, and stays so if this step is skipped`,
		`x.yaml:17: steps[12].sleep: "-1s": give a time that is not negative`,
		`x.yaml:19: steps[14].cut.groups: partial takes two groups of hosts, not 3`,
		`x.yaml:19: steps[14].cut.only[0]: partition: tcp/6379-messages drops packets with payload`,
		`x.yaml:19: steps[14].cut.effect: unknown effect "hide": use drop or reset`,
	} {
		if !strings.Contains(list.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(list)
	}
	for text, want := range map[string]string{
		"":                                "x.yaml:1: the file is empty: see docs/scripted-tests.md",
		"name: x\nsteps:\n  - slep: 1s":   `x.yaml:3: steps[0]: unknown key "slep" (did you mean "sleep"?)`,
		"name: x\ntarget: nosuch":         `x.yaml:2: target: no target "nosuch"`,
		"name: x\ntarget: redis-sentinel": `no steps: say what to do`,
	} {
		if _, err := parse("x.yaml", []byte(text), asNamed, loadHere); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSpans(t *testing.T) {
	period := func(name string) (time.Duration, error) {
		if name != "failover" {
			return 0, errors.New("no period " + name)
		}
		return 4 * time.Second, nil
	}
	for text, want := range map[string]time.Duration{"failover": 4 * time.Second, "2.5 failover": 10 * time.Second, "300ms": 300 * time.Millisecond, "0s": 0} {
		if got, err := spanOf(text, period); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "two failover", "2 elections", "-3s", "2failover", "24h0m1s", "87600h", "99999999999 failover", "1" + strings.Repeat("0", 400) + " failover"} {
		if got, err := spanOf(text, period); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// The scripts that come with netsplit are in order, and found by name.
func TestKnownScripts(t *testing.T) {
	want := []string{"redis-sentinel/double-dequeue", "redis-sentinel/lost-acknowledgement", "redis-sentinel/partial", "redis-sentinel/split-brain", "tarantool/dirty-read"}
	if d := cmp.Diff(want, Known()); d != "" {
		t.Error(d)
	}
	for _, name := range Known() {
		if f, err := Load(name, ""); err != nil || len(f.Steps) == 0 || (f.Class != "documented") != (name == "redis-sentinel/lost-acknowledgement") {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if _, err := Load("redis-sentinel/split-brian", ""); err == nil || !strings.Contains(err.Error(), "it is neither a file nor one that comes with netsplit: redis-sentinel/double-dequeue,") {
		t.Error(err)
	}
	if _, err := Load("redis-sentinel/split-brain", "zookeeper"); err == nil || !strings.Contains(err.Error(), "has no role") {
		t.Errorf("played on a target that lacks what it needs: %v", err)
	}
}

func asNamed(target string) string { return target }

// TestTargetsOfScripts: a name with a release is a name, whatever is beside the file.
func TestTargetsOfScripts(t *testing.T) {
	for name, want := range map[string]string{"": "", "redis-sentinel": "redis-sentinel", "zookeeper@3.9.5": "zookeeper@3.9.5", "../mine.yaml": "mine.yaml", "mine/target.yaml": "scripts/mine/target.yaml", "/x/y.yaml": "/x/y.yaml"} {
		if got := beside("scripts/a.yaml", name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestFilesForADaemon: a script comes by its text, or by the name of one that comes with
// netsplit, and no path is opened.
func TestFilesForADaemon(t *testing.T) {
	var asked []string
	load := func(target string) (*model.Target, error) {
		asked = append(asked, target)
		return loadHere(target)
	}
	const text = "name: mine\ntarget: redis-sentinel\nset: {quorum: \"1\"}\nclass: documented\nquote: It may.\nsteps:\n  - sleep: 1s\n"
	sc, err := Files{}.Read(model.ScriptFile{Name: "mine.yaml", Text: text}, "", load)
	if err != nil || sc.Name != "mine" || sc.Target != "redis-sentinel" || sc.Set["quorum"] != "1" || sc.Class != model.Documented || sc.Quote != "It may." || sc.Play == nil || sc.File.Text != text {
		t.Errorf("%+v, %v", sc, err)
	}
	sc, err = Files{}.Read(model.ScriptFile{Name: "redis-sentinel/split-brain"}, "redis-sentinel", load)
	if err != nil || sc.Name != "split-brain" || !strings.Contains(sc.File.Text, "name: split-brain") {
		t.Errorf("%+v, %v", sc, err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"../../../etc/passwd", "", "no script"},
		{"/etc/passwd", "", "no script"},
		{"x.yaml", "name: x\ntarget: redis-sentinel\nsteps: []\n", "x.yaml:3: steps: no steps"},
		{"x.yaml", "name: x\ntarget: redis-sentinel\nsteps:\n  - crash: ' '\n", "steps[0].crash: name a host or a role"},
		{"x.yaml", "name: x\ntarget: redis-sentinel\nsteps:\n  - sleep: 87600h\n", "at most"},
		{"x.yaml", "name: x\ntarget: ../secret.yaml\nsteps:\n  - sleep: 1s\n", "../secret.yaml"},
	} {
		if _, err := (Files{}).Read(model.ScriptFile{Name: c.name, Text: c.text}, "", load); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if want := append(slices.Repeat([]string{"redis-sentinel"}, 5), "../secret.yaml"); !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v as written: who loads refuses paths", asked, want)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("mine.yaml", []byte("name: mine\ntarget: sub/target.yaml\nsteps: []\n"), 0o600); err != nil { // the daemon says what is wrong
		t.Fatal(err)
	}
	f, target, err := Text("mine.yaml")
	if err != nil || f.Name != "mine.yaml" || !strings.Contains(f.Text, "steps: []") || target != "sub/target.yaml" {
		t.Errorf("%+v, %s, %v", f, target, err)
	}
	if f, target, err = Text("redis-sentinel/partial"); err != nil || f != (model.ScriptFile{Name: "redis-sentinel/partial"}) || target != "" {
		t.Errorf("%+v, %s, %v", f, target, err)
	}
	if err := os.WriteFile("long.yaml", []byte("name: mine\n#"+strings.Repeat("x", maxText)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = Text("long.yaml"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%v", err)
	}
	if _, _, err = Text("nothing/here"); err == nil || !strings.Contains(err.Error(), "no script") {
		t.Errorf("%v", err)
	}
	known, err := Files{}.Known()
	if err != nil || len(known) != len(Known()) || known[0].Target == "" || known[0].Text == "" {
		t.Errorf("%d of %d scripts, %v", len(known), len(Known()), err)
	}
}
