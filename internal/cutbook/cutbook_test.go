package cutbook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/internal/cutbook"
	"netsplit/model"
)

// TestALinkIsCutWhileAnyPartitionCutsIt and a partition that nobody started ends nothing.
func TestALinkIsCutWhileAnyPartitionCutsIt(t *testing.T) {
	b := cutbook.New()
	ab, ba, ac := model.Link{Src: "a", Dst: "b"}, model.Link{Src: "b", Dst: "a"}, model.Link{Src: "a", Dst: "c"}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	b.Know(ac)
	b.Start(model.Complete, []model.Link{ab, ba}, at(1))
	b.Start(model.Simplex, []model.Link{ab}, at(2))
	b.End([]model.Link{ac}, at(3))
	if d := cmp.Diff(map[model.Shape]int{model.Complete: 1, model.Simplex: 1}, b.InForce()); d != "" {
		t.Errorf("in force (-want +got):\n%s", d)
	}
	if got := b.Oldest(at(4)); got != 3*time.Second {
		t.Errorf("the oldest is %v old", got)
	}
	b.End([]model.Link{ba, ab}, at(5)) // in another order
	if got := b.Oldest(at(5)); got != 3*time.Second {
		t.Errorf("then the oldest is %v old", got)
	}
	for l, want := range map[model.Link]time.Duration{ab: 6 * time.Second, ba: 4 * time.Second, ac: 0} {
		if got := b.Cut(l, at(7)); got != want {
			t.Errorf("%v is cut for %v, want %v", l, got, want)
		}
	}
	b.End([]model.Link{ab}, at(8))
	b.End([]model.Link{ab}, at(9)) // nothing is in force
	b.Add(ac, time.Minute)
	for l, want := range map[model.Link]time.Duration{ab: 7 * time.Second, ac: time.Minute} {
		if got := b.Cut(l, at(20)); got != want {
			t.Errorf("%v is cut for %v, want %v", l, got, want)
		}
	}
	if d := cmp.Diff(map[model.Shape]int{}, b.InForce()); d != "" {
		t.Errorf("in force (-want +got):\n%s", d)
	}
	if got := b.Oldest(at(30)); got != 0 {
		t.Errorf("at last the oldest is %v old", got)
	}
	if d := cmp.Diff([]model.Link{ab, ac, ba}, b.Links()); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
}
