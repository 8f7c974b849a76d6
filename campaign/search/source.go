package search

import (
	"netsplit/explorer"
	"netsplit/model"
)

// Input is one step of a source, as it is stored: the explorer's, and what strategy
// sequences learns from records.
type Input struct {
	explorer.Input
	// Clean answers Ready.Mine.
	Clean *CleanRuns `json:"clean,omitempty"`
	// Played comes with the Result of a fault run that was judged.
	Played *Played `json:"played,omitempty"`
	// Unread, with a lost run, says which one and why its points could not be read.
	Unread string `json:"unread,omitempty"`
}

// Played is what the record of the run of a sequence says about points.
type Played struct {
	Profile model.Profile `json:"profile"`
	// Met are the points at which its faults occurred (sequence.Played).
	Met []model.Point `json:"met,omitempty"`
}

// inputProfiles hands over Clean.
const inputProfiles explorer.InputKind = "profiles"

// CleanRuns is what the records of clean runs say about points.
type CleanRuns struct {
	// Periodic are the message types that are no points, sorted.
	Periodic []string `json:"periodic,omitempty"`
	// Profiles are by the id of the run's scenario.
	Profiles map[string]model.Profile `json:"profiles"`
	// Unread are the runs that have none, each with the reason.
	Unread []string `json:"unread,omitempty"`
}

// Source is where the scenarios of a campaign come from. Its inputs determine what it
// answers.
type Source interface {
	Step(Input) explorer.Ready
	// Account says what became so far of all that it could have asked for.
	Account() model.Account
}

// FromCore is the source of the strategies that the explorer's core has.
func FromCore(c *explorer.Core) Source { return &core{c: c, why: notEnded} }

// notEnded is why the account of a search is not a full one.
const notEnded = "it has not ended"

type core struct {
	c   *explorer.Core
	why string
}

func (c *core) Step(in Input) explorer.Ready {
	r := c.c.Step(in.Input)
	if c.why = notEnded; r.Done {
		c.why = r.Why
	}
	return r
}

func (c *core) Account() model.Account {
	a := c.c.Account()
	a.Why = c.why
	return a
}
