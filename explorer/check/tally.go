package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// Tally is what the runs of a search say together, told run by run.
type Tally struct {
	decided map[string]bool // fault runs that passed or failed
	open    map[string]why  // the others, and why

	clean, fault map[string]map[link]int // by variable, how often clean and fault runs read a value
}

// why says why a fault run could not be judged: kind is equal for runs of one reason.
type why struct{ kind, text string }

// link is where a value was read: a message between two hosts; none, a probe.
type link struct{ from, to model.NodeID }

// unknownReason begins the kind of a reason for which runs are unknown.
const unknownReason = "unknown: "

const neverOccurred = "the state that was waited for did not occur"

// Add enters a finished run. A run that is entered again counts once.
func (y *Tally) Add(r *model.RunSummary) {
	if r.ReplayOf != "" || r.CutShort {
		return
	}
	if y.open == nil {
		y.open, y.decided, y.clean, y.fault = map[string]why{}, map[string]bool{}, map[string]map[link]int{}, map[string]map[link]int{}
	}
	seen := y.clean
	if r.Scenario.Faulty() {
		seen = y.fault
	}
	for _, s := range r.Sightings {
		if seen[s.Variable] == nil {
			seen[s.Variable] = map[link]int{}
		}
		seen[s.Variable][link{s.From, s.To}] += s.Count
	}
	if !r.Scenario.Faulty() {
		return
	}
	switch v := r.Verdict; v.Value {
	case model.VerdictPass, model.VerdictFail:
		y.decided[r.Run] = true
	case model.VerdictVacuous:
		y.open[r.Run] = why{stable(v.Reason), v.Reason}
		if w := r.Scenario.Waits(); w != nil && w.When.State.State != nil && !r.Result.Reached {
			y.open[r.Run] = why{neverOccurred, neverOccurred}
		}
	default:
		y.open[r.Run] = why{unknownReason + stable(v.Reason), "could not be judged: " + v.Reason}
	}
}

// Undecided says why no fault run of the search could be judged, a line for each
// reason, the most frequent first; nil if one could. missed is why states did not
// occur, "" where nobody knows.
func (y *Tally) Undecided(missed string) []string {
	if len(y.decided) > 0 {
		return nil
	}
	if len(y.open) == 0 {
		return []string{"no fault run was made"}
	}
	count, text := map[string]int{}, map[string]string{}
	for _, run := range sortedKeys(y.open) {
		w := y.open[run]
		count[w.kind]++
		text[w.kind] = cmp.Or(text[w.kind], w.text)
	}
	kinds := sortedKeys(count)
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	var out []string
	for _, k := range kinds {
		line := fmt.Sprintf("%d of %d fault runs: %s", count[k], len(y.open), text[k])
		if k == neverOccurred && missed != "" {
			line += "; " + missed
		}
		out = append(out, line)
	}
	return out
}

// WhyMissed says why states of a variable that fault runs waited for may not have
// occurred, by where its values were read, and what to do; "" if the records do not
// say where. recurs: other runs met such a state.
func (y *Tally) WhyMissed(nodes []model.NodeID, variable string, recurs bool) string {
	clean, fault := y.clean[variable], y.fault[variable]
	if len(clean) == 0 {
		return ""
	}
	for _, kind := range []struct {
		name string
		is   func(link) bool
	}{
		{"messages between nodes and clients", func(l link) bool { return l.from != "" && !between(nodes, l) }},
		{"messages between nodes", func(l link) bool { return between(nodes, l) }},
		{"probes", func(l link) bool { return l.from == "" }},
	} {
		where, again := links(clean, kind.is), links(fault, kind.is)
		if len(where) > 0 && len(again) == 0 {
			return fmt.Sprintf("clean runs read %s from %s, and no fault run did: there it showed %s; give %s a source that fault runs read", variable, kind.name+onLinks(where), shownBy(nodes, fault), variable)
		}
	}
	messages := links(fault, func(l link) bool { return l.from != "" })
	switch {
	case len(messages) == 0:
		return fmt.Sprintf("%s is read by probes only, which may miss what lasts short: read it from messages, where they have it, or ask more often (docs/add-a-system.md, 3)", variable)
	case recurs:
		return fmt.Sprintf("%s was read from messages%s, and other runs met such a state: it does not come in every run; let the workload change %s more often, or try again more often (--retries)", variable, onLinks(messages), variable)
	}
	return fmt.Sprintf("%s was read from messages%s, and no other run met such a state: if its values are of one run only (ids, times), as: ordinal in the target file makes them recur (docs/add-a-system.md, 3)", variable, onLinks(messages))
}

func between(nodes []model.NodeID, l link) bool {
	return slices.Contains(nodes, l.from) && slices.Contains(nodes, l.to)
}

// links names the links of a kind on which a value was read, sorted.
func links(seen map[link]int, is func(link) bool) []string {
	var out []string
	for l := range seen {
		if is(l) {
			name := "probes"
			if l.from != "" {
				name = fmt.Sprintf("%s to %s", l.from, l.to)
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func onLinks(links []string) string {
	if len(links) == 1 && links[0] == "probes" {
		return ""
	}
	more := ""
	if len(links) > 4 {
		links, more = links[:4], ", …"
	}
	return " (" + strings.Join(links, ", ") + more + ")"
}

// shownBy says how fault runs saw a variable.
func shownBy(nodes []model.NodeID, fault map[link]int) string {
	var by []string
	for _, l := range links(fault, func(l link) bool { return l.from == "" || between(nodes, l) }) {
		if l == "probes" {
			by = append(by, "by probes")
		} else if !slices.Contains(by, "in messages between nodes") {
			by = append(by, "in messages between nodes")
		}
	}
	if len(by) == 0 {
		return "nowhere"
	}
	return "only " + strings.Join(by, " and ")
}
