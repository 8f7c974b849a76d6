package run

import (
	"fmt"
	"strings"
	"testing"

	"netsplit/model"
)

// TestTheLiveStateShowsTheCut: while it is in force, which messages it drops, and that it is
// healed.
func TestTheLiveStateShowsTheCut(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	if l := s.live(0); len(l.Steps) != 1 || l.Steps[0].By != "" || !strings.HasPrefix(l.Steps[0].Text, "cut complete n3 | n1,n2; when ") {
		t.Errorf("a step that waits: %+v", l.Steps)
	}
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL") // cut
	<-s.gateCuts[0].confirmed
	l := s.live(0)
	if len(l.Cuts) != 1 || l.Cuts[0].Name != "step 1" || !l.Cuts[0].InForce || l.Cuts[0].Partition.String() != model.Isolate("n3", testNodes, model.Drop).String() {
		t.Errorf("cuts %+v", l.Cuts)
	}
	if len(l.Steps) != 1 || l.Steps[0].By != model.ReasonState || l.Steps[0].EndedBy != "" {
		t.Errorf("a step that acts: %+v", l.Steps)
	}
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL") // heals
	if l := s.live(0); len(l.Cuts) != 0 || len(l.Steps) != 1 || l.Steps[0].EndedBy == "" {
		t.Errorf("after the heal: %+v, %+v", l.Cuts, l.Steps)
	}
	since := s.live(l.Last)
	if len(since.Events) == 0 || since.Events[0].Num != l.Last+1 || since.Last != since.Events[len(since.Events)-1].Num {
		t.Errorf("after %d: %+v", l.Last, since)
	}
	var told []string
	for _, e := range s.live(0).Events {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s%s %s%s%s", e.Kind, e.Name, e.Type, e.From, e.To, e.Action)))
	}
	want := "[phase message text G n2n3pass message text G n3n2pass cut step 1 message text G n2n3drop in-force step 1 heal step 1 message text G n3n2pass]"
	if got := strings.Join(strings.Fields(fmt.Sprint(told)), " "); got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}

// TestTheLiveStateShowsAScriptsCut by the name that it has there.
func TestTheLiveStateShowsAScriptsCut(t *testing.T) {
	s := testSession(t, model.Scenario{Strategy: model.StrategyScripted}, &fakeGate{})
	s.Mark(model.EventWorkload)
	c, _ := s.beginCut("minority", model.Isolate("n3", testNodes, model.Drop))
	if l := s.live(0); len(l.Cuts) != 1 || l.Cuts[0].Name != "minority" || l.Cuts[0].InForce {
		t.Errorf("cuts %+v", l.Cuts)
	}
	s.endCut(c, "minority")
	l := s.live(0)
	var told []string
	for _, e := range l.Events {
		told = append(told, fmt.Sprint(e.Kind, " ", e.Name))
	}
	if got := strings.Join(told, ", "); len(l.Cuts) != 0 || got != "phase , cut minority, heal minority" {
		t.Errorf("told %s; cuts %+v", got, l.Cuts)
	}
}

// TestTheLiveStateForgets what is old, and numbers without a gap what it has.
func TestTheLiveStateForgets(t *testing.T) {
	var l lately
	for range 3*liveKept + 7 {
		l.add(model.LiveEvent{})
	}
	for _, c := range []struct {
		after       uint64
		first, last uint64
	}{
		{0, 2*liveKept + 8, 3*liveKept + 7},
		{3*liveKept + 5, 3*liveKept + 6, 3*liveKept + 7},
		{3*liveKept + 7, 0, 0},
		{1 << 60, 0, 0},
	} {
		got := l.since(c.after)
		if c.first == 0 {
			if len(got) != 0 {
				t.Errorf("after %d: %d events", c.after, len(got))
			}
			continue
		}
		if len(got) != int(c.last-c.first)+1 || got[0].Num != c.first || got[len(got)-1].Num != c.last {
			t.Errorf("after %d: %d events from %d, want %d to %d", c.after, len(got), got[0].Num, c.first, c.last)
		}
	}
}
