package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

// Judgments of findings, by somebody who looked into them.
const (
	isTrue       = "true"       // the system does what it should not
	isOurs       = "ours"       // false: a check, a target file or the machine
	isDocumented = "documented" // the documentation admits it
	isOpen       = "open"       // nobody can tell yet
)

var words = []string{isTrue, isOurs, isDocumented, isOpen}

// judgment is an entry of judgments.yaml. It stands beside the results, so that
// it outlives the lines: it is of a campaign's findings of that signature, with
// whatever strategy and seed.
type judgment struct {
	Campaign  string `yaml:"campaign"`
	Signature string `yaml:"signature"`
	Judgment  string `yaml:"judgment"`
	// Cause is a word for what it comes from, the same for all findings that come
	// from it; "": this one alone.
	Cause string `yaml:"cause,omitempty"`
	Why   string `yaml:"why"`
}

// judgments by campaign and signature.
type judgments map[[2]string]judgment

// readJudgments reads and checks judgments.yaml; that there is none is no error.
func readJudgments(file string) (judgments, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []judgment
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := judgments{}
	for _, j := range list {
		k := [2]string{j.Campaign, j.Signature}
		switch _, twice := out[k]; {
		case j.Campaign == "" || j.Signature == "":
			return nil, fmt.Errorf("%s: a judgment (%s) needs a campaign and a signature", file, j.Why)
		case !slices.Contains(words, j.Judgment):
			return nil, fmt.Errorf("%s: %s, %q: judgment %q: use one of %s", file, j.Campaign, j.Signature, j.Judgment, strings.Join(words, ", "))
		case strings.TrimSpace(j.Why) == "":
			return nil, fmt.Errorf("%s: %s, %q: say why", file, j.Campaign, j.Signature)
		case twice:
			return nil, fmt.Errorf("%s: %s, %q stands twice", file, j.Campaign, j.Signature)
		}
		out[k] = j
	}
	return out, nil
}

// of is the judgment of a finding: open, where nobody gave one, but for what the
// documentation admits.
func (js judgments) of(campaign string, f *found) judgment {
	if j, ok := js[[2]string{campaign, f.Signature}]; ok {
		return j
	}
	if f.Class == string(model.Documented) {
		return judgment{Judgment: isDocumented, Why: "the target file says so"}
	}
	return judgment{Judgment: isOpen, Why: "nobody judged it yet"}
}
