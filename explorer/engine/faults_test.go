package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"netsplit/explorer/engine"
	"netsplit/internal/onecut"
	"netsplit/model"
)

// fate is what became of one packet: when it went out, and how often it was said
// to be over.
type fate struct {
	at      time.Duration
	p       *model.HeldPacket
	types   []string
	first   model.Action
	passed  []time.Duration
	copies  []time.Duration
	dropped int
	order   int // of its passing among all that passed, from 1
}

// faultRun steps a random run of datagrams and streams and books what is decided.
type faultRun struct {
	t      *testing.T
	e      *engine.Engine
	fates  []*fate
	now    time.Duration
	num    uint64
	msgs   uint64
	passed int
	log    []model.Decision
}

func (r *faultRun) step(ev model.Event) {
	r.num++
	ev.Num, ev.At = r.num, r.now
	own := 0
	for _, d := range r.e.Step(ev) {
		if r.log = append(r.log, d); d.Cut || d.Heal {
			continue
		}
		if d.Frame == 0 || int(d.Frame) > len(r.fates) {
			r.t.Fatalf("a decision about no packet: %+v", d)
		}
		f := r.fates[d.Frame-1]
		if ev.Packet != nil && d.Frame == ev.Packet.Frame && f.first == "" {
			f.first = d.Action
			own++
		}
		switch d.Action {
		case model.Pass:
			f.passed = append(f.passed, r.now)
			r.passed++
			f.order = r.passed
		case model.DropPacket, model.ResetConn:
			f.dropped++
		case model.Copy:
			if len(f.passed) == 0 {
				r.t.Fatalf("a copy of packet %d that has not passed", d.Frame)
			}
			f.copies = append(f.copies, r.now)
		}
	}
	if ev.Packet != nil && own != 1 {
		r.t.Fatalf("%d decisions about packet %d when it came, want one", own, ev.Packet.Frame)
	}
}

// until ticks exactly when the engine asks for it.
func (r *faultRun) until(t time.Duration) {
	for {
		next, ok := r.e.Next()
		if !ok || next > t {
			break
		}
		r.now = max(r.now, next)
		r.step(model.Event{Kind: model.EventTick})
	}
	r.now = t
}

func (r *faultRun) packet(from, to model.NodeID, stream string, types ...string) {
	p := &model.HeldPacket{Frame: uint64(len(r.fates) + 1), From: from, To: to, Stream: stream, Payload: 10}
	for _, ty := range types {
		r.msgs++
		p.Messages = append(p.Messages, r.msgs)
		r.step(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: r.msgs, From: from, To: to, Type: ty, Stream: stream}})
	}
	r.fates = append(r.fates, &fate{at: r.now, p: p, types: types})
	r.step(model.Event{Kind: model.EventPacket, Packet: p})
}

func randomFault(rng *rand.Rand, kinds []model.FaultKind) model.MessageFault {
	ms := func(n int) time.Duration { return time.Duration(1+rng.IntN(n)) * time.Millisecond }
	f := model.MessageFault{Kind: kinds[rng.IntN(len(kinds))], Nth: rng.IntN(4), Every: rng.IntN(4), Times: rng.IntN(4),
		Match: model.MessageMatch{Type: []string{"A", "B*", "*"}[rng.IntN(3)], From: []model.NodeID{"", "n1"}[rng.IntN(2)], To: []model.NodeID{"", "n2"}[rng.IntN(2)]}}
	switch f.Kind {
	case model.FaultDelay:
		f.For = ms(30)
	case model.FaultDuplicate:
		f.Copies, f.Gap = rng.IntN(3), ms(10)
	case model.FaultReorder:
		f.Behind, f.Limit = rng.IntN(3), ms(20)
	case model.FaultLose:
		if rng.IntN(2) == 0 {
			f.Lose = model.LoseMessage
		}
	}
	return f
}

func faultyRun(t *testing.T, seed uint64, kinds []model.FaultKind, n int) (*faultRun, []model.MessageFault) {
	rng := rand.New(rand.NewPCG(seed, 9))
	var scn onecut.Scenario
	for range 1 + rng.IntN(n) {
		f := randomFault(rng, kinds)
		if err := f.Validate([]model.NodeID{"n1", "n2", "n3"}); err != nil {
			t.Fatal(err)
		}
		scn.Faults = append(scn.Faults, f)
	}
	r := &faultRun{t: t, e: engine.New(scn.Model()), now: time.Millisecond}
	r.random(rng, func() {})
	return r, scn.Faults
}

// random goes through 150 packets; between is done before each.
func (r *faultRun) random(rng *rand.Rand, between func()) {
	r.step(model.Event{Kind: model.EventWorkload})
	hosts := []model.NodeID{"n1", "n2", "n3"}
	for range 150 {
		r.until(r.now + time.Duration(rng.IntN(4000))*time.Microsecond)
		between()
		i := rng.IntN(3)
		from, to := hosts[i], hosts[(i+1+rng.IntN(2))%3]
		stream := ""
		if rng.IntN(2) == 0 {
			stream = fmt.Sprintf("tcp %s>%s#%d", from, to, rng.IntN(2))
		}
		var types []string
		for range rng.IntN(3) {
			types = append(types, []string{"A", "B1", "B2", "C"}[rng.IntN(4)])
		}
		r.packet(from, to, stream, types...)
	}
	r.step(model.Event{Kind: model.EventStop})
}

// However a script begins faults, ends them and cuts, as in records of earlier versions: a packet passes once or is dropped
// once, a fault that has ended acts on nothing more and keeps nothing, and delays keep the
// order of a stream.
func TestFaultsOfScripts(t *testing.T) {
	ended, acted := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 10))
		kinds := model.FaultKinds()
		if seed%3 == 0 {
			kinds = []model.FaultKind{model.FaultDelay}
		}
		r := &faultRun{t: t, e: engine.New(model.Scenario{Strategy: model.StrategyScripted}), now: time.Millisecond}
		begun, over := 0, map[int]int{} // on how many packets it had acted at its end
		r.random(rng, func() {
			switch p := rng.IntN(20); {
			case p < 3:
				f := randomFault(rng, kinds)
				r.step(model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Begin: &f}})
				begun++
			case p == 3 && begun > 0:
				n := 1 + rng.IntN(begun)
				r.step(model.Event{Kind: model.EventFault, Fault: &model.FaultChange{End: n}})
				if _, twice := over[n]; !twice {
					over[n], _ = r.e.Acted(n)
				}
			case p == 4:
				a := &model.RuleCut{Name: "a", Partition: &model.Partition{}}
				for _, x := range r.fates {
					if len(x.passed)+x.dropped == 0 && rng.IntN(2) == 0 {
						a.Kept = append(a.Kept, x.p.Frame)
					}
				}
				r.step(model.Event{Kind: model.EventRuleCut, RuleCut: a})
			case p == 5:
				r.step(model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a"}})
			}
		})
		for i, f := range r.fates {
			if len(f.passed)+f.dropped != 1 {
				t.Errorf("seed %d: packet %d passed %v and was dropped %d times", seed, f.p.Frame, f.passed, f.dropped)
			}
			for _, b := range r.fates[i+1:] {
				if len(kinds) == 1 && f.p.Stream != "" && b.p.Stream == f.p.Stream && len(f.passed)+len(b.passed) == 2 && b.order < f.order {
					t.Errorf("seed %d: packet %d overtook packet %d of its stream", seed, b.p.Frame, f.p.Frame)
				}
			}
		}
		for n, was := range over {
			if is, _ := r.e.Acted(n); is != was {
				t.Errorf("seed %d: fault %d acted on %d more after its end", seed, n, is-was)
			}
			ended++
		}
		for _, p := range r.e.Result().Faults {
			acted += p.Acted
		}
		if _, ok := r.e.Next(); ok {
			t.Errorf("seed %d: something is kept after the end", seed)
		}
	}
	if ended < 300 || acted < 1000 {
		t.Errorf("%d faults were ended, %d packets acted on: the test shows little", ended, acted)
	}
}

// Whatever the faults are: a packet passes once or is dropped once, a datagram
// that none acts on passes at once, and a second engine says the same.
func TestEveryKeptPacketHasOneEnd(t *testing.T) {
	for seed := range uint64(300) {
		r, faults := faultyRun(t, seed, model.FaultKinds(), 4)
		for _, f := range r.fates {
			if len(f.passed)+f.dropped != 1 {
				t.Errorf("seed %d: packet %d passed %v and was dropped %d times", seed, f.p.Frame, f.passed, f.dropped)
			}
		}
		again, _ := faultyRun(t, seed, model.FaultKinds(), 4)
		a, _ := json.Marshal(r.log)
		b, _ := json.Marshal(again.log)
		if string(a) != string(b) {
			t.Errorf("seed %d: two engines differ", seed)
		}
		if _, ok := r.e.Next(); ok {
			t.Errorf("seed %d: something is kept after the workload (%v)", seed, faults)
		}
	}
}

// What a plain reading of one fault says: the numbers of the matching messages
// that it acts on, and no other packet is touched but by the order of a stream.
func TestFaultsActOnTheMessagesTheyName(t *testing.T) {
	acted := 0
	for seed := range uint64(400) {
		kind := model.FaultKinds()[seed%4]
		r, faults := faultyRun(t, seed, []model.FaultKind{kind}, 1)
		f := faults[0]
		match, done := 0, 0
		end := r.now
		gone := map[string]bool{} // streams that were reset
		for _, x := range r.fates {
			ours := false
			for _, ty := range x.types {
				if !(ty == f.Match.Type || f.Match.Type == "*" || f.Match.Type == "B*" && ty[0] == 'B') ||
					f.Match.From != "" && f.Match.From != x.p.From || f.Match.To != "" && f.Match.To != x.p.To {
					continue
				}
				if gone[x.p.Stream] {
					continue // lost before it was looked at
				}
				match++
				nth := max(f.Nth, 1)
				due := match >= nth && (f.Every == 0 && match < nth+max(f.Times, 1) || f.Every > 0 && (match-nth)%f.Every == 0 && (f.Times == 0 || done < f.Times))
				if due && !ours && kind != model.FaultReorder {
					ours = true
					done++
				}
			}
			acted += map[bool]int{true: 1}[ours]
			tcp := x.p.Stream != ""
			switch {
			case kind == model.FaultReorder: // see the next test
			case !ours && gone[x.p.Stream] && tcp:
				if x.dropped != 1 {
					t.Errorf("seed %d %s: packet %d passed on a stream that was reset", seed, f.String(), x.p.Frame)
				}
			case !ours && (kind != model.FaultDelay || !tcp):
				if x.first != model.Pass || len(x.copies) > 0 || x.passed[0] != x.at {
					t.Errorf("seed %d %s: packet %d is none of its and was touched: %+v", seed, f.String(), x.p.Frame, x)
				}
			case kind == model.FaultLose:
				if x.dropped != 1 {
					t.Errorf("seed %d %s: packet %d was not lost", seed, f.String(), x.p.Frame)
				}
				if tcp && f.Lose == model.LoseMessage {
					gone[x.p.Stream] = true
				}
			case kind == model.FaultDelay && ours && !tcp:
				if want := min(x.at+f.For, end); x.passed[0] != want {
					t.Errorf("seed %d %s: packet %d of %v passed at %v, want %v", seed, f.String(), x.p.Frame, x.at, x.passed[0], want)
				}
			case kind == model.FaultDelay && ours:
				if x.passed[0] < min(x.at+f.For, end) {
					t.Errorf("seed %d %s: packet %d of %v passed at %v", seed, f.String(), x.p.Frame, x.at, x.passed[0])
				}
			case kind == model.FaultDuplicate:
				var want []time.Duration
				for i := range max(f.Copies, 1) {
					if at := x.at + time.Duration(i+1)*f.Gap; at <= end {
						want = append(want, at)
					}
				}
				if n := len(want); n > 0 && want[n-1] == end { // the end may come first
					x.copies = append(x.copies, want[len(x.copies):]...)
				}
				if !slices.Equal(x.copies, want) || x.passed[0] != x.at {
					t.Errorf("seed %d %s: packet %d of %v: copies at %v, want %v", seed, f.String(), x.p.Frame, x.at, x.copies, want)
				}
			}
		}
		if res := r.e.Result().Faults[0]; kind != model.FaultReorder && (res.Met != match || res.Acted != done) {
			t.Errorf("seed %d %s: met %d and acted on %d, want %d and %d", seed, f.String(), res.Met, res.Acted, match, done)
		}
	}
	if acted < 500 {
		t.Errorf("only %d packets were acted on: the test shows little", acted)
	}
}

// Delays keep the order of each TCP stream, and only reordering changes it: by as
// many packets as it says.
func TestTheOrderOfAStream(t *testing.T) {
	overtaken := 0
	for seed := range uint64(300) {
		kind := []model.FaultKind{model.FaultDelay, model.FaultReorder}[seed%2]
		r, faults := faultyRun(t, seed, []model.FaultKind{kind}, 3)
		most := 0
		for _, f := range faults {
			most = max(most, f.Behind, model.DefaultBehind)
		}
		for i, a := range r.fates {
			before := 0
			for _, b := range r.fates[i+1:] {
				same := a.p.Stream == b.p.Stream && (a.p.Stream != "" || a.p.From == b.p.From && a.p.To == b.p.To)
				if same && b.order < a.order {
					before++
				}
			}
			switch {
			case kind == model.FaultDelay && a.p.Stream != "" && before > 0:
				t.Errorf("seed %d: %d packets of its stream overtook packet %d", seed, before, a.p.Frame)
			case kind == model.FaultReorder && before > most*len(faults):
				t.Errorf("seed %d: %d packets of its flow overtook packet %d, want %d at most", seed, before, a.p.Frame, most*len(faults))
			case kind == model.FaultReorder && before > 0:
				overtaken++
			}
		}
	}
	if overtaken < 100 {
		t.Errorf("only %d packets were overtaken: the test shows little", overtaken)
	}
}
