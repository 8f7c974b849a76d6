package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// crashed is a run in which a step crashes n2 and starts it again, and pauses n3 to the end.
func crashed(t testing.TB) Input {
	in := failing(t)
	cutAt := in.Decisions[0].At
	for _, d := range in.Decisions {
		if d.Cut {
			cutAt = d.At
		}
	}
	num := in.Events[len(in.Events)-1].Num
	add := func(at time.Duration, verb model.NodeVerb, host model.NodeID) {
		num++
		in.Events = append(in.Events, model.Event{Num: num, At: at, Kind: model.EventNode, Node: &model.NodeAction{Verb: verb, Process: "redis", Host: host}})
	}
	add(cutAt+time.Millisecond, model.NodeKill, "n2")
	add(cutAt+2*time.Millisecond, model.NodePause, "n3")
	add(cutAt+5*time.Millisecond, model.NodeStart, "n2")
	return in
}

// TestThePictureMarksACrashAndAPause at their moments, and the legend tells the marks.
func TestThePictureMarksACrashAndAPause(t *testing.T) {
	pic := section(t, write(t, crashed(t)), "picture")
	wants(t, "picture", pic, "<title>crash of redis on n2 at ", ">✕</text>", "<title>pause of redis on n3 at ", ">‖</text>", "<title>start of redis on n2 at ", ">▶</text>",
		"A server that crashes is marked ✕ at its host", "<title>n2 has a server down from ", "<title>n3 has a server down from ")
	if n := strings.Count(pic, `class="node-action"`); n != 3 {
		t.Errorf("%d marks, want 3", n)
	}
	if n := strings.Count(pic, `class="down"`); n != 2 {
		t.Errorf("%d dashed lanes, want 2", n)
	}
	if plain := write(t, failing(t)); strings.Contains(plain, "node-action\"") || strings.Contains(plain, "A server that crashes is marked") {
		t.Error("a run without a crash has marks of one")
	}
}

// TestAQuietHostThatCrashedHasAColumn among so many that the other quiet ones have none.
func TestAQuietHostThatCrashedHasAColumn(t *testing.T) {
	in := crashed(t)
	for i := range maxColumns {
		in.Hosts = append(in.Hosts, model.NodeID(fmt.Sprintf("q%d", i)))
	}
	last := in.Events[len(in.Events)-1]
	in.Events = append(in.Events, model.Event{Num: last.Num + 1, At: last.At, Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeKill, Process: "redis", Host: "q7"}})
	if tl := newTimeline(&in); !slices.Contains(tl.hosts, "q7") || slices.Contains(tl.hosts, "q8") || tl.left != maxColumns { // c2 is quiet, too
		t.Errorf("columns %v, %d left out", tl.hosts, tl.left)
	}
}

// TestAServerIsDownUntilItIsBack, each by itself.
func TestAServerIsDownUntilItIsBack(t *testing.T) {
	tl := &timeline{end: 100}
	for i, a := range []model.NodeAction{
		{Verb: model.NodeKill, Process: "a", Host: "n1"}, {Verb: model.NodeStop, Process: "a", Host: "n1"}, {Verb: model.NodePause, Process: "b", Host: "n1"}, {Verb: model.NodeKill, Process: "a", Host: "n2"},
		{Verb: model.NodeStart, Process: "a", Host: "n1"}, {Verb: model.NodeStart, Process: "a", Host: "n1"}, {Verb: model.NodeResume, Process: "b", Host: "n1"}, {Verb: model.NodeKill, Process: "a", Host: "n1"},
	} {
		tl.actions = append(tl.actions, action{at: time.Duration(i), NodeAction: a})
	}
	if got := fmt.Sprint(tl.down("n1"), tl.down("n2"), tl.down("n3")); got != "[{0 4} {2 6} {7 100}] [{3 100}] []" {
		t.Error(got)
	}
}
