package sequence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsplit/explorer/sequence"
	"netsplit/internal/simwrite"
	"netsplit/model"
)

// crashes is FATE's lightweight filter (§6.3), with the network: crashes only.
var crashes = []sequence.FaultAt{
	{Kind: model.PointCrash, Side: model.SideSend, Place: model.PlaceBefore},
	{Kind: model.PointCrash, Side: model.SideFile, Place: model.PlaceBefore},
}

// campaign is a search on the simulated write, as a campaign drives one.
type campaign struct {
	sim  simwrite.Options
	cfg  sequence.Config
	slot int
}

type found struct {
	report   *sequence.Report
	why      string
	bugs     map[simwrite.Bug]int // found in which run
	readies  []string
	failures int
}

func (c campaign) run(t testing.TB) found {
	t.Helper()
	f := found{bugs: map[simwrite.Bug]int{}}
	s := sequence.New(c.cfg)
	var out []sequence.Run
	for n := 0; ; {
		r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: max(c.slot, 1) - len(out)})
		out = append(out, r.Runs...)
		if r.Done {
			f.report, f.why = s.Report(), r.Why
			return f
		}
		if len(out) == 0 {
			t.Fatalf("nothing runs and the search is not done: %s", r.Why)
		}
		next := out[len(out)-1] // the last one handed out comes back first
		out = out[:len(out)-1]
		run := simwrite.Execute(c.sim, next.Faults, next.Seed)
		n++
		f.readies = append(f.readies, fmt.Sprintf("%s %d %s: %v", next.ID, next.Seed, next.IDs, run.Broken))
		v := model.VerdictPass
		if run.Failed() {
			v = model.VerdictFail
			f.failures++
			for _, b := range run.Hit { // found, if it alone makes this run fail
				alone := c.sim
				alone.Bugs = []simwrite.Bug{b}
				if f.bugs[b] > 0 {
					continue
				}
				if again := simwrite.Execute(alone, next.Faults, next.Seed); again.Failed() {
					f.bugs[b] = n
				}
			}
		}
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: next.ID, Profile: run.Profile, Occurred: run.Occurred, Verdict: v}})
	}
}

func write(depth int, bugs []simwrite.Bug, policies ...sequence.Policy) campaign {
	return campaign{sim: simwrite.Options{Bugs: bugs}, cfg: sequence.Config{Seed: 1, Clean: 3, Depth: depth, Runs: 1 << 20, Retries: 2, Kinds: crashes, Policies: policies}}
}

func names(bugs map[simwrite.Bug]int) string {
	var out []string
	for _, b := range simwrite.Bugs() {
		if bugs[b] > 0 {
			out = append(out, string(b))
		}
	}
	return strings.Join(out, " ")
}

// byType tells recoveries apart by what is sent, received and done, not by whom. With three faults it can miss
// a bug: two prefixes that it takes for one differ in which replica is left. So can byPairs: no sequence need have
// all points of such a prefix.
const (
	byType  = "prioritised by type"
	byPairs = "recovery-pairs"
)

// strategies are what Table 4 of FATE compares, and coarser behaviours.
var strategies = []struct {
	name     string
	policies []sequence.Policy
}{
	{"brute force", nil},
	{"prioritised", []sequence.Policy{sequence.Prioritised(nil)}},
	{byType, []sequence.Policy{sequence.Prioritised([]model.PointKey{model.KeySide, model.KeyType})}},
	{byPairs, []sequence.Policy{sequence.Pairs(nil)}},
}

// table runs the strategies, logs FATE's Table 4 and compares the bugs found.
func table(t testing.TB, depth, packets int) {
	t.Helper()
	var bugs []string
	var runs []int
	for _, s := range strategies {
		c := write(depth, simwrite.Bugs(), s.policies...)
		c.sim.Packets = packets
		f := c.run(t)
		t.Logf("%d packet(s), depth %d, %-19s %5d runs, %5d failed, found %s", packets, depth, s.name, f.report.FaultRuns, f.failures, names(f.bugs))
		bugs, runs = append(bugs, names(f.bugs)), append(runs, f.report.FaultRuns)
		all := bugs[0]
		if depth == 3 && (s.name == byType || s.name == byPairs) { // those of two faults at least
			all = strings.TrimSuffix(all, " "+string(simwrite.BugGivesUp))
		}
		if last := bugs[len(bugs)-1]; !strings.HasPrefix(last, all) || len(last) > len(bugs[0]) {
			t.Errorf("depth %d: brute force finds %q, %s %q", depth, bugs[0], s.name, last)
		}
	}
	if 10*runs[1] > 6*runs[0] || 10*runs[2] > 4*runs[0] || 10*runs[3] > 7*runs[1] {
		t.Errorf("depth %d: runs %v: prioritising saves too little", depth, runs)
	}
}

// TestPrioritisedFindsTheSameBugs is FATE's Table 4 on the simulated write.
func TestPrioritisedFindsTheSameBugs(t *testing.T) {
	for _, packets := range []int{1, 3} {
		table(t, 2, packets)
	}
}

// BenchmarkDepth3 is the rest of the table: go test -bench Depth3 -benchtime 1x.
func BenchmarkDepth3(b *testing.B) {
	for b.Loop() {
		table(b, 3, 1)
	}
}

func TestACorrectSystemPasses(t *testing.T) {
	f := write(2, nil).run(t)
	if f.failures > 0 {
		i := slices.IndexFunc(f.readies, func(s string) bool { return !strings.HasSuffix(s, "[]") })
		t.Errorf("%d runs fail without a bug, the first: %s", f.failures, f.readies[i])
	}
}

// Equal inputs give equal outputs, and the order in which results come back has no part
// in which sequences are run.
func TestSearchIsDeterministic(t *testing.T) {
	sorted := func(policy sequence.Policy, slots int) []string {
		c := write(2, simwrite.Bugs(), policy)
		c.slot = slots
		f := c.run(t)
		out := f.readies
		if slots == 1 {
			if again := c.run(t).readies; !slices.Equal(out, again) {
				t.Error("two equal searches differ")
			}
		}
		for i, s := range out {
			_, out[i], _ = strings.Cut(s, " ") // without the number of the run
		}
		slices.Sort(out)
		return out
	}
	for _, p := range []sequence.Policy{sequence.Prioritised(nil), sequence.Pairs(nil)} {
		if one, four := sorted(p, 1), sorted(p, 4); !slices.Equal(one, four) {
			t.Errorf("%s: with four runs at once, other sequences are run than with one", p.Name())
		}
	}
}
