package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

func lostWrites() checker {
	return checker{
		name:    "lost-acknowledged-writes",
		history: true,
		loss:    &loss{"acknowledged write", "acknowledged writes", "missing", "there"},
		help:    "acknowledged writes that no final read returns. Judged where `<read>-done` is `ok`. A loss without a change of leader is broken whatever the class",
		with: map[string]setting{
			"write":        {def: "write", help: "`f` of the operations that write; each key is written once"},
			"delete":       {def: "delete", help: "`f` of the operations that remove a key; what one may have removed, answered or not, is not lost"},
			"read":         {def: "final-read", help: "`f` of the operations that list what the service has at the end. `<read>-done` with `ok` says that the list is whole"},
			"copy":         {def: "final-copy", help: "`f` of the operations that list what other nodes have at the end"},
			"leader":       {def: "", kind: "variable", help: "variable whose value is the leader's name; a node leads when it names itself or acknowledges. It tells failovers apart; leave it out where others than the leader acknowledge"},
			"force":        {def: "failover", help: "`f` of the operations that force a change of leader; their losses are not attributed to a cut that the writer did not notice"},
			"force_within": {def: "3s", kind: "duration", help: "how soon the forced change of leader shows"},
			"late":         lateSetting,
			"bounded":      {def: "false", kind: "bool", help: "true: a leader without replicas stops after `bound`, so the loss of a later write is broken"},
			"bound":        {def: "0s", kind: "duration", help: "how long a leader without replicas may go on"},
			"bound_grace":  {def: "1s", kind: "duration", help: "added to `bound`"},
		},
		run: runLostWrites,
	}
}

// Causes of a loss. If a change of leader before the cut lost the write, the cut has nothing
// to do with it. Nor has it if a client forced the change and the writer did not notice the
// cut: the write would be lost without the cut, too. The time of the acknowledgement is no
// part of the cause, so that a loss has the same signature in every replay.
const (
	causeUntold     = "" // no variable tells who leads
	causeNoFailover = " though no other node ever led"
	causeForced     = " at a forced failover"
	causeNoCut      = " at a failover without a cut"
	causeFailover   = " at a failover"
)

// lostWrite is one acknowledged write that is gone.
type lostWrite struct {
	key  string
	by   record.Entry  // the acknowledgement
	node model.NodeID  // that acknowledged it
	at   time.Duration // acknowledged
}

// group holds the lost writes of one cause: one signature, one failure.
type group struct {
	cause  string
	side   string // which node acknowledged, under a cut
	beyond bool   // beyond the bound that the settings promise
	writes []lostWrite
	next   map[lead]bool // who led next
}

func runLostWrites(r *Record, s settings) outcome {
	acked, order := map[string]lostWrite{}, []string(nil)
	for _, o := range ordered(r, s["write"]) {
		if o.Type != model.OpOK {
			continue
		}
		if _, twice := acked[o.Key]; !twice {
			order = append(order, o.Key)
		}
		acked[o.Key] = lostWrite{o.Key, o, o.Node, o.Time}
	}
	tried := ordered(r, s["write"])
	switch {
	case len(tried) == 0:
		return outcome{idle: "nothing was written, so nothing could be lost"}
	case len(acked) == 0 && r.Proof != nil && tried[0].Time >= r.Proof.CutAt:
		return outcome{idle: "no write was acknowledged after the cut, so none could be lost"}
	case len(acked) == 0:
		return outcome{unknown: "no write was acknowledged, so none could be lost"}
	}
	have, copies, done, why := finalRead(r, s)
	if !done {
		return outcome{unknown: "the keys could not be read back (" + why + "); what could not be read is not called lost"}
	}
	var led leadership
	if s["leader"] != "" {
		led = newLeadership(r, s["leader"], s["write"], s["read"]+"-done")
	}
	groups := map[string]*group{}
	total := 0
	all, deletes := calls(r), s.list("delete")
	removed := map[string]bool{}
	for i := range all {
		if slices.Contains(deletes, all[i].f) && all[i].typ != model.OpFail {
			removed[all[i].key] = true
		}
	}
	unread := unreadKeys(all, s["read"])
	for _, k := range order {
		if have[k] || removed[k] || unread[k] {
			continue
		}
		w := acked[k]
		total++
		g := classify(r, s, led, w)
		id := g.signature()
		if groups[id] == nil {
			groups[id] = g
		}
		groups[id].writes = append(groups[id].writes, w)
		maps.Copy(groups[id].next, g.next)
	}
	join(groups)
	var out outcome
	unknown := unnamed(all, deletes)
	if total <= unknown {
		return out
	}
	for _, id := range sortedKeys(groups) {
		for _, w := range groups[id].writes {
			out.missing = append(out.missing, w.key)
		}
		f := groups[id].failure(r, s, len(acked), copies)
		overBound(&f, groups[id], total-unknown, r.Bounds)
		if unknown > 0 {
			f.Detail = append(f.Detail, fmt.Sprintf("%d operations without an answer (%s) may have removed as many of the %d keys that are missing", unknown, words(deletes), total))
		}
		out.failures = append(out.failures, f)
	}
	return out
}

// join puts writes that nobody knows who acknowledged to the most that were lost for the same cause:
// that the node is unknown is no circumstance of its own.
func join(groups map[string]*group) {
	for _, id := range sortedKeys(groups) {
		g := groups[id]
		if g.side != sideUnknown {
			continue
		}
		var to *group
		for _, other := range sortedKeys(groups) {
			if o := groups[other]; o != g && o.cause == g.cause && o.beyond == g.beyond && (to == nil || len(o.writes) > len(to.writes)) {
				to = o
			}
		}
		if to != nil {
			to.writes = append(to.writes, g.writes...)
			maps.Copy(to.next, g.next)
			delete(groups, id)
		}
	}
}

// finalRead returns the keys that the service has, the keys of each node that
// was read beside it, and whether the service's list is whole.
func finalRead(r *Record, s settings) (have map[string]bool, copies map[model.NodeID]map[string]bool, done bool, why string) {
	have, copies = map[string]bool{}, map[model.NodeID]map[string]bool{}
	why = "no final read in the history"
	for _, o := range ordered(r, s["read"], s["read"]+"-done", s["copy"]) {
		switch {
		case o.F == s["read"] && o.Type == model.OpOK:
			have[o.Key] = true
		case o.F == s["copy"] && o.Type == model.OpOK:
			if copies[o.Node] == nil {
				copies[o.Node] = map[string]bool{}
			}
			copies[o.Node][o.Key] = true
		case o.F == s["read"]+"-done" && o.Type == model.OpOK:
			done = true
		case o.F == s["read"]+"-done":
			why = o.Error
		}
	}
	return have, copies, done, why
}

// classify says under which circumstances a lost write was acknowledged.
func classify(r *Record, s settings, led leadership, w lostWrite) *group {
	g := &group{next: map[lead]bool{}}
	cut := r.Proof
	switch next, ok := led.deposed(w.node, w.at); {
	case led == nil:
		g.cause, g.side = causeUntold, side(r, w.node)
		return g
	case !ok:
		g.cause = causeNoFailover
		return g
	default:
		g.next[next] = true
		switch {
		case forced(r, s, led, next) && (cut == nil || next.since < cut.CutAt || !disturbed(r, w.by, cut.CutAt)):
			g.cause = causeForced
		case cut == nil || next.since < cut.CutAt:
			g.cause = causeNoCut
		default:
			g.cause, g.side = causeFailover, side(r, w.node)
		}
	}
	if s.bool("bounded") && w.node != "" {
		g.beyond = w.at > lastContact(r, s["leader"], w)+s.duration("bound")+s.duration("bound_grace")
	}
	return g
}

const (
	sideUnknown  = ", acknowledged by an unknown node"
	sideIsolated = ", acknowledged by the isolated node"
	sideOther    = ", acknowledged by a node that was not isolated"
)

// side says which side of the cut acknowledged; "" without a cut.
func side(r *Record, n model.NodeID) string {
	switch {
	case r.Proof == nil:
		return ""
	case n == "":
		return sideUnknown
	case isolated(r, n):
		return sideIsolated
	}
	return sideOther
}

// forced says whether a client asked for this change of leader shortly before it, with no
// other change between. The client may be answered before or after the change.
func forced(r *Record, s settings, led leadership, next lead) bool {
	type client struct {
		workload string
		process  int
	}
	invoked := map[client]time.Duration{}
	var askedAt, answeredAt time.Duration
	ok := false
	for _, o := range ordered(r, s["force"]) {
		by := client{o.Workload, o.Process}
		if o.Type == model.OpInvoke {
			invoked[by] = o.Time
			continue
		}
		began, known := invoked[by]
		if delete(invoked, by); !known {
			began = o.Time
		}
		if o.Type == model.OpOK && began <= next.since {
			askedAt, answeredAt, ok = began, o.Time, true
		}
	}
	if !ok || next.since-answeredAt > s.duration("force_within") {
		return false
	}
	for _, l := range led[next.about] {
		if l.since > askedAt && l.since < next.since {
			return false
		}
	}
	return true
}

// disturbed says whether the writing process had an operation since the cut that failed or
// had no answer: then the cut may be why it wrote where it did.
func disturbed(r *Record, w record.Entry, cut time.Duration) bool {
	for _, o := range r.History {
		if o.Workload == w.Workload && o.Process == w.Process && o.Time >= cut && o.Time <= w.Time &&
			(o.Type == model.OpFail || o.Type == model.OpInfo) {
			return true
		}
	}
	return false
}

// lastContact is the last time at which the leader can have had an acknowledgement from a
// replica: when, up to the write, another node was last seen to follow it and was not cut
// off from it.
func lastContact(r *Record, variable string, w lostWrite) time.Duration {
	last := time.Duration(0)
	cut := r.Proof
	off := func(at time.Duration) bool {
		return cut != nil && w.node == r.Scenario.Cut().Do.Isolate && at >= cut.CutAt && (cut.HealAt == 0 || at < cut.HealAt)
	}
	for _, o := range r.Observations {
		if o.Var.Name == variable && o.Var.Node != w.node && o.Value == string(w.node) && o.At <= w.at && !off(o.At) {
			last = max(last, o.At)
		}
	}
	if off(w.at) {
		last = max(last, cut.CutAt)
	}
	return last
}

func (g *group) signature() string {
	sig := "acknowledged writes lost" + g.cause + g.side
	if g.beyond {
		sig += ", later than the settings allow"
	}
	return sig
}

func (g *group) failure(r *Record, s settings, acked int, copies map[model.NodeID]map[string]bool) model.Failure {
	slices.SortStableFunc(g.writes, func(a, b lostWrite) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key))
	})
	first, last := g.writes[0], g.writes[len(g.writes)-1]
	f := model.Failure{Signature: g.signature(), Amount: len(g.writes)}
	if g.cause == causeNoFailover || g.beyond {
		f.Class = model.Broken
	}
	by := map[model.NodeID]int{}
	for _, w := range g.writes {
		by[w.node]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d acknowledged writes lost", len(g.writes), acked)
	kind := "failover"
	if g.cause == causeForced {
		kind = "forced failover"
	}
	switch {
	case len(g.next) == 0:
		b.WriteString(g.cause)
	case len(g.next) == 1:
		b.WriteString(" at one " + kind)
	default:
		fmt.Fprintf(&b, " at %d %ss", len(g.next), kind)
	}
	b.WriteString("; ")
	if len(by) == 1 && len(g.writes) > 1 {
		b.WriteString("all ")
	}
	b.WriteString("acknowledged by ")
	for i, n := range sortedKeys(by) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(nameOf(n))
		if len(by) > 1 {
			fmt.Fprintf(&b, " (%d)", by[n])
		}
	}
	ref, name := reference(r, g, first.at)
	b.WriteString(", " + span(first.at-ref, last.at-ref, name))
	leads := slices.SortedFunc(maps.Keys(g.next), func(a, b lead) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.node, b.node), cmp.Compare(a.about, b.about))
	})
	for _, l := range leads {
		fmt.Fprintf(&b, "; %s leads%s since %s", l.node, ofThing(" ", l.about), relative(r, g, l.since))
	}
	if g.beyond {
		fmt.Fprintf(&b, "; the settings allow %s after a replica's last acknowledgement", s["bound"])
	}
	f.Summary = b.String()
	f.Detail = g.detail(r, copies)
	return f
}

// span places the acknowledgements in time, as a reader wants them: from a to b
// after the moment of that name.
func span(a, b time.Duration, name string) string {
	if x := seconds(max(a, -a)); x == seconds(max(b, -b)) && (a < 0) == (b < 0) {
		if a < 0 {
			return fmt.Sprintf("%s s before %s", x, name)
		}
		return fmt.Sprintf("%s s after %s", x, name)
	}
	if a < 0 && b < 0 {
		return fmt.Sprintf("from %s to %s s before %s", seconds(-a), seconds(-b), name)
	}
	if a < 0 {
		return fmt.Sprintf("from %s s before to %s s after %s", seconds(-a), seconds(b), name)
	}
	return fmt.Sprintf("from %s to %s s after %s", seconds(a), seconds(b), name)
}

func (g *group) ofCut() bool { return g.side != "" }

// reference is the moment that the times of a group are told against, whose
// first write was acknowledged at first.
func reference(r *Record, g *group, first time.Duration) (time.Duration, string) {
	switch {
	case !g.ofCut():
		return r.WorkloadStart, "the start of the workload"
	case r.Proof.HealAt > 0 && first >= r.Proof.HealAt:
		return r.Proof.HealAt, "heal"
	}
	return r.Proof.CutAt, "the cut"
}

// relative places a change of leader, of a cut's group against the cut.
func relative(r *Record, g *group, at time.Duration) string {
	ref, name := reference(r, g, 0)
	if at < ref {
		return fmt.Sprintf("%s s before %s", seconds(ref-at), name)
	}
	return fmt.Sprintf("%s s after %s", seconds(at-ref), name)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// detail lists the first and last lost keys, and who still has some.
func (g *group) detail(r *Record, copies map[model.NodeID]map[string]bool) []string {
	const show = 3
	var out []string
	if m := g.moments(r); len(m) > 1 {
		out = append(out, "acknowledged: "+strings.Join(m, ", "))
	}
	for i, w := range g.writes {
		if i >= show && i < len(g.writes)-show {
			if i == show {
				out = append(out, fmt.Sprintf("… %d more …", len(g.writes)-2*show))
			}
			continue
		}
		out = append(out, fmt.Sprintf("%s acknowledged by %s at %.3f s", w.key, nameOf(w.node), w.at.Seconds()))
	}
	for _, n := range sortedKeys(copies) {
		still := 0
		for _, w := range g.writes {
			if copies[n][w.key] {
				still++
			}
		}
		if still > 0 {
			out = append(out, fmt.Sprintf("still on %s, which does not serve them: %d of %d", n, still, len(g.writes)))
		}
	}
	return out
}

// moments counts the writes by when they were acknowledged.
func (g *group) moments(r *Record) []string {
	n := map[string]int{}
	for _, w := range g.writes {
		n[when(r, w.at)]++
	}
	var out []string
	for _, m := range []string{", before the cut", ", while cut", ", after heal"} {
		if n[m] > 0 {
			out = append(out, fmt.Sprintf("%d%s", n[m], strings.TrimPrefix(m, ",")))
		}
	}
	return out
}

// overBound turns a documented loss into a broken bound where it is larger
// than the user said it may be: in number, all lost writes of the run
// together, or in time from the first to the last lost acknowledgement.
func overBound(f *model.Failure, g *group, total int, b record.Bounds) {
	if f.Class == model.Broken {
		return
	}
	var at []time.Duration
	for _, w := range g.writes {
		if w.node != "" || g.side == sideUnknown { // those that joined the group are not of its window
			at = append(at, w.at)
		}
	}
	window := time.Duration(0)
	if len(at) > 0 {
		window = at[len(at)-1] - at[0]
	}
	var over []string
	if b.MaxLost >= 0 && total > b.MaxLost {
		over = append(over, fmt.Sprintf("%d lost, at most %d were allowed", total, b.MaxLost))
	}
	if b.MaxWindow >= 0 && window > b.MaxWindow {
		over = append(over, fmt.Sprintf("lost over %s s, at most %s s were allowed", seconds(window), seconds(b.MaxWindow)))
	}
	if len(over) > 0 {
		f.Class = model.BrokenBound
		f.Summary += " (beyond the stated bound: " + strings.Join(over, "; ") + ")"
	}
}
