package check

import "netsplit/model"

// Tally is what the runs of a search say together, told run by run.
type Tally struct {
	decided map[string]bool // fault runs that passed or failed
}

// Add enters a finished run. A run that is entered again counts once.
func (y *Tally) Add(r *model.RunSummary) {
	if r.ReplayOf != "" || r.CutShort || !r.Scenario.Faulty() {
		return
	}
	switch r.Verdict.Value {
	case model.VerdictPass, model.VerdictFail:
		if y.decided == nil {
			y.decided = map[string]bool{}
		}
		y.decided[r.Run] = true
	}
}
