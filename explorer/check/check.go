package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// Record is the part of a run's record that Judge needs. Times are since the run
// started.
type Record struct {
	// Target is the target with its settings filled in (sut.Expand without a host).
	Target   *model.Target
	Scenario model.Scenario
	// CutReached says whether the scenario's cut took place.
	CutReached bool
	// WorkloadStart and WorkloadEnd are when the workload began and ended.
	WorkloadStart, WorkloadEnd time.Duration

	History []record.Entry
	Exits   []record.Exit
	CPUWait float64 // as in model.RunSummary
	// Actions are what workloads did to server processes.
	Actions      []NodeAction
	LogLines     []record.LogLine
	Observations []model.Observation
	// Steps are the steps of a script. Cuts are its cuts, or those of a scenario with
	// several. Results says how each step of the scenario went; none in records of earlier
	// versions.
	Steps   []model.ScriptStep
	Cuts    []model.CutProof
	Results []model.StepResult
	// Proof is nil if there was no cut.
	Proof *model.Proof
	// Faults says what each of the scenario's message faults did.
	Faults []model.FaultProof
	// Heard are the messages of the workload's time, where a step waits for one.
	Heard    []Heard
	Recovery record.Recovery
	// Looks are the rounds of final reads. Crossed is what nodes sent one another of
	// the keys that the first round lacked, until the second round or the end.
	Looks   []record.Look
	Crossed []Crossed

	// WorkloadHung names the workloads that did not end when requested to.
	WorkloadHung []string
	// Incomplete says why the run cannot be judged, one reason each: a switch
	// or agent lost, held packets lost, a probe that went silent, a disk full.
	Incomplete []string
	// Relations are what the checks of the target's relations found. Unrelated says why
	// they found nothing: one could not be asked; "" if all were.
	Relations []Relation
	Unrelated string
	// Unread says why the operations of workloads are not known in full: one ended
	// with an error. Judge then judges only what is certain without them.
	Unread []string
	Bounds record.Bounds
}

// NodeAction is what a workload did to a server process; At is when it was done.
type NodeAction struct {
	At time.Duration `json:"at"`
	model.NodeAction
}

// Relation is what a check of the target's relations found: a violation, or nothing.
type Relation struct {
	Name string
	// Failure is nil if it held. Idle: no moment came at which it runs. Unknown, if set, is
	// why nobody knows whether it holds.
	Failure *model.Failure
	Idle    bool
	Unknown string
}

// checker is one entry of the registry.
type checker struct {
	name string
	// help is one line for documentation: what it reports.
	help string
	// history: it judges operations of workloads, and is idle if there are none of
	// its kind.
	history bool
	// certain: what it reports holds whatever workloads did.
	certain bool
	// loss: it reports missing data, by what final reads lack; nil: it does not.
	loss *loss
	// with explains the settings it takes.
	with map[string]setting
	run  func(r *Record, s settings) outcome
}

// outcome is what a checker says about a run.
type outcome struct {
	failures []model.Failure
	// unknown says why the checker could not decide; "" if it did.
	unknown string
	// idle says why there was nothing to judge; "" if there was.
	idle string
	// lines are log lines that would be failures if no disturbance excused them.
	lines []model.ExcusedLine
	// missing are the keys that final reads lack, or show wrong (checker.loss).
	missing []string
}

// and adds one more reason to those there are.
func and(have, more string) string { return strings.TrimPrefix(have+"; "+more, "; ") }

// Names lists the checkers, sorted.
func Names() []string {
	var out []string
	for _, c := range registry() {
		out = append(out, c.name)
	}
	return out
}

// Doc describes a checker that a target file can name.
type Doc struct {
	Name, Help string
	Settings   []SettingDoc
}

// SettingDoc describes one setting of a checker.
type SettingDoc struct{ Name, Default, Help string }

// Docs describes the checkers and their settings, sorted, for docs/target-reference.md.
func Docs() []Doc {
	var out []Doc
	for _, c := range registry() {
		d := Doc{Name: c.name, Help: c.help}
		for _, k := range sortedKeys(c.with) {
			d.Settings = append(d.Settings, SettingDoc{Name: k, Default: c.with[k].def, Help: c.with[k].help})
		}
		out = append(out, d)
	}
	return out
}

// SettingProblem is what is wrong with a setting of a check. If a name is wrong, Name is
// that name and Has lists those that exist.
type SettingProblem struct {
	Setting, Text string
	Name          string
	Has           []string
}

func (p SettingProblem) String() string {
	if p.Name == "" {
		return p.Setting + ": " + p.Text
	}
	return p.Setting + ": " + p.Text + ": it has " + orNone(p.Has)
}

// Settings says what is wrong with the settings of a check, in a target that has these
// variables.
func Settings(spec model.CheckSpec, variables []model.Variable) []SettingProblem {
	c, ok := lookup(spec.Name)
	if !ok {
		return nil // an unknown name is reported where names are checked
	}
	_, problems := c.settings(spec)
	var names []string
	for _, v := range variables {
		names = append(names, v.Name)
	}
	for _, k := range sortedKeys(spec.With) {
		if v := spec.With[k]; c.with[k].kind == "variable" && v != "" && !slices.Contains(names, v) {
			problems = append(problems, SettingProblem{k, fmt.Sprintf("the target has no variable %q", v), v, names})
		}
	}
	return problems
}

// judge runs the checker. If it panics, it could not decide, and the other checkers
// still judge the run. The record stays, so a corrected checker can judge it again.
func (c checker) judge(r *Record, s settings) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{unknown: fmt.Sprintf("internal error of netsplit: %v", p)}
		}
	}()
	return c.run(r, s)
}

func lookup(name string) (checker, bool) {
	for _, c := range registry() {
		if c.name == name {
			return c, true
		}
	}
	return checker{}, false
}

// registry returns the checkers sorted by name.
func registry() []checker {
	return []checker{
		copiesEqual(), double(), fatalLog(), gone(), singleLeader(), linearizable(), lostWrites(), notFinished(), operations(), processDied(),
		recovery(), resurrected(), script(), staleRead(), twoLeaders(), workloadHang(),
	}
}

// Judge gives the verdict on a run. It asks in this order: Can the run be judged at all
// (else unknown)? Did anything fail (fail)? Did the cut take place and drop packets, and
// did every message fault meet its message (else vacuous)? Is it proved that nothing
// leaked, and what became of those messages (else unknown)? Only then pass. A failure
// counts whether or not the cut dropped anything: what breaks without a partition is
// broken all the more.
func Judge(r Record) model.Verdict { return judge(r, lookup) }

func judge(r Record, lookup func(name string) (checker, bool)) model.Verdict {
	var v model.Verdict
	if len(r.Incomplete) > 0 {
		v.Value = model.VerdictUnknown
		v.Reason = notComplete(&r, alsoDied(&r))
		return v
	}
	if r.Target == nil {
		return model.Verdict{Value: model.VerdictUnknown, Reason: "the record has no target: nothing says what to check"}
	}
	excuseByDisk(&r)
	var unknown, idle, why []string
	judged := 0
	did := map[string]bool{} // checks of which at least one had something to judge
	for _, spec := range r.Target.Checks {
		c, ok := lookup(spec.Name)
		if !ok {
			unknown = append(unknown, fmt.Sprintf("no check is named %q (there are %s)", spec.Name, strings.Join(Names(), ", ")))
			continue
		}
		if len(r.Unread) > 0 && !c.certain {
			continue
		}
		s, problems := c.settings(spec)
		if len(problems) > 0 {
			for _, p := range problems {
				unknown = append(unknown, fmt.Sprintf("check %s: %s", spec.Name, p))
			}
			continue
		}
		o, late := c.look(&r, s)
		if late != nil {
			late.Check = spec.Name
			v.Late = append(v.Late, *late)
		}
		for _, l := range o.lines {
			if !slices.Contains(v.Lines, l) { // another check of that name has listed it
				v.Lines = append(v.Lines, l)
			}
		}
		for _, f := range o.failures {
			f.Check = spec.Name
			if f.Class == "" {
				f.Class = spec.Class
			}
			if f.Quote == "" {
				f.Quote = spec.Quote
			}
			// Two checks of a name that judge the same operations tell once, by the
			// one that excused least.
			i := slices.IndexFunc(v.Failures, func(g model.Failure) bool { return g.Check == f.Check && g.Signature == f.Signature })
			switch {
			case i < 0:
				v.Failures = append(v.Failures, f)
			case f.Amount > v.Failures[i].Amount:
				v.Failures[i] = f
			}
		}
		switch {
		case o.idle != "":
			idle = append(idle, spec.Name)
			if c.history {
				why = append(why, o.idle)
			}
		case c.history:
			judged++
			fallthrough
		default:
			did[spec.Name] = true
		}
		if o.unknown != "" {
			unknown = append(unknown, fmt.Sprintf("check %s could not decide: %s", spec.Name, o.unknown))
		}
	}
	if len(r.Unread) == 0 { // relations may ask for operations
		for _, c := range r.Relations {
			if c.Failure != nil {
				v.Failures = append(v.Failures, *c.Failure)
			}
			if c.Idle {
				idle = append(idle, c.Name)
			}
			if c.Unknown != "" {
				unknown = append(unknown, fmt.Sprintf("check %s could not decide: %s", c.Name, c.Unknown))
			}
		}
		if r.Unrelated != "" {
			unknown = append(unknown, r.Unrelated)
		}
	}
	if len(r.Unread) > 0 {
		var died []string
		if len(v.Failures) == 0 { // else it is said
			died = alsoDied(&r)
		}
		unknown = append(unknown, notComplete(&r, died))
	}
	if len(why) > 0 && judged == 0 {
		unknown = append(unknown, "the workload did nothing that a check judges: "+strings.Join(why, "; "))
	}
	if late := tooBusy(&r, &v); late != "" {
		unknown = append(unknown, late)
	}
	v.Excuses, v.Legal = excuses(r.at(1))
	nameKnown(&r, v.Failures)
	attribute(&r, v.Failures)
	slices.SortStableFunc(v.Failures, compareFailures)
	fault := r.Scenario.Cuts()
	if r.Scenario.Strategy == model.StrategyScripted {
		fault = r.CutReached // a script may as well only crash or pause
	}
	idleFault, unproved := faultsVerdict(&r)
	silent := slices.ContainsFunc(r.Scenario.Steps, func(st model.Step) bool { return st.Do.Silent() }) // which does something by itself
	switch {
	case len(v.Failures) > 0:
		v.Value, v.Reason = model.VerdictFail, failReason(v.Failures)
		for _, u := range unknown {
			v.Reason += "; " + u
		}
		if r.Proof != nil && r.Proof.Leaked > 0 {
			v.Reason += fmt.Sprintf("; the cut did not hold: %d packets leaked", r.Proof.Leaked)
		}
		for _, s := range []string{idleFault, unproved} {
			if s != "" {
				v.Reason += "; " + s
			}
		}
	case len(unknown) > 0:
		v.Value, v.Reason = model.VerdictUnknown, strings.Join(unknown, "; ")
	case (fault || r.Scenario.Strategy != model.StrategyScripted) && notBegun(&r) != "":
		v.Value, v.Reason = model.VerdictVacuous, notBegun(&r)
	case idleFault != "":
		v.Value, v.Reason = model.VerdictVacuous, idleFault
	case fault && r.Proof == nil:
		v.Value, v.Reason = model.VerdictUnknown, "the run was cut, and there is no proof of what the cut did"
	case idleCut(&r) != "":
		v.Value, v.Reason = model.VerdictVacuous, fmt.Sprintf("no packet wanted to cross cut %s", idleCut(&r))
	case fault && r.Proof.Wanted == 0 && !silent:
		v.Value, v.Reason = model.VerdictVacuous, "no packet wanted to cross the cut"
	case fault && !silent && r.Proof.Dropped == 0 && r.Proof.Leaked == 0 && r.Proof.ResetConns == 0:
		v.Value, v.Reason = model.VerdictVacuous, "the first packet that wanted to cross the cut healed it: nothing was dropped"
	case fault && r.Proof.Leaked > 0:
		v.Value, v.Reason = model.VerdictUnknown, fmt.Sprintf("%d of %d packets that wanted to cross the cut arrived all the same: the partition did not hold", r.Proof.Leaked, r.Proof.Wanted)
	case fault && !r.Proof.LeakKnown:
		v.Value, v.Reason = model.VerdictUnknown, "no receiving host could count what leaked through the cut: the partition is not proved"
	case unproved != "":
		v.Value, v.Reason = model.VerdictUnknown, unproved
	case fault && r.Proof.InForceAt > 0 && r.Proof.HealAt <= r.Proof.InForceAt:
		v.Value, v.Reason = model.VerdictPass, fmt.Sprintf("all checks hold; %d packets wanted to cross and the gate dropped %d; the cut was over before the switch confirmed it, so arrivals were not counted", r.Proof.Wanted, r.Proof.Dropped)
	case fault:
		v.Value, v.Reason = model.VerdictPass, "all checks hold; the cut held: "+held(*r.Proof)
		if did := nodeFaults(&r); did != "" {
			v.Reason += "; " + did
		}
	case nodeFaults(&r) != "":
		v.Value, v.Reason = model.VerdictPass, "all checks hold; "+nodeFaults(&r)
	case r.Scenario.Messages():
		v.Value, v.Reason = model.VerdictPass, "all checks hold"
	default:
		v.Value, v.Reason = model.VerdictPass, "all checks hold; no cut was asked for"
	}
	if v.Value == model.VerdictPass && r.Scenario.Messages() {
		v.Reason += "; " + faultsHeld(r.Faults)
	}
	if v.Value == model.VerdictPass && len(r.Target.Checks) == 0 && len(r.Relations) == 0 {
		v.Reason = strings.Replace(v.Reason, "all checks hold", "the target has no checks, so none failed", 1)
	}
	for _, l := range v.Late {
		v.Reason += "; " + l.Summary
	}
	idle = slices.DeleteFunc(idle, func(name string) bool { return did[name] })
	if v.Value == model.VerdictPass && len(idle) > 0 {
		v.Reason += fmt.Sprintf(" (nothing to judge for %s)", strings.Join(idle, ", "))
	}
	return v
}

// begun is a step of the scenario that began.
type begun struct {
	*model.Step
	went model.StepResult
}

// begun lists the steps that began, as the results do.
func (r *Record) begun() (out []begun) {
	for _, res := range r.Results {
		if res.By != "" && res.Step >= 1 && res.Step <= len(r.Scenario.Steps) {
			out = append(out, begun{&r.Scenario.Steps[res.Step-1], res})
		}
	}
	return out
}

// nodeFaults says what was done to nodes, and when; "" for nothing.
func nodeFaults(r *Record) string {
	var did []string
	for _, b := range r.begun() {
		if b.Do.Node != nil {
			did = append(did, fmt.Sprintf("%s at %s s", &b.Do, seconds(b.went.Began)))
		}
	}
	for _, f := range r.diskFaults() {
		did = append(did, fmt.Sprintf("%s at %s s", f, seconds(f.went.Began)))
	}
	return strings.Join(did, ", ")
}

// held says what became of the packets of a cut through which none leaked.
func held(p model.Proof) string {
	passed := ""
	switch n := p.Wanted - p.Dropped; {
	case n == 1:
		passed = ", 1 was held until the heal and then passed"
	case n > 1:
		passed = fmt.Sprintf(", %d passed after the heal", n)
	}
	return fmt.Sprintf("%d packets wanted to cross, %d were dropped%s, none leaked", p.Wanted, p.Dropped, passed)
}

// notBegun says which step of the scenario, message faults aside, did not begin, and why; ""
// if all did.
func notBegun(r *Record) string {
	cuts := 0
	for i := range r.Scenario.Steps {
		if r.Scenario.Steps[i].Do.Message == nil {
			cuts++
		}
	}
	for i := range r.Scenario.Steps {
		st := &r.Scenario.Steps[i]
		began := r.CutReached
		for _, res := range r.Results {
			if res.Step == i+1 {
				began = res.By != ""
			}
		}
		switch {
		case st.Do.Message != nil || began:
		case lacked(r, i+1) != "":
			return fmt.Sprintf("step %d (%s) could not begin: %s at its moment", i+1, st, lacked(r, i+1))
		case cuts > 1:
			return fmt.Sprintf("step %d (%s): %s", i+1, st, notReached(r, st))
		default:
			return notReached(r, st)
		}
	}
	return idleDisk(r)
}

// lacked says why a step could not begin though its moment had come; "" if it did not come.
func lacked(r *Record, step int) string {
	for _, res := range r.Results {
		if res.Step == step {
			return res.Lacked
		}
	}
	return ""
}

func notReached(r *Record, s *model.Step) string {
	at := s.When.State
	if s.When.File != nil {
		return notSeen
	}
	if m := s.When.Message; m != nil {
		if why := neverCame(r.Heard, &m.Match); why != "" {
			return why
		}
	}
	if at == nil || at.State == nil {
		if s.Do.Cut == nil {
			return "its moment did not come before the workload ended"
		}
		return "the moment to cut did not come before the workload ended"
	}
	like := ""
	if at.Nth > 0 && at.State.Numbers() {
		like = ", nor one that differs from it in its numbers only"
		if at.Nth > 1 {
			like = fmt.Sprintf(", nor %d that differ from it in their numbers only", at.Nth)
		}
	}
	if len(r.Scenario.Or) > 0 {
		like += ", nor the same with other nodes"
	}
	return fmt.Sprintf("the state %s of %s did not occur%s, so nothing was cut", at.State, &at.Invariant, like)
}

// failReason names the costliest failure and counts the rest.
func failReason(fs []model.Failure) string {
	s := fs[0].Summary
	if len(fs) > 1 {
		s += fmt.Sprintf("; and %s", model.Count(len(fs)-1, "more failure", "more failures"))
	}
	return s
}
