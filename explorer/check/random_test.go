package check

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"netsplit/internal/onecut"
	"netsplit/model"
	"netsplit/record"
)

// TestJudgeTakesAnyRecord: whatever was recorded, in whatever order, Judge
// ends with one verdict, and a failure names its check, class and signature.
// What the final read has or does not have is counted the dumb way too.
func TestJudgeTakesAnyRecord(t *testing.T) {
	target := &model.Target{
		Nodes: []model.NodeID{"n1", "n2", "n3"}, Clients: []model.NodeID{"", "c1"},
		Stable:    []model.Condition{{Name: "joined"}},
		Processes: []model.Process{{Name: "server"}},
		Logs:      model.LogPatterns{Fatal: []string{"FATAL"}},
	}
	for _, n := range Names() {
		c := model.CheckSpec{Name: n, Class: model.Documented, Quote: "so it says"}
		switch n {
		case "lost-acknowledged-writes":
			c.With = map[string]string{"leader": "leader", "bounded": "true", "bound": "1s"}
		case "leaders":
			c.With = map[string]string{"variable": "leader", "leads": "$self", "overlap": "1ms"}
		case "two-leaders":
			c.With = map[string]string{"leader": "leader", "view": "view", "epoch": "epoch"}
		}
		target.Checks = append(target.Checks, c)
	}
	values, failed := map[model.VerdictValue]int{}, map[string]int{}
	for seed := range uint64(700) {
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
			failed[f.Check]++
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
	for _, n := range Names() {
		if failed[n] == 0 && n != "fatal-log" && n != "workload-hang" {
			t.Errorf("check %s never failed: %v", n, failed)
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

// dumbLost counts acknowledged keys that were not read, if the read was whole,
// and that nothing may have removed.
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
	for _, c := range calls(&r) {
		if c.f == "delete" && c.typ != model.OpFail || c.f == "final-read" && (c.typ == model.OpInfo || c.typ == model.OpInvoke) {
			have[c.key] = true
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

func randomNeeds(rng *rand.Rand) []model.Need {
	all := []model.NodeID{"c1", "n1", "n2", "n3"}
	var out []model.Need
	for range rng.IntN(3) {
		n := model.Need{Via: all[rng.IntN(len(all))], From: all[1 : 2+rng.IntN(3)]}
		n.Count = rng.IntN(len(n.From) + 1)
		out = append(out, n)
	}
	return out
}

// TestLegalByHand judges random operations under random cuts and stops, and
// asks of every millisecond of each by hand whether what it needs was there.
func TestLegalByHand(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3"}
	hosts := append([]model.NodeID{"c1"}, nodes...)
	target := &model.Target{Nodes: nodes, Clients: hosts[:1], Processes: []model.Process{{Name: "server", Hosts: nodes}},
		Checks: []model.CheckSpec{{Name: "operations", Class: model.Broken, With: map[string]string{"stopping": "0s", "before": "3ms", "grace": "2ms"}}}}
	const ms = time.Millisecond
	seen := map[bool]int{}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := Record{Target: target, Bounds: noBounds, Scenario: onecut.Scenario{Strategy: model.StrategyRandom, Isolate: hosts[rng.IntN(4)]}.Model()}
		cut, heal := rng.IntN(60)+1, 0
		var links []model.Link
		if rng.IntN(4) > 0 {
			shapes := []model.Shape{model.Complete, model.Simplex, model.Partial}
			p := model.Partition{Shape: shapes[rng.IntN(3)], Effect: model.Drop}
			perm := rng.Perm(4)
			for i, n := 0, 0; i < 2; i++ {
				g := []model.NodeID{hosts[perm[n]], hosts[perm[n+1]]}
				if i == 1 && p.Shape == model.Partial {
					g = g[:1]
				}
				p.Groups, n = append(p.Groups, g), n+2
			}
			r.Scenario.Steps[0].Do.Cut = &p
			links = p.Links()
			r.Proof = &model.Proof{CutAt: time.Duration(cut) * ms}
			if heal = 1000; rng.IntN(4) > 0 {
				heal = cut + rng.IntN(40)
				r.Proof.HealAt = time.Duration(heal) * ms
			}
		}
		stop, start, down := rng.IntN(60)+1, 1000, nodes[rng.IntN(3)]
		if rng.IntN(3) == 0 {
			stop = 2000
		} else {
			r.Actions = append(r.Actions, NodeAction{time.Duration(stop) * ms, model.NodeAction{Verb: model.NodeKill, Process: "server", Host: down}})
			if rng.IntN(3) > 0 {
				start = stop + 1 + rng.IntN(30)
				r.Actions = append(r.Actions, NodeAction{time.Duration(start) * ms, model.NodeAction{Verb: model.NodeStart, Process: "server", Host: down}})
			}
		}
		from := rng.IntN(80) + 4
		to := from + rng.IntN(20)
		needs := randomNeeds(rng)
		r.History = []record.Entry{{Workload: "w", Operation: model.Operation{Type: model.OpInvoke, F: "read", Time: time.Duration(from) * ms, Needs: needs}},
			{Workload: "w", Operation: model.Operation{Type: model.OpFail, F: "read", Time: time.Duration(to) * ms}}}

		want := len(needs) == 0
		for at := from - 3; at <= to; at++ {
			for _, n := range needs {
				have := 0
				for _, h := range n.From {
					there := true
					if at >= cut && at < heal && r.Proof != nil && h != n.Via {
						for _, l := range links {
							if l == (model.Link{Src: h, Dst: n.Via}) || l == (model.Link{Src: n.Via, Dst: h}) {
								there = false
							}
						}
					}
					if at >= stop && at < start+2 && (h == down || n.Via == down) {
						there = false
					}
					if there {
						have++
					}
				}
				want = want || have < n.Count
			}
		}
		v := Judge(r)
		if got := v.Legal == 1; got != want || got == (len(v.Failures) == 1) || v.Legal+len(v.Failures) != 1 {
			t.Fatalf("seed %d: by hand legal is %v; judged %+v\ncut %d heal %d %v; %s down %d to %d; needs %v from %d to %d", seed, want, v, cut, heal, links, down, stop, start, needs, from, to)
		}
		seen[want]++
	}
	if seen[true] < 300 || seen[false] < 300 {
		t.Errorf("too little was tried: %v", seen)
	}
}

func randomRecord(rng *rand.Rand, target *model.Target) Record {
	hosts := []model.NodeID{"n1", "n2", "n3", ""}
	host := func() model.NodeID { return hosts[rng.IntN(len(hosts))] }
	now := time.Duration(0)
	tick := func() time.Duration { now += 1 + time.Duration(rng.Int64N(int64(time.Second))); return now }
	types := []model.OpType{model.OpInvoke, model.OpOK, model.OpOK, model.OpFail, model.OpInfo}
	fs := []string{"write", "write", "write", "final-read", "final-read-done", "final-copy", "decommission", "status", "status", "status", "final-status", "decommission", "final-status", "final-role", "read",
		"create", "delete", "final-list", "final-list-done", "read", "submit", "kill", "take", "final-state", "final-state-done"}
	r := Record{Target: target, Scenario: onecut.Scenario{Strategy: model.StrategyRandom, Isolate: host()}.Model(), CutReached: rng.IntN(4) > 0, Bounds: noBounds}
	if rng.IntN(8) == 0 { // a script's run is judged by the same function
		r.Steps = []model.ScriptStep{{Num: 1, Do: "assert", Text: "it is so", Result: "it is not",
			Outcome: []model.StepOutcome{model.StepDone, model.StepFailed, model.StepStuck}[rng.IntN(3)]}}
	}
	for range rng.IntN(40) {
		r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: rng.IntN(2), Type: types[rng.IntN(len(types))],
			F: fs[rng.IntN(len(fs))], Key: fmt.Sprint("k", rng.IntN(6)), Value: []string{"master", "k1=NORMAL k2=LEFT", "k2=NORMAL k1=LEFT", "RUNNING", "1", "2", ""}[rng.IntN(7)], Time: tick(), Node: host(), Needs: randomNeeds(rng)}})
		if rng.IntN(2) == 0 {
			r.Observations = append(r.Observations, model.Observation{At: tick(), Value: string(host()), Message: rng.Uint64N(9),
				Var: model.VarRef{Name: []string{"leader", "view", "epoch"}[rng.IntN(3)], Node: host()}})
		}
		if rng.IntN(9) == 0 {
			verbs := []model.NodeVerb{model.NodeStart, model.NodeStop, model.NodeKill, model.NodePause, model.NodeResume}
			r.Actions = append(r.Actions, NodeAction{At: tick(), NodeAction: model.NodeAction{Verb: verbs[rng.IntN(len(verbs))], Process: "server", Host: host()}})
		}
		if rng.IntN(12) == 0 {
			r.Exits = append(r.Exits, record.Exit{Host: host(), Process: "server", At: tick(), Status: rng.IntN(200), Expected: rng.IntN(2) == 0})
		}
	}
	if rng.IntN(3) > 0 {
		r.Proof = &model.Proof{CutAt: time.Duration(rng.Int64N(int64(now) + 1)), Wanted: rng.IntN(3), Leaked: rng.IntN(2), LeakKnown: rng.IntN(2) == 0}
		if rng.IntN(3) > 0 {
			r.Proof.HealAt = r.Proof.CutAt + time.Duration(rng.Int64N(int64(now)+1))
		}
	}
	isolated := model.Isolate(r.Scenario.Cut().Do.Isolate, hosts, model.Drop)
	r.Scenario.Steps[0].Do.Cut = &isolated
	if rng.IntN(8) == 0 {
		r.Incomplete = []string{"the disk was full"}
	}
	r.Recovery = record.Recovery{Limit: time.Second, Stable: rng.IntN(2) == 0, StableAt: now / 2}
	if rng.IntN(4) == 0 {
		r.Bounds = record.Bounds{MaxLost: rng.IntN(3), MaxWindow: time.Duration(rng.IntN(3)) * time.Second}
	}
	return r
}
