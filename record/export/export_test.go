package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/export"
	"netsplit/record/rundir"
)

// recorded is a run in which n1 sends two messages to n2, of which a cut drops the second, and
// n2 one to c1 that nobody held.
func recorded(t *testing.T) string {
	t.Helper()
	meta := model.RunMeta{Campaign: "c-1", Run: "c-1-r0001", Target: "toy", Tap: "gate", Scenario: model.Scenario{Strategy: model.StrategyRandom,
		Steps: []model.Step{{Do: model.Fault{Cut: &model.Partition{Shape: model.Complete, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}}}}}
	dir := filepath.Join(t.TempDir(), meta.Run)
	w, err := rundir.Create(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	msg := func(num uint64, from, to model.NodeID, typ string, fields ...model.Field) model.Event {
		return model.Event{Kind: model.EventMessage, Message: &model.Message{Num: num, From: from, To: to, Type: typ, Fields: fields}}
	}
	packet := func(frame uint64, messages ...uint64) model.Event {
		return model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: frame, From: "n1", To: "n2", Messages: messages}}
	}
	saw := func(v string) model.Event {
		return model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: model.VarRef{Name: "role", Node: "n2"}, Value: v}}
	}
	for i, e := range []model.Event{
		{Kind: model.EventWorkload},
		msg(1, "n1", "n2", "put", model.Field{Name: "key", Value: "a\nn1 {\"n1\":99}"}), packet(1, 1), // its bytes may hold anything
		saw("follower"), saw("follower"), saw("leader"),
		msg(2, "n1", "n2", "put"), packet(2, 2),
		msg(3, "n2", "c1", "ok"),
		{Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeKill, Process: "server", Host: "n2"}},
		{Kind: model.EventStop},
	} {
		e.Num, e.At = uint64(i+1), time.Duration(i+1)*time.Millisecond
		w.Append(rundir.EventsFile, e)
	}
	for _, d := range []model.Decision{
		{Event: 8, At: 8e6, Cut: true, Step: 1, Frame: 2, Action: model.DropPacket, Reason: model.ReasonAcross},
		{Event: 11, At: 11e6, Heal: true, Step: 1, Reason: model.ReasonStop},
	} {
		w.Append(rundir.DecisionsFile, d)
	}
	for _, o := range []model.Operation{
		{Type: model.OpInvoke, F: "write", Key: "a", Time: 2 * time.Millisecond, Node: "n1"}, {Type: model.OpOK, F: "write", Key: "a", Time: 9 * time.Millisecond},
		{Type: model.OpInvoke, F: "read", Key: "a", Time: 10 * time.Millisecond},
	} {
		w.Append(rundir.HistoryFile, record.Entry{Workload: "w", Operation: o})
	}
	if err := errors.Join(w.Close(), rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), model.Target{Nodes: []model.NodeID{"n1", "n2"}}),
		rundir.WriteJSON(filepath.Join(dir, rundir.TestbedFile), model.Testbed{Hosts: []model.TestbedHost{{Name: "n1"}, {Name: "n2"}, {Name: "c1"}}}),
		rundir.WriteJSON(filepath.Join(dir, rundir.EvidenceFile), record.Evidence{})); err != nil {
		t.Fatal(err)
	}
	return dir
}

func exported(t *testing.T, f model.ExportFormat) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.Write(t.Context(), &b, recorded(t), f, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestShiViz: a message that arrived joins the clocks of its hosts, one that was dropped does not.
func TestShiViz(t *testing.T) {
	want := `

send to n2: put key=a; n1 {"n1":99}
n1 {"n1":1}
receive from n1: put key=a; n1 {"n1":99}
n2 {"n1":1,"n2":1}
role = follower
n2 {"n1":1,"n2":2}
role = leader
n2 {"n1":1,"n2":3}
send to n2: put [dropped]
n1 {"n1":2}
complete cut step 1: n1→n2 n2→n1
netsplit {"netsplit":1}
send to c1: ok
n2 {"n1":1,"n2":4}
receive from n2: ok
c1 {"c1":1,"n1":1,"n2":4}
kill server
n2 {"n1":1,"n2":5}
heal: complete cut step 1: n1→n2 n2→n1
netsplit {"netsplit":2}
`
	if d := cmp.Diff(want, exported(t, model.ExportShiViz)); d != "" {
		t.Error(d)
	}
}

// TestTrace: two messages of three have an arrow, an operation lasts until its answer, and one
// without an answer until the end.
func TestTrace(t *testing.T) {
	var trace struct {
		TraceEvents []struct {
			Name, Ph, Cat string
			Pid, Tid      int
			Ts, Dur       float64
			ID            int64
			Args          map[string]any
		}
	}
	if err := json.Unmarshal([]byte(exported(t, model.ExportTrace)), &trace); err != nil {
		t.Fatal(err)
	}
	arrows, names := map[string][]int64{}, map[[2]int]string{}
	spans := map[string][2]float64{}
	for _, e := range trace.TraceEvents {
		switch e.Ph {
		case "s", "f":
			arrows[e.Ph] = append(arrows[e.Ph], e.ID)
		case "M":
			if e.Name == "thread_name" {
				names[[2]int{e.Pid, e.Tid}] = e.Args["name"].(string)
			}
		default:
			name, ok := names[[2]int{e.Pid, e.Tid}]
			if !ok {
				t.Errorf("%s is on a track without a name", e.Name)
			}
			outcome, _ := e.Args["outcome"].(string)
			fate, _ := e.Args["fate"].(string)
			spans[strings.Join([]string{name, e.Name, outcome, fate}, "|")] = [2]float64{e.Ts, e.Dur}
		}
	}
	if d := cmp.Diff(map[string][]int64{"s": {2, 9}, "f": {2, 9}}, arrows); d != "" {
		t.Error(d)
	}
	for name, want := range map[string][2]float64{
		"cuts|complete cut step 1: n1→n2 n2→n1||": {8000, 3000}, "w 0 thread 0|write a|ok|": {2000, 7000}, "w 0 thread 0|read a|no answer|": {10000, 1000},
		"n1|put||dropped": {7000, 20}, "n2|kill server||": {10000, 0}, "c1|ok||": {9000, 20}, "n2|role = leader||": {6000, 0},
	} {
		if spans[name] != want {
			t.Errorf("%s: %v, want %v", name, spans[name], want)
		}
	}
}

func TestAnUnknownFormat(t *testing.T) {
	err := export.Write(t.Context(), &bytes.Buffer{}, recorded(t), "dot", 0)
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "shiviz trace") {
		t.Error(err)
	}
}
