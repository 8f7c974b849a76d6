package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CompareRuns orders runs of one campaign by their number: c-1-r9999 is before c-1-r10000.
func CompareRuns(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// RunNumber is the number of a run within its campaign, from 1; 0: its id has none.
func RunNumber(run string) int {
	i := strings.LastIndex(run, "-r")
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(run[i+len("-r"):])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// RunRow is what a list says of a run: small, however long the run was.
type RunRow struct {
	Campaign string    `json:"campaign"`
	Run      string    `json:"run"`
	Target   string    `json:"target"`
	Tap      string    `json:"tap,omitempty"`
	ReplayOf string    `json:"replayOf,omitempty"`
	Release  string    `json:"release,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	CutShort bool      `json:"cutShort,omitempty"`
	Scenario string    `json:"scenario,omitempty"` // id
	Strategy Strategy  `json:"strategy,omitempty"`
	Isolate  NodeID    `json:"isolate,omitempty"`
	// Verdict has no excuses and no lines, and its failures no detail and no quote.
	Verdict Verdict `json:"verdict"`
	// Proof has no links; nil: no cut.
	Proof     *Proof        `json:"proof,omitempty"`
	Reached   bool          `json:"reached,omitempty"`
	Cost      Cost          `json:"cost"`
	ProbeCost time.Duration `json:"probeCost,omitempty"`
	Probes    int           `json:"probes,omitempty"`
}

// RunFilter says which runs a list has; an empty field takes all.
type RunFilter struct {
	Campaign string
	Target   string
	Strategy Strategy
	Verdict  VerdictValue
}

// Takes says whether the list has a run.
func (f RunFilter) Takes(r *RunRow) bool {
	return (f.Campaign == "" || f.Campaign == r.Campaign) && (f.Target == "" || f.Target == r.Target) &&
		(f.Strategy == "" || f.Strategy == r.Strategy) && (f.Verdict == "" || f.Verdict == r.Verdict.Value)
}

// LogFile is a file that processes of a run wrote: what one printed, or a log file of it.
type LogFile struct {
	Name  string `json:"name"` // with / between folder and file
	Bytes int64  `json:"bytes"`
}

// CampaignFilter says which campaigns a list has; an empty field takes all. Target is a
// target as campaigns name it, without a release and, of an upload, a version: it takes
// campaigns on all of these.
type CampaignFilter struct {
	Target   string
	State    CampaignState
	Schedule string
}

// Takes says whether the list has a campaign.
func (f CampaignFilter) Takes(c *Campaign) bool {
	return (f.Target == "" || f.Target == c.Spec.TargetName()) && (f.State == "" || f.State == c.State) &&
		(f.Schedule == "" || f.Schedule == c.Schedule)
}

// Row is what a list says of the run.
func (s *RunSummary) Row() RunRow {
	r := RunRow{Campaign: s.Campaign, Run: s.Run, Target: s.Target, Tap: s.Tap, ReplayOf: s.ReplayOf, Release: s.Release, Started: s.Started, Ended: s.Ended,
		CutShort: s.CutShort, Scenario: s.Scenario.ID, Strategy: s.Scenario.Strategy, Isolate: s.Scenario.Cut().Do.Isolate, Verdict: s.Verdict, Reached: s.Result.Reached,
		Cost: s.Cost, ProbeCost: s.ProbeCost, Probes: s.Probes}
	r.Verdict.Excuses, r.Verdict.Lines, r.Verdict.Failures = nil, nil, slices.Clone(s.Verdict.Failures)
	for i := range r.Verdict.Failures {
		r.Verdict.Failures[i].brief()
	}
	if s.Proof != nil {
		p := *s.Proof
		p.Links, p.PerLink = nil, nil
		r.Proof = &p
	}
	return r
}

// Row is what a list says of the finding: Seen in place of Runs, and the failure
// without detail and quote.
func (f Finding) Row() Finding {
	f.Seen, f.Runs = max(f.Seen, len(f.Runs)), nil
	f.Failure.brief()
	return f
}

// brief leaves away what is long.
func (f *Failure) brief() { f.Detail, f.Quote = nil, "" }
