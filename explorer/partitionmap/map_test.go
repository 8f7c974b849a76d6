package partitionmap_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer/partitionmap"
	"netsplit/model"
)

// log is a run of messages and packets, numbered as they come.
type log struct {
	events    []model.Event
	decisions []model.Decision
	messages  uint64
}

func (l *log) event(e model.Event) uint64 {
	e.Num = uint64(len(l.events) + 1)
	l.events = append(l.events, e)
	return e.Num
}

// packet carries new messages of the types, or again those of the numbers, and meets a decision.
func (l *log) packet(from, to model.NodeID, d model.Decision, types []string, again ...uint64) (messages []uint64) {
	for _, t := range types {
		l.messages++
		l.event(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: l.messages, From: from, To: to, Type: t}})
		messages = append(messages, l.messages)
	}
	frame := uint64(100 + len(l.events))
	d.Event = l.event(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: frame, From: from, To: to, Messages: messages, Again: again}})
	d.Frame = frame
	l.decisions = append(l.decisions, d)
	return messages
}

var (
	pass = model.Decision{Action: model.Pass, Reason: model.ReasonOpen}
	drop = model.Decision{Action: model.DropPacket, Reason: model.ReasonAcross}
)

func TestARowForEachTypeOnEachLink(t *testing.T) {
	s := model.Scenario{Steps: []model.Step{
		{Do: model.Fault{Cut: &model.Partition{}}},
		{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose}}},
		{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}},
		{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n2"}}},
	}}
	l := &log{}
	l.packet("n1", "n2", drop, []string{"hello"}) // before the workload
	l.event(model.Event{Kind: model.EventWorkload})
	l.packet("n1", "n2", pass, []string{"ping"})
	two := l.packet("n1", "n2", drop, []string{"ping", "vote"})
	l.packet("n1", "n2", drop, nil, two...) // retransmitted, and dropped again: met once
	once := l.packet("n3", "n1", pass, []string{"done"})
	l.packet("n3", "n1", drop, nil, once...) // it had arrived: its acknowledgement was lost
	l.packet("n2", "n1", model.Decision{Action: model.ResetConn, Reason: model.ReasonAcross}, []string{"ping"})
	l.packet("n2", "n1", model.Decision{Action: model.DropPacket, Reason: model.ReasonOpen, Fault: 2}, []string{"vote"})
	l.packet("n2", "n1", model.Decision{Action: model.DropPacket, Reason: "link-down"}, []string{"vote"}) // no fault of ours
	crash := l.packet("n3", "n2", pass, []string{"append"})
	l.decisions = append(l.decisions,
		model.Decision{Step: 3, Verb: model.NodeKill, Message: crash[0], Reason: model.ReasonMessage},
		model.Decision{Step: 3, Verb: model.NodeStart, Message: crash[0], Reason: model.ReasonTime}, // its end is no fault
		model.Decision{Step: 4, Verb: model.NodeKill, Disk: model.DiskPowerCut, Message: crash[0], Reason: model.ReasonMessage})
	l.event(model.Event{Kind: model.EventStop})
	l.packet("n1", "n3", drop, []string{"late"})
	want := []model.MapRow{
		{Type: "append", From: "n3", To: "n2", Seen: 1, Met: map[model.MetKind]int{model.MetCrash: 1, model.MetDisk: 1}},
		{Type: "done", From: "n3", To: "n1", Seen: 1},
		{Type: "ping", From: "n1", To: "n2", Seen: 2, Met: map[model.MetKind]int{model.MetCut: 1}},
		{Type: "ping", From: "n2", To: "n1", Seen: 1, Met: map[model.MetKind]int{model.MetCut: 1}},
		{Type: "vote", From: "n1", To: "n2", Seen: 1, Met: map[model.MetKind]int{model.MetCut: 1}},
		{Type: "vote", From: "n2", To: "n1", Seen: 2, Met: map[model.MetKind]int{"lose": 1}},
	}
	if d := cmp.Diff(want, partitionmap.Of(s, l.events, l.decisions)); d != "" {
		t.Error(d)
	}
}

// TestAMapCountsEachRunOnce, under its verdict.
func TestAMapCountsEachRunOnce(t *testing.T) {
	row := func(met ...model.MetKind) []model.MapRow {
		r := model.MapRow{Type: "ping", From: "n1", To: "n2", Seen: 9, Met: map[model.MetKind]int{}}
		for _, k := range met {
			r.Met[k] = 4
		}
		return []model.MapRow{r}
	}
	fails := func(c model.FailureClass) model.Verdict {
		return model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Class: model.Documented}, {Class: c}}}
	}
	var m partitionmap.Map
	m.Add("r1", model.Verdict{Value: model.VerdictPass}, row())
	for range 2 {
		m.Add("r3", fails(model.Broken), row(model.MetCut))
	}
	m.Add("r2", model.Verdict{Value: model.VerdictPass}, row(model.MetCut, model.MetCrash)) // a higher number can end first
	m.Add("r4", fails(model.Documented), row(model.MetCut))
	m.Add("r5", fails(model.BrokenBound), row(model.MetCut))
	m.Add("r6", model.Verdict{Value: model.VerdictUnknown}, row(model.MetCut))
	m.Add("r7", model.Verdict{Value: model.VerdictVacuous}, row(model.MetCut))
	m.Add("r8", model.Verdict{Value: model.VerdictPass}, nil)
	want := []model.MapCell{{Type: "ping", From: "n1", To: "n2", Runs: 7, Outcomes: []model.MapOutcome{
		{Kind: model.MetCut, First: "r2", Passed: 1, Failed: 2, Documented: 1, Undecided: 2},
		{Kind: model.MetCrash, First: "r2", Passed: 1},
	}}}
	if d := cmp.Diff(want, m.All().Cells); d != "" {
		t.Error(d)
	}
	if n := m.Count(); n != (model.MapCount{Failed: 1}) {
		t.Errorf("counted %+v", n)
	}
	if n := want[0].Of(model.MetCut).Runs(); n != 6 {
		t.Errorf("%d runs met it, want 6", n)
	}
}

// TestRareRowsAreLeftOutFirst: a target that makes up types cannot fill the disk.
func TestRareRowsAreLeftOutFirst(t *testing.T) {
	l := &log{}
	l.event(model.Event{Kind: model.EventWorkload})
	met := "z-met"
	l.packet("n1", "n2", drop, []string{met})
	for i := range 2100 {
		l.packet("n1", "n2", pass, []string{string(rune('\u4e00' + i))})
	}
	rows := partitionmap.Of(model.Scenario{}, l.events, l.decisions)
	if len(rows) != 2000 || rows[0].Type != met {
		t.Errorf("%d rows, the first is %q", len(rows), rows[0].Type)
	}
}

// TestTheCountIsThatOfTheFields, in whatever order runs end.
func TestTheCountIsThatOfTheFields(t *testing.T) {
	pass, fail := model.Verdict{Value: model.VerdictPass}, model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Class: model.Broken}}}
	documented := model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Class: model.Documented}}}
	rnd := rand.New(rand.NewPCG(1, 2))
	var m partitionmap.Map
	for i := range 300 {
		met := map[model.MetKind]int{}
		for _, k := range []model.MetKind{model.MetCut, model.MetCrash} {
			met[k] = rnd.IntN(20) / 19
		}
		v := []model.Verdict{pass, pass, pass, documented, fail}[rnd.IntN(5)]
		m.Add(fmt.Sprint("r", i), v, []model.MapRow{{Type: fmt.Sprint("t", rnd.IntN(80)), From: "n1", To: "n2", Seen: 1, Met: met}})
		var want model.MapCount
		for _, c := range m.All().Cells {
			switch {
			case slices.ContainsFunc(c.Outcomes, func(o model.MapOutcome) bool { return o.Failed > 0 }):
				want.Failed++
			case len(c.Outcomes) > 0:
				want.Met++
			default:
				want.Never++
			}
		}
		if m.Count() != want {
			t.Fatalf("after run %d: %+v, want %+v", i, m.Count(), want)
		}
	}
	if n := m.Count(); n.Failed == 0 || n.Met == 0 || n.Never == 0 {
		t.Errorf("the runs are too much alike: %+v", n)
	}
}

// TestAMapHasABound: a target that makes up types in each run cannot fill the memory.
func TestAMapHasABound(t *testing.T) {
	var m partitionmap.Map
	for run := range 30 {
		var rows []model.MapRow
		for i := range 1000 {
			rows = append(rows, model.MapRow{Type: fmt.Sprint(run, "-", i), From: "n1", To: "n2", Seen: 1})
		}
		m.Add(fmt.Sprint("r", run), model.Verdict{}, rows)
	}
	if all := m.All(); len(all.Cells) != 20000 || all.LeftOut != 10000 || m.Count().Never != 20000 {
		t.Errorf("%d fields, %d left out, %+v", len(all.Cells), all.LeftOut, m.Count())
	}
}

// TestTheFirstRunIsThatOfTheLowestNumber, where numbers have more digits, too.
func TestTheFirstRunIsThatOfTheLowestNumber(t *testing.T) {
	var m partitionmap.Map
	for _, run := range []string{"c-1-r10000", "c-1-r9999", "c-1-r10001"} {
		m.Add(run, model.Verdict{}, []model.MapRow{{Type: "t", From: "n1", To: "n2", Seen: 1, Met: map[model.MetKind]int{model.MetCut: 1}}})
	}
	if got := m.All().Cells[0].Of(model.MetCut).First; got != "c-1-r9999" {
		t.Errorf("first is %s", got)
	}
}
