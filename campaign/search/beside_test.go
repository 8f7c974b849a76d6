package search

import (
	"testing"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// TestIsolatedBesideCrashed: only points that had both are compared, and only runs that were
// judged.
func TestIsolatedBesideCrashed(t *testing.T) {
	var b beside
	keys := sequence.Options{}.Identity()
	note := func(typ string, k model.PointFaultKind, v model.VerdictValue, before ...model.FaultID) {
		f := model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: typ, Nth: 1}, Kind: k, Place: model.PlaceBefore}
		run := sequence.Run{IDs: before}
		run.Faults = append(make([]model.PointFault, len(before)), f)
		run.IDs = append(run.IDs, f.ID(keys))
		b.note(run, v, keys)
	}
	b.note(sequence.Run{}, model.VerdictPass, keys) // clean
	note("A", model.PointCrash, model.VerdictPass)
	if got := b.words(); got != "" {
		t.Errorf("%q", got)
	}
	note("A", model.PointIsolate, model.VerdictFail)
	note("A", model.PointSilence, model.VerdictFail)
	note("B", model.PointCrash, model.VerdictPass)
	note("B", model.PointIsolate, model.VerdictVacuous)
	note("B", model.PointLose, model.VerdictFail)
	note("B", model.PointIsolate, model.VerdictPass, "f-1")
	note("B", model.PointSilence, model.VerdictFail, "f-1")
	note("C", model.PointIsolate, model.VerdictPass)
	note("C", model.PointCrash, model.VerdictPass)
	want := `; at 3 point(s) a node was both isolated and crashed, with another verdict 2 time(s): send n1>n2 "A", number 1: isolate fail, crash pass; ` +
		`send n1>n2 "B", number 1: isolate pass, silence fail (after f-1)`
	if got := b.words(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
