package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// problemView is a list of things that went wrong beside the checks.
type problemView struct {
	Title string
	Lines []string
}

// fact is a name and a value.
type fact struct{ Name, Value string }

type invariantRow struct {
	ID, Text, Support, Broken string
	Trigger                   bool
}

type typeRow struct {
	Type           string
	Count, Dropped int
}

type decisionRow struct {
	At, Event, Do, What, Reason, Class string
}

// story says in three to eight sentences what happened.
func story(in *Input, t *timeline) []string {
	s := &in.Summary
	var out []string
	say := func(f string, a ...any) { out = append(out, fmt.Sprintf(f, a...)) }

	title := clean(cmp.Or(in.Title, s.Target, "The target"))
	var clients []model.NodeID
	for _, h := range in.Hosts {
		if !slices.Contains(in.Nodes, h) {
			clients = append(clients, h)
		}
	}
	where := ""
	if len(in.Nodes) > 0 {
		where = " ran on " + list(in.Nodes)
		if len(clients) > 0 {
			where += ", its clients on " + list(clients)
		}
	}
	how := "netsplit read a copy of every packet between them and delayed none"
	if s.Tap == "gate" {
		how = "every packet between nodes, and all that could be cut, waited at netsplit's gate for a decision"
		if s.Gate != "" {
			how += " (" + gateWords(s.Gate) + ")"
		}
	}
	if s.Scenario.Strategy == model.StrategyScripted && s.Scenario.Messages() {
		how += ", until the script began a message fault: from then on its gate held what the fault could be about"
	}
	if s.Tap == "none" {
		how = "netsplit read none of their packets, as the testbed has no mirror port"
	}
	if where == "" {
		where = " ran"
	}
	say("%s%s; %s.", title, where, how)

	if t.cut == nil {
		switch {
		case s.Scenario.Strategy == model.StrategyScripted:
			say("Script %s was played; it cut nothing.", clean(s.Scenario.Script))
		case s.Scenario.Strategy == model.StrategyClean:
			say("Nothing was cut: this is a clean run.")
		case !s.Scenario.Cuts():
			say("The scenario cuts nothing.%s", otherSteps(s))
		case s.Scenario.Waits() != nil:
			say("netsplit waited for %s, which never occurred, so nothing was cut.", clean(conditionWords(s.Scenario.Waits().When.State)))
		default:
			say("Nothing was cut: the time for the cut never came.")
		}
	} else {
		out = append(out, cutStory(in, t)...)
	}
	out = append(out, furtherCuts(s)...)
	out = append(out, actionsStory(in)...)
	out = append(out, recoveryStory(in, t)...)
	out = append(out, verdictStory(s))
	return out
}

// stateWords writes an inconsistent state: a was x while b was y.
func stateWords(inv *model.Invariant, st model.State) string {
	return clean(fmt.Sprintf("%s = %s while %s = %s", inv.A, st.A, inv.B, st.B))
}

func conditionWords(c *model.FaultCondition) string {
	if c.State == nil {
		return c.String()
	}
	return stateWords(&c.Invariant, *c.State)
}

// sides writes who is cut from whom.
func sides(p model.Partition) string {
	if only := p.Only; len(only) > 0 {
		p.Only = nil
		var names []string
		for _, t := range only {
			names = append(names, t.String())
		}
		return sides(p) + ", " + strings.Join(names, " and ") + " only"
	}
	if len(p.Groups) < 2 {
		return "hosts"
	}
	if len(p.Groups) > 2 {
		var g []string
		for _, x := range p.Groups {
			g = append(g, list(x))
		}
		return strings.Join(g, " | ") + " from one another"
	}
	if p.Shape == model.Simplex {
		return "what " + list(p.Groups[1]) + " send to " + list(p.Groups[0]) + " (the other direction stays open)"
	}
	return list(p.Groups[0]) + " from " + list(p.Groups[1])
}

func cutStory(in *Input, t *timeline) []string {
	s, sc := &in.Summary, &in.Summary.Scenario
	cut := t.step
	partition, waited := cut.Partition(), cut.When.State
	var out []string
	say := func(f string, a ...any) { out = append(out, fmt.Sprintf(f, a...)) }

	into := ""
	if t.work > 0 && t.cut.At >= t.work {
		into = ", " + span(t.cut.At-t.work) + " into the workload,"
	}
	if waited != nil && waited.State != nil {
		st := *waited.State
		if s.Result.CutState != nil {
			st = *s.Result.CutState
		}
		say("At %s%s the nodes disagreed: %s. netsplit cut %s.", at(t.cut.At), into, stateWords(&waited.Invariant, st), sides(partition))
		if st != *waited.State {
			which := "the first state"
			if waited.Nth > 1 {
				which = fmt.Sprintf("state number %d", waited.Nth)
			}
			say("It waited for %s, or for %s with other numbers in the same order.", stateWords(&waited.Invariant, *waited.State), which)
		}
		if sc.Substituted {
			say("It also accepted the same state on other nodes: chance decides on which nodes it occurs.")
		}
		by := ""
		switch o := t.trigger; {
		case o != nil && o.Probe != "":
			by = fmt.Sprintf("A probe of %s (%s; ① in the picture) revealed it, not a message", o.Var.Node, o.Probe)
		default:
			if m := t.find(func(i *item) bool { return i.trigger }); m != nil {
				by = fmt.Sprintf("Message %d (① in the picture), %s from %s to %s, revealed it", m.num, m.typ, m.from, m.to)
			}
		}
		if by != "" {
			if waited.Invariant.Support > 0 {
				by += fmt.Sprintf("; the two had agreed in all %s of %s", model.Count(waited.Invariant.Support, "sample", "samples"), model.Count(waited.Invariant.Runs, "clean run", "clean runs"))
			}
			say("%s.", clean(by))
		}
	} else if sc.Strategy == model.StrategyScripted {
		say("At %s script %s cut %s.", at(t.cut.At), clean(sc.Script), sides(partition))
	} else {
		moment := "a moment drawn from the seed"
		switch {
		case cut.When.Message != nil:
			moment = fmt.Sprintf("message %d, which the step waited for", t.cut.Message)
		case waited != nil:
			moment = "the first state at which " + clean(waited.String())
		case sc.Why == model.WhyRequested:
			moment = "the requested moment"
		}
		say("At %s%s %s, netsplit cut %s.", at(t.cut.At), into, moment, sides(partition))
	}

	effect := ""
	if partition.Effect == model.Reset {
		effect = " and the connections across it were reset"
		if s.Proof != nil {
			effect = fmt.Sprintf(" and %s across it reset", model.Count(s.Proof.ResetConns, "connection was", "connections were"))
		}
	}
	from, to := t.cutWindow()
	if t.heal == nil {
		say("No decision healed the cut%s.", effect)
	} else {
		say("The cut lasted %s%s.", span(to-from), effect)
	}
	if p := s.Proof; p != nil {
		leak := "leaks could not be counted"
		switch {
		case p.LeakKnown && p.Leaked == 0:
			leak = "none leaked, as counted at the receiving hosts"
			if p.InForceAt > 0 && p.HealAt <= p.InForceAt {
				leak = "arrivals were not counted, because the cut ended before the switch confirmed it"
			}
		case p.LeakKnown:
			leak = fmt.Sprintf("%d LEAKED, as counted at the receiving hosts", p.Leaked)
		}
		held := ""
		if n := p.Wanted - p.Dropped - p.Leaked; n > 0 {
			held = fmt.Sprintf(", %d was held until the heal and then passed", n)
			if n > 1 {
				held = fmt.Sprintf(", %d passed after the heal", n)
			}
		}
		if p.Wanted == 0 {
			say("No packet wanted to cross, so the cut showed nothing.")
		} else {
			cuts := ""
			if n := t.cuts; n > 1 {
				of := "run"
				if sc.Strategy == model.StrategyScripted {
					of = "script"
				}
				cuts = fmt.Sprintf(" of the %s's %d cuts, the first of which is drawn", of, n)
			}
			say("%s wanted to cross%s: %d dropped%s; %s.", model.Count(p.Wanted, "packet", "packets"), cuts, p.Dropped, held, leak)
		}
	}
	if t.heal != nil {
		out = append(out, healStory(t))
	}
	return out
}

func healStory(t *timeline) string {
	m := t.find(func(i *item) bool { return i.heal })
	what := "a message"
	if m != nil {
		what = fmt.Sprintf("message %d (② in the picture), %s from %s to %s", m.num, m.typ, m.from, m.to)
	} else if c := t.heal.Class; c != nil {
		what = clean(fmt.Sprintf("%s from %s to %s", c.Type, c.From, c.To))
	}
	first := ""
	if t.passed > t.heal.At {
		first = fmt.Sprintf(" and was the first to pass, %s later", span(t.passed-t.heal.At))
	}
	state := ""
	if c := t.heal.Class; c != nil && (c.State.A != "" || c.State.B != "") {
		state = " at state " + clean(c.State.String())
	}
	switch t.heal.Reason {
	case model.ReasonNewClass:
		return fmt.Sprintf("It was healed by %s: the first of a class not met before%s. It waited at the gate%s.", what, state, first)
	case model.ReasonHealClass:
		return fmt.Sprintf("It was healed by %s: the class this run waited for%s. It waited at the gate%s.", what, state, first)
	case model.ReasonMessage:
		return fmt.Sprintf("It was healed by %s: the message the step waited for.", what)
	case model.ReasonTime:
		return "It was healed at the moment drawn from the seed."
	case model.ReasonRole:
		return "It was healed as a host was found to have the role that the step waited for."
	case model.ReasonMaxCut:
		return "No message healed it: the longest time allowed for a cut was over."
	case model.ReasonStop:
		return "It was healed because the workload had ended."
	case model.ReasonScript:
		return "The script healed it."
	}
	return "It was healed: " + clean(t.heal.Reason) + "."
}

func recoveryStory(in *Input, t *timeline) []string {
	r := in.Recovery
	if r.HealedAt == 0 && r.StableAt == 0 && r.Limit == 0 {
		return nil
	}
	after := "the end of the workload"
	if t.heal != nil {
		after = "the heal"
	}
	if r.StableAt > 0 {
		s := fmt.Sprintf("%s after %s the target was stable again (limit %s)", span(r.StableAt-r.HealedAt), after, span(r.Limit))
		if len(r.Violated) > 0 {
			s += fmt.Sprintf(", but %s did not hold again", model.Count(len(r.Violated), "invariant", "invariants"))
		}
		if r.QuietAt > 0 {
			s += fmt.Sprintf(", and at rest %s later", span(r.QuietAt-r.StableAt))
		}
		return []string{s + "."}
	}
	return []string{fmt.Sprintf("The target was not stable again within %s after %s.", span(r.Limit), after)}
}

func verdictStory(s *model.RunSummary) string {
	v := s.Verdict
	n := len(v.Failures)
	legal := ""
	if v.Legal > 0 {
		legal = fmt.Sprintf(" %s refused or timed out, which was legal.", model.Count(v.Legal, "operation was", "operations were"))
	}
	switch v.Value {
	case model.VerdictFail:
		count := map[string]int{}
		for _, f := range v.Failures {
			_, w := failureClass(f.Class)
			count[w]++
		}
		var kinds []string
		for _, w := range []struct{ one, many string }{{"broken promise", "broken promises"}, {"beyond the stated bound", "beyond the stated bound"},
			{"documented", "documented"}, {"class unknown", "class unknown"}} {
			if n := count[w.one]; n > 0 {
				kinds = append(kinds, model.Count(n, w.one, w.many))
			}
		}
		return fmt.Sprintf("%s (%s).%s", model.Count(n, "check failed", "failures, listed below"), strings.Join(kinds, ", "), legal)
	case model.VerdictPass:
		return "Every check held." + legal
	case model.VerdictVacuous:
		return "The run is vacuous: it says nothing about the target, and is not a pass." + legal
	}
	return "The run cannot be judged, and is not a pass." + legal
}

func exitWords(exits []record.Exit) []string {
	var out []string
	for _, x := range exits {
		if !x.Expected {
			out = append(out, fmt.Sprintf("%s on %s ended with status %d at %.3f s", x.Process, x.Host, x.Status, x.At.Seconds()))
		}
	}
	return out
}

func logWords(lines []record.LogLine) []string {
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s on %s at %.3f s: %s", l.Process, l.Host, l.At.Seconds(), l.Line))
	}
	return out
}

func violationWords(vs []record.Violation) []string {
	var out []string
	for _, v := range vs {
		out = append(out, v.String())
	}
	return out
}

func (t *timeline) find(is func(*item) bool) *item {
	for i := range t.items {
		if is(&t.items[i]) {
			return &t.items[i]
		}
	}
	return nil
}

func problems(in *Input) []problemView {
	var out []problemView
	for _, p := range []problemView{
		{"Why the run cannot be judged, or not in full", in.Incomplete},
		{"Late, not lost: a second look found it", lateWords(in.Summary.Verdict.Late)},
		{"Processes that ended by themselves", exitWords(in.Exits)},
		{"Fatal lines the target printed", logWords(in.LogLines)},
		{"Not stable when the recovery time was over", in.Recovery.Pending},
		{"Invariants that did not hold again", violationWords(in.Recovery.Violated)},
		{"The machine was busy", busyWords(&in.Summary)},
	} {
		if len(p.Lines) == 0 {
			continue
		}
		lines := cleanAll(p.Lines)
		if len(lines) > 40 {
			lines = append(lines[:40:40], fmt.Sprintf("… and %d more", len(p.Lines)-40))
		}
		out = append(out, problemView{p.Title, lines})
	}
	return out
}

func lateWords(late []model.Late) []string {
	var out []string
	for _, l := range late {
		out = append(append(out, l.Check+": "+l.Summary), l.Detail...)
	}
	return out
}

// busyWords warns of a run that did not pass on a machine with too much to do.
func busyWords(s *model.RunSummary) []string {
	if s.CPUWait < model.Busy || s.Verdict.Value == model.VerdictPass {
		return nil
	}
	return []string{fmt.Sprintf("For %.0f %% of the run whatever was ready to run on netsplit's machine waited for a CPU. That alone may have broken time limits. "+
		"Repeat the run on a quieter machine, or with fewer --labs.", 100*s.CPUWait)}
}

func facts(in *Input) []fact {
	s := &in.Summary
	var out []fact
	add := func(n, v string) {
		if v != "" {
			out = append(out, fact{n, clean(v)})
		}
	}
	add("Run", s.Run)
	add("Scenario", strings.Trim(s.Scenario.ID+", "+string(s.Scenario.Strategy), ", "))
	add("Why this one", s.Scenario.Why)
	add("Replay of", s.ReplayOf)
	add("Seed", fmt.Sprint(s.Scenario.Seed))
	cuts := 0
	for i := range s.Scenario.Steps {
		switch st := &s.Scenario.Steps[i]; {
		case st.Do.Message != nil:
			add(fmt.Sprintf("Message fault %d", i+1), st.Do.Message.String())
		case st.Do.Node != nil:
			add(fmt.Sprintf("Step %d", i+1), st.Do.String())
		case st.Do.Disk != nil:
			add(fmt.Sprintf("Step %d", i+1), st.Do.Disk.String())
		case st.Do.Cut.Shape != "":
			p, name := st.Do.Cut, "Partition"
			if cuts++; cuts > 1 {
				name = fmt.Sprintf("Partition %d", cuts)
			}
			add(name, string(p.Shape)+", "+string(p.Effect)+": "+sides(*p))
		}
	}
	if !s.Started.IsZero() {
		add("Started", s.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	add("Release", s.Release)
	add("Version", s.TargetVersion)
	if s.Cost != (model.Cost{}) {
		add("Took", span(took(s.Cost)))
	}
	add("Probes", probeWords([]model.RunSummary{*s}))
	if g := s.GateDelay; g != nil && g.Count > 0 {
		add("Held at the gate", fmt.Sprintf("%d packets, median %s, p99 %s, longest %s", g.Count, span(g.P50), span(g.P99), span(g.Max)))
	}
	var read []string
	for _, p := range in.Ports {
		read = append(read, p.String())
	}
	add("Read", strings.Join(read, "; "))
	if s.Retransmits > 0 {
		add("Retransmissions", fmt.Sprintf("%d outside the cut", s.Retransmits))
	}
	if s.CPUWait > 0 {
		add("Machine", fmt.Sprintf("what was ready to run waited for a CPU for %.0f %% of the run", 100*s.CPUWait))
	}
	add("netsplit", s.Version)
	return out
}

func invariantRows(in *Input, t *timeline) []invariantRow {
	var out []invariantRow
	for i, inv := range t.invariants {
		row := invariantRow{ID: clean(inv.ID), Text: clean(inv.String()), Trigger: in.Summary.Scenario.Waits() != nil && i == t.focus}
		row.Support = fmt.Sprintf("%s of %s", model.Count(inv.Support, "sample", "samples"), model.Count(inv.Runs, "clean run", "clean runs"))
		row.Broken = "always held"
		if ws := t.violations[i]; len(ws) > 0 {
			var sum time.Duration
			for _, w := range ws {
				sum += w.to - w.from
			}
			row.Broken = fmt.Sprintf("broken %s, %s in all, first at %s", model.Count(len(ws), "time", "times"), span(sum), at(ws[0].from))
		}
		out = append(out, row)
	}
	return out
}

func typeRows(counts map[string]int, t *timeline) []typeRow {
	dropped := map[string]int{}
	all := map[string]int{}
	for k, n := range counts {
		all[clean(k)] += n
	}
	for _, it := range t.items {
		if it.dropped {
			dropped[it.typ]++
		}
		if len(counts) == 0 && !it.again && it.num != 0 {
			all[it.typ]++
		}
	}
	for k := range dropped {
		all[k] += 0
	}
	var out []typeRow
	for k, n := range all {
		out = append(out, typeRow{k, n, dropped[k]})
	}
	slices.SortFunc(out, func(a, b typeRow) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type)) })
	return out
}

// maxDecisions bounds the rows of decisions: a cut of seconds under load makes
// thousands, and the record has them all.
const maxDecisions = 300

func decisionRows(in *Input) ([]decisionRow, string) {
	packets := map[uint64]*model.HeldPacket{}
	for i := range in.Events {
		if p := in.Events[i].Packet; p != nil {
			packets[p.Frame] = p
		}
	}
	var out []decisionRow
	for i := range in.Decisions {
		d := &in.Decisions[i]
		r := decisionRow{At: at(d.At), Event: fmt.Sprint(d.Event), Reason: clean(d.Reason)}
		var do []string
		switch {
		case d.Cut:
			do, r.Class = append(do, "cut"), "cut"
			cut := cutOf(&in.Summary, d)
			r.What = sides(cut.Partition())
		case d.Heal:
			do, r.Class = append(do, "heal"), "heal"
		case d.Disk != "" || d.File != nil:
			do, r.What, r.Class = diskDecision(in, d)
		case d.Ask != "":
			do = append(do, "ask who has role "+d.Ask)
		case d.Action == model.DropPacket || d.Action == model.ResetConn:
			r.Class = "dropped"
		}
		if d.Verb != "" && d.Disk == "" {
			do = append(do, string(d.Verb))
		}
		if d.Action != "" {
			do = append(do, string(d.Action))
		}
		r.Do = clean(strings.Join(do, ", then "))
		if p := packets[d.Frame]; p != nil && d.Frame != 0 {
			r.What = fmt.Sprintf("packet %d, %s to %s, %d bytes", d.Frame, p.From, p.To, p.Bytes)
			if len(p.Messages) > 0 {
				r.What += ", " + messageList(p.Messages)
			}
		}
		if d.Fault != 0 {
			r.Reason += fmt.Sprintf(", fault %d", d.Fault)
		}
		if d.Class != nil {
			r.What = strings.TrimPrefix(r.What+"; class "+d.Class.String(), "; ")
		}
		r.What = clean(r.What)
		out = append(out, r)
	}
	if n := len(out); n > maxDecisions {
		head := slices.Clone(out[:maxDecisions/2])
		return append(head, out[n-maxDecisions/2:]...), fmt.Sprintf("The first and last %d of %d decisions; the run's record has all.", maxDecisions/2, n)
	}
	return out, ""
}

func messageList(ns []uint64) string {
	var b strings.Builder
	b.WriteString("message")
	if len(ns) > 1 {
		b.WriteString("s")
	}
	for i, n := range ns {
		if i == 6 {
			b.WriteString(" …")
			break
		}
		fmt.Fprintf(&b, " %d", n)
	}
	return b.String()
}

// gateWords says how held packets got to netsplit and back.
func gateWords(gate string) string {
	switch model.Gate(gate) {
	case model.GateByPort:
		return "by a port of the switch"
	case model.GateByPacketIn:
		return "by packet-in and packet-out"
	}
	return "by a port of the switch on some, by packet-in and packet-out on others"
}
