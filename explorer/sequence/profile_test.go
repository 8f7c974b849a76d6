package sequence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer/sequence"
	"netsplit/internal/simwrite"
	"netsplit/model"
)

// runOf makes the events of messages "from>to type" after the start of a workload.
func runOf(msgs ...model.Message) []model.Event {
	out := []model.Event{{Num: 1, Kind: model.EventStart}, {Num: 2, Kind: model.EventWorkload}}
	for i := range msgs {
		msgs[i].Num = uint64(i + 1)
		out = append(out, model.Event{Num: uint64(i + 3), At: time.Duration(i) * time.Millisecond, Kind: model.EventMessage, Message: &msgs[i]})
	}
	return out
}

func msg(from, to model.NodeID, typ string) model.Message {
	return model.Message{From: from, To: to, FromPort: 50001, ToPort: 7000, Type: typ}
}

func lines(p model.Profile) []string {
	var out []string
	for _, s := range p.Points {
		out = append(out, s.String())
	}
	return out
}

func TestAfterLeavesPeriodicTypesOut(t *testing.T) {
	events := runOf(msg("c1", "n1", "write"), msg("n2", "n1", "ping"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"))
	got := lines(sequence.FromEvents(events, nil, nil, sequence.Options{Nodes: []model.NodeID{"n1", "n2"}, Ports: []uint16{7000}, Periodic: map[string]bool{"ping": true}}))
	want := []string{
		`receive c1>n1 "write" :7000, number 1`,
		`send n1>n2 "copy" :7000 after "write", number 1`, `receive n1>n2 "copy" :7000, number 1`,
		`send n1>n2 "copy" :7000 after "write", number 2`, `receive n1>n2 "copy" :7000 after "copy", number 1`,
		`send n1>n2 "copy" :7000 after "write", number more`, `receive n1>n2 "copy" :7000 after "copy", number 2`,
		`send n1>n2 "copy" :7000 after "write", number more`, `receive n1>n2 "copy" :7000 after "copy", number more`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
}

func TestNothingBeforeTheWorkloadIsAPoint(t *testing.T) {
	events := runOf(msg("n1", "n2", "hello"))
	events[1], events[2] = events[2], events[1]
	if got := lines(sequence.FromEvents(events, nil, nil, sequence.Options{})); len(got) != 0 {
		t.Errorf("points %v", got)
	}
}

// Of what opens and closes connections, and of what the target says its timers send,
// there are no points, and none is after it.
func TestConnectionsAndTimersAreNoPoints(t *testing.T) {
	events := runOf(msg("c1", "n1", "write"), msg("n2", "n1", "tcp syn :7000"), msg("n2", "n1", "tcp fin"), msg("n2", "n1", "tcp rst"), msg("n2", "n1", "beat 7"), msg("n1", "n2", "copy"))
	got := lines(sequence.FromEvents(events, nil, nil, sequence.Options{Ports: []uint16{7000}, Nodes: []model.NodeID{"n1"}, Timers: []string{"beat *"}}))
	if want := []string{`receive c1>n1 "write" :7000, number 1`, `send n1>n2 "copy" :7000 after "write", number 1`}; !slices.Equal(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
}

// A point that comes once no fault can begin is beyond the bound, which is the end of the workload or earlier.
func TestPointsBeyondTheBound(t *testing.T) {
	events := runOf(msg("n1", "n2", "a"), msg("n1", "n2", "b"), msg("n1", "n2", "c"))
	stop := len(events) - 1
	events = slices.Insert(events, stop, model.Event{Num: 9, Kind: model.EventStop})
	for bound, want := range map[time.Duration]string{0: "c", time.Millisecond: "bc"} {
		beyond := ""
		for _, s := range sequence.FromEvents(events, nil, nil, sequence.Options{LastFault: bound}).Points {
			if s.Beyond && s.Side == model.SideSend {
				beyond += s.Type
			}
		}
		if beyond != want {
			t.Errorf("a bound of %v: %q is beyond it, want %q", bound, beyond, want)
		}
	}
}

// What is not a key is not counted by: without after, the second copy is number 2
// whatever came between.
func TestNthCountsByTheKeys(t *testing.T) {
	events := runOf(msg("n1", "n2", "copy"), msg("n2", "n1", "ack"), msg("n1", "n2", "copy"))
	keys := []model.PointKey{model.KeySide, model.KeyNode, model.KeyType, model.KeyNth}
	got := sequence.FromEvents(events, nil, nil, sequence.Options{Keys: keys}).Points
	if last := got[len(got)-2]; last.Type != "copy" || last.Nth != 2 {
		t.Errorf("the second copy is %s", last)
	}
	got = sequence.FromEvents(events, nil, nil, sequence.Options{}).Points
	if last := got[len(got)-2]; last.Nth != 1 || last.After != "ack" {
		t.Errorf("the second copy is %s", last)
	}
}

// A message that the gate refuses is sent, and received only if a retransmission of it
// passes.
func TestRefusedIsNotReceived(t *testing.T) {
	a, b := msg("n1", "n2", "lost"), msg("n1", "n2", "late")
	events := runOf(a, b)
	events = append(events,
		model.Event{Num: 5, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: 1, Messages: []uint64{1, 2}}},
		model.Event{Num: 6, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: 2, Again: []uint64{2}}})
	decisions := []model.Decision{{Event: 5, Frame: 1, Action: model.DropPacket, Cut: true}}
	var got []string
	for _, s := range sequence.FromEvents(events, decisions, []uint64{5}, sequence.Options{}).Points {
		got = append(got, string(rune('0'+s.Step))+" "+string(s.Side)+" "+s.Type)
	}
	if want := []string{"0 send lost", "0 send late", "1 receive late"}; !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
}

// The record of a run tells the points that the run itself named while it went on: in
// all single crashes of the simulated write.
func TestRecordAndRunNamePointsAlike(t *testing.T) {
	o := simwrite.Options{Bugs: simwrite.Bugs(), Record: true}
	clean := simwrite.Execute(o, nil, 1)
	if len(clean.Profile.Points) < 30 {
		t.Fatalf("%d points", len(clean.Profile.Points))
	}
	for _, p := range clean.Profile.Points {
		run := simwrite.Execute(o, []model.PointFault{{Point: p.Point, Kind: model.PointCrash, Place: model.PlaceBefore}}, 1)
		if run.Occurred != 1 {
			t.Errorf("%s does not come again", p)
		}
		want := slices.DeleteFunc(run.Profile.Points, func(s model.SeenPoint) bool { return s.Side == model.SideFile })
		got := sequence.FromEvents(run.Events, run.Decisions, run.Fired, simwrite.PointOptions(nil)).Points
		turns := map[model.SeenPoint]int{}
		for i, s := range got { // the simulation does not count them
			alike := model.SeenPoint{Point: model.Point{Side: s.Side, Node: s.Node, Peer: s.Peer, Type: s.Type}, Step: s.Step}
			if turns[alike]++; s.Turn != turns[alike] {
				t.Fatalf("a crash at %s: turn %d of %s after step %d, want %d", p, s.Turn, s, s.Step, turns[alike])
			}
			got[i].Turn, got[i].Beyond = 0, false
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("a crash at %s (-run +record):\n%s", p, d)
		}
	}
}

// TestARecordedProfileNamesTheSteps that had begun: also where the second step of the scenario
// begins before the first. Each point is there once after each step.
func TestARecordedProfileNamesTheSteps(t *testing.T) {
	events := runOf(msg("n1", "n2", "copy"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"), msg("n1", "n2", "copy"))
	decisions := []model.Decision{{Event: 4, Step: 2}, {Event: 6, Step: 1}, {Event: 7, Step: 2, Heal: true}}
	p := sequence.Recorded(events, decisions, sequence.Options{Nodes: []model.NodeID{"n1"}, Ports: []uint16{7000}, Keys: []model.PointKey{model.KeyType, model.KeySide}})
	var got [][2]int
	for _, s := range p.Points {
		got = append(got, [2]int{int(s.Event), s.Step})
	}
	if want := [][2]int{{3, 0}, {5, 2}, {7, 1}}; !slices.Equal(got, want) {
		t.Errorf("points by event and step %v, want %v", got, want)
	}
}
