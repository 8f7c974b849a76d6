package model

import (
	"fmt"
	"testing"
	"time"
)

// TestTheLastLapsesAreKept, and who was given a status sees it as it was.
func TestTheLastLapsesAreKept(t *testing.T) {
	var p PartitionStatus
	at := time.Unix(1000, 0)
	for i := range MaxLapses + 5 {
		p.Lapse(at, fmt.Sprint(i))
		specified := p
		p.Resume(at.Add(time.Second))
		if n := len(specified.Lapses); specified.Lapses[n-1] != (Lapse{From: at, Why: fmt.Sprint(i)}) {
			t.Fatalf("lapse %d changed under who read it: %+v", i, specified.Lapses[n-1])
		}
	}
	p.Resume(at.Add(time.Hour)) // none lasts
	if n := len(p.Lapses); p.Lapsed != MaxLapses+5 || n != MaxLapses || p.Lapses[0].Why != "5" || !p.Lapses[n-1].To.Equal(at.Add(time.Second)) {
		t.Errorf("%d lapses, kept %d: %+v", p.Lapsed, n, p.Lapses)
	}
}
