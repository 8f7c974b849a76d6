package sequence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// operations are the events of a run: what n1 and n2 do to files after a message.
func operations() []model.Event {
	out := runOf(msg("c1", "n1", "write"))
	for _, o := range []model.FileOperation{
		{Host: "n1", Op: model.FileWrite, Kind: "[log]/a#.{x}"}, {Host: "n1", Op: model.FileWrite, Kind: "[log]/a#.{x}"},
		{Host: "n1", Op: model.FileSync, Kind: "[log]/a#.{x}"}, {Host: "n1", Op: model.FileSync, Kind: "[log]/"},
		{Host: "n1", Op: model.FileWrite, Path: "/dev/null"}, {Host: "n1", Op: model.FileWrite, Kind: "out.log"},
		{Host: "n2", Op: model.FileRename, Kind: "b.tmp", ToKind: "b"},
	} {
		num := uint64(len(out) + 1)
		out = append(out, model.Event{Num: num, At: time.Duration(num) * time.Millisecond, Kind: model.EventFile, File: &o})
	}
	return out
}

// TestOperationsOnFilesArePoints, but for those below no folder and those that the target
// leaves out.
func TestOperationsOnFilesArePoints(t *testing.T) {
	p := sequence.FromEvents(operations(), nil, nil, sequence.Options{Nodes: []model.NodeID{"n1", "n2"}, Ports: []uint16{7000}, Timers: []string{"write *.log"}})
	want := []string{
		`receive c1>n1 "write" :7000, number 1`,
		`file n1 "write [log]/a#.{x}" after "write", number 1`, `file n1 "write [log]/a#.{x}" after "write", number 2`,
		`file n1 "sync [log]/a#.{x}" after "write", number 1`, `file n1 "sync [log]/" after "write", number 1`,
		`file n2 "rename b.tmp", number 1`,
	}
	if d := cmp.Diff(want, lines(p)); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
	corrupt := []sequence.FaultAt{{Kind: model.PointCorrupt, Side: model.SideFile, Place: model.PlaceBefore}, {Kind: model.PointTorn, Side: model.SideFile, Place: model.PlaceBefore}}
	for _, s := range p.Points {
		if n, want := len(sequence.FaultsAt(corrupt, s.Point)), s.Type == "sync [log]/a#.{x}"; n == 2 != want || n == 1 {
			t.Errorf("%d corruptions at %s", n, s)
		}
	}
}

// TestFaultsAtFilesBecomeSteps: each waits for the operation of its point, whatever signs are
// in the name of the file, and has occurred there.
func TestFaultsAtFilesBecomeSteps(t *testing.T) {
	events, o := operations(), sequence.Options{}
	profile := sequence.FromEvents(events, nil, nil, o)
	kinds := map[model.PointFaultKind]string{model.PointCrash: "crash n1", model.PointDiskError: "fail it with EIO on n1",
		model.PointDiskFailure: "disk gone on n1", model.PointCorrupt: `crash, and corrupt 1 byte of \[log\]/a#.\{x\} on n1`,
		model.PointTorn: `crash, and cut off the second half of \[log\]/a#.\{x\} on n1`, model.PointPowerCut: "power cut on n1"}
	for kind, want := range kinds {
		for _, typ := range []string{"write [log]/a#.{x}", "sync [log]/a#.{x}"} {
			i := slices.IndexFunc(profile.Points, func(s model.SeenPoint) bool { return s.Type == typ })
			f := model.PointFault{Point: profile.Points[i].Point, Kind: kind, Place: model.PlaceBefore}
			steps := sequence.Play{Keys: model.PointKeys(), MaxCut: time.Second}.Steps([]sequence.Placed{{PointFault: f, Turn: profile.Points[i].Turn}})
			if len(steps) != 1 || steps[0].Do.String() != want || steps[0].Max != time.Second {
				t.Errorf("%s is played as %v", f, steps)
				continue
			}
			if err := steps[0].Validate([]model.NodeID{"n1", "n2"}, 1); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			first := slices.IndexFunc(events, func(e model.Event) bool { return e.File != nil && steps[0].When.File.Matches(e.File) })
			if first < 0 || events[first].Num != profile.Points[i].Event {
				t.Fatalf("%s waits for %s: operation %d", f, steps[0].When.File, first)
			}
			decisions := []model.Decision{{Event: events[first].Num, Step: 1, Reason: model.ReasonFile}}
			_, met := sequence.Played(events, decisions, []model.PointFault{f}, o)
			n, other := sequence.Occurred([]model.PointFault{f}, []model.StepResult{{Step: 1, By: model.ReasonFile}}, met, sequence.Options{})
			if n != 1 {
				t.Errorf("%s occurred %d times, met %v", f, n, other)
			}
		}
	}
}

// TestAHostThatIsNoKeyIsWhoeverOperatesOnTheFile: the operations of all nodes count.
func TestAHostThatIsNoKeyIsWhoeverOperatesOnTheFile(t *testing.T) {
	keys, hosts := []model.PointKey{model.KeySide, model.KeyType, model.KeyNth}, []model.NodeID{"n1", "n2"}
	events := []model.Event{{Num: 1, Kind: model.EventWorkload}}
	for i, h := range []model.NodeID{"n2", "n1", "n2"} {
		events = append(events, model.Event{Num: uint64(i + 2), Kind: model.EventFile, File: &model.FileOperation{Host: h, Op: model.FileWrite, Kind: "log"}})
	}
	o := sequence.Options{Keys: keys, Nodes: hosts}
	second := sequence.FromEvents(events, nil, nil, o).Points[1]
	if second.Node != "n1" || second.Nth != 2 || second.Turn != 2 {
		t.Fatalf("%+v", second)
	}
	for kind, want := range map[model.PointFaultKind]string{model.PointCrash: "crash file-host", model.PointDiskError: "fail it with EIO on file-host",
		model.PointDiskFailure: "disk gone on file-host", model.PointCorrupt: "crash, and corrupt 1 byte of log on file-host", model.PointPowerCut: "power cut on file-host"} {
		f := model.PointFault{Point: second.Point, Kind: kind, Place: model.PlaceBefore}
		steps := sequence.Play{Keys: keys, MaxCut: time.Second}.Steps([]sequence.Placed{{PointFault: f, Turn: second.Turn}})
		if got := steps[0].String(); got != want+"; when write of log, number 2; at most 1s" || fmt.Sprint(steps[0].Do.Roles) != "[file-host]" {
			t.Errorf("%s is played as %s by %v", f, got, steps[0].Do.Roles)
		}
		if err := steps[0].Validate(hosts, 1); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	// Another host may be the one that writes second.
	f := model.PointFault{Point: second.Point, Kind: model.PointPowerCut, Place: model.PlaceBefore}
	events[1].File.Host, events[2].File.Host = "n1", "n2"
	_, met := sequence.Played(events, []model.Decision{{Event: events[2].Num, Step: 1, Reason: model.ReasonFile}}, []model.PointFault{f}, o)
	if n, other := sequence.Occurred([]model.PointFault{f}, []model.StepResult{{Step: 1, By: model.ReasonFile}}, met, o); n != 1 || met[0].Node != "n2" {
		t.Errorf("it occurred %d times, met %v, %v", n, met, other)
	}
}

// TestAPowerCutAtAMessageWaitsForIt: the message has left.
func TestAPowerCutAtAMessageWaitsForIt(t *testing.T) {
	f := model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "ack", Nth: 1}, Kind: model.PointPowerCut, Place: model.PlaceAfter}
	steps := sequence.Play{Keys: model.PointKeys()}.Steps([]sequence.Placed{{PointFault: f, Turn: 3}})
	if len(steps) != 1 || steps[0].String() != "power cut on n2; when message ack n2>n1, number 3" {
		t.Errorf("%v", steps)
	}
	if err := steps[0].Validate([]model.NodeID{"n1", "n2"}, 1); err != nil {
		t.Error(err)
	}
}

// TestAFaultOfAllNodesIsAStepForEach, all of which begin at its point; the fault after it waits
// for the last of them.
func TestAFaultOfAllNodesIsAStepForEach(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3"}
	o := sequence.Options{Nodes: nodes}
	events := append(operations(), model.Event{Num: 90, At: time.Second, Kind: model.EventFile, File: &model.FileOperation{Host: "n2", Op: model.FileWrite, Kind: "late"}})
	profile := sequence.FromEvents(events, nil, nil, o)
	play := sequence.Play{Keys: model.PointKeys(), MaxCut: time.Second, Around: sequence.Around{Nodes: nodes}}
	last := profile.Points[len(profile.Points)-1]
	second := sequence.Placed{PointFault: model.PointFault{Point: last.Point, Kind: model.PointDiskError, Place: model.PlaceBefore}, Turn: last.Turn}
	for _, c := range []struct {
		point model.Point
		kind  model.PointFaultKind
		do    string
		when  string
	}{
		{profile.Points[1].Point, model.PointPowerCutAll, "power cut on", `write of \[log\]/a#.\{x\} on n1, number 1`},
		{model.Point{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "ack"}, model.PointPowerCutAll, "power cut on", "message ack n2>n1, number 1"},
		{model.Point{Side: model.SideSend, Node: "n2", Peer: "n1", Type: "ack"}, model.PointCrashAll, "crash", "message ack n2>n1, number 1"},
	} {
		all := sequence.Placed{PointFault: model.PointFault{Point: c.point, Kind: c.kind, Place: model.PlaceAfter}, Turn: 1}
		var got []string
		for i, st := range play.Steps([]sequence.Placed{all, second}) {
			if err := st.Validate(nodes, i+1); err != nil {
				t.Error(err)
			}
			got = append(got, st.String())
		}
		want := []string{c.do + " n1; when " + c.when + "; at most 1s", c.do + " n2; when the step before has begun; at most 1s", c.do + " n3; when the step before has begun; at most 1s",
			"fail it with EIO on n2; when the step before has begun, then write of late on n2, number 1; at most 1s"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.kind, d)
		}
		// It occurred once the last node was struck.
		faults := []model.PointFault{all.PointFault, second.PointFault}
		for struck, want := range map[int]int{2: 0, 3: 1, 4: 2} {
			var results []model.StepResult
			for i := range struck {
				results = append(results, model.StepResult{Step: i + 1, By: model.ReasonFollows})
			}
			if n, _ := sequence.Occurred(faults, results, []model.Point{all.Point, second.Point}, o); n != want {
				t.Errorf("%s: of two faults %d occurred after %d steps", c.kind, n, struck)
			}
		}
	}
	at := profile.Points[1].Event
	decisions := []model.Decision{{Event: at, Step: 1}, {Event: at, Step: 2}, {Event: at, Step: 3}, {Event: 90, Step: 4}}
	first := model.PointFault{Point: profile.Points[1].Point, Kind: model.PointPowerCutAll, Place: model.PlaceBefore}
	_, met := sequence.Played(events, decisions, []model.PointFault{first, second.PointFault}, o)
	if len(met) != 2 || met[0] != first.Point || met[1] != last.Point {
		t.Errorf("they occurred at %v", met)
	}
}

// TestTimersThatWriteArePeriodic: a log that is written every second is no point.
func TestTimersThatWriteArePeriodic(t *testing.T) {
	events := []model.Event{{Num: 1, Kind: model.EventWorkload}}
	for i := range 40 {
		at := time.Duration(i+1) * time.Second
		events = append(events, model.Event{Num: uint64(i + 2), At: at, Kind: model.EventFile, File: &model.FileOperation{Host: "n1", Op: model.FileWrite, Kind: "stats"}},
			model.Event{Num: uint64(i + 200), At: at, Kind: model.EventFile, File: &model.FileOperation{Host: "n1", Op: model.FileWrite, Path: "/dev/null"}})
		if i == 20 {
			events = append(events, model.Event{Num: 100, At: at, Kind: model.EventStop})
		}
	}
	got := sequence.Periodic([]sequence.Clean{sequence.CleanOf(events)})
	if len(got) != 1 || got[0] != (sequence.Period{Type: "write stats", Every: time.Second}) {
		t.Errorf("%v", got)
	}
}
