package check

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"netsplit/model"
)

// TestJudgeTakesAnyRecord: whatever was recorded, in whatever order, Judge
// ends with one verdict, and a failure names its check, class and signature.
// What the final read has or does not have is counted the dumb way too.
func TestJudgeTakesAnyRecord(t *testing.T) {
	target := &model.Target{
		Stable:    []model.Condition{{Name: "joined"}},
		Processes: []model.Process{{Name: "server"}},
		Logs:      model.LogPatterns{Fatal: []string{"FATAL"}},
	}
	for _, n := range Names() {
		c := model.CheckSpec{Name: n, Class: model.Documented, Quote: "so it says"}
		switch n {
		case "lost-acknowledged-writes":
			c.With = map[string]string{"leader": "leader", "bounded": "true", "bound": "1s"}
		case "two-leaders":
			c.With = map[string]string{"leader": "leader", "view": "view", "epoch": "epoch"}
		}
		target.Checks = append(target.Checks, c)
	}
	values := map[model.VerdictValue]int{}
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := randomRecord(rng, target)
		v := Judge(r)
		values[v.Value]++
		rng.Shuffle(len(r.History), func(i, j int) { r.History[i], r.History[j] = r.History[j], r.History[i] })
		rng.Shuffle(len(r.Observations), func(i, j int) {
			r.Observations[i], r.Observations[j] = r.Observations[j], r.Observations[i]
		})
		rng.Shuffle(len(r.Exits), func(i, j int) { r.Exits[i], r.Exits[j] = r.Exits[j], r.Exits[i] })
		if again := Judge(r); !reflect.DeepEqual(v, again) {
			t.Fatalf("seed %d: the verdict depends on the order of the record:\n%+v\n%+v", seed, v, again)
		}
		lost := 0
		for _, f := range v.Failures {
			if f.Check == "" || f.Class == "" || f.Signature == "" || f.Summary == "" {
				t.Fatalf("seed %d: incomplete failure %+v", seed, f)
			}
			if f.Check == "lost-acknowledged-writes" {
				lost += f.Amount
			}
		}
		if want := dumbLost(r); lost != want && len(r.Incomplete) == 0 {
			t.Fatalf("seed %d: %d writes reported lost, %d are missing", seed, lost, want)
		}
		b, err := json.Marshal(r)
		var back Record
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || !reflect.DeepEqual(Judge(back), v) {
			t.Fatalf("seed %d: a record that was stored is judged differently (%v)", seed, err)
		}
	}
	for _, want := range []model.VerdictValue{model.VerdictFail, model.VerdictUnknown} {
		if values[want] == 0 {
			t.Errorf("no record was judged %s: %v", want, values)
		}
	}
	if values[""] > 0 {
		t.Errorf("%d records have no verdict", values[""])
	}
}

// dumbLost counts acknowledged keys that were not read, if the read was whole.
func dumbLost(r Record) int {
	acked, have, done := map[string]bool{}, map[string]bool{}, false
	for _, o := range r.History {
		if o.Type == model.OpOK {
			switch o.F {
			case "write":
				acked[o.Key] = true
			case "final-read":
				have[o.Key] = true
			case "final-read-done":
				done = true
			}
		}
	}
	n := 0
	for k := range acked {
		if done && !have[k] {
			n++
		}
	}
	return n
}

func randomRecord(rng *rand.Rand, target *model.Target) Record {
	hosts := []model.NodeID{"n1", "n2", "n3", ""}
	host := func() model.NodeID { return hosts[rng.IntN(len(hosts))] }
	now := time.Duration(0)
	tick := func() time.Duration { now += 1 + time.Duration(rng.Int64N(int64(time.Second))); return now }
	types := []model.OpType{model.OpInvoke, model.OpOK, model.OpOK, model.OpFail, model.OpInfo}
	fs := []string{"write", "write", "write", "final-read", "final-read-done", "final-copy", "decommission", "status", "final-status", "final-role"}
	r := Record{Target: target, Scenario: model.Scenario{Strategy: model.StrategyRandom, Isolate: host()}, CutReached: rng.IntN(4) > 0, Bounds: NoBounds()}
	for range rng.IntN(25) {
		r.History = append(r.History, Op{Workload: "w", Operation: model.Operation{Process: rng.IntN(2), Type: types[rng.IntN(len(types))],
			F: fs[rng.IntN(len(fs))], Key: fmt.Sprint("k", rng.IntN(6)), Value: "master n1=NORMAL k2=LEFT", Time: tick(), Node: host()}})
		if rng.IntN(2) == 0 {
			r.Observations = append(r.Observations, model.Observation{At: tick(), Value: string(host()), Message: rng.Uint64N(9),
				Var: model.VarRef{Name: []string{"leader", "view", "epoch"}[rng.IntN(3)], Node: host()}})
		}
		if rng.IntN(12) == 0 {
			r.Exits = append(r.Exits, ProcessExit{Host: host(), Process: "server", At: tick(), Status: rng.IntN(200), Expected: rng.IntN(2) == 0})
		}
	}
	if rng.IntN(3) > 0 {
		r.Proof = &model.Proof{CutAt: time.Duration(rng.Int64N(int64(now) + 1)), Wanted: rng.IntN(3), Leaked: rng.IntN(2), LeakKnown: rng.IntN(2) == 0}
		if rng.IntN(3) > 0 {
			r.Proof.HealAt = r.Proof.CutAt + time.Duration(rng.Int64N(int64(now)+1))
		}
	}
	if rng.IntN(8) == 0 {
		r.Incomplete = []string{"the disk was full"}
	}
	r.Recovery = Recovery{Limit: time.Second, Stable: rng.IntN(2) == 0, StableAt: now / 2}
	if rng.IntN(4) == 0 {
		r.Bounds = Bounds{MaxLost: rng.IntN(3), MaxWindow: time.Duration(rng.IntN(3)) * time.Second}
	}
	return r
}
