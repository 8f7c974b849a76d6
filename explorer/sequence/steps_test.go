package sequence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netsplit/model"
)

func TestFaultsBecomeSteps(t *testing.T) {
	send := model.Point{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "ack", Nth: 1}
	recv := model.Point{Side: model.SideReceive, Node: "n1", Peer: "n2", Type: "ack", Nth: 1}
	play := Play{Keys: model.PointKeys(), MaxCut: time.Second, Isolating: func(n ...model.NodeID) model.Partition {
		return model.IsolateAll(n, []model.NodeID{"n1", "n2"}, model.Drop)
	}}
	for _, c := range []struct {
		f    model.PointFault
		want []string
	}{
		{model.PointFault{Point: send, Kind: model.PointCrash, Place: model.PlaceBefore},
			[]string{`lose`, "crash n2; when the step before has begun; at most 1s"}},
		{model.PointFault{Point: send, Kind: model.PointCrash, Place: model.PlaceAfter},
			[]string{`crash n2; when message ack n2>n1, number 4; at most 1s`}},
		{model.PointFault{Point: send, Kind: model.PointLose, Place: model.PlaceBefore}, []string{"lose"}},
		{model.PointFault{Point: recv, Kind: model.PointCrash, Place: model.PlaceBefore},
			[]string{`crash n1; when message ack n2>n1, number 4; at most 1s`}},
		{model.PointFault{Point: recv, Kind: model.PointIsolate, Place: model.PlaceBefore},
			[]string{"cut"}},
	} {
		steps := play.Steps([]Placed{{PointFault: c.f, Turn: 4}})
		if len(steps) != len(c.want) {
			t.Errorf("%s: %v", c.f, steps)
			continue
		}
		faults := []model.PointFault{c.f}
		for i := range steps {
			if err := steps[i].Validate([]model.NodeID{"n1", "n2"}, i+1); err != nil {
				t.Errorf("%s: %v", c.f, err)
			}
			got := steps[i].String()
			if m := steps[i].Do.Message; m != nil {
				got = string(m.Kind)
				if m.Nth != 4 || m.Match.From != "n2" || m.Match.To != "n1" || m.Lose != model.LoseMessage {
					t.Errorf("%s loses %v", c.f, m)
				}
			} else if cut := steps[i].Do.Cut; cut != nil {
				got = "cut"
				if steps[i].Do.Isolate != "n1" || steps[i].Max != time.Second || steps[i].When.Message.Nth != 4 {
					t.Errorf("%s cuts %v", c.f, steps[i])
				}
			}
			if got != c.want[i] {
				t.Errorf("%s is played as %q, want %q", c.f, got, c.want[i])
			}
		}
		began := []model.StepResult{{Step: 1, By: model.ReasonMessage}}
		if n, _ := Occurred(faults, began, []model.Point{c.f.Point}, Options{}); (n == 1) != (len(steps) == 1) {
			t.Errorf("%s: %d occurred once step 1 of %d had begun", c.f, n, len(steps))
		}
		d := []model.Decision{{Event: 7, Fault: 1}, {Event: 7, Step: 2, Verb: model.NodeKill}, {Event: 9, Fault: 1}}
		if len(steps) == 1 {
			d = []model.Decision{{Event: 7, Step: 1, Cut: true}, {Event: 9, Step: 1, Heal: true}}
		}
		if at := FiredSteps(faults, d, Options{}); len(at) != 1 || at[0] != 7 {
			t.Errorf("%s fired at %v, want 7", c.f, at)
		}
	}
}

// A crash at the second ack, which came once after an order and once after a write.
func TestTheMetPointIsComparedWithTheOneAskedFor(t *testing.T) {
	msg := func(from, to model.NodeID, typ string) *model.Message {
		return &model.Message{From: from, To: to, Type: typ, FromPort: 9, ToPort: 7}
	}
	events := []model.Event{{Kind: model.EventWorkload}}
	for i, m := range []*model.Message{msg("c1", "n1", "order"), msg("n1", "n2", "ack"), msg("c1", "n1", "write"), msg("n1", "n2", "ack")} {
		m.Num = uint64(i + 1)
		events = append(events, model.Event{Kind: model.EventMessage, Message: m},
			model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: m.Num, Messages: []uint64{m.Num}}})
	}
	for i := range events {
		events[i].Num = uint64(i + 1)
	}
	at := func(side model.Side, node, peer model.NodeID, after string) model.PointFault {
		return model.PointFault{Point: model.Point{Side: side, Node: node, Peer: peer, Type: "ack", Port: 7, After: after, Nth: 1}, Kind: model.PointIsolate, Place: model.PlaceBefore}
	}
	results := []model.StepResult{{Step: 1, By: model.ReasonMessage}}
	for _, c := range []struct {
		asked model.PointFault
		n     int
		other string
	}{
		{at(model.SideSend, "n1", "n2", "write"), 1, ""},
		{at(model.SideSend, "n1", "n2", "order"), 0, `send n1>n2 "ack" :7 after "write", number 1`},
		{at(model.SideReceive, "n2", "n1", "ack"), 1, ""},
		{at(model.SideReceive, "n2", "n1", ""), 0, `receive n1>n2 "ack" :7 after "ack", number 1`},
	} {
		// The packet is refused: it is met, and not delivered.
		_, met := Played(events, []model.Decision{{Event: 9, Step: 1, Cut: true, Message: 4}, {Event: 9, Frame: 4, Action: model.DropPacket}},
			[]model.PointFault{c.asked}, Options{})
		n, other := Occurred([]model.PointFault{c.asked}, results, met, Options{})
		if got := fmt.Sprint(other); n != c.n || (other == nil) != (c.other == "") || other != nil && got != c.other {
			t.Errorf("%s: %d occurred, and met was %v", c.asked, n, other)
		}
		without := slices.DeleteFunc(model.PointKeys(), func(k model.PointKey) bool { return k == model.KeyAfter })
		if n, _ := Occurred([]model.PointFault{c.asked}, results, met, Options{Keys: without}); n != 1 {
			t.Errorf("%s did not occur by keys without after", c.asked)
		}
	}
}

func TestStepsFollowOneAnother(t *testing.T) {
	f := Placed{PointFault: model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "x"}, Kind: model.PointCrash, Place: model.PlaceBefore}, Turn: 1}
	steps := Play{Keys: model.PointKeys()}.Steps([]Placed{f, f})
	if len(steps) != 4 {
		t.Fatal(steps)
	}
	for i, s := range steps[1:] {
		if s.When.Follows != model.FollowsBegin {
			t.Errorf("step %d does not follow", i+2)
		}
	}
}

// A point that is whichever peer's is waited for so, and numbered so.
func TestAPeerThatIsNoKeyIsNotWaitedFor(t *testing.T) {
	keys := []model.PointKey{model.KeySide, model.KeyNode, model.KeyType}
	events := []model.Event{{Num: 1, Kind: model.EventWorkload}}
	for i, ends := range [][2]model.NodeID{{"n1", "n2"}, {"n1", "n3"}, {"n2", "n3"}, {"n1", "n2"}} {
		events = append(events, model.Event{Num: uint64(i + 2), Kind: model.EventMessage,
			Message: &model.Message{Num: uint64(i + 1), From: ends[0], To: ends[1], Type: "ack"}})
	}
	for _, c := range []struct {
		keys       []model.PointKey
		send, recv string // triggers at the last message
	}{
		{keys, "message ack n1>*, number 3", "message ack *>n2, number 2"},
		{append(keys, model.KeyPeer), "message ack n1>n2, number 2", "message ack n1>n2, number 2"},
	} {
		points := FromEvents(events, nil, nil, Options{Keys: c.keys}).Points
		for _, s := range points[len(points)-2:] {
			f := Placed{model.PointFault{Point: s.Point, Kind: model.PointPowerCut, Place: model.PlaceBefore}, s.Turn}
			want := c.send
			if s.Side == model.SideReceive {
				want = c.recv
			}
			if got := (Play{Keys: c.keys}).Steps([]Placed{f})[0].When.String(); got != want {
				t.Errorf("by the keys %v, %s waits for %s, want %s", c.keys, s, got, want)
			}
		}
	}
}

// Where neither end is a key, a fault is of whoever sends or gets the message that comes; those
// of clients count too.
func TestAHostThatIsNoKeyIsWhoeverHasTheMessage(t *testing.T) {
	keys := []model.PointKey{model.KeySide, model.KeyType}
	nodes := []model.NodeID{"n1", "n2", "n3"}
	events := []model.Event{{Num: 1, Kind: model.EventWorkload}}
	for i, ends := range [][2]model.NodeID{{"c1", "n2"}, {"n1", "c1"}, {"n3", "n1"}} {
		events = append(events, model.Event{Num: uint64(i + 2), Kind: model.EventMessage,
			Message: &model.Message{Num: uint64(i + 1), From: ends[0], To: ends[1], Type: "put"}})
	}
	points := FromEvents(events, nil, nil, Options{Keys: keys, Nodes: nodes}).Points
	if n := len(points); n != 4 || points[n-2].Turn != 3 || points[n-1].Turn != 3 {
		t.Fatalf("points %v", points)
	}
	play := Play{Keys: keys, Isolating: func(n ...model.NodeID) model.Partition { return model.IsolateAll(n, nodes, model.Drop) },
		Around: Around{Nodes: nodes, Clients: []model.NodeID{"c1"}, Role: "leader"}}
	for _, c := range []struct {
		kind  model.PointFaultKind
		place model.FaultPlace
		want  string
		roles string
	}{
		{model.PointCrash, model.PlaceBefore, "crash sender; when the step before has begun", "[sender]"},
		{model.PointCrash, model.PlaceAfter, "crash sender; when message put *>*, number 3", "[sender]"},
		{model.PointPowerCut, model.PlaceAfter, "power cut on sender; when message put *>*, number 3", "[sender]"},
		{model.PointIsolate, model.PlaceBefore, "cut complete sender | n1,n2,n3; when message put *>*, number 3", "[sender]"},
		{model.PointPartial, model.PlaceBefore, "cut partial sender | receiver; when message put *>*, number 3", "[sender receiver]"},
		{model.PointLeader, model.PlaceBefore, "cut complete leader | n1,n2,n3; when message put *>*, number 3", "[leader]"},
	} {
		f := Placed{model.PointFault{Point: points[2].Point, Kind: c.kind, Place: c.place}, points[2].Turn}
		steps := play.Steps([]Placed{f})
		last := steps[len(steps)-1]
		if got := last.String(); got != c.want || fmt.Sprint(last.Do.Roles) != c.roles {
			t.Errorf("%s is played as %s by %v, want %s by %s", c.kind, got, last.Do.Roles, c.want, c.roles)
		}
		for i := range steps {
			if err := steps[i].Validate(append(nodes, "c1"), i+1); err != nil {
				t.Errorf("%s: %v", c.kind, err)
			}
		}
	}
	received := Placed{model.PointFault{Point: points[3].Point, Kind: model.PointCrash, Place: model.PlaceBefore}, 3}
	if got := play.Steps([]Placed{received})[0].String(); got != "crash receiver; when message put *>*, number 3" {
		t.Error(got)
	}
}
