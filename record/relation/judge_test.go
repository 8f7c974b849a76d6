package relation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/relation"
)

// judged is what the checks of a file find in a run: a line for each violation.
func judged(t *testing.T, r run, text string) string {
	t.Helper()
	f, err := relation.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := f.Judge(t.Context(), r.write(t), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range out.Outcomes {
		for _, v := range o.Violations {
			how := ""
			if v.Warning {
				how = " warns"
			}
			fmt.Fprintf(&b, "%d %s%s: %v, events %v, messages %v\n", v.N, o.Check.Name, how, v.Row, v.Events, v.Messages)
		}
		if o.Moments == 0 {
			fmt.Fprintf(&b, "%s: never\n", o.Check.Name)
		}
	}
	return b.String()
}

// pipeline are the rules of FATE and DESTINI (NSDI'11), Table 2, a1 to a16 and b1 to b4.
const pipeline = `
facts:
  pipe:     {message: cnpGetBlkPipe, columns: [block, gs int, pos int, node]}
  ack:      {message: cdpSetupAck, columns: [block, pos int, status]}
  created:  {message: fsCreate, columns: [file]}
  renamed:  {message: fsRename, columns: [file, to]}
  stamped:  {message: dnpNextGenStamp, columns: [block, gs int]}
  transfer: {message: ddpDataTransfer, columns: [status]}
  data_ack: {message: cdpDataAck, columns: [pos int, status]}
  complete: {message: cnpComplete, columns: [block]}
views:
  live: select distinct node from pipe where node not in (select host from node where verb = 'kill')
  transferring: select block, max(a.n) n from pipe join ack a using (block, pos) where status = 'OK' group by block having count(*) = (select count(*) from pipe p where p.block = a.block)
  expected: select distinct block, node from pipe where not exists (select 1 from node k join transferring s on k.n > s.n where k.verb = 'kill' and k.host = pipe.node and s.block = pipe.block)
  stamp: select block, max(gs) gs from (select block, gs from pipe union select block, gs from stamped) group by block
  meta: select src node, file from created union select src, "to" from renamed except select src, file from renamed
  actual: select block, node from stamp join meta on file like '%/' || block || '_gs' || gs || '.meta'
checks:
  - {name: bad-connect, class: broken, quote: b4, at: transfer, select: "select num, src, dst from transfer join now using (n) where status = 'terminated' and dst in (select node from live)"}
  - {name: bad-ack, class: broken, quote: b1, at: data_ack, select: "select a.num, pos, node from data_ack a join now using (n) join pipe using (pos) where status = 'Error' and node in (select node from live)"}
  - {name: data-recovery, class: broken, quote: a1, at: complete, select: "select c.num, block, node from complete c join now using (n) join expected e using (block) where (block, node) not in (select block, node from actual)"}
`

// table3 are the events of its Table 3, with the event number of each time.
func table3() (r run, at map[string]uint64) {
	at = map[string]uint64{}
	add := func(name string, events ...model.Event) {
		r.events = append(r.events, events...)
		at[name] = uint64(len(r.events))
	}
	add("t0", model.Event{Kind: model.EventStart})
	for pos, n := range []model.NodeID{"N1", "N2", "N3"} {
		add("t1", msg("NN", "C", "cnpGetBlkPipe", "block=blk_x", "gs=1", fmt.Sprintf("pos=%d", pos+1), "node="+string(n)))
	}
	for _, n := range []model.NodeID{"N1", "N2", "N3"} {
		add("t2", msg(n, "disk", "fsCreate", "file=tmp/blk_x_gs1.meta"))
	}
	for pos := range 3 {
		add("t3", msg("N1", "C", "cdpSetupAck", "block=blk_x", fmt.Sprintf("pos=%d", pos+1), "status=OK"))
	}
	add("t4", node(model.NodeKill, "N3"), msg("N1", "N2", "ddpDataTransfer", "status=terminated"))
	add("t5", msg("N1", "C", "cdpDataAck", "pos=2", "status=Error"))
	add("t6", msg("NN", "N1", "dnpNextGenStamp", "block=blk_x", "gs=2"))
	add("t7", msg("N1", "disk", "fsCreate", "file=tmp/blk_x_gs2.meta"), msg("N1", "disk", "fsRename", "file=tmp/blk_x_gs2.meta", "to=current/blk_x_gs2.meta"))
	add("t8", msg("C", "NN", "cnpComplete", "block=blk_x"))
	return r, at
}

// TestDestiniTable3: its three errors, at t4, t5 and t8 and at no other time.
func TestDestiniTable3(t *testing.T) {
	r, at := table3()
	want := fmt.Sprintf("%d bad-connect: [10 N1 N2], events [], messages [10]\n%d bad-ack: [11 2 N2], events [], messages [11]\n%d data-recovery: [15 blk_x N2], events [], messages [15]\n", at["t4"], at["t5"], at["t8"])
	if got := judged(t, r, pipeline); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestDestiniHoldsOnARightRecovery: of Figure 1a, in which the second node stays.
func TestDestiniHoldsOnARightRecovery(t *testing.T) {
	r, _ := table3()
	var events []model.Event
	for _, e := range r.events {
		switch m := e.Message; {
		case m != nil && m.Type == "ddpDataTransfer":
			e = msg("N2", "N3", m.Type, "status=terminated") // the dead one
		case m != nil && m.Type == "cdpDataAck":
			e = msg("N1", "C", m.Type, "pos=3", "status=Error")
		case m != nil && m.Type == "cnpComplete":
			events = append(events, msg("N2", "disk", "fsCreate", "file=tmp/blk_x_gs2.meta"))
		}
		events = append(events, e)
	}
	r.events = events
	if got := judged(t, r, pipeline); got != "" {
		t.Errorf("%s", got)
	}
}

const terms = `
facts:
  append: {message: "append *", columns: [term int]}
checks:
  - name: one-leader-per-term
    class: broken
    quote: at most one leader can be elected in a given term
    select: select term, group_concat(distinct src) leaders, min(num) first_num, max(num) last_num from append group by term having count(distinct src) > 1
`

// TestOneLeaderPerTerm: the terms are numbers, and a message that lacks one says nothing.
func TestOneLeaderPerTerm(t *testing.T) {
	r := run{events: []model.Event{{Kind: model.EventStart}, msg("n1", "n2", "append entries", "term=9"), msg("n2", "n1", "append entries", "term=10"),
		msg("n3", "n1", "append entries"), msg("n1", "n2", "vote", "term=10"), msg("n2", "n3", "append heartbeat", "term=10")}}
	if got := judged(t, r, terms); got != "" {
		t.Errorf("%s", got)
	}
	r.events = append(r.events, msg("n3", "n1", "append entries", "term=10"))
	if got, want := judged(t, r, terms), "7 one-leader-per-term: [10 n2,n3 2 6], events [], messages [2 6]\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

const majority = `
facts:
  stored: {message: stored, columns: [key]}
views:
  acknowledged: select n, key from op where type = 'ok' and f = 'write'
checks:
  - name: acknowledged-on-a-majority
    class: broken
    quote: a write is acknowledged when a majority has it
    at: acknowledged
    select: select n, key from acknowledged join now using (n) where (select count(distinct src) from stored where stored.key = acknowledged.key) * 2 <= (select count(*) from host where kind = 'node')
`

// TestAcknowledgedOnAMajority: what is stored later does not count.
func TestAcknowledgedOnAMajority(t *testing.T) {
	r := run{target: model.Target{Nodes: []model.NodeID{"n1", "n2"}},
		events: []model.Event{{Kind: model.EventStart}, msg("n1", "n2", "stored", "key=a"), msg("n2", "n1", "stored", "key=a"), msg("n1", "n2", "stored", "key=b"),
			{Kind: model.EventTick}, msg("n2", "n1", "stored", "key=b")},
		history: []record.Entry{{Operation: model.Operation{Type: model.OpOK, F: "write", Key: "a", Time: 4 * time.Millisecond}},
			{Operation: model.Operation{Type: model.OpOK, F: "write", Key: "b", Time: 5 * time.Millisecond}}}}
	if got, want := judged(t, r, majority), "5 acknowledged-on-a-majority: [5 b], events [5], messages []\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestAWarningBecomesAnError at a stated moment, and stays a warning where it is over by
// then (DESTINI c1, c5, c6: all replicas in one rack).
func TestAWarningBecomesAnError(t *testing.T) {
	text := `
facts:
  placed: {message: placed, columns: [block, rack]}
  settled: {message: settled}
checks:
  - {name: racks, class: broken, quote: two racks, at: placed, warn until: settled, select: "select block from placed group by block having count(distinct rack) = 1"}
`
	r := run{events: []model.Event{msg("a", "b", "placed", "block=x", "rack=1"), msg("a", "b", "placed", "block=y", "rack=1"), msg("a", "b", "placed", "block=y", "rack=2")}}
	if got, want := judged(t, r, text), "1 racks warns: [x], events [1], messages []\n2 racks warns: [y], events [2], messages []\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
	r.events = append(r.events, msg("a", "b", "settled"))
	if got, want := judged(t, r, text), "4 racks: [x], events [4], messages []\n2 racks warns: [y], events [2], messages []\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestAsOfThen: a check sees what there was at its moment, and of what lasts not its end.
func TestAsOfThen(t *testing.T) {
	text := `
views:
  seen: select n from event where n in (5, 8, 10, 11, 20)
checks:
  - {name: then, class: broken, quote: q, at: seen, select: "select (select count(*) from message) messages, (select group_concat(fate) from message) fates, (select until_n from cut where name = 'step 2') healed, (select count(*) from op) ops, (select verdict from run) verdict, max(n) last from event"}
`
	want := "5 then: [2 pass,hold <nil> 1 <nil> 5], events [5], messages []\n" +
		"8 then: [3 pass,hold,hold <nil> 1 <nil> 8], events [8], messages []\n" +
		"10 then: [3 pass,pass,pass 10 1 <nil> 10], events [10], messages []\n" +
		"11 then: [4 pass,pass,pass,pass 10 1 <nil> 11], events [11], messages []\n" +
		"20 then: [4 pass,pass,pass,pass 10 2 <nil> 20], events [20], messages []\n"
	if got := judged(t, example(), text); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestACheckThatMayBeWrongSaysSo: what it finds is no violation while its table unless
// has a row, at any time of the run; what it does not find stays right.
func TestACheckThatMayBeWrongSaysSo(t *testing.T) {
	text := `
views:
  unread: select port, arrived - read missing from port where read < arrived
checks:
  - {name: c, class: broken, quote: q, unless: unread, select: "select n from message where type = 'bad'"}
`
	r := run{events: []model.Event{msg("a", "b", "bad")}, evidence: record.Evidence{Ports: []record.PortRead{{Port: 1, Known: true, Arrived: 9, Read: 7}}}}
	f, err := relation.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Judge(t.Context(), r.write(t), time.Hour)
	if err != nil || out.Outcomes[0].Unsure != "unread: port=1 missing=2" || len(out.Outcomes[0].Violations) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	r.evidence.Ports[0].Read = 9
	if got, want := judged(t, r, text), "1 c: [1], events [1], messages []\n"; got != want {
		t.Errorf("all was read: %swant:\n%s", got, want)
	}
	r.evidence.Ports[0].Read, r.events[0].Message.Type = 7, "good"
	if got := judged(t, r, text); got != "" {
		t.Errorf("it holds: %s", got)
	}
}

// TestAQuoteMayBeThatOfAnotherCheck: by an alias of YAML.
func TestAQuoteMayBeThatOfAnotherCheck(t *testing.T) {
	f, err := relation.Parse("x.yaml", []byte("checks:\n  - {name: a, class: broken, quote: &q One leader., select: select 1}\n  - {name: b, class: broken, quote: *q, select: select 1}"))
	if err != nil || f.Checks[1].Quote != "One leader." {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAFactHasARowForEachMatch in a field, where it has a regular expression: whole
// numbers are numbers, a group that took no part is NULL. An optional column may be missing.
func TestAFactHasARowForEachMatch(t *testing.T) {
	text := `
facts:
  placed: {message: placed, columns: [key, error optional, size int optional], field: locs, regexp: '(?m)^(?P<node>\w+)(?: at (?P<rack>\S+))?$'}
checks:
  - {name: c, class: broken, quote: q, select: "select n, key, node, rack + 0 rack, typeof(rack) type, size, error from placed"}
`
	r := run{events: []model.Event{msg("a", "b", "placed", "key=x", "locs=n1 at 10\nn2\nn3 at 010"), msg("a", "b", "placed", "key=y", "locs=.", "size=9")}}
	want := "2 c: [1 x n1 10 integer <nil> <nil>], events [1], messages []\n2 c: [1 x n2 <nil> null <nil> <nil>], events [1], messages []\n2 c: [1 x n3 10 text <nil> <nil>], events [1], messages []\n"
	if got := judged(t, r, text); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}

// TestAFileWithMistakesIsRefused, each with its line.
func TestAFileWithMistakesIsRefused(t *testing.T) {
	check := "checks:\n  - {name: c, class: broken, quote: q, "
	for text, want := range map[string]string{
		"":                            "is empty",
		"fact: {}":                    `x.yaml:1: unknown key "fact"`,
		"facts: []":                   "x.yaml:1: facts must be a mapping",
		"facts:\n  f: {columns: [a]}": "x.yaml:2: fact f lacks message",
		"facts:\n  f: {message: m,\n    columns: [a, n]}":            "x.yaml:3: fact f has a column n already: write NAME=n",
		"facts:\n  f: {message: m, columns: [a b]}":                  `"a b" is no column`,
		"facts:\n  message: {message: m}":                            "there is a table message already",
		"facts:\n  f: {message: m, field: a}":                        "x.yaml:2: fact f has one of field and regexp, and needs both",
		"facts:\n  f: {message: m, field: a, regexp: '('}":           "x.yaml:2: fact f: error parsing regexp",
		"facts:\n  f: {message: m, field: a, regexp: '.'}":           "no named group",
		"facts:\n  f: {message: m, field: a, regexp: '(?P<N>.)'}":    "x.yaml:2: fact f has a column N already",
		"facts:\n  f: {message: m}\nviews:\n  F: select 1":           "x.yaml:4: there is a table F already",
		"views:\n  v w: select 1":                                    `"v w" is no name`,
		"views:\n  v: |\n    select\n      nosuch\n    from message": "x.yaml:4: view v: SQL logic error: no such column: nosuch",
		"views:\n  v: selekt 1":                                      "x.yaml:2: view v: SQL logic error: near \"selekt\": syntax error",
		"views:\n  v: select 1; delete from message":                 "only one statement",
		"views:\n  v: select * from w\n  w: select * from v":         "circularly defined",
		"checks: {}": "checks must be a list",
		"checks:\n  - {name: c, class: bad, quote: q, select: select 1}":                      `unknown class "bad": use broken or documented`,
		"checks:\n  - {name: c, class: broken, select: select 1}":                             "x.yaml:2: check c lacks quote",
		check + "select: select 1, when: x}":                                                  `unknown key "when"`,
		check + "select: select 1}\n  - {name: c, class: broken, quote: q, select: select 1}": "x.yaml:3: there is a check c already",
		check + "at: nosuch, select: select 1}":                                               "x.yaml:2: check c: nosuch: SQL logic error: no such table: nosuch",
		check + "at: host, select: select 1}":                                                 "no such column: n",
		check + "unless: nosuch, select: select 1}":                                           "x.yaml:2: check c: nosuch: SQL logic error: no such table: nosuch",
		check + "warn until: nosuch, select: select 1}":                                       "no such table: nosuch",
		check + "select: delete from message}":                                                "cannot modify message",
		check + "select: update now set n = 1}":                                               "only read",
		check + "select: \"select ?\"}":                                                       "parameters",
		"a: b: c":                                                                             "x.yaml",
		"facts: {a: {message: m}, a: {message: m}}":                                           "twice",
	} {
		f, err := relation.Parse("x.yaml", []byte(text))
		if err == nil {
			err = f.Compile(t.Context())
		}
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v: want an error with %q", text, err, want)
		}
	}
}

// TestACheckThatCannotBeAskedIsNoPass: a field that no message has, a query that never
// ends, one that takes too much; a run without such messages is remarked upon.
func TestACheckThatCannotBeAskedIsNoPass(t *testing.T) {
	dir := example().write(t)
	check := "checks:\n  - {name: c, class: broken, quote: q, select: \"select x from (with recursive c(x) as (select "
	for text, want := range map[string]string{
		"facts:\n  f: {message: put, field: kye, regexp: '(?P<a>.)'}":                                                         `x.yaml:2: fact f: no message of type "put" has a field "kye"; they have [key term]`,
		"facts:\n  f: {message: put, columns: [key, kye]}":                                                                    `x.yaml:2: fact f: no message of type "put" has a field "kye"; they have [key term]`,
		check + "1 union all select x+1 from c) select count(*) x from c)\"}":                                                 "x.yaml:2: check c: stopped after 1s, the limit for all checks of a run",
		check + "zeroblob(250000) union all select zeroblob(250000) from c limit 2000) select count(*) over (), x from c)\"}": "x.yaml:2: it needs more than 128 MiB",
		"views:\n  v: select 'x' n\n" + check + "1) select x from c)\", at: v}":                                               "n is x, and not the number of an event",
	} {
		f, err := relation.Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		limit := time.Hour
		if strings.Contains(want, "1s") {
			limit = time.Second
		}
		out, err := f.Judge(t.Context(), dir, limit)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v: want an error with %q", text, out, err, want)
		}
	}
	f, err := relation.Parse("x.yaml", []byte("facts:\n  f: {message: nosuch, columns: [a]}\nchecks:\n  - {name: c, class: broken, quote: q, at: f, select: select 1}"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Judge(t.Context(), dir, time.Hour)
	if err != nil || fmt.Sprint(out.Remarks) != `[x.yaml:2: fact f: the run has no message of type "nosuch"]` || out.Outcomes[0].Moments != 0 || len(out.Outcomes[0].Violations) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}
