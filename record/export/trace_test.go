package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// TestNoTwoSlicesOfATrackOverlap, as Perfetto drops such slices: messages at once, cuts beside
// each other, an operation without an answer before the next one. Arrows stay on their slices.
func TestNoTwoSlicesOfATrackOverlap(t *testing.T) {
	ms := time.Millisecond
	all := []happening{
		{n: 1, at: ms, kind: "message", host: "n1", peer: "n2", text: "a", fate: "pass"},
		{n: 2, at: ms, kind: "message", host: "n1", peer: "n2", text: "b", fate: "pass"},
		{n: 3, at: ms + 5*time.Microsecond, kind: "message", host: "n2", peer: "n1", text: "c", fate: "pass"},
		{n: 4, at: 2 * ms, kind: "cut", text: "one", end: 12 * ms},
		{n: 5, at: 7 * ms, kind: "cut", text: "two", end: 17 * ms},
		{n: 6, at: 13 * ms, kind: "cut", text: "three", end: 14 * ms},
		{n: 7, at: 3 * ms, kind: "op", text: "write", fate: "invoke", group: "w"},
		{n: 8, at: 9 * ms, kind: "op", text: "read", fate: "invoke", group: "w"},
		{n: 9, at: 20 * ms, kind: "op", text: "read", fate: "ok", group: "w"},
	}
	var b bytes.Buffer
	if err := writeTrace(&b, all); err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	type track struct{ pid, tid int }
	slicesOf := map[track][]traceEvent{}
	cuts := map[track]bool{}
	for _, e := range trace.TraceEvents {
		if e.Ph != "X" {
			continue
		}
		k := track{e.Pid, e.Tid}
		slicesOf[k] = append(slicesOf[k], e)
		if e.Dur <= 0 {
			t.Errorf("%s takes %v", e.Name, e.Dur)
		}
		if e.Cat == "cut" {
			cuts[k] = true
			if want := map[string]float64{"one": 10000, "two": 10000, "three": 1000}[e.Name]; e.Dur != want {
				t.Errorf("cut %s takes %v µs, want %v", e.Name, e.Dur, want)
			}
		}
	}
	if len(cuts) != 2 {
		t.Errorf("three cuts, two at once, are on %d tracks", len(cuts))
	}
	total := 0
	for k, on := range slicesOf {
		total += len(on)
		slices.SortFunc(on, func(a, b traceEvent) int { return cmp.Compare(a.Ts, b.Ts) })
		for i := 1; i < len(on); i++ {
			if before := on[i-1]; before.Ts+before.Dur > on[i].Ts+1e-6 {
				t.Errorf("on track %v %s until %v overlaps %s from %v", k, before.Name, before.Ts+before.Dur, on[i].Name, on[i].Ts)
			}
		}
	}
	if total != 3*2+3+2 {
		t.Errorf("%d slices", total)
	}
	for _, e := range trace.TraceEvents {
		if e.Ph == "s" || e.Ph == "f" {
			if !slices.ContainsFunc(slicesOf[track{e.Pid, e.Tid}], func(x traceEvent) bool { return x.Ts == e.Ts }) {
				t.Errorf("arrow %d %s at %v is on no slice", e.ID, e.Ph, e.Ts)
			}
		}
	}
}
