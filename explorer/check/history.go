package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// finalPrefix marks operations made after recovery, to judge with.
const finalPrefix = "final-"

// ordered returns the operations with one of the given functions, by time.
func ordered(r *Record, fs ...string) []Op {
	var out []Op
	for _, o := range r.History {
		if slices.Contains(fs, o.F) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b Op) int {
		if a.Time != b.Time {
			return int(min(max(a.Time-b.Time, -1), 1))
		}
		if c := strings.Compare(a.Workload, b.Workload); c != 0 {
			return c
		}
		return a.Process - b.Process
	})
	return out
}

// lead says that a node began to lead.
type lead struct {
	node  model.NodeID
	since time.Duration
}

// leadership is who led since when. A node that goes on calling itself leader
// after another began does not lead again: it is deposed. It leads again when both
// were silent for longer than what they said counts.
type leadership struct {
	leads []lead
}

// newLeadership reads the changes of leader from a variable whose value is
// the leader's name (a node leads when it names itself) and from the nodes
// that acknowledged writes or served the final read.
func newLeadership(r *Record, variable, write, read string) leadership {
	type claim struct {
		at   time.Duration
		node model.NodeID
		on   bool // false: the node stopped calling itself leader
	}
	var claims []claim
	if variable != "" {
		for _, o := range r.Observations {
			if o.Var.Name == variable && o.Var.About == "" {
				claims = append(claims, claim{o.At, o.Var.Node, o.Value == string(o.Var.Node)})
			}
		}
	}
	for _, o := range r.History {
		if o.Type == model.OpOK && o.Node != "" && (o.F == write || o.F == read) {
			claims = append(claims, claim{o.Time, o.Node, true})
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return cmp.Or(strings.Compare(string(a.node), string(b.node)), model.FalseFirst(a.on, b.on))
	})
	var l leadership
	claiming, said := map[model.NodeID]bool{}, map[model.NodeID]time.Duration{}
	age := maxAge(r, variable)
	for _, c := range claims {
		goesOn := claiming[c.node]
		if n := len(l.leads); n > 0 && c.at-said[c.node] > age && c.at-said[l.leads[n-1].node] > age {
			goesOn = false
		}
		if c.on && !goesOn && (len(l.leads) == 0 || l.leads[len(l.leads)-1].node != c.node) {
			l.leads = append(l.leads, lead{c.node, c.at})
		}
		claiming[c.node], said[c.node] = c.on, c.at
	}
	return l
}

// deposed returns the lead that ended the one under which the node
// acknowledged something at the given time: the first lead of another node
// after the node's last one that began by then. ok is false if nobody else
// led from then on. Where nobody knows which node it was (""), it was one that
// was deposed, if any was: whoever led then, or the one before the last.
func (l leadership) deposed(node model.NodeID, at time.Duration) (lead, bool) {
	if node == "" {
		if len(l.leads) < 2 {
			return lead{}, false
		}
		own := 0
		for i, x := range l.leads[:len(l.leads)-1] {
			if x.since <= at {
				own = i
			}
		}
		return l.leads[own+1], true // leads next to one another are of two nodes
	}
	own := -1
	for i, x := range l.leads {
		if x.node == node && x.since <= at {
			own = i
		}
	}
	for _, x := range l.leads[own+1:] {
		if x.node != node {
			return x, true
		}
	}
	return lead{}, false
}
