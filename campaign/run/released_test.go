package run

import (
	"testing"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// TestWhatTheGateLetGoIsKept: from shortly before the cut to shortly after the heal, the
// packet that healed first, and nothing that the cut refused.
func TestWhatTheGateLetGoIsKept(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	s.mu.Lock()
	for i := range s.recent {
		s.recent[i].at -= 2 * agent.Edge // it is too old when the next one goes
	}
	s.mu.Unlock()
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL")
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL")   // reveals the state: cut
	gossip(t, s, "n1", "n2", "G n1=LEFT n2=NORMAL n3=NORMAL")   // does not cross
	gossip(t, s, "n3", "n2", "G n1=NORMAL n2=NORMAL n3=NORMAL") // unseen: heals
	gossip(t, s, "n2", "n3", "G n1=LEFT n2=NORMAL n3=NORMAL")
	s.mu.Lock()
	defer s.mu.Unlock()
	cut, heal := s.clock.wall(s.gateCuts[0].proof.CutAt), s.clock.wall(s.gateCuts[0].proof.HealAt)
	back, on := s.releasedOn(s.gateCuts[0], model.Link{Src: "n3", Dst: "n2"}), s.releasedOn(s.gateCuts[0], model.Link{Src: "n2", Dst: "n3"})
	if len(back) != 2 || back[0].At.After(cut) || back[1].At.Before(heal) || back[1].At.After(heal.Add(time.Second)) || back[0].Digest == 0 {
		t.Errorf("n3>n2, cut at %v, healed at %v: %v", cut, heal, back)
	}
	if len(on) != 1 || on[0].At.Before(heal) {
		t.Errorf("n2>n3, cut at %v, healed at %v: %v", cut, heal, on)
	}
	s.gateCuts[0].proof.HealAt -= agent.Edge
	s.keepReleased(&heldFrame{}, s.gateCuts[0].proof.HealAt+agent.Edge+1)
	if n := len(s.gateCuts[0].released); n != 3 {
		t.Errorf("%d packets are kept, want 3: the last came too late", n)
	}
}

// TestResetsAreKnownByLinkAndTime, each with how often it was sent.
func TestResetsAreKnownByLinkAndTime(t *testing.T) {
	s := testSession(t, leftScenario(model.Drop), &fakeGate{})
	on, other := model.Link{Src: "n1", Dst: "n2"}, model.Link{Src: "n2", Dst: "n1"}
	s.resets = []letGo{{on, time.Second, 1}, {on, 2 * time.Second, 2}, {on, 2 * time.Second, 2}, {other, 2 * time.Second, 3}, {on, 3 * time.Second, 4}, {on, 4 * time.Second, 5}}
	if got := s.resetsOn(on, s.clock.wall(2*time.Second), s.clock.wall(3*time.Second)); len(got) != 2 || got[2] != 2 || got[4] != 1 {
		t.Errorf("%v", got)
	}
}
