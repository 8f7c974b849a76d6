package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// finalPrefix marks operations made after recovery, to judge with.
const finalPrefix = "final-"

// ordered returns the operations with one of the given functions, by time.
func ordered(r *Record, fs ...string) []record.Entry {
	var out []record.Entry
	for _, o := range r.History {
		if slices.Contains(fs, o.F) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b record.Entry) int {
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

// lead says that a node began to lead: the system, or one thing of many (a
// shard, a group) that each have a leader.
type lead struct {
	about string
	node  model.NodeID
	since time.Duration
}

// thing is which of several leaderships an instance of a variable, or the key
// of a role, tells of: none, where it names a host, since what nodes say of
// one another is one leadership.
func thing(r *Record, about string) string {
	if n := model.NodeID(about); slices.Contains(r.Target.Nodes, n) || slices.Contains(r.Target.Clients, n) {
		return ""
	}
	return about
}

// ofThing is what to write behind "leads" or "leaders of".
func ofThing(before, about string) string {
	if about == "" {
		return ""
	}
	return before + about
}

// leadership is who led since when, for each thing that has a leader. A node
// that goes on calling itself leader after another began does not lead again: it
// is deposed. It leads again when both were silent for longer than what they
// said counts.
type leadership map[string][]lead

// claim is a node calling itself leader, or ceasing to.
type claim struct {
	at   time.Duration
	node model.NodeID
	on   bool
}

// newLeadership reads the changes of leader from a variable whose value is
// the leader's name (a node leads when it names itself) and from the nodes
// that acknowledged writes or served the final read. Where several things have
// a leader each, it reads them from the variable alone: of which of them an
// operation was, nobody said.
func newLeadership(r *Record, variable, write, read string) leadership {
	claims := map[string][]claim{}
	if variable != "" {
		for _, o := range r.Observations {
			if o.Var.Name == variable {
				about := thing(r, o.Var.About)
				if about == "" && o.Var.About != "" {
					continue // what it says of another node
				}
				claims[about] = append(claims[about], claim{o.At, o.Var.Node, o.Value == string(o.Var.Node)})
			}
		}
	}
	if _, one := claims[""]; one || len(claims) == 0 {
		for _, o := range r.History {
			if o.Type == model.OpOK && o.Node != "" && (o.F == write || o.F == read) {
				claims[""] = append(claims[""], claim{o.Time, o.Node, true})
			}
		}
	}
	l := leadership{}
	for about, c := range claims {
		l[about] = leadsOf(about, c, maxAge(r, variable))
	}
	return l
}

// leadsOf is who led one thing.
func leadsOf(about string, claims []claim, age time.Duration) (leads []lead) {
	slices.SortStableFunc(claims, func(a, b claim) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return cmp.Or(strings.Compare(string(a.node), string(b.node)), model.FalseFirst(a.on, b.on))
	})
	claiming, said := map[model.NodeID]bool{}, map[model.NodeID]time.Duration{}
	for _, c := range claims {
		goesOn := claiming[c.node]
		if n := len(leads); n > 0 && c.at-said[c.node] > age && c.at-said[leads[n-1].node] > age {
			goesOn = false
		}
		if c.on && !goesOn && (len(leads) == 0 || leads[len(leads)-1].node != c.node) {
			leads = append(leads, lead{about, c.node, c.at})
		}
		claiming[c.node], said[c.node] = c.on, c.at
	}
	return leads
}

// deposed returns the lead that ended the one under which the node
// acknowledged something at the given time: the first lead of another node
// after the node's last one that began by then. ok is false if nobody else
// led from then on. Of several things that the node led, it is the one that
// changed hands nearest to that time.
func (l leadership) deposed(node model.NodeID, at time.Duration) (next lead, ok bool) {
	led := func(leads []lead) bool {
		return slices.ContainsFunc(leads, func(x lead) bool { return x.node == node })
	}
	nothing := true // that is known of
	for _, leads := range l {
		nothing = nothing && !led(leads)
	}
	far := func(x lead) time.Duration { return max(x.since-at, at-x.since) }
	for _, about := range sortedKeys(l) {
		if !nothing && !led(l[about]) {
			continue
		}
		if x, found := deposedOf(l[about], node, at); found && (!ok || far(x) < far(next)) {
			next, ok = x, true
		}
	}
	return next, ok
}

// deposedOf is deposed of one thing. Where nobody knows which node it was (""),
// it was one that was deposed, if any was: whoever led then, or the one before
// the last.
func deposedOf(leads []lead, node model.NodeID, at time.Duration) (lead, bool) {
	if node == "" {
		if len(leads) < 2 {
			return lead{}, false
		}
		own := 0
		for i, x := range leads[:len(leads)-1] {
			if x.since <= at {
				own = i
			}
		}
		return leads[own+1], true // leads next to one another are of two nodes
	}
	own := slices.IndexFunc(leads, func(x lead) bool { return x.node == node })
	for i, x := range leads {
		if x.node == node && x.since <= at {
			own = i
		}
	}
	for _, x := range leads[own+1:] {
		if x.node != node {
			return x, true
		}
	}
	return lead{}, false
}
