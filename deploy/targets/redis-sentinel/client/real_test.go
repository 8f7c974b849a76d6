package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/campaign/target"
	"netsplit/explorer/check"
	"netsplit/model"
)

// runTarget is one run on the lab: workload, an optional cut of a host, the
// wait for recovery and the final read.
func runTarget(t *testing.T, args map[string]string, isolate model.NodeID, cutAfter, healAfter time.Duration) check.Record {
	l := newLab(t, args)
	l.startTarget()
	t.Logf("stable after %s", l.now())
	base, err := target.Expand(l.base, target.ExpandInput{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	rec := check.Record{Target: base, Scenario: model.Scenario{Strategy: model.StrategyClean}, Bounds: check.NoBounds()}
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
		rec.Scenario = model.Scenario{Strategy: model.StrategyRandom, Isolate: isolate}
	}
	wg.Wait()
	rec.WorkloadEnd = l.now()
	rec.Recovery = check.Recovery{From: rec.WorkloadEnd, Limit: l.base.Timing.Recover}
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
	if out := os.Getenv("NETSPLIT_KEEP_RECORD"); out != "" {
		b, _ := json.Marshal(rec)
		if err := os.WriteFile(out, b, 0o644); err != nil {
			t.Error(err)
		}
	}
	return rec
}

func parseHistory(t *testing.T, workload string, b []byte) []check.Op {
	var out []check.Op
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		op := check.Op{Workload: workload}
		if err := json.Unmarshal(sc.Bytes(), &op.Operation); err != nil {
			t.Errorf("%s printed %q, which is no operation: %v", workload, sc.Text(), err)
			continue
		}
		out = append(out, op)
	}
	return out
}

func describe(t *testing.T, rec check.Record) {
	n := map[string]int{}
	for _, o := range rec.History {
		n[fmt.Sprintf("%s/%s %s@%s", o.Workload, o.F, o.Type, o.Node)]++
	}
	t.Logf("history: %v", n)
	var prev = map[model.VarRef]string{}
	for _, o := range rec.Observations {
		if prev[o.Var] != o.Value {
			t.Logf("%.2f %s = %s", o.At.Seconds(), o.Var, o.Value)
		}
		prev[o.Var] = o.Value
	}
	for _, o := range rec.History {
		if o.F != "write" && o.F != "final-read" && o.F != "final-copy" || o.Error != "" {
			t.Logf("%.3f %s %s %s %s %s %s", o.Time.Seconds(), o.Workload, o.F, o.Type, o.Node, o.Value, o.Error)
		}
	}
	v := check.Judge(rec)
	b, _ := json.MarshalIndent(v, "", " ")
	t.Logf("workload %.1f to %.1f s; proof %+v\n%s", rec.WorkloadStart.Seconds(), rec.WorkloadEnd.Seconds(), rec.Proof, b)
}

func TestExplore(t *testing.T) {
	iso := model.NodeID(os.Getenv("X_ISO"))
	cut, _ := time.ParseDuration(os.Getenv("X_CUT"))
	heal, _ := time.ParseDuration(os.Getenv("X_HEAL"))
	args := map[string]string{"failovers": os.Getenv("X_F")}
	if v := os.Getenv("X_ARGS"); v != "" {
		for _, kv := range strings.Split(v, ",") {
			k, val, _ := strings.Cut(kv, "=")
			args[k] = val
		}
	}
	describe(t, runTarget(t, args, iso, cut, heal))
}
