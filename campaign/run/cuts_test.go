package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// fakeCut takes its time for each thing, and keeps what was done.
type fakeCut struct {
	did  []string
	at   []time.Time
	each time.Duration
	lift error
}

func (c *fakeCut) do(what string) {
	c.did, c.at = append(c.did, what), append(c.at, time.Now())
	time.Sleep(c.each)
}

func (c *fakeCut) Put(context.Context) error                { return nil }
func (c *fakeCut) Prove(context.Context) (time.Time, error) { return time.Now(), nil }
func (c *fakeCut) Probes() map[model.Link]uint64            { return nil }

func (c *fakeCut) Dropped(context.Context) ([]model.RuleDrops, error) {
	c.do("count")
	return nil, nil
}

func (c *fakeCut) Lift(context.Context) error {
	c.do("lift")
	return c.lift
}

func (c *fakeCut) Remove(context.Context) error {
	c.do("remove")
	return nil
}

func (c *fakeCut) Healed(context.Context, func(model.Link, model.ProbePacket) bool) error {
	c.do("healed")
	return nil
}

// healTimes are the metrics of heals.
type healTimes struct {
	noMetrics
	took []time.Duration
}

func (h *healTimes) HealTime(d time.Duration) { h.took = append(h.took, d) }

// A script heals as a manual partition does: first its drop rules go, so that what
// meters hold heals at one moment. The time of a heal begins with the decision.
func TestAScriptHealsAtOneMoment(t *testing.T) {
	for _, lift := range []error{nil, errors.New("the switch does not count")} {
		const each = 20 * time.Millisecond
		c, m := &fakeCut{each: each, lift: lift}, &healTimes{}
		s := testSession(t, model.Scenario{ID: "s1", Strategy: model.StrategyScripted}, &fakeGate{})
		l := &Live{r: &run{s: s, rec: s.rec, c: Config{Metrics: m}}}
		l.cuts = []*scriptCut{{cut: c, gate: inForce(s, "a", model.Isolate("n1", testNodes, model.Drop)), inForce: time.Now(), CutProof: model.CutProof{Name: "a", Proof: model.Proof{InForceAt: 1}}}}
		requested := l.Now()
		got, err := l.Heal(t.Context(), "a")
		if did := strings.Join(c.did, ", "); err != nil || did != "count, lift, remove, healed" {
			t.Errorf("lift: %v: did %s: %v", lift, did, err)
		}
		took := got.Proof.HealedAt - got.Proof.HealAt
		if len(m.took) != 1 || m.took[0] != took || took < 4*each || got.Proof.HealAt < requested || got.Proof.HealAt > c.at[0].Sub(s.start) {
			t.Errorf("asked at %v, healing since %v, healed at %v; told %v", requested, got.Proof.HealAt, got.Proof.HealedAt, m.took)
		}
		events := logged(t, s)
		notes := ""
		for _, e := range events {
			notes += e.Note + "\n"
		}
		if (lift != nil) != strings.Contains(notes, "cut a heals link by link: the switch does not count") {
			t.Errorf("lift: %v: noted %q", lift, notes)
		}
	}
}

// fates counts packets whose fate is told.
type fates struct {
	noMetrics
	n int
}

func (f *fates) PacketFate(_ model.Link, _ model.Fate, n int) { f.n += n }

// probedCut was proved by packets that the gate took before its rules did.
type probedCut struct{ fakeCut }

func (c *probedCut) Probes() map[model.Link]uint64 {
	return map[model.Link]uint64{{Src: "n1", Dst: "n2"}: 2}
}

func (c *probedCut) Dropped(context.Context) ([]model.RuleDrops, error) {
	return []model.RuleDrops{{Link: model.Link{Src: "n1", Dst: "n2"}, Packets: 1}}, nil
}

// TestWhatTheGateRefusesOfAProofIsNoDrop: a cut that met nothing else is vacuous.
func TestWhatTheGateRefusesOfAProofIsNoDrop(t *testing.T) {
	l := scripted(t, &fakeGate{})
	m := &fates{}
	l.r.s.metrics = m
	p := model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}
	gate := inForce(l.r.s, "a", p)
	for dropped := range 2 {
		gossip(t, l.r.s, "n1", "n2", "A 1") // once for the proof, then of the target
		c := &scriptCut{cut: &probedCut{}, gate: gate, inForce: time.Now(), CutProof: model.CutProof{Name: "a", Partition: p, Proof: model.Proof{InForceAt: 1, Links: p.Links()}}}
		if err := l.count(t.Context(), c); err != nil || c.Proof.Dropped != dropped {
			t.Errorf("dropped %d, want %d: %v", c.Proof.Dropped, dropped, err)
		}
	}
	if m.n != 0 { // they are counted once, at the heal
		t.Errorf("the gate counted %d packets", m.n)
	}
}
