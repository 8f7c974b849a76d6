package sim

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"netsplit/explorer"
	"netsplit/model"
)

func campaign(bug bool, st model.Strategy, seed uint64, runs, labs int) Campaign {
	hosts := []model.NodeID{"n1", "n2", "n3"}
	return Campaign{Options: Options{Bug: bug}, Labs: labs, Config: explorer.Config{Strategy: st, Seed: seed, Nodes: hosts, Hosts: hosts,
		Effect: model.Drop, Retries: 2, Runs: runs, Clean: 3, MaxCut: 2 * time.Second, Workload: 3 * time.Second}}
}

// Runs, the 3 clean ones included, in which every campaign must find the bug:
// at all, and by a run that a message healed after the state had moved on, as
// CoFI Figure 2 has it. The package comment says what was measured.
const (
	foundIn   = 10
	figure2In = 50
)

// seeds is how many of them are tried: a quarter in make check.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 4
	}
	return n
}

// TestFindsResurrection: with the bug, every campaign finds it.
func TestFindsResurrection(t *testing.T) {
	for seed := uint64(1); seed <= seeds(24); seed++ {
		labs := 1 + 2*int(seed%2)
		rep := campaign(true, model.StrategyCoFI, seed, figure2In-3, labs).Run()
		if rep.Failed == 0 || rep.Failed > foundIn {
			t.Errorf("seed %d, %d labs: first found in run %d, want one of the first %d", seed, labs, rep.Failed, foundIn)
		}
		if !slices.ContainsFunc(rep.Runs, func(r Run) bool {
			return r.Verdict.Value == model.VerdictFail && r.Engine.HealClass != nil && r.Engine.HealClass.State != *r.Scenario.Waits().When.State.State
		}) {
			t.Errorf("seed %d, %d labs: no run as in Figure 2 among %d", seed, labs, len(rep.Runs))
		}
	}
}

// TestRepairedIsClean: without the bug, a whole campaign finds nothing, and
// its cuts dropped packets.
func TestRepairedIsClean(t *testing.T) {
	for seed := uint64(1); seed <= seeds(4); seed++ {
		for _, st := range []model.Strategy{model.StrategyCoFI, model.StrategyRandom} {
			rep := campaign(false, st, seed, 150, 2).Run()
			bitten := 0
			for _, r := range rep.Runs {
				if r.Verdict.Value != model.VerdictPass {
					t.Errorf("seed %d, %s: run %s: %s", seed, st, r.Scenario.ID, r.Verdict.Failures[0].Summary)
				}
				if slices.ContainsFunc(r.Decisions, func(d model.Decision) bool { return d.Action == model.DropPacket }) {
					bitten++
				}
			}
			if bitten < len(rep.Runs)/3 {
				t.Errorf("seed %d, %s: only %d of %d runs lost a packet", seed, st, bitten, len(rep.Runs))
			}
		}
	}
}

// TestNoCutNoFailure: the bug does not show without a partition.
func TestNoCutNoFailure(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		r := Execute(Options{Bug: true}, model.Scenario{Strategy: model.StrategyClean, Seed: seed})
		if r.Verdict.Value != model.VerdictPass {
			t.Fatalf("seed %d: %+v", seed, r.Verdict)
		}
		ok := slices.ContainsFunc(r.History, func(op model.Operation) bool { return op.F == "decommission" && op.Type == model.OpOK })
		if !ok {
			t.Fatalf("seed %d: the decommission was not acknowledged", seed)
		}
	}
}

// TestReplay: the replay of a failed run fails, and of a passed one passes.
func TestReplay(t *testing.T) {
	rep := campaign(true, model.StrategyCoFI, 1, 120, 1).Run()
	failed := 0
	for _, r := range rep.Runs {
		again := Execute(Options{Bug: true}, explorer.Replay(r.Scenario, r.Result()))
		if again.Verdict.Value != r.Verdict.Value || again.Engine.CutAt != r.Engine.CutAt || again.Engine.HealAt != r.Engine.HealAt {
			t.Errorf("%s: %s cut %s heal %s; replayed %s cut %s heal %s", r.Scenario.ID, r.Verdict.Value, r.Engine.CutAt, r.Engine.HealAt,
				again.Verdict.Value, again.Engine.CutAt, again.Engine.HealAt)
		}
		if r.Verdict.Value == model.VerdictFail {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no run failed, so none was replayed")
	}
}

// TestSameSeedSameBytes: a campaign is a function of its seed, with several
// runs outstanding too.
func TestSameSeedSameBytes(t *testing.T) {
	var first []byte
	for range 2 {
		rep := campaign(true, model.StrategyCoFI, 5, 30, 3).Run()
		b, err := json.Marshal([]any{rep.Inputs, rep.Readies})
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && string(b) != string(first) {
			t.Fatal("two campaigns with one seed differ")
		}
		first = b
	}
}

func TestJudge(t *testing.T) {
	read := func(f, v string) model.Operation {
		return model.Operation{Type: model.OpOK, F: f, Node: "n2", Value: v}
	}
	done := model.Operation{Type: model.OpOK, F: "decommission", Value: "n1"}
	for _, c := range []struct {
		name string
		ops  []model.Operation
		want model.VerdictValue
	}{
		{"late news is legal", []model.Operation{done, read("status", "n1=NORMAL n2=NORMAL"), read("status", "n2=NORMAL"), read("final-status", "n2=NORMAL")}, model.VerdictPass},
		{"back", []model.Operation{done, read("status", "n2=NORMAL"), read("status", "n1=NORMAL n2=NORMAL")}, model.VerdictFail},
		{"never left", []model.Operation{done, read("final-status", "n1=NORMAL")}, model.VerdictFail},
		{"not acknowledged", []model.Operation{read("status", "n2=NORMAL"), read("final-status", "n1=NORMAL")}, model.VerdictPass},
	} {
		if got := judge(c.ops); got.Value != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Value, c.want)
		}
	}
}

// TestAnotherOrderFindsTheSame: runners of a cluster bring results in any order, up to 16 at
// once. Over 10 seeds a campaign then has the findings that it has one run after the other.
func TestAnotherOrderFindsTheSame(t *testing.T) {
	found := func(seed uint64, labs int) []string {
		var out []string
		for _, r := range campaign(true, model.StrategyCoFI, seed, 120, labs).Run().Runs {
			for _, f := range r.Verdict.Failures {
				if s := f.Check + ": " + f.Signature; !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	for seed := uint64(1); seed <= seeds(10); seed++ {
		want := found(seed, 1)
		if len(want) == 0 {
			t.Errorf("seed %d: one run after the other finds nothing", seed)
		}
		if got := found(seed, 16); !slices.Equal(got, want) {
			t.Errorf("seed %d, 16 runs at once: %v, one after the other %v", seed, got, want)
		}
	}
}
