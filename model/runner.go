package model

import "time"

// RunnerState says what a runner does.
type RunnerState string

// States of a runner.
const (
	RunnerIdle      RunnerState = "idle"      // no campaign is under way
	RunnerPreparing RunnerState = "preparing" // it gets software, or makes labs
	RunnerReady     RunnerState = "ready"     // it takes runs
	RunnerUnfit     RunnerState = "unfit"     // it cannot make the campaign's runs, for a reason
	RunnerGone      RunnerState = "gone"      // it was stopped, or nothing is heard of it
)

// Runner is a machine that makes runs of campaigns for a daemon.
type Runner struct {
	Name     string `json:"name"`     // that of its invitation
	Instance string `json:"instance"` // another one each time it starts
	Version  string `json:"version"`
	Cores    int    `json:"cores"`
	Memory   int    `json:"memory"` // MB
	Root     bool   `json:"root"`
	// Labs is how many it may make at once; 0 with a testbed of its own.
	Labs    int    `json:"labs"`
	Testbed string `json:"testbed,omitempty"` // name
	// Has are tags that campaigns may need; Software are the sets in its cache.
	Has      []string `json:"has"`
	Software []string `json:"software,omitempty"`

	State  RunnerState `json:"state"`
	Reason string      `json:"reason,omitempty"` // why it is unfit or gone
	// Campaign is what it works for, Slots are the runs that it makes at once, Busy those
	// under way.
	Campaign string `json:"campaign,omitempty"`
	Slots    int    `json:"slots"`
	Busy     int    `json:"busy"`
	// InForce counts the partitions in force there, by shape.
	InForce map[Shape]int `json:"inForce,omitempty"`
	Seen    time.Time     `json:"seen"` // when the daemon heard of it last
}
