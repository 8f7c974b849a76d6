package sequence

import (
	"testing"
	"time"

	"netsplit/model"
)

func TestFaultsBecomeSteps(t *testing.T) {
	send := model.Point{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "ack", Nth: 1}
	recv := model.Point{Side: model.SideReceive, Node: "n1", Peer: "n2", Type: "ack", Nth: 1}
	play := Play{MaxCut: time.Second, Isolating: func(n model.NodeID) model.Partition { return model.Isolate(n, []model.NodeID{"n1", "n2"}, model.Drop) }}
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
		if n := Occurred(faults, began); (n == 1) != (len(steps) == 1) {
			t.Errorf("%s: %d occurred once step 1 of %d had begun", c.f, n, len(steps))
		}
		d := []model.Decision{{Event: 7, Fault: 1}, {Event: 7, Step: 2, Verb: model.NodeKill}, {Event: 9, Fault: 1}}
		if len(steps) == 1 {
			d = []model.Decision{{Event: 7, Step: 1, Cut: true}, {Event: 9, Step: 1, Heal: true}}
		}
		if at := FiredSteps(faults, d); len(at) != 1 || at[0] != 7 {
			t.Errorf("%s fired at %v, want 7", c.f, at)
		}
	}
}

func TestStepsFollowOneAnother(t *testing.T) {
	f := Placed{PointFault: model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "x"}, Kind: model.PointCrash, Place: model.PlaceBefore}, Turn: 1}
	steps := Play{}.Steps([]Placed{f, f})
	if len(steps) != 4 {
		t.Fatal(steps)
	}
	for i, s := range steps[1:] {
		if s.When.Follows != model.FollowsBegin {
			t.Errorf("step %d does not follow", i+2)
		}
	}
}
