package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestNoneTakesManyTrials(t *testing.T) {
	for _, c := range []struct {
		kinds []seen
		want  mark
	}{
		{nil, noMark},
		{[]seen{{trials: 2}}, noMark},
		{[]seen{{trials: 999}, {trials: 1000}}, noMark},
		{[]seen{{trials: 1000}, {trials: 1200}}, met},
		{[]seen{{trials: 2, events: 1}}, missed},
		{[]seen{{trials: 2}, {trials: 1000, events: 1}}, missed},
		{[]seen{{trials: 1000, events: 3}, {trials: 2}}, missed},
	} {
		if got := none(c.kinds...); got != c.want {
			t.Errorf("%+v: %q, want %q", c.kinds, got, c.want)
		}
	}
}

func TestGoalsOfPairs(t *testing.T) {
	// The other's best rounds, in which it added nothing, count against the gate.
	gate := []float64{20, 20, 20, 5, 5}
	other := []float64{-1, 0, -3, 10, 10}
	for name, c := range map[string]struct{ got, want mark }{
		"worse in most rounds":           {noMore(gate, other), missed},
		"the other never adds anything":  {noMore([]float64{20, 20}, []float64{0, -1}), missed},
		"better in most rounds":          {noMore(other, gate), met},
		"less than nothing":              {noMore([]float64{-5, -5}, []float64{-1, -1}), met},
		"no round":                       {noMore(nil, nil), noMark},
		"a round is missing":             {noMore([]float64{1, 1}, []float64{2}), noMark},
		"a rate, half in most rounds":    {atLeast([]float64{1, 1, 3}, []float64{2, 2, 2}, 1), missed},
		"a rate, as much in most":        {atLeast([]float64{2, 1, 3}, []float64{2, 2, 2}, 1), met},
		"a rate that was not measured":   {atLeast([]float64{2, 2}, []float64{1, 0}, 1), noMark},
		"no rate":                        {atLeast(nil, nil, 1), noMark},
		"nothing was measured to add":    {addsUnder(nil, nil, 100), noMark},
		"a round of what it is added to": {addsUnder([]float64{1, 1}, []float64{1}, 100), noMark},
		"it adds less":                   {addsUnder([]float64{150, 120}, []float64{60, 60}, 100), met},
		"it adds more":                   {addsUnder([]float64{150, 170}, []float64{60, 60}, 100), missed},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}

func TestGatesP99IsJudgedInEveryRound(t *testing.T) {
	us := func(ns ...int) (out []time.Duration) {
		for _, n := range ns {
			out = append(out, time.Duration(n)*time.Microsecond)
		}
		return out
	}
	of := func(name string, ds []time.Duration) *variant {
		r := []float64{1000, 1000, 1000}
		return &variant{name: name, rate: map[int][]float64{64: r}, p50: map[int][]time.Duration{64: ds}, p99: map[int][]time.Duration{64: ds}, per: r}
	}
	plain := of("plain", us(100, 100, 100))
	p99 := func(gate, other []time.Duration) row {
		for _, r := range besideController(plain, of("gate", gate), of("other", other), 1) {
			if strings.Contains(r.what, "p99") {
				return r
			}
		}
		t.Fatal("no row of p99")
		return row{}
	}
	if r := p99(us(150, 150, 150), us(100, 95, 100)); r.met != missed || !strings.Contains(r.ratio, "none, of 0 of 3 pairs") || !strings.Contains(r.ours, "difference 50 (50 to 55)") {
		t.Errorf("the other never adds anything: %+v", r)
	}
	if r := p99(us(150, 150, 150), us(90, 90, 400)); r.met != missed {
		t.Errorf("the other is better in two of three rounds: %+v", r)
	}
	if r := p99(us(150, 150, 150), us(200, 90, 400)); r.met != met || !strings.Contains(r.ratio, "of 2 of 3 pairs") {
		t.Errorf("the other is worse in two of three rounds: %+v", r)
	}
	if r := p99(us(150, 150), us(200, 200)); r.met != noMark {
		t.Errorf("a round is missing: %+v", r)
	}
}

func TestNothingKnownMeetsNoGoal(t *testing.T) {
	if got := noAllocations(benchmark{ns: []float64{1}}); got != noMark {
		t.Errorf("allocations not counted: %q", got)
	}
	if got := noAllocations(benchmark{allocs: []float64{0, 1}}); got != missed {
		t.Errorf("one allocation: %q", got)
	}
	o := outcome{runs: []model.RunSummary{{}}}
	o.account()
	if r := o.share("x"); r.met != noMark || r.ours != "not known" {
		t.Errorf("runs that say nothing of their time: %+v", r)
	}
	o.runs[0].Cost = model.Cost{Workload: 9 * time.Second, Ours: 3 * time.Second}
	o.account()
	if r := o.share("x"); r.met != missed {
		t.Errorf("a quarter is ours: %+v", r)
	}
}

func TestRowsOfCuts(t *testing.T) {
	ms := time.Millisecond
	of := func(cuts int) *cutFigures {
		return &cutFigures{cuts: cuts, cached: []int{12}, afterRequest: []int{3}, lost: make([]int, cuts), inForce: []time.Duration{ms}, healed: []time.Duration{2 * ms},
			first: []time.Duration{ms}, share: []float64{1}}
	}
	marks := func(a, b *cutFigures) map[string]mark {
		out := map[string]mark{}
		for _, r := range leakRows(10, a, b, of(5)) {
			for _, what := range []string{"in force", "packets lost", "nothing passed"} {
				if strings.Contains(r.what, what) {
					out[what] = r.met
				}
			}
		}
		return out
	}
	all := func(m mark) map[string]mark {
		return map[string]mark{"in force": m, "packets lost": m, "nothing passed": m}
	}
	if diff := cmp.Diff(all(noMark), marks(of(2), of(1000))); diff != "" {
		t.Error("two cuts by meters:", diff)
	}
	if diff := cmp.Diff(all(met), marks(of(1000), of(1000))); diff != "" {
		t.Error("a thousand of each:", diff)
	}
	bad := of(2)
	bad.leaked, bad.leaky, bad.open, bad.lost = 4, 1, 1, []int{0, 7}
	if diff := cmp.Diff(all(missed), marks(bad, of(1000))); diff != "" {
		t.Error("one that leaks, one that stays open:", diff)
	}
	// One whose heals all stayed closed has no time to a first packet to compare.
	bad.first, bad.share = nil, nil
	for _, r := range leakRows(10, bad, of(2), of(5)) {
		if strings.Contains(r.what, "first packet") && (r.ratio != "" || !strings.HasPrefix(r.ours, "none; ")) {
			t.Errorf("%+v", r)
		}
		if strings.Contains(r.what, "nothing passed") && !strings.HasPrefix(r.ours, "1 of 2; rules alone 0 of 2") {
			t.Errorf("%+v", r)
		}
	}
}

func TestTrialsWithManyFlows(t *testing.T) {
	for _, c := range []struct{ flows, few, many, want int }{{10, 1000, 0, 1000}, {10, 1000, 7, 1000}, {11, 1000, 0, 100}, {50000, 1000, 1000, 1000}, {50000, 2, 0, 1}} {
		if got := trialsWith(c.flows, c.few, c.many); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestInForceIsWhenItWasSaid: a cut's span ends with the event, however late it
// is read, and what else is told does not end it.
func TestInForceIsWhenItWasSaid(t *testing.T) {
	said := time.Now().Add(-time.Minute)
	tell := func(es ...model.ServiceEvent) chan model.ServiceEvent {
		c := make(chan model.ServiceEvent, len(es))
		for _, e := range es {
			c <- e
		}
		close(c)
		return c
	}
	other := []model.ServiceEvent{{At: said.Add(-2), Kind: "partition", ID: "cut-1", State: "in-force"}, {At: said.Add(-1), Kind: "switch", ID: "cut-2", State: "in-force"}}
	is := model.ServiceEvent{At: said, Kind: "partition", ID: "cut-2", State: string(model.PartitionInForce)}
	if at, err := saidInForce(t.Context(), tell(append(other, is)...), "cut-2"); err != nil || !at.Equal(said) {
		t.Errorf("%v, %v; want %v", at, err, said)
	}
	is.State, is.Text = string(model.PartitionFailed), "partition cut-2 is failed: why"
	if _, err := saidInForce(t.Context(), tell(is), "cut-2"); err == nil || err.Error() != is.Text {
		t.Errorf("one that failed: %v", err)
	}
	if _, err := saidInForce(t.Context(), tell(other...), "cut-2"); err == nil {
		t.Error("the events ended, and it was in force")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := saidInForce(gone, nil, "cut-2"); err == nil {
		t.Error("nobody waits any more, and it was in force")
	}
	if at := since(said, time.Now()); !at.Equal(said) {
		t.Error("what is claimed counts from", at)
	}
	if at := since(time.Time{}, said); !at.Equal(said) {
		t.Error("what nobody claimed counts from", at)
	}
}

func TestGatePortsGoals(t *testing.T) {
	of := func(rate, tcp float64, us int, rounds int) *variant {
		v := &variant{rate: map[int][]float64{}, p50: map[int][]time.Duration{}, p99: map[int][]time.Duration{}}
		for range rounds {
			v.mbit, v.per = append(v.mbit, tcp), append(v.per, 1)
			for _, size := range sizes {
				v.rate[size] = append(v.rate[size], rate)
				v.p50[size], v.p99[size] = append(v.p50[size], time.Duration(us)*time.Microsecond), append(v.p99[size], time.Millisecond)
			}
		}
		return v
	}
	marks := func(plain, port, gate *variant) (out []mark) {
		for _, r := range portRows(plain, port, gate) {
			if r.goal != "" {
				out = append(out, r.met)
			}
		}
		return out
	}
	if diff := cmp.Diff(slices.Repeat([]mark{met}, 5), marks(of(9, 100, 10, 3), of(4, 70, 109, 3), of(2, 1, 900, 3))); diff != "" {
		t.Error("throughput, rates, delays:", diff)
	}
	if diff := cmp.Diff(slices.Repeat([]mark{missed}, 5), marks(of(9, 100, 10, 3), of(3, 69, 110, 3), of(2, 1, 900, 3))); diff != "" {
		t.Error("throughput, rates, delays, all missed:", diff)
	}
	if diff := cmp.Diff(slices.Repeat([]mark{noMark}, 5), marks(of(9, 100, 10, 2), of(4, 70, 50, 3), of(2, 1, 900, 2))); diff != "" {
		t.Error("a round is missing:", diff)
	}
	if diff := cmp.Diff(slices.Repeat([]mark{noMark}, 5), marks(of(9, 100, 10, 0), of(4, 70, 50, 0), of(2, 1, 900, 0))); diff != "" {
		t.Error("no round:", diff)
	}
}
