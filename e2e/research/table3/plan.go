package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
)

// plan is plan.yaml.
type plan struct {
	// Faults is the budget of fault runs of every campaign, Replays how often
	// a finding is replayed.
	Faults  int `yaml:"faults"`
	Replays int `yaml:"replays"`
	// Replay says which findings are replayed: "known", those that are bugs of
	// the table, or "all".
	Replay string `yaml:"replay"`
	// Seeds are listed beforehand, so that nobody chooses them by their
	// outcome.
	Seeds     []uint64   `yaml:"seeds,flow"`
	Campaigns []campaign `yaml:"campaigns"`
	Bugs      []bug      `yaml:"bugs"`
}

// campaign is one workload on one release.
type campaign struct {
	Name   string            `yaml:"name"`
	Target string            `yaml:"target"` // with release
	Set    map[string]string `yaml:"set,omitempty,flow"`
	// Effect of the cut: drop if it is empty, or reset.
	Effect string `yaml:"effect,omitempty"`
	// Faults is its own budget of fault runs, for either strategy; 0: the plan's.
	Faults int `yaml:"faults,omitempty"`
	// Clean is how many clean runs there are; 0: as many as a campaign makes by itself.
	Clean int `yaml:"clean,omitempty"`
}

// bug is a row of the paper's Table 3.
type bug struct {
	ID      string `yaml:"id"`
	Symptom string `yaml:"symptom"`
	About   string `yaml:"about"` // interesting metadata
	Stop    bool   `yaml:"stop"`  // the partition needs to stop
	Status  string `yaml:"status"`
	Random  string `yaml:"random"` // yes, no or N/A: found by the paper's random
	// In names the campaigns in which it can be met.
	In []string `yaml:"in,flow"`
	// Why says why it cannot be met at all; "" if it can.
	Why string `yaml:"why,omitempty"`
}

// software is what a plan needs to know of a target file.
type software struct {
	Software struct {
		Versions []string `yaml:"versions"`
	} `yaml:"software"`
	Known []model.KnownFailure `yaml:"known"`
}

// known lists the failures that the target of a campaign, which comes with
// netsplit, describes for its release.
func (c campaign) known() ([]model.KnownFailure, error) {
	name, release, _ := strings.Cut(c.Target, "@")
	b, err := fs.ReadFile(targets.FS, path.Join(name, sut.FileName))
	if err != nil {
		return nil, fmt.Errorf("campaign %s: target %q: %w", c.Name, name, err)
	}
	var t software
	if err := yaml.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("campaign %s: target %s: %w", c.Name, name, err)
	}
	if !slices.Contains(t.Software.Versions, release) {
		return nil, fmt.Errorf("campaign %s: target %s has no release %q", c.Name, name, release)
	}
	return slices.DeleteFunc(t.Known, func(k model.KnownFailure) bool { return !k.DescribedFor(release) }), nil
}

func readPlan(file string) (*plan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := new(plan)
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	dec.KnownFields(true)
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if p.Replay != "known" && p.Replay != "all" {
		return nil, fmt.Errorf("%s: replay %q: use known or all", file, p.Replay)
	}
	if p.Faults < 1 || len(p.Seeds) == 0 || len(p.Campaigns) == 0 {
		return nil, fmt.Errorf("%s: faults, seeds and campaigns must be given", file)
	}
	for _, b := range p.Bugs {
		for _, name := range b.In {
			if !slices.ContainsFunc(p.Campaigns, func(c campaign) bool { return c.Name == name }) {
				return nil, fmt.Errorf("%s: bug %s is in campaign %q, which there is not", file, b.ID, name)
			}
		}
		if (b.Why == "") == (len(b.In) == 0) {
			return nil, fmt.Errorf("%s: bug %s needs either campaigns or a reason why there are none", file, b.ID)
		}
	}
	return p, nil
}
