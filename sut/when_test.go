package sut

import (
	"slices"
	"strings"
	"testing"
)

// TestWhenNamesSettings: of the target, with values.
func TestWhenNamesSettings(t *testing.T) {
	with := func(when string) error {
		_, err := Parse("small.yaml", []byte(strings.Replace(small, "dissector: text}", "dissector: text, when: "+when+"}", 1)))
		return err
	}
	if err := with("{rate: [a, b]}"); err != nil {
		t.Error(err)
	}
	for when, want := range map[string]string{
		"{rat: [a]}":  `no setting "rat" (did you mean "rate"?): args has `,
		"{rate: []}":  "no values: list those of setting rate",
		"{rate: a}":   "want a list",
		"workload":    "want a mapping",
		"{rate: [{}]": "not YAML",
	} {
		if err := with(when); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("when: %s: %v, want %q", when, err, want)
		}
	}
}

// TestAPromiseMayDependOnSettings: one check is broken under some of them, and
// documented under others.
func TestAPromiseMayDependOnSettings(t *testing.T) {
	const always = "  - {name: process-died, class: broken}\n"
	base, err := Parse("t.yaml", []byte(strings.Replace(small, always, always+
		"  - {name: double, class: broken, when: {rate: [\"5\"]}}\n  - {name: double, class: documented, quote: at least once, when: {rate: [\"6\", \"7\"]}}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for rate, want := range map[string][]string{
		"5": {"process-died broken", "double broken", "workload-hang documented"},
		"7": {"process-died broken", "double documented", "workload-hang documented"},
		"8": {"process-died broken", "workload-hang documented"},
	} {
		tg, err := Expand(base, ExpandInput{Args: map[string]string{"rate": rate}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range tg.Checks {
			got = append(got, c.Name+" "+string(c.Class))
		}
		if !slices.Equal(got, want) || tg.Checks[len(tg.Checks)-1].With["limit"] != rate+"s" {
			t.Errorf("rate %s: %q", rate, got)
		}
	}
	if _, err = Parse("t.yaml", []byte(strings.Replace(small, always, "  - {name: process-died, class: broken, when: {rat: [a]}}\n", 1))); err == nil ||
		!strings.Contains(err.Error(), `checks[0].when.rat: no setting "rat"`) {
		t.Error(err)
	}
}
