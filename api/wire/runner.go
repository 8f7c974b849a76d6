package wire

import (
	"time"

	"netsplit/model"
)

// Runner is a machine that makes runs for the daemon.
type Runner struct {
	Name     string    `json:"name" doc:"That of its invitation"`
	Instance string    `json:"instance" doc:"Another one each time it starts"`
	State    string    `json:"state" enum:"idle,preparing,ready,unfit" doc:"idle: no campaign is under way; preparing: it gets software or makes labs; ready: it makes runs; unfit: it cannot make those of its campaign"`
	Reason   string    `json:"reason,omitempty" doc:"What an unfit one lacks"`
	Campaign string    `json:"campaign,omitempty" doc:"The campaign that it works for"`
	Slots    int       `json:"slots" doc:"Runs at once"`
	Busy     int       `json:"busy" doc:"Runs under way"`
	Version  string    `json:"version" doc:"Of its netsplit: it must be the daemon's"`
	Cores    int       `json:"cores"`
	Memory   int       `json:"memory" doc:"MB"`
	Root     bool      `json:"root"`
	Labs     int       `json:"labs" doc:"Labs at once, at most; 0: it has a testbed of its own"`
	Testbed  string    `json:"testbed,omitempty" doc:"Name of its testbed"`
	Has      []string  `json:"has" doc:"Tags that campaigns can need"`
	Software []string  `json:"software" doc:"Sets of software in its cache when it started"`
	Seen     time.Time `json:"seen" doc:"When the daemon heard of it last"`
}

// Runners are those that have joined.
type Runners struct {
	Items []Runner `json:"items"`
}

// FromRunner converts a runner.
func FromRunner(r model.Runner) Runner {
	return Runner{Name: r.Name, Instance: r.Instance, State: string(r.State), Reason: r.Reason, Campaign: r.Campaign, Slots: r.Slots, Busy: r.Busy, Version: r.Version,
		Cores: r.Cores, Memory: r.Memory, Root: r.Root, Labs: r.Labs, Testbed: r.Testbed, Has: nonNil(r.Has), Software: nonNil(r.Software), Seen: r.Seen.UTC()}
}
