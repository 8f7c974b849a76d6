package wire

import (
	"fmt"
	"strings"
	"time"

	"netsplit/model"
)

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// each converts a list; the result is never nil.
func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func nonNil[A any](in []A) []A {
	if in == nil {
		return []A{}
	}
	return in
}

func name(n model.NodeID) string { return string(n) }

// Model converts what a user requested.
func (s CampaignSpec) Model() (model.CampaignSpec, error) {
	m := model.CampaignSpec{
		Target: s.Target, Replay: s.Replay, Strategy: model.Strategy(s.Strategy), Seed: s.Seed, Labs: s.Labs, Runs: s.Runs, Clean: s.Clean,
		Budget: time.Duration(s.Budget), Effect: model.Effect(s.Effect), Gate: model.Gate(s.Gate), Retries: s.Retries, Args: s.Args, Needs: s.Needs,
		MaxLost: -1, MaxWindow: -1, StopWhenSuspect: s.StopWhenSuspect, StopWhenBroken: s.StopWhenBroken, WithoutCut: s.WithoutCut,
	}
	if s.MaxLost != nil {
		m.MaxLost = *s.MaxLost
	}
	if s.MaxWindow != nil {
		m.MaxWindow = time.Duration(*s.MaxWindow)
	}
	if s.Shrink != nil {
		if m.Shrink = *s.Shrink; m.Shrink == 0 && m.Strategy == model.StrategySequences {
			m.Shrink = -1
		}
	}
	m.Depth = s.Depth
	for _, f := range s.Faults {
		m.Faults = append(m.Faults, model.PointFaultKind(f))
	}
	if f := s.Script; f != nil {
		m.Script = &model.ScriptFile{Name: f.Name, Text: f.Text}
	}
	if p := s.Policies; p != nil {
		m.Policies = &model.PolicyFile{Name: p.Name, Text: p.Text, Files: p.Files}
	}
	m.Prioritised, m.Only = s.Prioritised, s.Only
	for _, k := range s.Keys {
		m.Keys = append(m.Keys, model.PointKey(k))
	}
	var err error
	m.Scenario, err = s.Scenario.Model()
	return m, err
}

// FromCampaignSpec converts a spec for sending.
func FromCampaignSpec(m model.CampaignSpec) CampaignSpec {
	s := CampaignSpec{
		Target: m.Target, Replay: m.Replay, Strategy: string(m.Strategy), Seed: m.Seed, Labs: m.Labs, Runs: m.Runs, Clean: m.Clean,
		Budget: Span(m.Budget), Effect: string(m.Effect), Gate: string(m.Gate), Retries: m.Retries, Args: m.Args, Needs: m.Needs, Scenario: fromScenarioSpec(m.Scenario), StopWhenSuspect: m.StopWhenSuspect,
		StopWhenBroken: m.StopWhenBroken, WithoutCut: m.WithoutCut, Depth: m.Depth,
	}
	for _, f := range m.Faults {
		s.Faults = append(s.Faults, string(f))
	}
	if f := m.Script; f != nil {
		s.Script = &ScriptFile{Name: f.Name, Text: f.Text}
	}
	if p := m.Policies; p != nil {
		s.Policies = &PolicyFile{Name: p.Name, Text: p.Text, Files: p.Files}
	}
	s.Prioritised, s.Only = m.Prioritised, m.Only
	for _, k := range m.Keys {
		s.Keys = append(s.Keys, string(k))
	}
	if m.Shrink != 0 {
		n := max(m.Shrink, 0)
		s.Shrink = &n
	}
	if m.MaxLost >= 0 {
		s.MaxLost = &m.MaxLost
	}
	if m.MaxWindow >= 0 {
		w := Duration(m.MaxWindow)
		s.MaxWindow = &w
	}
	return s
}

// FromCampaign converts a campaign.
func FromCampaign(c model.Campaign) Campaign {
	out := Campaign{
		ID: c.ID, Schedule: c.Schedule, State: string(c.State), Reason: c.Reason, Reproduced: c.Reproduced, Spec: FromCampaignSpec(c.Spec), Created: c.Created.UTC(), Ended: when(c.Ended),
		Done: c.Done, Planned: c.Planned, Undecided: c.Undecided, Findings: c.Findings, Warnings: nonNil(c.Warnings), Running: nonNil(c.Running), Doing: c.Doing,
	}
	for _, x := range c.Shrunk {
		out.Shrunk = append(out.Shrunk, FromShrunk(x))
	}
	return out
}

// FromFailure converts a failure.
func FromFailure(f model.Failure) Failure {
	return Failure{Check: f.Check, Signature: f.Signature, Class: string(f.Class), Severity: string(f.Severity), Cause: f.Cause, Summary: f.Summary, Quote: f.Quote, Detail: f.Detail, Amount: f.Amount, Known: f.Known, KnownBy: f.KnownBy, BeforeCut: f.BeforeCut}
}

func fromExcuse(e model.Excuse) Excuse {
	return Excuse{F: e.F, Error: e.Error, Node: string(e.Node), Why: e.Why, Count: e.Count, First: Duration(e.First), Last: Duration(e.Last)}
}

func fromLate(l model.Late) Late {
	return Late{Check: l.Check, Summary: l.Summary, Detail: l.Detail, Count: l.Count, Missing: Duration(l.Missing), There: Duration(l.There)}
}

func fromExcusedLine(l model.ExcusedLine) ExcusedLine {
	return ExcusedLine{Host: string(l.Host), Process: l.Process, Line: l.Line, Why: l.Why, Count: l.Count, First: Duration(l.First), Last: Duration(l.Last)}
}

func fromProof(p *model.Proof) *Proof {
	if p == nil {
		return nil
	}
	return &Proof{
		Links: nonNil(p.Links), CutAt: Duration(p.CutAt), InForceAt: Duration(p.InForceAt),
		HealAt: Duration(p.HealAt), HealedAt: Duration(p.HealedAt), Wanted: p.Wanted, Dropped: p.Dropped,
		Leaked: p.Leaked, LeakKnown: p.LeakKnown, ResetConns: p.ResetConns,
		PerLink: each(p.PerLink, func(l model.LinkProof) LinkProof {
			return LinkProof{Link: l.Link, Wanted: l.Wanted, Dropped: l.Dropped, Leaked: l.Leaked}
		}),
	}
}

func fromScenario(s model.Scenario) Scenario {
	out := Scenario{ID: s.ID, Strategy: string(s.Strategy), Seed: s.Seed, Steps: each(s.Steps, fromStep), Substituted: s.Substituted, Why: s.Why}
	for _, r := range s.Or {
		names := map[string]string{}
		for n, m := range r {
			names[string(n)] = string(m)
		}
		out.Or = append(out.Or, names)
	}
	return out
}

func fromPartition(p model.Partition) Partition {
	out := Partition{Shape: string(p.Shape), Effect: string(p.Effect), Label: p.Label, Role: p.Role, Size: p.Size,
		Groups: each(p.Groups, func(g []model.NodeID) []string { return each(g, name) })}
	for _, t := range p.Only {
		out.Only = append(out.Only, Traffic{Proto: t.Proto, Port: int(t.Port), Opening: t.Opening, Messages: t.Messages})
	}
	return out
}

// FromRun converts a run.
func FromRun(r model.RunSummary) Run {
	out := Run{
		ID: r.Run, Campaign: r.Campaign, Target: r.Target, Lab: r.Lab, Tap: r.Tap, Gate: r.Gate, Version: r.Version, ReplayOf: r.ReplayOf,
		Started: r.Started.UTC(), Ended: when(r.Ended), Scenario: fromScenario(r.Scenario),
		Verdict: fromVerdict(r.Verdict),
		Proof:   fromProof(r.Proof), Reached: r.Result.Reached, HealClass: r.Result.HealClass, CutState: r.Result.CutState,
		Cost:     fromCost(r.Cost),
		Messages: r.Messages, ProbeCost: Duration(r.ProbeCost), Probes: r.Probes, Release: r.Release, Retransmits: r.Retransmits, CPUWait: r.CPUWait,
	}
	if out.Messages == nil {
		out.Messages = map[string]int{}
	}
	if len(r.Faults) > 0 {
		out.Faults = each(r.Faults, fromFaultProof)
	}
	for _, st := range r.Result.Steps {
		if st.Step >= 1 && st.Step <= len(r.Scenario.Steps) {
			out.Steps = append(out.Steps, fromStepResult(st, r.Scenario.Steps[st.Step-1].String()))
		}
	}
	if d := r.GateDelay; d != nil {
		out.GateDelay = &Delay{Count: d.Count, P50: Duration(d.P50), P99: Duration(d.P99), Max: Duration(d.Max)}
	}
	return out
}

func fromStepResult(s model.StepResult, text string) StepResult {
	return StepResult{Step: s.Step, Text: text, By: s.By, Began: Duration(s.Began), EndedBy: s.EndedBy, Ended: Duration(s.Ended), Slip: s.Slip, Failed: s.Failed, Roles: rolesOf(s.Roles), Lacked: s.Lacked}
}

// FromRunRow converts what a list says of a run.
func FromRunRow(r model.RunRow) RunRow {
	out := RunRow{
		ID: r.Run, Campaign: r.Campaign, Target: r.Target, Tap: r.Tap, ReplayOf: r.ReplayOf, Release: r.Release, Started: r.Started.UTC(), Ended: when(r.Ended),
		Scenario: RowScenario{ID: r.Scenario, Strategy: string(r.Strategy), Isolate: string(r.Isolate)},
		Verdict:  fromVerdict(r.Verdict), Reached: r.Reached, Cost: fromCost(r.Cost), ProbeCost: Duration(r.ProbeCost), Probes: r.Probes, CutShort: r.CutShort,
	}
	if p := r.Proof; p != nil {
		out.Proof = &RowProof{CutAt: Duration(p.CutAt), HealAt: Duration(p.HealAt), Wanted: p.Wanted, Dropped: p.Dropped, Leaked: p.Leaked, LeakKnown: p.LeakKnown}
	}
	return out
}

func fromVerdict(v model.Verdict) Verdict {
	out := Verdict{Value: string(v.Value), Reason: v.Reason, Failures: each(v.Failures, FromFailure), Legal: v.Legal}
	if len(v.Excuses) > 0 {
		out.Excuses = each(v.Excuses, fromExcuse)
	}
	if len(v.Lines) > 0 {
		out.Lines = each(v.Lines, fromExcusedLine)
	}
	if len(v.Late) > 0 {
		out.Late = each(v.Late, fromLate)
	}
	return out
}

func fromCost(c model.Cost) Cost {
	return Cost{Template: Duration(c.Template), Start: Duration(c.Start), Settle: Duration(c.Settle), Workload: Duration(c.Workload), Recover: Duration(c.Recover), Ours: Duration(c.Ours)}
}

// FromFinding converts a finding, or a row of a list of them.
func FromFinding(f model.Finding) Finding {
	return Finding{
		ID: f.ID, Campaign: f.Campaign, Target: f.Target, Class: string(f.Class), Severity: string(f.Severity), Cause: f.Cause, CauseID: f.CauseID, Failure: FromFailure(f.Failure), Run: f.Run,
		Runs: f.Runs, Seen: max(f.Seen, len(f.Runs)), FirstAfter: f.FirstAfter, Clean: f.Clean, Replays: f.Replays, Reproduced: f.Reproduced,
		Replay: "netsplit replay " + f.Run + " -n 10",
	}
}

// FromInvariant converts an invariant.
func FromInvariant(t model.TargetInvariant) Invariant {
	i := t.Invariant
	out := Invariant{
		ID: i.ID, Target: t.Target, Kind: i.Kind, Relation: i.Relation, A: i.A, B: i.B, Text: i.String(),
		Status: string(i.Status), Support: i.Support, Changes: i.Changes, Distinct: i.Distinct, Runs: i.Runs, Chance: i.Chance, Like: i.Like,
	}
	if e := i.Example; e != nil {
		out.Example = &Example{Run: e.Run, Message: e.Message, Type: e.Point.Type, From: string(e.Point.From), To: string(e.Point.To)}
		for _, v := range e.Values {
			switch v.Var {
			case i.A:
				out.Example.State.A = v.Value
			case i.B:
				out.Example.State.B = v.Value
			}
		}
	}
	return out
}

// FromSwitch converts a switch.
func FromSwitch(s model.SwitchStatus) Switch {
	return Switch{
		Datapath: s.Datapath.String(), Connected: s.Connected, Since: when(s.Since), Address: s.Address,
		Role: s.Role, Reason: s.Reason, Hardware: s.Hardware, Software: s.Software, Cuts: s.Cuts,
		Ports: nonNil(s.Ports),
		Flows: each(s.Flows, func(f model.FlowStatus) Flow {
			return Flow{Table: f.Table, Priority: f.Priority, Cookie: fmt.Sprintf("0x%x", f.Cookie), Match: f.Match, Actions: f.Actions,
				Packets: f.Packets, Bytes: f.Bytes, Age: Duration(f.Age), HardTimeout: Duration(f.HardTimeout), Ours: f.Ours}
		}),
	}
}

// FromHost converts a host; without a switch its datapath is "".
func FromHost(h model.TestbedHost) Host {
	out := Host{Name: string(h.Name), IP: h.IP.String(), MAC: h.MAC, Port: h.Port.Number, PortName: h.Port.Name}
	if h.Datapath != 0 {
		out.Datapath = h.Datapath.String()
	}
	return out
}

// Model converts what a user requested.
func (s PartitionSpec) Model() model.PartitionSpec {
	p := model.Partition{
		Shape: model.Shape(s.Shape), Effect: model.Effect(s.Effect), Label: s.Label, Role: s.Role, Size: s.Size,
		Groups: each(s.Groups, func(g []string) []model.NodeID {
			return each(g, func(n string) model.NodeID { return model.NodeID(n) })
		}),
	}
	for _, t := range s.Only {
		p.Only = append(p.Only, model.Traffic{Proto: t.Proto, Port: uint16(t.Port), Opening: t.Opening, Messages: t.Messages})
	}
	return model.PartitionSpec{Name: s.Name, For: time.Duration(s.For), Partition: p}
}

// FromPartition converts a manual partition.
func FromPartition(p model.PartitionStatus) PartitionStatus {
	return PartitionStatus{
		PartitionSpec: PartitionSpec{Name: p.Name, Partition: fromPartition(p.Partition), For: Span(p.For)},
		State:         string(p.State), Reason: p.Reason, Created: p.Created.UTC(),
		Installed: when(p.Installed), InForce: when(p.InForce), RenewedUntil: when(p.RenewedUntil), Healed: when(p.Healed),
		Links: nonNil(p.Partition.Links()), Wanted: p.Wanted, Probes: p.Probes, Dropped: p.Dropped, Leaked: p.Leaked, LeakKnown: p.LeakKnown,
		CutBy: p.CutBy, Resets: p.Resets, Lapsed: p.Lapsed,
		Lapses: each(p.Lapses, func(l model.Lapse) Lapse { return Lapse{From: l.From.UTC(), To: when(l.To), Why: l.Why} }),
	}
}

// FromAnnotation converts an annotation; one that lasts ends at to.
func FromAnnotation(a model.Annotation, to time.Time) Annotation {
	end := a.To
	if end.IsZero() {
		end = to
	}
	return Annotation{Time: a.From.UnixMilli(), TimeEnd: end.UnixMilli(), Title: a.Title, Text: a.Text, Tags: strings.Join(a.Tags, ",")}
}

// All converts a list with the given converter; the result is never nil.
func All[A, B any](in []A, f func(A) B) []B { return each(in, f) }

// rolesOf are hosts by the roles that they stood for.
func rolesOf(all []model.RoleHolders) map[string]string {
	var out map[string]string
	for _, r := range all {
		if len(r.Have) == 0 { // no run of netsplit records that
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[r.Role] = string(r.Have[0])
	}
	return out
}
