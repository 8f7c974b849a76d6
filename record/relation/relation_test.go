package relation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/relation"
	"netsplit/record/rundir"
)

// run is a record made by hand.
type run struct {
	meta      model.RunMeta
	target    model.Target
	events    []model.Event // Num and At (1 ms apart) are filled in
	decisions []model.Decision
	history   []record.Entry
	lines     []record.LogLine // fatal
	all       []record.LogLine
	started   []record.Started
	evidence  record.Evidence
}

func (r run) write(t *testing.T) string {
	t.Helper()
	r.meta.Run = "c-1-r0001"
	dir := filepath.Join(t.TempDir(), r.meta.Run)
	w, err := rundir.Create(dir, r.meta)
	if err != nil {
		t.Fatal(err)
	}
	var messages uint64
	for i, e := range r.events {
		e.Num, e.At = uint64(i+1), time.Duration(i+1)*time.Millisecond
		if e.Kind == model.EventMessage {
			messages++
			e.Message.Num = messages
		}
		w.Append(rundir.EventsFile, e)
	}
	for _, d := range r.decisions {
		w.Append(rundir.DecisionsFile, d)
	}
	for _, e := range r.history {
		w.Append(rundir.HistoryFile, e)
	}
	for _, l := range r.lines {
		w.Append(rundir.LogLinesFile, l)
	}
	for _, l := range r.all {
		w.Append(rundir.LinesFile, l)
	}
	for _, s := range r.started {
		w.Append(rundir.ProcessesFile, s)
	}
	testbed := model.Testbed{Hosts: []model.TestbedHost{{Name: "n1", Labels: map[string]string{"rack": "a"}}, {Name: "n2"}, {Name: "c1"}}}
	if err := errors.Join(w.Close(), rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), r.target),
		rundir.WriteJSON(filepath.Join(dir, rundir.TestbedFile), testbed), rundir.WriteJSON(filepath.Join(dir, rundir.EvidenceFile), r.evidence)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// msg is a message with fields "name=value".
func msg(from, to model.NodeID, typ string, fields ...string) model.Event {
	m := &model.Message{From: from, To: to, Type: typ}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		m.Fields = append(m.Fields, model.Field{Name: name, Value: value})
	}
	return model.Event{Kind: model.EventMessage, Message: m}
}

func packet(frame uint64, messages ...uint64) model.Event {
	return model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: frame, From: "n1", To: "n2", Messages: messages}}
}

func node(verb model.NodeVerb, host model.NodeID) model.Event {
	return model.Event{Kind: model.EventNode, Node: &model.NodeAction{Verb: verb, Process: "server", Host: host}}
}

// ask is the answer, a line for each row.
func ask(t *testing.T, dir, sql string) string {
	t.Helper()
	out, err := relation.Query(t.Context(), dir, sql, relation.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows(out.Rows)
}

func rows(all [][]any) string {
	var b strings.Builder
	for _, r := range all {
		b.WriteString(strings.TrimSuffix(fmt.Sprintln(r...), "\n") + "\n")
	}
	return strings.ReplaceAll(b.String(), "<nil>", "-")
}

func example() run {
	again := packet(4)
	again.Packet.Again = []uint64{2}
	cut := model.Isolate("n1", []model.NodeID{"n1", "n2"}, model.Drop)
	return run{
		meta: model.RunMeta{Campaign: "c-1", Target: "toy", Tap: "gate", Scenario: model.Scenario{ID: "s1", Strategy: model.StrategyRandom, Seed: 1 << 63,
			Steps: []model.Step{{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultDelay}}}, {Do: model.Fault{Cut: &cut}}}}},
		target: model.Target{Nodes: []model.NodeID{"n1", "n2"}, Release: "1.2"},
		events: []model.Event{
			{Kind: model.EventStart}, {Kind: model.EventWorkload}, // 1, 2
			msg("n1", "n2", "put", "key=a", "term=2"), packet(1, 1), // 3, 4: passes, no decision is written
			msg("n1", "n2", "put", "key=b", "term=10"), packet(2, 2), // 5, 6: dropped
			msg("n1", "n2", "put"), packet(3, 3), // 7, 8: held, passes at 9
			{Kind: model.EventTick}, again, // 9, 10: message 2 comes again and passes
			msg("n2", "c1", "ok"), // 11: seen at the mirror
			{Kind: model.EventObserve, Observation: &model.Observation{Var: model.VarRef{Name: "term", Node: "n1", About: "n2"}, Kind: "number", Value: "3", Message: 1}}, // 12
			node(model.NodeKill, "n2"),  // 13
			{Kind: model.EventInForce},  // 14
			node(model.NodeStart, "n2"), // 15
			{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "x", Partition: &model.Partition{Shape: model.Partial, Effect: model.Reset, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}}, // 16
			{Kind: model.EventRole, Role: &model.RoleHolders{Role: "leader", Have: []model.NodeID{"n1"}}},                                                                                    // 17
			{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "x"}},                                                                                                                   // 18
			{Kind: model.EventNote, Note: "a remark"},                                                                                                                                        // 19
			{Kind: model.EventStop}, // 20
		},
		decisions: []model.Decision{
			{Event: 6, At: 6e6, Cut: true, Step: 2, Frame: 2, Action: model.DropPacket, Reason: model.ReasonAcross},
			{Event: 8, At: 8e6, Frame: 3, Action: model.Hold, Reason: model.ReasonDelay, Fault: 1, Message: 3},
			{Event: 9, At: 9e6, Frame: 3, Action: model.Pass, Reason: model.ReasonDue, Fault: 1},
			{Event: 10, At: 10e6, Heal: true, Step: 2, Frame: 4, Action: model.Pass, Reason: model.ReasonNewClass},
		},
		history: []record.Entry{{Workload: "w", Operation: model.Operation{Type: model.OpInvoke, F: "write", Key: "a", Time: 3500 * time.Microsecond, Node: "n1"}},
			{Workload: "w", Operation: model.Operation{Type: model.OpOK, F: "write", Key: "a", Time: 12 * time.Millisecond}}},
		lines:    []record.LogLine{{Host: "n1", Process: "server", At: 500 * time.Microsecond, Line: "ERROR", Context: []string{"at x"}}},
		started:  []record.Started{{Host: "n2", Process: "server", At: 100 * time.Microsecond}, {Host: "n2", Process: "server", At: 15 * time.Millisecond}},
		evidence: record.Evidence{Exits: []record.Exit{{Host: "n2", Process: "server", At: 13500 * time.Microsecond, Status: 137}}},
	}
}

// TestARunIsRelations: what each table has, with its event.
func TestARunIsRelations(t *testing.T) {
	dir := example().write(t)
	for sql, want := range map[string]string{
		"select n, num, src, dst, type, fate, passed_n from message order by n": "3 1 n1 n2 put pass 4\n5 2 n1 n2 put pass 10\n7 3 n1 n2 put pass 9\n11 4 n2 c1 ok pass 11\n",
		"select n, num, name, value from field where name = 'term'":             "3 1 term 2\n5 2 term 10\n",
		"select n, name, shape, effect, until_n from cut order by n":            "6 step 2 complete drop 10\n16 x partial reset 18\n",
		"select name, src, dst from cut_link order by n, src":                   "step 2 n1 n2\nstep 2 n2 n1\nx n1 n2\nx n2 n1\n",
		"select n, id, kind, host, peer, num, action from fault order by n":     "8 1 delay n1 n2 3 hold\n9 1 delay n1 n2 3 pass\n",
		"select n, host, verb, status from node order by t":                     "- n2 start -\n13 n2 kill -\n13 n2 exit 137\n15 n2 start -\n",
		"select n, host, var, about, value, num from obs":                       "12 n1 term n2 3 1\n",
		"select n, t, type, f, key, node from op order by n":                    "3 3500000 invoke write a n1\n12 12000000 ok write a \n",
		"select n, host, text, fatal from line":                                 "- n1 ERROR\nat x 1\n",
		"select n, src, dst, num, action, what, step, reason from decision":     "6 n1 n2 2 drop cut 2 across-cut\n8 n1 n2 3 hold  0 fault-delay\n9 n1 n2 3 pass  0 due\n10 n1 n2 - pass heal 2 new-class\n",
		"select host, kind, rack from host":                                     "n1 node a\nn2 node -\nc1 client -\n",
		"select n, name from moment order by n, name":                           "1 start\n2 workload\n6 cut\n10 heal\n14 in-force\n16 cut\n20 end\n20 stop\n",
		"select n, role, host from role":                                        "17 leader n1\n",
		"select run, target, release, scenario, seed, tap, verdict from run":    "c-1-r0001 toy 1.2 s1 9223372036854775808 gate -\n",
		"select count(*), max(t) from event":                                    "20 20000000\n",
		"select text from event where kind = 'note'":                            "a remark\n",
		// Recursion, windows, JSON and words are there.
		"with recursive c(x) as (select 1 union all select x+1 from c where x < 3) select group_concat(x), json_extract('{\"a\":5}', '$.a') from c": "1,2,3 5\n",
		"select value from json_each('[7]')":                           "7\n",
		"select type, name from sqlite_schema where tbl_name = 'role'": "table role\nindex role_1\n",
		"values (1.5, x'00ff', 9e999, null)":                           "1.5 x'00ff' +Inf -\n",
	} {
		if got := ask(t, dir, sql); got != want {
			t.Errorf("%s:\n%swant:\n%s", sql, got, want)
		}
	}
}

// TestStepsOfAScript are known by its events alone: a decision names the message fault by its
// place among cuts, too.
func TestStepsOfAScript(t *testing.T) {
	r := run{meta: model.RunMeta{Scenario: model.Scenario{Strategy: model.StrategyScripted}},
		events: []model.Event{
			{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "x", Step: 1, Partition: &model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}},
			{Kind: model.EventFault, Fault: &model.FaultChange{Name: "late", Begin: &model.MessageFault{Kind: model.FaultLose}}},
			msg("n1", "n2", "put"), packet(1, 1)},
		decisions: []model.Decision{
			{Event: 1, Cut: true, Step: 1, Reason: model.ReasonScript},
			{Event: 4, Frame: 1, Action: model.DropPacket, Reason: model.ReasonLose, Fault: 2, Message: 1}}}
	dir := r.write(t)
	for sql, want := range map[string]string{
		"select id, kind from fault":                     "2 lose\n",
		"select n, name from cut":                        "1 x\n",
		"select step, what from decision where step > 0": "1 cut\n",
	} {
		if got := ask(t, dir, sql); got != want {
			t.Errorf("%s:\n%swant:\n%s", sql, got, want)
		}
	}
}

// TestAllIsNumbered: operations, exits and log lines of the record are events with
// numbers of their own, between those of the event log, whatever their times.
func TestAllIsNumbered(t *testing.T) {
	r := run{events: []model.Event{{Kind: model.EventStart}, {Kind: model.EventStop}},
		history:  []record.Entry{{Num: 5, Operation: model.Operation{Type: model.OpInvoke, F: "read", Time: time.Hour}}, {Num: 9, Operation: model.Operation{Type: model.OpOK, F: "read"}}},
		lines:    []record.LogLine{{Num: 6, Line: "ERROR", Context: []string{"at x"}}},
		all:      []record.LogLine{{Num: 4, Line: "INFO"}, {Num: 6, Line: "ERROR"}, {Num: 7, Line: "at x"}},
		evidence: record.Evidence{Exits: []record.Exit{{Num: 8, Host: "n1", Status: 1}}}}
	dir := r.write(t)
	for sql, want := range map[string]string{
		"select n, kind from event order by n":          "1 start\n2 stop\n4 line\n5 op\n6 line\n7 line\n8 exit\n9 op\n",
		"select n, type from op":                        "5 invoke\n9 ok\n",
		"select n, verb from node":                      "8 exit\n",
		"select n, text, fatal from line order by n":    "4 INFO 0\n6 ERROR\nat x 1\n7 at x 0\n",
		"select n, name from moment where name = 'end'": "9 end\n",
		"select t from event where n = 5":               "3600000000000\n",
	} {
		if got := ask(t, dir, sql); got != want {
			t.Errorf("%s:\n%swant:\n%s", sql, got, want)
		}
	}
}

// TestADroppedMessageSaysSo, and one that still waits.
func TestADroppedMessageSaysSo(t *testing.T) {
	r := example()
	r.events, r.decisions = r.events[:8], r.decisions[:2]
	want := "3 pass 4\n5 drop -\n7 hold -\n"
	if got := ask(t, r.write(t), "select n, fate, passed_n from message order by n"); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestACutOfAnEarlierRecord has no step, and may have come about to other nodes.
func TestACutOfAnEarlierRecord(t *testing.T) {
	r := example()
	for i := range r.decisions {
		r.decisions[i].Step = 0
	}
	r.evidence.Result.Or = model.Renaming{"n1": "n3", "n2": "n1"}
	want := " n1 n3 10\n n3 n1 10\n"
	if got := ask(t, r.write(t), "select l.name, src, dst, until_n from cut_link l join cut using (n) where shape = 'complete' order by src"); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestAQueryOnlyReads: whatever would write, open a file, or run on is refused in words.
func TestAQueryOnlyReads(t *testing.T) {
	dir := example().write(t)
	secret := filepath.Join(t.TempDir(), "secret.sqlite")
	if err := relation.Write(t.Context(), dir, secret); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"attach '" + secret + "' as x":              "only read",
		"vacuum into '" + secret + ".copy'":         "only read",
		"pragma journal_mode=wal":                   "only read",
		"pragma table_info(message)":                "only read",
		"select * from pragma_database_list":        "only read",
		"delete from message":                       "only read",
		"insert into message(n) values (1)":         "only read",
		"create table x(a)":                         "only read",
		"create temp table x(a)":                    "only read",
		"create temp view x as select 1":            "only read",
		"create virtual table x using fts5(a)":      "only read",
		"drop table message":                        "only read",
		"begin":                                     "only read",
		"analyze":                                   "only read",
		"select load_extension('x')":                "load_extension",
		"select readfile('/etc/passwd')":            "readfile",
		"select 1; select 2":                        "only one statement",
		"select 1; delete from message":             "only one statement",
		"":                                          "no query",
		"-- nothing":                                "no query",
		"select\n nosuch from message":              "line 2 of the query: SQL logic error: no such column: nosuch",
		"select * from nosuch":                      "no such table: nosuch",
		"selekt 1":                                  "line 1 of the query",
		`select "text"`:                             "no such column",
		"select zeroblob(1000000000)":               "value of more than",
		"select printf('%1000000000d', 1)":          "",
		"select ?":                                  "parameter",
		"select " + strings.Repeat("(", 5000) + "1": "",
		"select 1 -- " + strings.Repeat("x", relation.MaxQuery):                                                                                  "longer than 32 KiB",
		"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c":                                                   "stopped after",
		"with recursive c(x) as (select zeroblob(250000) union all select zeroblob(250000) from c limit 2000) select count(*) over (), x from c": "128 MiB",
	} {
		limit := time.Hour
		if want == "stopped after" {
			limit = time.Second
		}
		out, err := relation.Query(t.Context(), dir, sql, relation.Limits{Time: limit})
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, %v: want an error with %q", sql, out.Rows, err, want)
		}
	}
	if _, err := os.Stat(secret + ".copy"); err == nil {
		t.Error("a query wrote a file")
	}
}

// TestAnAnswerIsCutWhereItIsLong, and says so.
func TestAnAnswerIsCutWhereItIsLong(t *testing.T) {
	dir := example().write(t)
	for _, l := range []relation.Limits{{Rows: 2}, {Bytes: 15}} {
		out, err := relation.Query(t.Context(), dir, "select n from event", l)
		if err != nil || len(out.Rows) != 2 || !out.Truncated {
			t.Errorf("%+v: %v, %v", l, out, err)
		}
	}
	if out, err := relation.Query(t.Context(), dir, "select n from event limit 2", relation.Limits{Rows: 2}); err != nil || out.Truncated {
		t.Errorf("all of it: %v, %v", out, err)
	}
}

// TestWhoeverAsksMayStopWaiting: an ended context ends the query.
func TestWhoeverAsksMayStopWaiting(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	_, err := relation.Query(ctx, example().write(t), "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c", relation.Limits{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestADatabaseIsNotOverwritten, and one that cannot be made leaves nothing behind.
func TestADatabaseIsNotOverwritten(t *testing.T) {
	dir, file := example().write(t), filepath.Join(t.TempDir(), "x.sqlite")
	if err := relation.Write(t.Context(), dir, file); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want mode 600", st, err)
	}
	if err := relation.Write(t.Context(), dir, file); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("%v", err)
	}
	other := file + "2"
	if err := relation.Write(t.Context(), t.TempDir(), other); err == nil {
		t.Error("a folder without a record was taken")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a database of nothing stayed")
	}
}
