package judge

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"netsplit/explorer/check"
	"netsplit/explorer/partitionmap"
	"netsplit/explorer/report"
	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Dir judges a run's record, offline and as often as one likes, and
// writes its summary, its part of the partition map, its profile and its report. replay is the command that repeats it. A
// record that makes no sense is an error, whatever it does to the judge: others
// go on.
func Dir(dir, replay string) (sum model.RunSummary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the record in %s cannot be judged: %v at %s; if nobody changed it, this is a bug of netsplit", dir, p, caller())
		}
	}()
	f, err := readRun(dir)
	if err != nil {
		return model.RunSummary{}, err
	}
	rec := f.checkRecord()
	if rec.Crossed, err = f.crossed(filepath.Join(dir, rundir.PacketsFile), &rec); err != nil {
		return model.RunSummary{}, err
	}
	f.relations(dir, &rec)
	sum = f.summary(check.Judge(rec))
	if f.meta.Scenario.Strategy == model.StrategyScripted {
		replay = f.meta.Scenario.Repeat
	}
	if err := rundir.WriteJSON(filepath.Join(dir, rundir.SummaryFile), sum); err != nil {
		return sum, err
	}
	if err := rundir.WriteJSON(filepath.Join(dir, rundir.MapFile), partitionmap.Of(sum.Scenario, f.events, f.decisions)); err != nil {
		return sum, err
	}
	if err := rundir.WriteJSON(filepath.Join(dir, rundir.ProfileFile), sequence.Recorded(f.events, f.decisions, f.pointOptions())); err != nil {
		return sum, err
	}
	return sum, writePage(dir, f, report.Input{Summary: sum, ReplayCommand: replay})
}

// caller is the place in this program where it panicked.
func caller() string {
	pc := make([]uintptr, 20)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "netsplit/") || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}

func (f *runFiles) checkRecord() check.Record {
	ev := &f.evidence
	rec := check.Record{
		Cuts: ev.Cuts, Results: ev.Result.Steps,
		Target: &f.target, Scenario: f.meta.Scenario, CutReached: ev.Result.Reached, Proof: ev.Proof,
		Faults: ev.Faults, WorkloadHung: ev.Hung, Incomplete: slices.Concat(ev.Incomplete, f.torn), Unread: ev.Unread,
		Bounds: ev.Bounds, Recovery: ev.Recovery, Looks: ev.Looks, Exits: ev.Exits, CPUWait: ev.CPUWait, History: f.history, LogLines: f.logLines,
	}
	for _, e := range f.events {
		switch e.Kind {
		case model.EventWorkload:
			rec.WorkloadStart = e.At
		case model.EventStop:
			rec.WorkloadEnd = e.At
		case model.EventStep:
			rec.Steps = append(rec.Steps, *e.Step)
		case model.EventNode:
			rec.Actions = append(rec.Actions, check.NodeAction{At: e.At, NodeAction: *e.Node})
		case model.EventObserve:
			rec.Observations = append(rec.Observations, *e.Observation)
		}
	}
	rec.Heard = f.heard()
	return rec
}

func (f *runFiles) summary(v model.Verdict) model.RunSummary {
	ev := &f.evidence
	sum := model.RunSummary{RunMeta: f.meta, Ended: ev.Ended, Verdict: v, Proof: ev.Proof, Faults: ev.Faults, Result: ev.Result, Cost: ev.Cost,
		Messages: ev.Messages, GateDelay: ev.GateDelay, Retransmits: ev.Retransmits, ProbeCost: ev.ProbeCost,
		Probes: ev.Probes, CPUWait: ev.CPUWait, Release: f.target.Release, TargetVersion: ev.Version}
	sum.Result.Verdict = v
	sum.Sightings = sightings(f.events)
	if f.meta.Scenario.Strategy == model.StrategyScripted {
		sum.Scenario.Steps = slices.Clone(sum.Scenario.Steps)
		for _, c := range ev.Cuts {
			if c.Step == 0 { // of an earlier record: no step
				sum.Scenario.Steps = append(sum.Scenario.Steps, model.Step{Do: model.Fault{Cut: &c.Partition}})
			}
		}
	}
	return sum
}

// sightings counts where the values of variables were read, sorted.
func sightings(events []model.Event) []model.Sighting {
	links, count := map[uint64]model.Link{}, map[model.Sighting]int{}
	for _, e := range events {
		switch e.Kind {
		case model.EventMessage:
			links[e.Message.Num] = model.Link{Src: e.Message.From, Dst: e.Message.To}
		case model.EventObserve:
			l := links[e.Observation.Message]
			count[model.Sighting{Variable: e.Observation.Var.Name, From: l.Src, To: l.Dst}]++
		}
	}
	var out []model.Sighting
	for s, n := range count {
		s.Count = n
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b model.Sighting) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}
