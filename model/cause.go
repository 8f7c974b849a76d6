package model

// Cause is what failed runs of a campaign have in common: the rule that broke first, the
// kind of the last fault before it, and the messages that are missing. Each failed run is
// of one cause. It is what PreFail §8 asks of triage: failed experiments sorted by the bug
// that they show.
type Cause struct {
	ID       string       `json:"id"` // "cause-" + hash of campaign, Rule, Fault and Missing
	Campaign string       `json:"campaign"`
	Class    FailureClass `json:"class"`
	Severity Severity     `json:"severity"`
	Rank     int          `json:"rank"` // as of a finding: the costliest has the lowest
	// Rule is the cause of the failure that cost most in the run (Failure.Cause), which
	// counts as the first: most rules are judged at the end and have no moment. CauseID is
	// that of the findings of this Rule.
	Rule    string `json:"rule"`
	CauseID string `json:"causeId"`
	Summary string `json:"summary"` // of the failure in Run
	// Fault is the kind of the last fault that began before the failure; "" for none.
	Fault string `json:"fault,omitempty"`
	// Missing are the types of messages that each clean run had and these runs had not, and
	// those that the last fault lost for good; sorted.
	Missing []string `json:"missing,omitempty"`
	// Unsure says why runs of other causes may be among these; "" where nothing speaks for it.
	Unsure string `json:"unsure,omitempty"`
	// Clean says that the rule broke in a run without any fault, too.
	Clean bool `json:"clean,omitempty"`
	// Runs are those that show it, in order; Seen is how many, where a list leaves some away.
	Runs []string `json:"runs"`
	Seen int      `json:"seen"`
	// FirstAfter is the number of runs of the campaign until it was first seen.
	FirstAfter int `json:"firstAfter"`
	// Run has its smallest sequence: the fewest faults that began, then the shortest time
	// to the last of them. Steps tells it, a line for each.
	Run   string   `json:"run"`
	Steps []string `json:"steps,omitempty"`
	// Replays counts the replays of any of its runs, Reproduced those that failed for the
	// Rule again.
	Replays    int `json:"replays,omitempty"`
	Reproduced int `json:"reproduced,omitempty"`
	// Shrunk says which of the steps it needs; nil: nobody has tried.
	Shrunk *Shrunk `json:"shrunk,omitempty"`
}

// Tally counts tries of a scenario.
type Tally struct {
	Tries  int `json:"tries"`
	Failed int `json:"failed"` // for the cause in question
	// Idle are the tries that could not be judged, or in which a step did not come.
	Idle int `json:"idle,omitempty"`
}

// Judged are the tries that say something.
func (t Tally) Judged() int { return t.Tries - t.Idle }

// Needed says whether a failure needs a step.
type Needed string

// What a failure has to do with a step.
const (
	NeededYes     Needed = "yes"
	NeededNo      Needed = "no" // it failed without the step
	NeededUnknown Needed = "unknown"
)

// StepNeed says of a step of a run's scenario whether the failure needs it.
type StepNeed struct {
	Step   int    `json:"step"` // its place, from 1
	Text   string `json:"text"` // what it does, in words
	Needed Needed `json:"needed"`
	// With counts the tries of the smallest scenario that has the step, Without those of
	// the one that only lacks it.
	With    Tally  `json:"with"`
	Without Tally  `json:"without"`
	Why     string `json:"why,omitempty"` // of NeededUnknown
}

// Shrunk says what of a run's scenario its failure needs.
type Shrunk struct {
	Run      string `json:"run"`      // whose scenario it is
	Campaign string `json:"campaign"` // that made the tries
	Cause    string `json:"cause"`    // the failure that was looked for (Failure.Cause)
	Tries    int    `json:"tries"`    // of each scenario
	Made     int    `json:"made"`     // tries in all
	// All counts the tries of the whole scenario, None those without any fault.
	All   Tally      `json:"all"`
	None  Tally      `json:"none"`
	Steps []StepNeed `json:"steps"`
	// Smallest is the smallest scenario that failed, Keep the places of its steps, Least its
	// tries. Smallest is nil if none failed.
	Smallest *Scenario `json:"smallest,omitempty"`
	Keep     []int     `json:"keep"`
	Least    Tally     `json:"least"`
	// Why says why it ended before all was tried; "" if it did not.
	Why string `json:"why,omitempty"`
}
