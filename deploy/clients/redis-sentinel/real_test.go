package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record"
	"netsplit/sut"
)

// runTarget is one run on the lab: workload, an optional cut of a host, the
// wait for recovery and the final read.
func runTarget(t *testing.T, args map[string]string, isolate model.NodeID, cutAfter, healAfter time.Duration) check.Record {
	l := newLab(t, args)
	l.startTarget()
	t.Logf("stable after %s", l.now())
	base, err := sut.Expand(l.base, sut.ExpandInput{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	rec := check.Record{Target: base, Scenario: model.Scenario{Strategy: model.StrategyClean}, Bounds: record.Bounds{MaxLost: -1, MaxWindow: -1}}
	var mu sync.Mutex
	last := map[model.VarRef]model.VarValue{}
	ctx, cancel := context.WithCancel(t.Context())
	l.observe(ctx, func(o model.Observation) {
		mu.Lock()
		defer mu.Unlock()
		rec.Observations = append(rec.Observations, o)
		last[o.Var] = model.VarValue{Var: o.Var, Kind: o.Kind, Value: o.Value}
	})
	rec.WorkloadStart = l.now()
	var wg sync.WaitGroup
	for _, w := range l.base.Workloads {
		wg.Go(func() {
			ops := parseHistory(t, w.Name, l.workload(w.Name))
			mu.Lock()
			rec.History = append(rec.History, ops...)
			mu.Unlock()
		})
	}
	if isolate != "" {
		time.Sleep(cutAfter)
		p := &model.Proof{CutAt: l.now(), InForceAt: l.now(), Wanted: 1, Dropped: 1, LeakKnown: true}
		l.cut(isolate)
		time.Sleep(healAfter)
		p.HealAt, p.HealedAt = l.now(), l.now()
		l.heal(isolate)
		rec.Proof, rec.CutReached = p, true
		rec.Scenario = model.Scenario{Strategy: model.StrategyRandom, Steps: []model.Step{{Do: model.Fault{Cut: &model.Partition{}, Isolate: isolate}}}}
	}
	wg.Wait()
	rec.WorkloadEnd = l.now()
	rec.Recovery = record.Recovery{HealedAt: rec.WorkloadEnd, Limit: l.base.Timing.Recover}
	for l.now() < rec.WorkloadEnd+rec.Recovery.Limit {
		rec.Recovery.Pending = l.pending("")
		if len(rec.Recovery.Pending) == 0 {
			rec.Recovery.Stable, rec.Recovery.StableAt = true, l.now()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("recovered %v after %s, pending %q", rec.Recovery.Stable, l.now()-rec.WorkloadEnd, rec.Recovery.Pending)
	time.Sleep(500 * time.Millisecond) // one round of probes
	cancel()
	mu.Lock()
	for _, v := range last {
		rec.Recovery.Final = append(rec.Recovery.Final, v)
	}
	mu.Unlock()
	for _, w := range l.base.Final {
		rec.History = append(rec.History, parseHistory(t, w.Name, l.workload(w.Name))...)
	}
	return rec
}

func parseHistory(t *testing.T, workload string, b []byte) []record.Entry {
	var out []record.Entry
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		op := record.Entry{Workload: workload}
		if err := json.Unmarshal(sc.Bytes(), &op.Operation); err != nil {
			t.Errorf("%s printed %q, which is no operation: %v", workload, sc.Text(), err)
			continue
		}
		out = append(out, op)
	}
	return out
}

// keep writes a record for explorer/check/testdata/recorded.
func keep(t *testing.T, rec check.Record) {
	dir := os.Getenv("NETSPLIT_KEEP_RECORD")
	if dir == "" {
		return
	}
	seen := map[model.VarRef]string{}
	rec.Observations = slices.DeleteFunc(slices.Clone(rec.Observations), func(o model.Observation) bool {
		same := seen[o.Var] == o.Value
		seen[o.Var] = o.Value
		return same
	})
	b, err := json.Marshal(rec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, t.Name()+".record.json"), b, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// judged checks what must be true of every run of a healthy target, whatever
// it lost, and logs what the run looked like.
func judged(t *testing.T, rec check.Record) model.Verdict {
	t.Helper()
	n := map[string]int{}
	for _, o := range rec.History {
		n[o.F+" "+string(o.Type)]++
	}
	t.Logf("history: %v", n)
	seen := map[model.VarRef]string{}
	leaders := map[string]bool{}
	for _, o := range rec.Observations {
		if seen[o.Var] != o.Value {
			t.Logf("%.2f %s = %s", o.At.Seconds(), o.Var, o.Value)
		}
		seen[o.Var] = o.Value
		leaders[o.Value] = leaders[o.Value] || o.Var.Name == "sentinel_master"
	}
	v := check.Judge(rec)
	t.Logf("proof %+v\n%s: %s, %d legal", rec.Proof, v.Value, v.Reason, v.Legal)
	if n["write ok"] < 40 {
		t.Errorf("%d writes were acknowledged: the writers do not reach the master", n["write ok"])
	}
	if n["final-read ok"] == 0 || n["final-read-done ok"] != 1 || n["final-copy-done ok"] != 2 || n["final-role ok"] != 3 {
		t.Errorf("the final read is not whole: %v", n)
	}
	if !leaders["n1"] || !(leaders["n2"] || leaders["n3"]) {
		t.Errorf("no failover was observed: leaders %v", leaders)
	}
	if !rec.Recovery.Stable {
		t.Errorf("not recovered: %v", rec.Recovery.Pending)
	}
	lost := n["write ok"] + n["write info"] - n["final-read ok"]
	for _, f := range v.Failures {
		if f.Check != "lost-acknowledged-writes" || f.Class != model.Documented {
			t.Errorf("unexpected failure: %+v", f)
		}
		if f.Amount < 1 || f.Amount > lost {
			t.Errorf("%d writes reported lost; %d at most are not in the final read", f.Amount, lost)
		}
	}
	if v.Value != model.VerdictPass && v.Value != model.VerdictFail {
		t.Errorf("verdict %s: %s", v.Value, v.Reason)
	}
	return v
}

// TestForcedFailover: the operator's failover leaves the old master a master
// for about ten seconds, and a writer that meets no error stays with it.
func TestForcedFailover(t *testing.T) {
	t.Parallel()
	rec := runTarget(t, map[string]string{"rate": "10"}, "", 0, 0)
	keep(t, rec)
	v := judged(t, rec)
	const want = "acknowledged writes lost at a forced failover"
	if len(v.Failures) != 1 || v.Failures[0].Signature != want {
		t.Errorf("failures %+v, want only %q", v.Failures, want)
	}
}

// TestIsolatedMaster: the master is cut off and another takes over.
func TestIsolatedMaster(t *testing.T) {
	t.Parallel()
	// If both Sentinels ask for votes at once, neither wins, and they try again after twice failover_timeout.
	rec := runTarget(t, map[string]string{"rate": "10", "failovers": "0", "failover_timeout": "1000"}, "n1", 2*time.Second, 5*time.Second)
	keep(t, rec)
	if v := judged(t, rec); v.Legal == 0 {
		t.Error("no operation timed out while the master was cut off")
	}
}

// TestDrain: the operator asks the Sentinel on the master's host, wherever the
// master is by then.
func TestDrain(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"workload": "drain", "failovers": "2"})
	l.startTarget()
	var requested []model.NodeID
	for _, o := range parseHistory(t, "operator", l.workload("operator")) {
		if o.F == "failover" && o.Type == model.OpOK {
			requested = append(requested, o.Node)
		}
	}
	if len(requested) != 2 || requested[0] != "n1" || requested[1] == "n1" {
		t.Errorf("failovers at %v, want n1, which begins as the master, and the one that took over", requested)
	}
}
