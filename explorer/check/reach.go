package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// forever is a time after every run.
const forever = time.Duration(math.MaxInt64)

// disturbance is a stretch of a run, from inclusive, to exclusive, in which
// some hosts did not reach others, or were not there.
type disturbance struct {
	from, to time.Duration
	// since is when it was complete, at from at the earliest: a server that is
	// stopped may answer until then.
	since time.Duration
	// links are the directions that were cut; nil for a host that was down.
	links map[model.Link]bool
	down  model.NodeID
	what  string // "the cut", "n2's server is stopped"
	// unborn: it was down from the beginning, since nobody had started it yet.
	unborn bool
}

// apart says whether a and b do not reach each other in both directions.
func (d *disturbance) apart(a, b model.NodeID) bool {
	if d.links == nil {
		return a == d.down || b == d.down
	}
	return a != b && (d.links[model.Link{Src: a, Dst: b}] || d.links[model.Link{Src: b, Dst: a}])
}

// betweenNodes says whether it is a cut between two nodes of the target.
func (d *disturbance) betweenNodes(t *model.Target) bool {
	for l := range d.links {
		if slices.Contains(t.Nodes, l.Src) && slices.Contains(t.Nodes, l.Dst) {
			return true
		}
	}
	return false
}

func (d *disturbance) holds(at time.Duration) bool { return d.from <= at && at < d.to }

// cutOff is what a cut does; asked is what was to be cut, for a proof without links.
func cutOff(what string, p model.Proof, requested model.Partition) disturbance {
	d := disturbance{from: p.CutAt, since: p.CutAt, to: forever, links: map[model.Link]bool{}, what: what}
	if p.HealAt > 0 {
		d.to = max(p.HealAt, d.from)
	}
	links := p.Links
	if len(links) == 0 {
		links = requested.Links()
	}
	for _, l := range links {
		d.links[l] = true
	}
	return d
}

// disturbances lists what kept hosts from one another, in order of time: the
// cut, from when it was decided until it was healed (each cut of a script), and
// server processes that were not there. One that a workload stopped, killed or paused is down from the
// moment at which that began (a stop: or stopping before it was done), until
// grace after its start; one
// that ended by itself is down as well, if the check process-died reports that.
func disturbances(r *Record, stopping, grace time.Duration) []disturbance {
	var out []disturbance
	switch {
	case len(r.Cuts) > 0: // Proof is of all together, and holds between them as well
		for _, c := range r.Cuts {
			d := cutOff("the cut "+c.Name, c.Proof, c.Partition)
			d.to = max(d.to, c.Proof.HealedAt) // its rules go one after the other
			out = append(out, d)
		}
	case r.Proof != nil:
		requested := r.Scenario.Cut()
		out = append(out, cutOff("the cut", *r.Proof, requested.Partition()))
	}
	for _, f := range r.diskFaults() {
		out = append(out, f.disturbance())
	}
	type server struct {
		host    model.NodeID
		process string
	}
	type change struct {
		at   time.Duration
		done time.Duration
		up   bool
		what string
		// unborn: see disturbance
		unborn bool
	}
	changes := map[server][]change{}
	add := func(host model.NodeID, process string, c change) {
		s := server{host, process}
		changes[s] = append(changes[s], c)
	}
	died := slices.ContainsFunc(r.Target.Checks, func(c model.CheckSpec) bool { return c.Name == processDied().name })
	acted := map[server]time.Duration{} // when it was acted on last
	actions := slices.Clone(r.Actions)
	slices.SortStableFunc(actions, func(a, b NodeAction) int { return cmp.Compare(a.At, b.At) })
	for _, a := range actions {
		// Actions on one server wait for one another: none began before the last was done.
		began := func(took time.Duration) time.Duration {
			return max(0, acted[server{a.Host, a.Process}], a.At-took)
		}
		switch a.Verb {
		case model.NodeStart, model.NodeResume:
			add(a.Host, a.Process, change{at: a.At, up: true})
		case model.NodeStop:
			add(a.Host, a.Process, change{at: began(max(a.Took, stopping)), done: a.At, what: "stopped"})
		case model.NodeKill:
			add(a.Host, a.Process, change{at: began(a.Took), done: a.At, what: "killed"})
		case model.NodePause:
			add(a.Host, a.Process, change{at: began(a.Took), done: a.At, what: "paused"})
		}
		acted[server{a.Host, a.Process}] = a.At
	}
	for _, e := range r.Exits {
		if _, by := acted[server{e.Host, e.Process}]; e.Expected && by {
			add(e.Host, e.Process, change{at: e.At, what: "stopped"})
		} else if !e.Expected && died {
			add(e.Host, e.Process, change{at: e.At, what: "gone: it ended by itself"})
		}
	}
	// A host is not there yet while all of its servers wait for a workload.
	for _, p := range r.Target.Processes {
		for _, h := range p.Hosts {
			if p.Manual && !slices.ContainsFunc(r.Target.Processes, func(q model.Process) bool {
				return !q.Manual && !q.Once && slices.Contains(q.Hosts, h)
			}) {
				add(h, p.Name, change{at: 0, what: "not started yet", unborn: true})
			}
		}
	}
	for s, cs := range changes {
		slices.SortStableFunc(cs, func(a, b change) int {
			return cmp.Or(cmp.Compare(a.at, b.at), model.FalseFirst(b.up, a.up), strings.Compare(a.what, b.what))
		})
		var open *disturbance
		for _, c := range cs {
			switch {
			case !c.up && open == nil:
				open = &disturbance{from: c.at, since: max(c.at, c.done), to: forever, down: s.host, what: fmt.Sprintf("%s on %s is %s", s.process, s.host, c.what), unborn: c.unborn}
			case c.up && open != nil:
				open.to = c.at + grace
				out = append(out, *open)
				open = nil
			}
		}
		if open != nil {
			out = append(out, *open)
		}
	}
	slices.SortStableFunc(out, func(a, b disturbance) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), strings.Compare(a.what, b.what))
	})
	return out
}

func reached(n model.Need, ds []disturbance, at time.Duration) (hosts []model.NodeID, because []string) {
	for _, h := range needHosts(n) {
		met := true
		for i := range ds {
			if ds[i].holds(at) && ds[i].apart(n.Via, h) {
				met = false
				if !slices.Contains(because, ds[i].what) {
					because = append(because, ds[i].what)
				}
			}
		}
		if met {
			hosts = append(hosts, h)
		}
	}
	return hosts, because
}

// needHosts are the hosts of the need, each once, sorted.
func needHosts(n model.Need) []model.NodeID {
	out := slices.Clone(n.From)
	slices.Sort(out)
	return slices.Compact(out)
}

// worst finds the moment within [from, to] at which the need was met least,
// and who was reached then: the beginning, or when something began.
func worst(n model.Need, ds []disturbance, from, to time.Duration) (at time.Duration, hosts []model.NodeID, because []string) {
	at = from
	hosts, because = reached(n, ds, from)
	for i := range ds {
		if ds[i].from <= from || ds[i].from > to {
			continue
		}
		if h, b := reached(n, ds, ds[i].from); len(h) < len(hosts) {
			at, hosts, because = ds[i].from, h, b
		}
	}
	return at, hosts, because
}

// BadNeed says what is wrong with a need; "" if nothing is.
func BadNeed(n model.Need, t *model.Target) string {
	known := func(h model.NodeID) bool { return slices.Contains(t.Nodes, h) || slices.Contains(t.Clients, h) }
	if !known(n.Via) {
		return fmt.Sprintf("no host %q in the target, which has %v and %v: correct \"via\" in the history", n.Via, t.Nodes, t.Clients)
	}
	for _, h := range n.From {
		if !known(h) {
			return fmt.Sprintf("no host %q in the target, which has %v and %v: correct \"from\" in the history", h, t.Nodes, t.Clients)
		}
	}
	if c := len(needHosts(n)); n.Count > c || n.Count < 0 {
		return fmt.Sprintf("%d of %d hosts can never be reached: correct \"count\" in the history", n.Count, c)
	}
	return ""
}

func words[T ~string](in []T) string {
	if len(in) == 0 {
		return "none"
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
