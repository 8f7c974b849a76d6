package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"netsplit/model"
)

const twoSteps = `steps:
  - when: {message: {type: "text G*", from: n1, nth: 2}}
    do: {isolate: n3, effect: reset}
    until: {after: 2s}
  - when: {follows: end}
    do: {cut: {shape: simplex, groups: [[n1], [n2, n3]]}}
    max: 1.5s
seed: 7
`

// TestAScenarioFileIsReadStepByStep: YAML, and JSON, which is YAML too.
func TestAScenarioFileIsReadStepByStep(t *testing.T) {
	f, err := parseScenario("a.yaml", []byte(twoSteps))
	if err != nil {
		t.Fatal(err)
	}
	sc, err := f.spec.Model()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range sc.Steps {
		got = append(got, sc.Steps[i].String())
	}
	want := "cut  (reset); when message text G* n1>*, number 2; until 2s have passed|cut simplex n1 | n2,n3; when the step before has ended; at most 1.5s"
	if strings.Join(got, "|") != want || sc.Seed != 7 || fmt.Sprint(f.lines) != "[2 5]" {
		t.Errorf("seed %d, lines %v:\n got %s\nwant %s", sc.Seed, f.lines, strings.Join(got, "|"), want)
	}
	if _, err := parseScenario("a.json", []byte(`{"steps": [{"do": {"isolate": "n1"}}]}`)); err != nil {
		t.Error(err)
	}
	if err := f.located(fmt.Errorf("%w: scenario: step 2: no host", model.ErrInvalid)); !strings.HasPrefix(err.Error(), "a.yaml:5: ") || !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	if err := f.located(fmt.Errorf("%w: scenario: step 2 (crash n1) finds none: step 1 (crash n1) has crashed them, and step 2 comes later, as does step 9", model.ErrInvalid)); !strings.HasPrefix(err.Error(), "a.yaml:5: ") ||
		!strings.HasSuffix(err.Error(), "as does step 9 (step 1: line 2)") || !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	if err := f.located(fmt.Errorf("%w: body.scenario.steps[0].do: x", model.ErrInvalid)); !strings.HasPrefix(err.Error(), "a.yaml:2: ") {
		t.Error(err)
	}
}

// TestAnErrorInAScenarioFileHasItsLine.
func TestAnErrorInAScenarioFileHasItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"steps:\n  - when: {mesage: {type: a}}\n":            `f:2: unknown key "mesage": there are after, at, file, follows, message, role, state`,
		"steps:\n  - do:\n      isolate: n1\n    upto: {}\n": `f:4: unknown key "upto"`,
		"steps:\n  - do: {isolate: n1}\n    max: soon\n":     "f:3: soon: ",
		"steps: {do: {isolate: n1}}\n":                       "f:1: a list is expected here",
		"steps:\n  - do\n":                                   "f:2: keys and values are expected here: do, max, until, when",
		"":                                                   "f: it is empty",
		"steps: [\n":                                         "f: yaml: line 1",
	} {
		if _, err := parseScenario("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
