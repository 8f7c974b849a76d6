package api_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/flowrules"
	"netsplit/inference/store"
	"netsplit/internal/onecut"
	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/testbed/doctor"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC)

// fakeService keeps what it is told in an in-memory store.
type fakeService struct {
	*store.Store
	mu      sync.Mutex
	n       int
	events  []model.ServiceEvent
	fail    error // every call fails with it
	broken  bool  // CreateCampaign panics
	runPath string
	targets []model.KnownTarget
	// delay is how many looks at a partition it takes until it is settled.
	delay  int
	pruned model.Retention
	note   string
	resets atomic.Int64
	ended  chan struct{} // gets a value when an event stream has ended
}

func newFake(t testing.TB) *fakeService {
	f := &fakeService{Store: storetest.New(t), ended: make(chan struct{}, 10)}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.PutCampaign(model.Campaign{ID: "c-1", State: model.CampaignDone, Created: t0, Ended: t0.Add(time.Minute), Done: 3, Planned: 3,
		Spec: model.CampaignSpec{Target: "gossip", Strategy: model.StrategyCoFI, Labs: 1, Effect: model.Drop, Budget: 90 * time.Second, MaxLost: -1, MaxWindow: -1},
		Shrunk: []model.Shrunk{{Run: "c-1-r0001", All: model.Tally{Tries: 3, Failed: 2}, Keep: []int{1}, Steps: []model.StepNeed{{Step: 1, Text: "isolate n1", Needed: model.NeededYes}},
			Smallest: &model.Scenario{Steps: []model.Step{{Do: model.Fault{Cut: &model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}, Isolate: "n1"}}}}}}}))
	for i := range 3 {
		r := model.RunSummary{Ended: t0.Add(time.Minute), Verdict: model.Verdict{Value: model.VerdictFail, Reason: "lost 3", Failures: []model.Failure{{Check: "lost-acknowledged-writes", Class: model.Broken}}},
			Proof: &model.Proof{Links: []model.Link{{Src: "n1", Dst: "n2"}}, CutAt: 1500 * time.Millisecond, Wanted: 9, Dropped: 9, LeakKnown: true},
			Cost:  model.Cost{Workload: 2500 * time.Millisecond}, GateDelay: &model.DelayStats{Count: 5, P50: 90 * time.Microsecond}}
		r.Campaign, r.Run, r.Target, r.Started = "c-1", "c-1-r000"+strconv.Itoa(i), "gossip", t0.Add(time.Duration(i)*time.Second)
		inv := model.Invariant{ID: "inv-1", Relation: "==", A: model.VarRef{Name: "role", Node: "n1"}, B: model.VarRef{Name: "role", Node: "n2"}}
		r.Scenario = onecut.Scenario{ID: "s1", Strategy: model.StrategyCoFI, Isolate: "n1", Partition: model.Isolate("n1", []model.NodeID{"n1", "n2"}, model.Drop),
			Invariant: &inv, State: &model.State{A: "up", B: "down"}, MaxCut: 10 * time.Second}.Model()
		must(f.PutRun(r))
	}
	must(f.PutFinding(model.Finding{ID: "f-1", Campaign: "c-1", Target: "gossip", Class: model.Broken, Run: "c-1-r0001", Runs: []string{"c-1-r0001"}, FirstAfter: 2,
		Failure: model.Failure{Check: "lost-acknowledged-writes", Signature: "lost", Summary: "3 acknowledged writes are missing"}}))
	must(f.PutInvariants("gossip", []model.Invariant{{ID: "inv-1", Kind: "role", Relation: "==", Support: 12, Chance: 1e-9,
		A: model.VarRef{Name: "status", About: "n3", Node: "n1"}, B: model.VarRef{Name: "status", About: "n3", Node: "n2"}}}))
	f.emit("campaign", "c-1", "done")
	return f
}

func (f *fakeService) emit(kind, id, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := uint64(len(f.events) + 1)
	f.events = append(f.events, model.ServiceEvent{Num: n, At: t0.Add(time.Duration(n) * time.Second), Kind: kind, ID: id, State: state, Text: kind + " " + id + " is " + state})
}

func (f *fakeService) CreateCampaign(_ context.Context, spec model.CampaignSpec) (model.Campaign, error) {
	if f.fail != nil {
		return model.Campaign{}, f.fail
	}
	if f.broken {
		_ = spec.Args["none"][f.n]
	}
	f.mu.Lock()
	f.n++
	c := model.Campaign{ID: fmt.Sprintf("c-new-%d", f.n), Spec: spec, State: model.CampaignQueued, Created: t0.Add(time.Duration(f.n) * time.Hour)}
	f.mu.Unlock()
	f.emit("campaign", c.ID, "queued")
	return c, f.PutCampaign(c)
}

func (f *fakeService) Campaign(_ context.Context, id string) (model.Campaign, error) {
	if f.fail != nil {
		return model.Campaign{}, f.fail
	}
	return f.GetCampaign(id)
}

func (f *fakeService) Campaigns(_ context.Context, of model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	return f.ListCampaigns(of, limit, cursor)
}

func (f *fakeService) CancelCampaign(ctx context.Context, id string) (model.Campaign, error) {
	c, err := f.Campaign(ctx, id)
	if err == nil && c.State == model.CampaignQueued {
		c.State, c.Reason, c.Ended = model.CampaignCancelled, "asked to", t0.Add(2*time.Minute)
		err = f.PutCampaign(c)
	}
	return c, err
}

func (f *fakeService) Compare(ctx context.Context, id, before string) (model.Comparison, error) {
	if _, err := f.Campaign(ctx, id); err != nil {
		return model.Comparison{}, err
	}
	if before == "" {
		return model.Comparison{}, fmt.Errorf("%w: no earlier campaign", model.ErrNotFound)
	}
	one, _, err := f.ListFindings("", 1, "")
	return model.Comparison{Campaign: model.Compared{ID: id, Judged: 3}, Before: model.Compared{ID: before}, New: one}, err
}

func (f *fakeService) Prune(_ context.Context, r model.Retention) (model.Pruned, error) {
	if r.None() {
		return model.Pruned{}, fmt.Errorf("%w: give an age, a size or both", model.ErrInvalid)
	}
	f.pruned = r
	return model.Pruned{Runs: 2, Bytes: 300, Left: 500, Kept: 1}, f.fail
}

func (f *fakeService) Backup(context.Context) (*os.File, error) {
	return os.Open(os.DevNull)
}

func (f *fakeService) PauseCampaign(ctx context.Context, id string) (model.Campaign, error) {
	c, err := f.Campaign(ctx, id)
	switch {
	case err != nil:
		return c, err
	case c.State == model.CampaignQueued:
		c.State = model.CampaignPaused
	case c.State != model.CampaignPaused:
		return c, fmt.Errorf("%w: it is %s", model.ErrConflict, c.State)
	}
	return c, f.PutCampaign(c)
}

func (f *fakeService) ResumeCampaign(ctx context.Context, id string) (model.Campaign, error) {
	c, err := f.Campaign(ctx, id)
	switch {
	case err != nil:
		return c, err
	case c.State == model.CampaignCancelled:
		return c, fmt.Errorf("%w: it is %s", model.ErrConflict, c.State)
	}
	c.State = model.CampaignQueued
	return c, f.PutCampaign(c)
}

func (f *fakeService) PutSchedule(_ context.Context, c model.Schedule) (model.Schedule, bool, error) {
	if c.At.IsZero() == (c.Cron == "") {
		return c, false, fmt.Errorf("%w: a schedule needs a time or a cron expression", model.ErrInvalid)
	}
	_, err := f.GetSchedule(c.Name)
	c.Created, c.Next = t0, t0.Add(time.Hour)
	return c, err != nil, f.Store.PutSchedule(c)
}

func (f *fakeService) Schedule(_ context.Context, name string) (model.Schedule, error) {
	return f.GetSchedule(name)
}

func (f *fakeService) Schedules(context.Context) ([]model.Schedule, error) {
	return f.ListSchedules()
}

func (f *fakeService) DeleteSchedule(_ context.Context, name string) error {
	return f.Store.DeleteSchedule(name)
}

func (f *fakeService) Runs(_ context.Context, of model.RunFilter, limit int, cursor string) ([]model.RunRow, string, error) {
	if of.Campaign != "" {
		if _, err := f.GetCampaign(of.Campaign); err != nil {
			return nil, "", err
		}
	}
	return f.ListRuns(of, limit, cursor)
}

func (f *fakeService) Run(_ context.Context, id string) (model.RunSummary, error) {
	return f.GetRun(id)
}

func (f *fakeService) JudgeRun(_ context.Context, id string) (model.RunSummary, error) {
	if f.fail != nil {
		return model.RunSummary{}, f.fail
	}
	return f.GetRun(id)
}

func (f *fakeService) RunFile(_ context.Context, id, name string) (*os.File, error) {
	if _, err := f.GetRun(id); err != nil {
		return nil, err
	}
	file, err := os.Open(f.runPath + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("%w: run %s left no %s", model.ErrNotFound, id, name)
	}
	return file, nil
}

func (f *fakeService) CampaignReport(_ context.Context, id string) (*os.File, error) {
	if _, err := f.GetCampaign(id); err != nil {
		return nil, err
	}
	file, err := os.Open(f.runPath + "/" + id + ".html")
	if err != nil {
		return nil, fmt.Errorf("%w: campaign %s has no report yet", model.ErrNotFound, id)
	}
	return file, nil
}

func (f *fakeService) RunLogs(_ context.Context, id string) ([]model.LogFile, error) {
	_, err := f.GetRun(id)
	return []model.LogFile{{Name: "n1-redis.log", Bytes: 12}}, err
}

func (f *fakeService) RunLog(ctx context.Context, id, name string) (*os.File, error) {
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%w: %q is no name of a log file", model.ErrInvalid, name)
	}
	return f.RunFile(ctx, id, name)
}

func (f *fakeService) ExportRun(ctx context.Context, id string, format model.ExportFormat) (*os.File, error) {
	if _, err := f.GetRun(id); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp("", "")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(out.Name()); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(out, "%s of %s", format, id); err != nil {
		return nil, err
	}
	_, err = out.Seek(0, io.SeekStart)
	return out, err
}

func (f *fakeService) QueryRun(_ context.Context, id, sql string, rows int) (model.QueryResult, error) {
	if _, err := f.GetRun(id); err != nil {
		return model.QueryResult{}, err
	}
	if strings.Contains(sql, "nosuch") {
		return model.QueryResult{}, fmt.Errorf("%w: line 1 of the query: no such table: nosuch", model.ErrInvalid)
	}
	return model.QueryResult{Columns: []string{"sql", "limit"}, Rows: [][]any{{sql, int64(rows)}, {nil, 0.5}}, Truncated: true}, nil
}

func (f *fakeService) Scripts(context.Context) ([]model.KnownScript, error) {
	return []model.KnownScript{{Name: "gossip/split", Title: "two sides", Target: "gossip", Text: "name: split\n"}}, nil
}

func (f *fakeService) Targets(context.Context) ([]model.KnownTarget, error) {
	return f.targets, nil
}

func (f *fakeService) Target(_ context.Context, ref string) (*model.Target, error) {
	if ref != "gossip" && ref != "gossip@1.1" {
		return nil, fmt.Errorf("%w: no target %s", model.ErrNotFound, ref)
	}
	return &model.Target{Name: "gossip", Title: "Gossip <three> nodes", Release: "1.1", Nodes: []model.NodeID{"n1", "n2"}, Clients: []model.NodeID{"c1"},
		Software: &model.Software{Versions: []string{"1.0", "1.1"}}, Args: map[string]model.TargetArg{"rate": {Default: "70", Help: "writes per second"}},
		Workloads: []model.Workload{{}}}, f.fail
}

// LiveState: c-live-r0001 is under way and has more events with each look.
func (f *fakeService) LiveState(_ context.Context, run string, after uint64) (model.LiveState, error) {
	if run != "c-live-r0001" {
		return model.LiveState{}, fmt.Errorf("%w: run %s has ended", model.ErrConflict, run)
	}
	l := model.LiveState{Campaign: "c-live", Run: run, Target: "gossip", Phase: model.DoingWorkload, At: time.Duration(after+10) * time.Second,
		Nodes: []model.NodeID{"n1", "n2"}, Clients: []model.NodeID{"c1"}, Last: after + 4,
		Cuts: []model.LiveCut{{Name: "step 1", InForce: true, Partition: model.Partition{Shape: model.Complete, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Effect: model.Drop}}}}
	l.Steps = []model.LiveStep{
		{StepResult: model.StepResult{Step: 1, By: model.ReasonMessage, Began: 4 * time.Second}, Text: "isolate n1; when <b>JOIN</b> comes"},
		{StepResult: model.StepResult{Step: 2}, Text: "crash n2; when 20s have passed"},
		{StepResult: model.StepResult{Step: 3, Lacked: "leader was nobody"}, Text: "pause leader"},
		{StepResult: model.StepResult{Step: 4, By: model.ReasonTime, Began: time.Second, EndedBy: model.ReasonTime, Ended: 3 * time.Second}, Text: "cut n1 | n2"},
	}
	for i, e := range []model.LiveEvent{
		{Kind: model.LiveMessage, From: "n1", To: "n2", Type: "text <b>JOIN</b>", Bytes: 12, Action: model.Pass},
		{Kind: model.LiveCutDone, Name: "step 1", Text: "cut n1 | n2"},
		{Kind: model.LiveMessage, From: "n2", To: "n1", Type: "text PING", Bytes: 4, Action: model.DropPacket},
		{Kind: model.LiveServer, Host: "n2", Text: "kill server"},
	} {
		e.Num, e.At = after+uint64(i)+1, l.At-time.Duration(4-i)*time.Second
		l.Events = append(l.Events, e)
	}
	return l, f.fail
}

func (f *fakeService) UploadTarget(_ context.Context, archive []byte) (model.KnownTarget, error) {
	t := model.KnownTarget{Name: fmt.Sprintf("gossip:%012d", len(archive)), Uploaded: true, Newest: true}
	f.targets = append(f.targets, t)
	return t, f.fail
}

func (f *fakeService) DeleteTarget(_ context.Context, ref string) error {
	i := slices.IndexFunc(f.targets, func(t model.KnownTarget) bool { return t.Name == ref })
	if i < 0 {
		return fmt.Errorf("%w: target %s", model.ErrNotFound, ref)
	}
	f.targets = slices.Delete(f.targets, i, i+1)
	return f.fail
}

func (f *fakeService) FindingHistories(_ context.Context, target string) ([]model.FindingHistory, error) {
	var out []model.FindingHistory
	for i, st := range []model.FindingState{model.FindingNew, model.FindingBack, model.FindingGone} {
		h := model.FindingHistory{ID: fmt.Sprintf("h-%d", i), Target: "gossip", Check: "lost", State: st, Campaigns: []string{"c-1"}, First: t0, Last: t0}
		h.Note = model.FindingNote{Text: f.note, At: t0}
		h.Newest = model.Finding{ID: fmt.Sprintf("f-1%d", i), Run: "c-1-r0001", Failure: model.Failure{Check: "lost", Summary: "3 acknowledged writes are missing"}}
		out = append(out, h)
	}
	return out, f.fail
}

func (f *fakeService) NoteFinding(ctx context.Context, history, text string) (model.FindingHistory, error) {
	all, err := f.FindingHistories(ctx, "")
	i := slices.IndexFunc(all, func(h model.FindingHistory) bool { return h.ID == history })
	if i < 0 {
		return model.FindingHistory{}, fmt.Errorf("%w: %s", model.ErrNotFound, history)
	}
	f.note, all[i].Note.Text = text, text
	return all[i], err
}

func (f *fakeService) Points(_ context.Context, campaign string, q model.PointsQuery) (model.FaultPoints, error) {
	if _, err := f.GetCampaign(campaign); err != nil {
		return model.FaultPoints{}, err
	}
	p := model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "gossip", Nth: 1}
	out := model.FaultPoints{Target: "gossip", Runs: 3, Faults: []model.FaultPoint{{ID: "f-1", PointFault: model.PointFault{Point: p, Kind: model.PointCrash, Place: model.PlaceBefore}, Runs: 3}}}
	if q.Policies != nil {
		out.Faults[0].Pruned, out.Faults[0].Why = q.Policies.Name, "it says so"
	}
	return out, nil
}

func (f *fakeService) MinedPairs(_ context.Context, campaign, about string) (model.MinedPairs, error) {
	if _, err := f.GetCampaign(campaign); err != nil {
		return model.MinedPairs{}, err
	}
	ref := func(node model.NodeID) model.VarRef { return model.VarRef{Name: "role", Node: node} }
	return model.MinedPairs{CleanRuns: 3, Kept: 1, Points: 4, Rejected: 1, Pairs: []model.MinedPair{{A: ref("n1"), B: ref("n2"), Kept: model.PairKeptWeak, Why: about}}}, nil
}

func (f *fakeService) Account(_ context.Context, campaign string) (model.Account, error) {
	if _, err := f.GetCampaign(campaign); err != nil {
		return model.Account{}, err
	}
	return model.Account{Why: "done", CleanRuns: 3, FaultRuns: 20, Pairs: []model.PairAccount{{Invariant: "role@n1 == role@n2", State: model.State{A: "up", B: "down"}, Node: "n1", Runs: 2, Fate: "explored"}},
		Levels: []model.LevelAccount{{Depth: 1, Candidates: 9, Kept: 3, Run: 3, By: map[string]int{"prioritised": 6}, Sequences: []model.SequenceAccount{{IDs: model.Sequence{"f-1"}, Faults: []string{"crash n1"}, Fate: "passed"}}}},
		Faults: []model.FaultAccount{{ID: "f-1", Fault: "crash n1", Asked: 2, Occurred: 1}}}, nil
}

func (f *fakeService) PartitionMap(_ context.Context, campaign string) (model.PartitionMap, error) {
	if _, err := f.GetCampaign(campaign); err != nil {
		return model.PartitionMap{}, err
	}
	return model.PartitionMap{Cells: []model.MapCell{
		{Type: "gossip", From: "n1", To: "n2", Runs: 3, Outcomes: []model.MapOutcome{{Kind: model.MetCut, First: "c-1-r0002", Failed: 1, Passed: 1}}},
		{Type: "gossip", From: "n2", To: "n1", Runs: 3},
	}}, nil
}

func (f *fakeService) Causes(_ context.Context, campaign string) ([]model.Cause, error) {
	c, err := f.GetCampaign(campaign)
	if err != nil {
		return nil, err
	}
	var out []model.Cause
	for i := range 3 {
		out = append(out, model.Cause{ID: fmt.Sprintf("cause-%d", i), Campaign: campaign, Rule: "gone: gone", Fault: "crash", Runs: []string{"c-1-r0001"}, Seen: 1, Run: "c-1-r0001", Steps: []string{"crash n1"}, Shrunk: &c.Shrunk[0]})
	}
	return out, nil
}

func (f *fakeService) Findings(_ context.Context, campaign string, limit int, cursor string) ([]model.Finding, string, error) {
	return f.ListFindings(campaign, limit, cursor)
}

func (f *fakeService) Finding(_ context.Context, id string) (model.Finding, error) {
	return f.GetFinding(id)
}

func (f *fakeService) Invariants(_ context.Context, target string) ([]model.TargetInvariant, error) {
	return f.ListInvariants(target)
}

func (f *fakeService) PinInvariant(_ context.Context, target, text string) (model.TargetInvariant, error) {
	inv, _, err := model.ParseInvariant(text)
	if err != nil {
		return model.TargetInvariant{}, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return f.Store.PinInvariant(target, inv)
}

func (f *fakeService) Invariant(_ context.Context, target, id string) (model.TargetInvariant, error) {
	return f.GetInvariant(target, id)
}

func (f *fakeService) SetInvariant(_ context.Context, target, id string, s model.InvariantStatus) (model.TargetInvariant, error) {
	return f.SetInvariantStatus(target, id, s)
}

func (f *fakeService) Diagnose(context.Context) (model.Diagnosis, error) {
	if f.fail != nil {
		return model.Diagnosis{}, f.fail
	}
	d := model.Diagnosis{Testbed: "rack7", Checks: []model.DiagnosisCheck{{About: "switch 1", Name: "meters", Level: model.CheckWarn, Found: "none", Means: "cuts by rules", Affects: []model.Ability{model.AbilityCut}}}}
	doctor.Conclude(&d, map[model.Ability]string{model.AbilityPort: "no gate port"})
	return d, nil
}

func (f *fakeService) Switches(_ context.Context, whole bool) ([]model.SwitchStatus, error) {
	if !whole {
		return []model.SwitchStatus{{Datapath: 0xabc, Connected: true, Since: t0, Role: "slave", Reason: "another controller is <b>master</b>"}, {Datapath: 0xabd, Reason: "it has not connected"}}, f.fail
	}
	return []model.SwitchStatus{{Datapath: 0xabc, Connected: true, Since: t0, Ports: []model.PortStatus{{Number: 1, Name: "p1", Up: true, Host: "n1"}},
		Flows: []model.FlowStatus{{Priority: 10, Cookie: 0x6e73, Match: "in_port=1", Actions: "output:2", Age: 1500 * time.Millisecond, Ours: true}}}, {Datapath: 0xabd}}, f.fail
}

var hosts = []model.NodeID{"n1", "n2", "n3"}

func (f *fakeService) Runners(context.Context) ([]model.Runner, error) {
	return []model.Runner{{Name: "rack2", Instance: "i1", State: model.RunnerUnfit, Reason: "it has no redis-server", Has: []string{"lab"}, Seen: t0}}, nil
}

func (f *fakeService) Hosts(context.Context) ([]model.TestbedHost, error) {
	return []model.TestbedHost{{Name: "n1", Datapath: 0xabc, Port: model.Port{Number: 1}, IP: netip.MustParseAddr("10.0.0.1"), MAC: "02:00:00:00:00:01"}}, f.fail
}

func (f *fakeService) EnsurePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	if p, err := f.Partition(ctx, spec.Name); err == nil && !p.Ended() {
		if p.Partition.Shape != spec.Partition.Shape {
			return p, fmt.Errorf("%w: partition %s is another one", model.ErrConflict, spec.Name)
		}
		return p, nil
	}
	return f.CreatePartition(ctx, spec)
}

func (f *fakeService) CreatePartition(_ context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	if f.fail != nil {
		return model.PartitionStatus{}, f.fail
	}
	p, err := flowrules.Resolve(spec.Partition, flowrules.Where{Hosts: hosts})
	if err != nil {
		return model.PartitionStatus{}, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	spec.Partition = p
	f.mu.Lock()
	f.n++
	if spec.Name == "" {
		spec.Name = fmt.Sprintf("p-%d", f.n)
	}
	f.mu.Unlock()
	if old, err := f.GetPartition(spec.Name); err == nil && old.State != model.PartitionHealed {
		return old, fmt.Errorf("partition %q %w: it is %s: heal it first or choose another name", spec.Name, model.ErrConflict, old.State)
	}
	st := model.PartitionStatus{PartitionSpec: spec, State: model.PartitionRequested, Created: t0, Installed: t0.Add(time.Millisecond)}
	return st, f.PutPartition(st)
}

func (f *fakeService) Partition(_ context.Context, name string) (model.PartitionStatus, error) {
	p, err := f.GetPartition(name)
	if err != nil || f.fail != nil {
		return p, err
	}
	f.mu.Lock()
	f.delay--
	settle := f.delay < 0
	f.mu.Unlock()
	if settle {
		switch p.State {
		case model.PartitionRequested:
			p.State, p.InForce = model.PartitionInForce, t0.Add(time.Second)
		case model.PartitionHealing:
			p.State, p.Healed = model.PartitionHealed, t0.Add(2*time.Second)
		}
		err = f.PutPartition(p)
	}
	return p, err
}

func (f *fakeService) Partitions(_ context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error) {
	return f.ListPartitions(limit, cursor)
}

func (f *fakeService) DeletePartition(_ context.Context, name string) (model.PartitionStatus, error) {
	p, err := f.GetPartition(name)
	if err == nil && p.State != model.PartitionHealed {
		p.State = model.PartitionHealing
		err = f.PutPartition(p)
	}
	return p, err
}

func (f *fakeService) Reset(context.Context) ([]string, error) {
	f.resets.Add(1)
	var names []string
	list, _, err := f.ListPartitions(0, "")
	for _, p := range list {
		if p.State != model.PartitionHealed {
			names = append(names, p.Name)
			p.State = model.PartitionHealed
			if err := f.PutPartition(p); err != nil {
				return nil, err
			}
		}
	}
	return names, err
}

func (f *fakeService) Health(context.Context) model.Health {
	if f.fail != nil {
		return model.Health{Checks: []model.HealthCheck{{Name: "switch", Detail: f.fail.Error()}}}
	}
	return model.Health{OK: true, Checks: []model.HealthCheck{{Name: "store", OK: true, Detail: "in memory"}}}
}

func (f *fakeService) Annotations(_ context.Context, from, to time.Time, limit int) ([]model.Annotation, bool, error) {
	if limit < 2 {
		return []model.Annotation{{From: to.Add(-time.Second), Title: "cut n2"}}, true, f.fail
	}
	return []model.Annotation{{From: from.Add(time.Second), To: from.Add(2 * time.Second), Title: "cut n1", Text: "state reached", Tags: []string{"cut", "gossip"}},
		{From: to.Add(-time.Second), Title: "cut n2"}}, false, f.fail
}

func (f *fakeService) Events(ctx context.Context, after uint64) (<-chan model.ServiceEvent, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	ch := make(chan model.ServiceEvent)
	if after == model.EventsFromNow {
		f.mu.Lock()
		after = uint64(len(f.events))
		f.mu.Unlock()
	}
	go func() {
		defer func() { close(ch); f.ended <- struct{}{} }()
		for {
			f.mu.Lock()
			i := slices.IndexFunc(f.events, func(e model.ServiceEvent) bool { return e.Num > after })
			var e model.ServiceEvent
			if i >= 0 {
				e = f.events[i]
			}
			f.mu.Unlock()
			if i < 0 {
				select {
				case <-ctx.Done():
					return
				case <-time.After(5 * time.Millisecond):
				}
				continue
			}
			select {
			case <-ctx.Done():
				return
			case ch <- e:
				after = e.Num
			}
		}
	}()
	return ch, nil
}
