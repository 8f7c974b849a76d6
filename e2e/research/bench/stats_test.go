package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestQuantile(t *testing.T) {
	vs := []int{5, 1, 4, 2, 3}
	for q, want := range map[float64]int{0: 1, .5: 3, .99: 5, 1: 5} {
		if got := quantile(vs, q); got != want {
			t.Errorf("quantile %v: %d, want %d", q, got, want)
		}
	}
	if diff := cmp.Diff([]int{5, 1, 4, 2, 3}, vs); diff != "" {
		t.Error("the argument was changed:", diff)
	}
	if got := quantile([]int{}, .5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}

func TestRatiosAreOfPairs(t *testing.T) {
	// The medians' ratio would be 1; pair by pair it is not.
	got := ratios([]float64{10, 30, 20}, []float64{20, 10, 20})
	if diff := cmp.Diff([]float64{.5, 3, 1}, got); diff != "" {
		t.Error(diff)
	}
	if s := spreadOf(got); s.mid != 1 || s.min != .5 || s.max != 3 || s.text("%.1f") != "1.0 (0.5 to 3.0)" {
		t.Errorf("%+v", s)
	}
	if got := ratios([]int{1, 2, 3}, []int{0, 4}); len(got) != 1 || got[0] != .5 {
		t.Errorf("a divisor of zero, and an odd one: %v", got)
	}
}

func TestParseBench(t *testing.T) {
	found, err := parseBench(`goos: linux
BenchmarkPacketInDecode-2    	 9999	        19.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkPacketInDecode-2    	 9999	        25 ns/op	       8 B/op	       1 allocs/op
PASS
`)
	want := benchmark{ns: []float64{19.5, 25}, allocs: []float64{0, 1}}
	if got := found["BenchmarkPacketInDecode"]; err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(benchmark{})) || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := parseBench("BenchmarkX-2 1 fast ns/op"); err == nil {
		t.Error("a value that is no number was taken")
	}
}

func TestAccountCountsWhatNobodyAdmits(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	run := func(lab string, from, to, ours int) model.RunSummary {
		return model.RunSummary{RunMeta: model.RunMeta{Lab: lab, Started: at(from)}, Ended: at(to),
			Cost: model.Cost{Start: time.Second, Workload: 5 * time.Second, Recover: 2 * time.Second, Ours: time.Duration(ours) * time.Second}}
	}
	// 8 s of each run are the target's, 10 s pass from start to start: 20 %.
	o := outcome{runs: []model.RunSummary{run("l1", 0, 9, 0), run("l2", 1, 10, 0), run("l1", 10, 19, 0), run("l2", 11, 20, 0)}}
	o.account()
	if o.ours != .2 {
		t.Errorf("ours %v, want 0.2", o.ours)
	}
	if o.perHour != 720 { // four runs in 20 s
		t.Errorf("%v runs an hour, want 720", o.perHour)
	}
	// A clean run counts for neither.
	early := run("l1", -90, -81, 0)
	early.Scenario.Strategy = model.StrategyClean
	with := outcome{runs: append([]model.RunSummary{early}, o.runs...)}
	if with.account(); with.ours != .2 || with.perHour != 720 {
		t.Errorf("with a clean run: ours %v, %v runs an hour", with.ours, with.perHour)
	}
	// What the runs admit counts where it is more.
	o = outcome{runs: []model.RunSummary{run("l1", 0, 16, 8)}}
	if o.account(); o.ours != .5 {
		t.Errorf("ours %v, want 0.5", o.ours)
	}
}

func TestChecksum(t *testing.T) {
	// The header of RFC 1071 §3's example: words 0001 f203 f4f5 f6f7.
	if got := checksum([]byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}); got != ^uint16(0xddf2) {
		t.Errorf("%04x", got)
	}
}

func TestPrintShowsMissedGoals(t *testing.T) {
	var b strings.Builder
	if err := print(&b, []row{{what: "gate", ours: "1", beside: "2", ratio: "0.50", goal: "at least 1.0", met: is(false)}}); err != nil {
		t.Fatal(err)
	}
	if last := strings.Fields(strings.Split(strings.TrimSpace(b.String()), "\n")[2]); last[len(last)-1] != "MISSED" {
		t.Error(b.String())
	}
}
