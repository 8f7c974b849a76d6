package policy

import (
	"strings"

	"netsplit/model"
)

// Candidate is one <invariant, state, node> that could be tried next, with
// what is known of it.
type Candidate struct {
	Invariant model.Invariant
	State     model.State
	Node      model.NodeID // to be isolated
	Seq       int          // order in which candidates were found, from 0

	// Tries counts the runs of this candidate that came back, in which its
	// state occurred or not.
	Tries int
	// Misses counts its last runs, in a row, in which its state did not occur.
	Misses int
	// Abandoned says that it was closed because its state did not occur: it is never
	// next, and keeps no duplicate back, but its tries count for what is like it.
	Abandoned bool
	// Stands says that its next run also takes its state with other nodes.
	Stands bool
	// Looked says that a run reached the state, so that it is known which
	// classes come while the node is cut off.
	Looked bool
	// Healed says that a run healed at one of them.
	Healed bool
	// Uncut says that the state was met in a run that had cut nothing yet.
	Uncut bool
	// Moved says that the class its next run is to heal at has another state
	// than the one it cuts at: behind the cut, the system went on.
	Moved bool

	// StateRuns of AllRuns finished runs met the state, StateCount times
	// altogether; the first to meet it was run First, at time FirstAt.
	StateRuns  int
	AllRuns    int
	StateCount int
	First      string
	FirstAt    int64 // nanoseconds since that run started
}

// Rule gives weight to the candidates it applies to: a candidate of weight 2w
// is tried twice as often as one of weight w.
type Rule struct {
	Name    string
	Why     string // one sentence, with its source
	Weight  int
	Applies func(Candidate) bool
}

// Rules returns the rules in the order in which they are named to the user.
func Rules() []Rule {
	return []Rule{
		{
			Name:    "leader",
			Why:     "leader election is the mechanism most failures are in (NEAT study, finding 4: 39.7 %)",
			Weight:  2,
			Applies: func(c Candidate) bool { return aboutLeader(c.Invariant) },
		},
		{
			Name:    "isolates the leader",
			Why:     "36 % of the failures need the leader itself cut off (NEAT study, table 10)",
			Weight:  2,
			Applies: isolatesLeader,
		},
		{
			Name:    "often met",
			Why:     "a run whose state does not occur is wasted: this one was met in at least half of the runs",
			Weight:  1,
			Applies: func(c Candidate) bool { return c.AllRuns > 0 && 2*c.StateRuns >= c.AllRuns },
		},
		{
			Name:    "nearly always met",
			Why:     "this one was met in at least nine of ten runs",
			Weight:  2,
			Applies: func(c Candidate) bool { return c.AllRuns > 0 && 10*c.StateRuns >= 9*c.AllRuns },
		},
		{
			Name:    "not looked",
			Why:     "one run in which no message heals judges the longest cut, and shows whether the system moves on behind it; a state that comes only behind another cut is worth less",
			Weight:  12,
			Applies: func(c Candidate) bool { return !c.Looked && c.Uncut },
		},
		{
			Name:    "moved on",
			Why:     "behind the cut the system went on to another state: timeouts fired that only a longer cut reaches (CoFI figure 2, step 4); such a pair is gone on with before the next new one is looked at",
			Weight:  30,
			Applies: func(c Candidate) bool { return c.Moved },
		},
		{
			Name:    "shortest cut",
			Why:     "the first run of Algorithm 1: one message is lost, and asked for again before anybody has noticed a partition; the run that only looked was the longest",
			Weight:  12,
			Applies: func(c Candidate) bool { return c.Looked && !c.Moved && !c.Healed },
		},
	}
}

// Weight is 1 and the sum of the rules that apply; names are theirs.
func Weight(c Candidate, rules []Rule) (weight int, names []string) {
	weight = 1
	for _, r := range rules {
		if r.Applies(c) {
			weight += r.Weight
			names = append(names, r.Name)
		}
	}
	return weight, names
}

// leaderKinds are the kinds of variables by which systems name their leader.
var leaderKinds = []string{"leader", "master", "primary", "coordinator", "role"}

func aboutLeader(i model.Invariant) bool {
	k := strings.ToLower(i.Kind)
	for _, l := range leaderKinds {
		if strings.Contains(k, l) {
			return true
		}
	}
	return false
}

// isolatesLeader says that the node to be isolated is the leader according to
// either side: a value names it, or its own role says so.
func isolatesLeader(c Candidate) bool {
	if !aboutLeader(c.Invariant) {
		return false
	}
	if n := string(c.Node); c.State.A == n || c.State.B == n {
		return true
	}
	return c.Invariant.A.Node == c.Node && leads(c.State.A) || c.Invariant.B.Node == c.Node && leads(c.State.B)
}

func leads(value string) bool {
	v := strings.ToLower(value)
	for _, l := range leaderKinds[:4] {
		if v == l {
			return true
		}
	}
	return false
}
