package wire

import "netsplit/model"

// Cause is what failed runs of a campaign have in common.
type Cause struct {
	ID         string   `json:"id"`
	Campaign   string   `json:"campaign"`
	Class      string   `json:"class" doc:"broken, documented or broken-bound"`
	Severity   string   `json:"severity" doc:"What it costs a user, as of a finding"`
	Rule       string   `json:"rule" doc:"What broke first: of the failures of a run, the cause of the costliest"`
	CauseID    string   `json:"causeId" doc:"causeId of the findings of this rule"`
	Summary    string   `json:"summary" doc:"The failure, in the words of run"`
	Fault      string   `json:"fault,omitempty" doc:"Kind of the last fault before the failure; absent: there was none"`
	Missing    []string `json:"missing,omitempty" doc:"Types of messages that each clean run had and these runs had not, and those that the last fault lost for good"`
	Unsure     string   `json:"unsure,omitempty" doc:"Why runs of other causes may be among these"`
	Clean      bool     `json:"clean" doc:"The rule broke in a run without any fault, too"`
	Runs       []string `json:"runs,omitempty" doc:"All runs that show it; absent in lists"`
	Seen       int      `json:"seen" doc:"Number of these runs"`
	FirstAfter int      `json:"firstAfter" doc:"Number of runs of the campaign until the first that showed it"`
	Run        string   `json:"run" doc:"The run with its smallest sequence: the fewest faults, then the shortest time"`
	Steps      []string `json:"steps" doc:"That sequence, fault by fault"`
	Replays    int      `json:"replays" doc:"Replays of any of its runs"`
	Reproduced int      `json:"reproduced" doc:"Replays that failed for the rule again"`
	Shrunk     *Shrunk  `json:"shrunk,omitempty" doc:"Which steps it needs; absent: nobody has tried"`
}

// Causes is one page of causes, the costliest first.
type Causes struct {
	Items []Cause `json:"items"`
	Next  string  `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// Tally counts tries of a scenario.
type Tally struct {
	Tries  int `json:"tries"`
	Failed int `json:"failed" doc:"Tries that failed for the same cause"`
	Idle   int `json:"idle,omitempty" doc:"Tries that could not be judged, or in which a step did not come"`
}

// StepNeed says whether a failure needs a step.
type StepNeed struct {
	Step    int    `json:"step" doc:"Its place in the run's scenario, from 1"`
	Text    string `json:"text"`
	Needed  string `json:"needed" enum:"yes,no,unknown" doc:"no: it failed without the step"`
	With    Tally  `json:"with" doc:"Tries of the smallest scenario that has the step"`
	Without Tally  `json:"without" doc:"Tries of the scenario that only lacks it"`
	Why     string `json:"why,omitempty" doc:"Why it is unknown"`
}

// Shrunk says what of a run's scenario its failure needs.
type Shrunk struct {
	Run      string        `json:"run" doc:"Whose scenario it is"`
	Campaign string        `json:"campaign" doc:"That made the tries"`
	Cause    string        `json:"cause" doc:"The failure that was looked for: the cause of the costliest of the run"`
	Tries    int           `json:"tries" doc:"Tries of each scenario"`
	Made     int           `json:"made" doc:"Tries in all"`
	All      Tally         `json:"all" doc:"Tries of the whole scenario"`
	None     Tally         `json:"none" doc:"Tries without any fault"`
	Steps    []StepNeed    `json:"steps"`
	Smallest *ScenarioSpec `json:"smallest,omitempty" doc:"The smallest scenario that failed, as a campaign takes it; absent: none failed, or it failed without any fault"`
	Keep     []int         `json:"keep" doc:"Places of the steps that are left in it"`
	Least    Tally         `json:"least" doc:"Its tries"`
	Why      string        `json:"why,omitempty" doc:"Why it ended before all was tried"`
}

// FromCause converts a cause, with all of its runs.
func FromCause(c model.Cause) Cause {
	out := Cause{ID: c.ID, Campaign: c.Campaign, Class: string(c.Class), Severity: string(c.Severity), Rule: c.Rule, CauseID: c.CauseID, Summary: c.Summary, Fault: c.Fault, Missing: c.Missing,
		Unsure: c.Unsure, Clean: c.Clean, Runs: c.Runs, Seen: c.Seen, FirstAfter: c.FirstAfter, Run: c.Run, Steps: nonNil(c.Steps), Replays: c.Replays, Reproduced: c.Reproduced}
	if c.Shrunk != nil {
		s := FromShrunk(*c.Shrunk)
		out.Shrunk = &s
	}
	return out
}

// FromShrunk converts what a failure needs.
func FromShrunk(s model.Shrunk) Shrunk {
	out := Shrunk{Run: s.Run, Campaign: s.Campaign, Cause: s.Cause, Tries: s.Tries, Made: s.Made, All: Tally(s.All), None: Tally(s.None), Keep: nonNil(s.Keep), Least: Tally(s.Least), Why: s.Why,
		Steps: each(s.Steps, func(n model.StepNeed) StepNeed {
			return StepNeed{Step: n.Step, Text: n.Text, Needed: string(n.Needed), With: Tally(n.With), Without: Tally(n.Without), Why: n.Why}
		})}
	if s.Smallest != nil && s.Smallest.Faulty() {
		out.Smallest = fromScenarioSpec(s.Smallest)
		for i := range out.Smallest.Steps {
			if do := &out.Smallest.Steps[i].Do; do.Cut != nil {
				do.Isolate = "" // the partition says it
			}
		}
	}
	return out
}
