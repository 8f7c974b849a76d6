package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/explorer/engine"
	"netsplit/internal/onecut"
	"netsplit/model"
)

var hosts = []model.NodeID{"a", "b", "c", "k"}

func leader(n model.NodeID) model.VarRef { return model.VarRef{Name: "leader", Node: n} }

func equal(a, b model.NodeID) model.Invariant {
	return model.Invariant{ID: string(a + b), Kind: "leader", Relation: model.RelationEqual, A: leader(a), B: leader(b)}
}

// randomRun draws a scenario and an event log, hostile ones included: unknown
// message numbers, times that run back, a second start of the workload.
func randomRun(r *rand.Rand) (model.Scenario, []model.Event) {
	inv := equal("a", "b")
	values := []string{"x", "y", model.Absent}
	st := model.State{A: "x", B: "y"}
	if r.IntN(2) == 0 {
		values, st = []string{"#1", "#2", "#4"}, model.State{A: "#2", B: "#4"}
	}
	s := onecut.Scenario{Strategy: []model.Strategy{model.StrategyClean, model.StrategyCoFI, model.StrategyRandom}[r.IntN(3)],
		Isolate: "a", Invariant: &inv, State: &st, Observe: []model.Invariant{equal("b", "c")},
		CutAfter: time.Duration(r.IntN(50)), HealAfter: time.Duration(r.IntN(100)), MaxCut: time.Duration(r.IntN(40)), Never: r.IntN(8) == 0, Nth: r.IntN(3)}
	s.Partition = model.Isolate("a", hosts, model.Drop)
	if r.IntN(3) == 0 {
		s.Partition = model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"a"}, {"b"}}}
	}
	class := func() model.Class {
		return model.Class{Type: string('A' + rune(r.IntN(2))), From: hosts[r.IntN(2)], To: hosts[r.IntN(2)], State: model.State{A: values[r.IntN(3)], B: values[r.IntN(3)]}}
	}
	if r.IntN(3) == 0 { // of the second, nothing is observed
		s.Or = []model.Renaming{{"a": "b", "b": "c", "c": "a"}, {"a": "k", "k": "a"}}
	}
	for range r.IntN(6) {
		s.Seen = append(s.Seen, class())
	}
	if r.IntN(4) == 0 {
		c := class()
		s.HealAt = &c
	}
	var log []model.Event
	var at time.Duration
	add := func(ev model.Event) {
		ev.Num, ev.At = uint64(len(log)+1), at
		log = append(log, ev)
	}
	var msgs uint64
	for range 30 + r.IntN(100) {
		at += time.Duration(r.IntN(3) - r.IntN(2))
		from, to := hosts[r.IntN(4)], hosts[r.IntN(4)]
		switch r.IntN(8) {
		case 0:
			add(model.Event{Kind: []model.EventKind{model.EventWorkload, model.EventTick, model.EventNote, model.EventStart, model.EventInForce}[r.IntN(5)]})
		case 1:
			if r.IntN(20) == 0 {
				add(model.Event{Kind: model.EventStop})
			}
		case 2:
			add(model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: leader(from), Value: values[r.IntN(3)], Probe: "p"}})
		default:
			p := &model.HeldPacket{Frame: uint64(len(log) + 1), From: from, To: to}
			for range r.IntN(3) {
				msgs++
				add(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: msgs, From: from, To: to, Type: string('A' + rune(r.IntN(2)))}})
				p.Messages = append(p.Messages, msgs)
				if r.IntN(2) == 0 {
					add(model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: leader(from), Value: values[r.IntN(3)], Message: msgs}})
				}
			}
			if r.IntN(4) == 0 {
				p.Again = []uint64{uint64(r.IntN(int(msgs) + 3))}
			}
			p.Spared = r.IntN(5) == 0
			add(model.Event{Kind: model.EventPacket, Packet: p})
		}
	}
	return s.Model(), log
}

// TestEngineKeepsItsRules checks, on random logs, what must hold whatever the
// scenario: one answer per packet, at most one cut and one heal, in this order,
// nothing crosses while cut, everything passes before and after, and a message
// heals only if its class may.
func TestEngineKeepsItsRules(t *testing.T) {
	cuts, heals, byClass, renumbered, others := 0, 0, 0, 0, 0
	for seed := range uint64(4000) {
		s, log := randomRun(rand.New(rand.NewPCG(seed, 1)))
		e := engine.New(s)
		cut, healed, working, stopped := false, false, false, false
		fail := func(ev model.Event, format string, a ...any) {
			t.Fatalf("seed %d, event %d (%s): %s\nscenario %+v", seed, ev.Num, ev.Kind, fmt.Sprintf(format, a...), s)
		}
		for _, ev := range log {
			working = working || ev.Kind == model.EventWorkload && !stopped
			ds := e.Step(ev)
			s := onecut.Of(e.Scenario())
			for i, d := range ds {
				if d.Event != ev.Num || d.Reason == "" {
					fail(ev, "decision %+v names another event or no reason", d)
				}
				if d.Cut {
					if cut || !working || stopped || s.Strategy == model.StrategyClean {
						fail(ev, "cut twice, outside the workload, or in a clean run")
					}
					cut = true
					cuts++
					if len(e.Result().Or) > 0 {
						others++
					}
					if at := e.Result().CutState; s.Strategy == model.StrategyCoFI && *at != *s.State && (s.Nth == 0 || at.Shape() != s.State.Shape()) {
						fail(ev, "cut at %s", at)
					}
				}
				if d.Heal {
					if !cut || healed {
						fail(ev, "heal without a cut")
					}
					healed = true
					heals++
				}
				if d.Class != nil {
					byClass++
					switch {
					case s.Strategy != model.StrategyCoFI || s.Never || !d.Heal:
						fail(ev, "class %s must not decide", d.Class)
					case d.Class.From != s.Isolate && d.Class.To != s.Isolate:
						fail(ev, "class %s does not concern %s", d.Class, s.Isolate)
					case *e.Result().CutState != *s.State: // see scripts/numbers.txt
						renumbered++
					case s.HealAt != nil && *d.Class != *s.HealAt, s.HealAt == nil && slices.Contains(s.Seen, *d.Class):
						fail(ev, "class %s may not heal", d.Class)
					}
				}
				if (d.Action != "") != (ev.Kind == model.EventPacket && i == len(ds)-1) {
					fail(ev, "an action must be the last decision on a packet and nothing else: %+v", ds)
				}
			}
			if ev.Kind == model.EventPacket {
				if len(ds) == 0 {
					fail(ev, "no answer")
				}
				last := ds[len(ds)-1]
				across := slices.Contains(s.Partition.Links(), model.Link{Src: ev.Packet.From, Dst: ev.Packet.To})
				if want := cut && !healed && across && !ev.Packet.Spared; want != (last.Action == model.DropPacket) {
					fail(ev, "%s, cut %v healed %v across %v", last.Action, cut, healed, across)
				}
			}
			stopped = stopped || ev.Kind == model.EventStop
			if stopped && cut && !healed {
				fail(ev, "still cut after the workload")
			}
		}
		r := e.Result()
		if r.Reached != cut || r.Healed != healed {
			t.Fatalf("seed %d: result %+v, saw cut %v, healed %v", seed, r, cut, healed)
		}
	}
	if cuts < 500 || heals < 300 || byClass < 100 || renumbered < 10 || others < 50 {
		t.Fatalf("the logs are too tame: %d cuts, %d of them with other nodes, %d heals, %d by a message, %d of them at other numbers", cuts, others, heals, byClass, renumbered)
	}
}

// TestWhatRevealsTheStateDoesNotHeal: neither the packet with a message that shows one
// of the two values, nor one with a message by which an earlier answer of another node
// comes to mean something (absent_for: named).
func TestWhatRevealsTheStateDoesNotHeal(t *testing.T) {
	inv := equal("n1", "n2")
	for name, message := range map[string]uint64{"its own": 1, "an answer of before": 0} {
		e := engine.New(onecut.Scenario{Strategy: model.StrategyCoFI, Isolate: "n1", Invariant: &inv, State: &model.State{A: "n2", B: model.Absent},
			Partition: model.Isolate("n1", []model.NodeID{"n1", "n2"}, model.Drop)}.Model())
		at := func(ev model.Event) string {
			var out []string
			for _, d := range e.Step(ev) {
				out = append(out, decision(d))
			}
			return strings.Join(out, "; ")
		}
		at(model.Event{Kind: model.EventWorkload})
		at(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: 1, Type: "start", From: "n1", To: "n2"}})
		at(model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: leader("n1"), Value: "n2", Message: 1}})
		if got := at(model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: leader("n2"), Value: model.Absent, Message: message}}); got != "CUT (state-reached)" {
			t.Errorf("%s: %s", name, got)
		}
		if got := at(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: 1, From: "n1", To: "n2", Messages: []uint64{1}}}); got != "drop (across-cut)" {
			t.Errorf("%s: %s, want it refused", name, got)
		}
		if got := at(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: 2, From: "n1", To: "n2", Again: []uint64{1}}}); !strings.HasPrefix(got, "HEAL pass") {
			t.Errorf("%s: %s, want it to heal when it comes again", name, got)
		}
	}
}

// TestStatesAgainstPlainReading compares the states met with a reading of the
// log that remembers nothing but values.
func TestStatesAgainstPlainReading(t *testing.T) {
	for seed := range uint64(1000) {
		_, log := randomRun(rand.New(rand.NewPCG(seed, 2)))
		invs := []model.Invariant{equal("a", "b"), equal("b", "c")}
		var want []model.MetState
		for _, inv := range invs {
			values := map[model.VarRef]string{}
			working := false
			var now time.Duration
			last := "consistent"
			met := map[model.State]*model.MetState{}
			shapes := map[string]int{}
			for _, ev := range log {
				now = max(now, ev.At)
				working = working || ev.Kind == model.EventWorkload
				if ev.Kind == model.EventStop {
					break
				}
				if o := ev.Observation; o != nil {
					values[o.Var] = o.Value
				}
				a, okA := values[inv.A]
				b, okB := values[inv.B]
				is := "consistent"
				if okA && okB && a != b {
					is = a + "|" + b
				}
				if !working || is == last {
					continue
				}
				last = is
				if is == "consistent" {
					continue
				}
				st := model.State{A: a, B: b}
				shape := is
				if a[0] == '#' && b[0] == '#' {
					shape = fmt.Sprint(a < b)
				}
				shapes[shape]++
				if met[st] == nil {
					met[st] = &model.MetState{Invariant: inv.ID, State: st, First: now, Nth: shapes[shape]}
				}
				met[st].Count++
			}
			for _, m := range met {
				want = append(want, *m)
			}
		}
		slices.SortFunc(want, func(x, y model.MetState) int {
			if x.Invariant != y.Invariant {
				return map[bool]int{true: -1, false: 1}[x.Invariant < y.Invariant]
			}
			return x.State.Compare(y.State)
		})
		if got := engine.States(log, invs); !slices.Equal(got, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got, want)
		}
	}
}
