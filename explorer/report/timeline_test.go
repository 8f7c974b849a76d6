package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/internal/onecut"
	"netsplit/model"
)

func msg(n uint64, at time.Duration, from, to model.NodeID, typ string) model.Event {
	return model.Event{Num: n, At: at, Kind: model.EventMessage, Message: &model.Message{Num: n, Frame: n, At: at, From: from, To: to, Type: typ}}
}

func cutRun(p model.Partition, hosts []model.NodeID, events ...model.Event) Input {
	in := Input{Hosts: hosts, Nodes: hosts, Events: events}
	in.Summary.Scenario = onecut.Scenario{Strategy: model.StrategyRandom, Partition: p}.Model()
	in.Decisions = []model.Decision{{Event: 1, At: 1 * time.Second, Cut: true, Reason: model.ReasonTime}, {Event: 9, At: 3 * time.Second, Heal: true, Reason: model.ReasonTime}}
	return in
}

func TestCutSidesStandNextToEachOther(t *testing.T) {
	all := []model.NodeID{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		p     model.Partition
		talk  []model.Event
		want  string
		bands int
		says  string
	}{
		"partial, rest talks to the first side": {model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"d"}, {"b", "e"}}},
			[]model.Event{msg(5, 2*time.Second, "a", "d", "x"), msg(6, 2*time.Second, "c", "d", "x")}, "a c d b e", 1, "cut: d | b e"},
		"partial, rest talks to the second side": {model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"d"}, {"b", "e"}}},
			[]model.Event{msg(5, 2*time.Second, "a", "b", "x"), msg(6, 2*time.Second, "e", "c", "x")}, "d b e a c", 1, "cut: d | b e"},
		"three groups": {model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"e"}, {"a", "b"}, {"c", "d"}}},
			nil, "e a b c d", 2, "cut: e | a b | c d"},
		"simplex": {model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"b"}, {"a"}}},
			nil, "b a c d e", 1, "cut: a → b (the other way is open)"},
	} {
		t.Run(name, func(t *testing.T) {
			in := cutRun(c.p, all, c.talk...)
			tl := newTimeline(&in)
			if got := joinHosts(tl.hosts); got != c.want {
				t.Errorf("columns %s, want %s", got, c.want)
			}
			if got := newPicture(tl).bands(); len(got) != c.bands {
				t.Errorf("%d bands, want %d", len(got), c.bands)
			}
			wants(t, "picture", section(t, write(t, in), "picture"), c.says)
		})
	}
}

func TestRepeatsAreFolded(t *testing.T) {
	var events []model.Event
	for i := range 37 {
		events = append(events, msg(uint64(10+i), 1500*time.Millisecond+time.Duration(i)*10*time.Millisecond, "a", "b", "ping"))
	}
	in := cutRun(model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"a"}, {"c"}}}, []model.NodeID{"a", "b", "c"}, events...)
	pic := section(t, write(t, in), "picture")
	wants(t, "picture", pic, "ping  ×37 in 360 ms")
	if n := strings.Count(pic, `class="msg"`); n != 1 {
		t.Errorf("%d rows for 37 repeats, want 1", n)
	}
}

// A fold never moves a message over a change of value: order is what the
// picture is for.
func TestFoldStopsAtAChange(t *testing.T) {
	it := &item{from: "a", to: "b", typ: "ping"}
	rows := []row{{kind: rowItem, item: it, count: 1}, {kind: rowChange}, {kind: rowItem, item: it, count: 1}, {kind: rowItem, item: it, count: 1}}
	got := fold(rows, func(int, int) bool { return true })
	if len(got) != 3 || got[0].count != 1 || got[2].count != 2 {
		t.Errorf("folded to %d rows: %+v", len(got), got)
	}
}

func TestRetransmissionKeepsItsOwnFate(t *testing.T) {
	hosts := []model.NodeID{"a", "b"}
	pkt := func(n, frame uint64, at time.Duration, m, again []uint64) model.Event {
		return model.Event{Num: n, At: at, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: frame, From: "a", To: "b", Bytes: 90, Messages: m, Again: again}}
	}
	in := cutRun(model.Isolate("a", hosts, model.Drop), hosts, msg(2, 2*time.Second, "a", "b", "x"), pkt(3, 2, 2*time.Second, []uint64{2}, nil), pkt(10, 3, 4*time.Second, nil, []uint64{2}))
	in.Decisions = append(in.Decisions, model.Decision{Event: 3, Frame: 2, Action: model.DropPacket, Reason: model.ReasonAcross})
	tl := newTimeline(&in)
	if len(tl.items) != 2 || !tl.items[0].dropped || tl.items[1].dropped || !tl.items[1].again || tl.items[1].typ != "x" {
		t.Errorf("items %+v", tl.items)
	}
}

// brute compares the windows of disagreement with a look at every moment.
func TestDisagreementWindows(t *testing.T) {
	a, b := model.VarRef{Name: "v", Node: "a"}, model.VarRef{Name: "v", Node: "b"}
	var in Input
	in.Invariants = []model.Invariant{{ID: "i", Relation: model.RelationEqual, A: a, B: b}}
	for i, s := range []string{"a1", "b1", "a2", "b2", "b3", "a2", "a3"} {
		ref := a
		if s[0] == 'b' {
			ref = b
		}
		at := time.Duration(i+1) * time.Second
		in.Events = append(in.Events, model.Event{Num: uint64(i + 1), At: at, Kind: model.EventObserve, Observation: &model.Observation{At: at, Var: ref, Value: s[1:]}})
	}
	tl := newTimeline(&in)
	want := []window{{3 * time.Second, 4 * time.Second}, {5 * time.Second, 7 * time.Second}}
	if got := tl.disagreements(a); !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
	for at := time.Second; at <= 7*time.Second; at += time.Second / 2 {
		va, vb := tl.track(a).valueAt(at), tl.track(b).valueAt(at)
		in := slices.ContainsFunc(want, func(w window) bool { return at >= w.from && at < w.to })
		if (va != "" && vb != "" && va != vb) != in {
			t.Errorf("at %v: %q and %q, in a window: %v", at, va, vb, in)
		}
	}
}

// TestAStoppedNodeDisagreesWithNobody: what it said last is out of date when its
// variable's age is over, whether or not anybody says something then.
func TestAStoppedNodeDisagreesWithNobody(t *testing.T) {
	a, b := model.VarRef{Name: "v", Node: "a"}, model.VarRef{Name: "v", Node: "b"}
	in := Input{Invariants: []model.Invariant{{ID: "i", Relation: model.RelationEqual, A: a, B: b}}, MaxAge: map[string]time.Duration{"v": 1500 * time.Millisecond}}
	say := func(ref model.VarRef, at time.Duration, value string) {
		in.Events = append(in.Events, model.Event{Num: uint64(len(in.Events) + 1), At: at, Kind: model.EventObserve, Observation: &model.Observation{At: at, Var: ref, Value: value}})
	}
	say(a, 1*time.Second, "1")
	for i := range 8 {
		say(b, time.Duration(3+i)*time.Second/2, "2") // a is silent from 1 s on
	}
	say(a, 7*time.Second, "1") // and back when b is silent, whose last word is of 5 s
	say(b, 8*time.Second, "2")
	say(a, 8*time.Second, "1")
	in.Events = append(in.Events, model.Event{Num: 99, At: 20 * time.Second, Kind: model.EventTick})
	tl := newTimeline(&in)
	want := []window{{1500 * time.Millisecond, 2500 * time.Millisecond}, {8 * time.Second, 9500 * time.Millisecond}}
	if got := tl.disagreements(a); !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
}

func TestTextIsMadeFit(t *testing.T) {
	for in, want := range map[string]string{"a\x00b": "a·b", "\u202eevil": "·evil", "a\nb": "a b", "\xff": "�", "∅": "∅"} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	for d, want := range map[time.Duration]string{340 * time.Microsecond: "340 µs", 13 * time.Millisecond: "13.0 ms", 420 * time.Millisecond: "420 ms", 4200 * time.Millisecond: "4.20 s", 125 * time.Second: "2 min 5 s", -2 * time.Millisecond: "−2.0 ms"} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %q, want %q", d, got, want)
		}
	}
	if got := fit("a long name of a message type", 80, 11.5); width(got, 11.5) > 80 || !strings.Contains(got, "…") {
		t.Errorf("fit gives %q", got)
	}
}

// TestANumberIsToldWithItsName: alone it says nothing, and that it stands in
// the type by chance is no reason to leave it out. A place is no name.
func TestANumberIsToldWithItsName(t *testing.T) {
	for _, c := range []struct {
		typ, name, value, want string
	}{
		{"frame 0x6", "config_epoch", "6", "config_epoch=6"},
		{"frame 0x6", "config_epoch", "12", "config_epoch=12"},
		{"frame 0x6", "about", "3cfb2ee6", "3cfb2ee6"},
		{"resp SELECT", "arg0", "5", "5"},
		{"resp SET", "command", "set k", "k"},
	} {
		m := model.Message{Type: c.typ, Fields: []model.Field{{Name: c.name, Value: c.value}}}
		if got := brief(&m); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
