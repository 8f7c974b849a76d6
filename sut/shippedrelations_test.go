package sut_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/relation"
	"netsplit/record/rundir"
)

// shipped is a file of testdata/relations, about the relations of a shipped target: for
// each check a record that it holds on and one that breaks it.
type shipped struct {
	Nodes   []model.NodeID
	Clients []model.NodeID
	// Fields are those that messages of a type have where a line does not say otherwise.
	Fields map[string]string
	Cases  map[string]struct {
		Holds, Breaks string // a line for each event, see recorder.line
		Also          string // another record that it holds on
		Want          string // part of the row that breaks it
		Warns         bool   // the row is a warning
	}
}

// TestShippedQuotesNameTheirDocument: a quote is the words of a document, not netsplit's own; where no document
// says it, a check has none.
func TestShippedQuotesNameTheirDocument(t *testing.T) {
	files, err := fs.Glob(targets.FS, "*/target.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(targets.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Checks []struct{ Name, Quote string }
		}
		if err := yaml.Unmarshal(text, &file); err != nil || len(file.Checks) == 0 {
			t.Fatal(name, len(file.Checks), err)
		}
		for _, c := range file.Checks {
			if document, words, _ := strings.Cut(c.Quote, ": "); c.Quote != "" && (words == "" || strings.Contains(document, ". ")) {
				t.Errorf("%s, %s: no document before %q", name, c.Name, c.Quote)
			}
		}
	}
}

// TestShippedRelations: each check of each shipped target holds on a record that has what
// it is about, as all others of its file do, and is broken by another one.
func TestShippedRelations(t *testing.T) {
	files, err := fs.Glob(targets.FS, "*/relations.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	checks, lines := 0, 0
	for _, name := range files {
		text, err := fs.ReadFile(targets.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := relation.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Dir(name)
		b, err := os.ReadFile(filepath.Join("testdata", "relations", target+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var s shipped
		if err := yaml.Unmarshal(b, &s); err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		checks, lines = checks+len(file.Checks), lines+sourceLines(string(text))
		for _, c := range file.Checks {
			t.Run(target+"/"+c.Name, func(t *testing.T) {
				if s.Cases[c.Name].Holds == "" || s.Cases[c.Name].Breaks == "" {
					t.Fatal("it has no records that it holds on and is broken by")
				}
				s.examine(t, file, c.Name)
			})
		}
		for name := range s.Cases {
			if !slices.ContainsFunc(file.Checks, func(c relation.Check) bool { return c.Name == name }) {
				t.Errorf("%s has no check %s", target, name)
			}
		}
	}
	if checks < 25 || lines > 6*checks {
		t.Errorf("%d checks in %d lines: want 25 of 6 lines each, facts and views included", checks, lines)
	}
}

// TestTheTimelineOfDestini: the second node of three is left out, though only the third
// died (DESTINI, Table 3, after Figure 1b): an error at a DataNode (t4), one at the client
// (t5), and a copy too few in the end (t8).
func TestTheTimelineOfDestini(t *testing.T) {
	text, err := fs.ReadFile(targets.FS, "hdfs/relations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := relation.Parse("relations.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	s := shipped{Nodes: []model.NodeID{"n1", "n2", "n3", "n4"}, Clients: []model.NodeID{"c1"}}
	var got []string
	for _, o := range s.judge(t, file, `
		c1 > n2  hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE | block=blk_1_1 | clientName=c
		n2 > n3  hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE | block=blk_1_1 | clientName=c
		n3 > n4  hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE | block=blk_1_1 | clientName=c
		n2 > c1  hdfs WRITE_BLOCK reply | status=SUCCESS
		kill n4
		n2 > c1  hdfs WRITE_BLOCK reply | status=ERROR | firstBadLink=n3:9866
		n2 > c1  hdfs ack | op.block=blk_1_1 | seqno=2 | reply=SUCCESS,ERROR
		c1 > n2  hdfs packet last | op.block=blk_1_1 | seqno=3
		n2 > c1  hdfs ack | op.block=blk_1_1 | seqno=3 | reply=SUCCESS
		n2 > n1  rpc blockReceivedAndDeleted | blocks=blocks={blk_1_2 block.numBytes=5 status=RECEIVED}
		c1:5 > n1:8020  rpc complete | rpc.call=1 | src=/a | last=blk_1_2
		n1:8020 > c1:5  rpc complete reply | rpc.call=1 | result=true
		+20s stop
	`) {
		for _, v := range o.Violations {
			got = append(got, fmt.Sprintf("%02d %s: %v", v.N, o.Check.Name, v))
		}
	}
	slices.Sort(got)
	want := []string{"07 bad-connection-to-a-live-node: num=5 src=n2 status=ERROR bad=n3:9866",
		"08 bad-ack-for-a-live-node: num=6 src=n2 block=blk_1_1 reply=SUCCESS,ERROR node=n3",
		"14 survivors-have-copies: num=2 block=blk_1_1 node=n3"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// sourceLines counts those that are neither empty nor a remark.
func sourceLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n++
		}
	}
	return n
}

func (s *shipped) examine(t *testing.T, file *relation.File, name string) {
	c := s.Cases[name]
	for _, o := range s.judge(t, file, c.Holds) {
		if o.Check.Name == name && o.Moments == 0 {
			t.Error("it is not checked on the record that it holds on")
		}
		for _, v := range o.Violations {
			if v.Warning && o.Check.Name != name {
				continue
			}
			t.Errorf("%s does not hold on the record that %s holds on: %v", o.Check.Name, name, v)
		}
	}
	if c.Also != "" {
		for _, o := range s.judge(t, file, c.Also) {
			if len(o.Violations) > 0 {
				t.Errorf("%s does not hold on the other record: %v", o.Check.Name, o.Violations)
			}
		}
	}
	for _, o := range s.judge(t, file, c.Breaks) {
		if o.Check.Name != name {
			continue
		}
		if o.Unsure != "" {
			t.Errorf("nobody knows: %s", o.Unsure)
		}
		if len(o.Violations) == 0 {
			t.Error("its record does not break it")
		}
		for _, v := range o.Violations {
			if v.Warning != c.Warns || !strings.Contains(v.String(), c.Want) {
				t.Errorf("broken by %v (warning %v), want a row with %q (warning %v)", v, v.Warning, c.Want, c.Warns)
			}
		}
	}
}

func (s *shipped) judge(t *testing.T, file *relation.File, text string) []relation.Outcome {
	t.Helper()
	out, err := file.Judge(t.Context(), s.record(t, text), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return out.Outcomes
}

// record writes the record of a run. A line is a second after the one before it, unless
// it begins with +DURATION.
func (s *shipped) record(t *testing.T, text string) string {
	t.Helper()
	meta := model.RunMeta{Run: "c-1-r0001"}
	dir := filepath.Join(t.TempDir(), meta.Run)
	w, err := rundir.Create(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	r := recorder{s: s, w: w}
	r.event(model.Event{Kind: model.EventStart})
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r.at += time.Second
		if after, ok := strings.CutPrefix(line, "+"); ok {
			span, rest, _ := strings.Cut(after, " ")
			d, err := time.ParseDuration(span)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			r.at, line = r.at-time.Second+d, strings.TrimSpace(rest)
		}
		if err := r.line(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	var testbed model.Testbed
	for _, h := range slices.Concat(s.Nodes, s.Clients) {
		testbed.Hosts = append(testbed.Hosts, model.TestbedHost{Name: h})
	}
	if err := errors.Join(w.Close(), rundir.WriteJSON(filepath.Join(dir, rundir.TargetFile), model.Target{Nodes: s.Nodes}),
		rundir.WriteJSON(filepath.Join(dir, rundir.TestbedFile), testbed), rundir.WriteJSON(filepath.Join(dir, rundir.EvidenceFile), record.Evidence{})); err != nil {
		t.Fatal(err)
	}
	return dir
}

type recorder struct {
	s             *shipped
	w             *rundir.Writer
	at            time.Duration
	num, messages uint64
}

func (r *recorder) event(e model.Event) uint64 {
	r.num++
	e.Num, e.At = r.num, r.at
	r.w.Append(rundir.EventsFile, e)
	return r.num
}

// line enters an event:
//
//	n1:80 > c1:5000  TYPE | FIELD=VALUE | …   a message; the ports may be missing; \n is an end of line
//	n1 >x n2  TYPE | …                        one that the gate drops
//	op TYPE F key=K value=V node=N            an operation
//	obs HOST VAR[ABOUT]=VALUE                 an observation
//	stop                                      the workload is over
//	cut n1 / n2 n3                            a cut between two groups; heal ends it
//	file HOST OP PATH [NEW]                   an operation on a file
//	kill n1                                   a verb of a node action, and its host
func (r *recorder) line(line string) error {
	words := strings.Fields(line)
	switch {
	case len(words) > 3 && (words[1] == ">" || words[1] == ">x"):
		return r.message(words, line)
	case words[0] == "op":
		e := record.Entry{Workload: "w", Operation: model.Operation{Type: model.OpType(words[1]), F: words[2], Time: r.at}}
		for _, w := range words[3:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "key":
				e.Key = value
			case "value":
				e.Value = value
			case "node":
				e.Node = model.NodeID(value)
			case "process":
				e.Process, _ = strconv.Atoi(value)
			default:
				return fmt.Errorf("an operation has no %s", key)
			}
		}
		r.num++
		e.Num = r.num
		r.w.Append(rundir.HistoryFile, e)
	case words[0] == "obs" && len(words) == 3:
		name, value, _ := strings.Cut(words[2], "=")
		name, about, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		r.event(model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: model.VarRef{Node: model.NodeID(words[1]), Name: name, About: about}, Value: value}})
	case words[0] == "file" && len(words) > 3:
		o := &model.FileOperation{Host: model.NodeID(words[1]), Process: "server", Op: model.FileOp(words[2]), Path: words[3]}
		if len(words) > 4 {
			o.To = words[4]
		}
		r.event(model.Event{Kind: model.EventFile, File: o})
	case words[0] == "cut":
		p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{nil}}
		for _, w := range words[1:] {
			if last := len(p.Groups) - 1; w != "/" {
				p.Groups[last] = append(p.Groups[last], model.NodeID(w))
			} else {
				p.Groups = append(p.Groups, nil)
			}
		}
		r.event(model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "x", Partition: &p}})
	case words[0] == "heal":
		r.event(model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "x"}})
	case words[0] == "stop":
		r.event(model.Event{Kind: model.EventStop})
	case len(words) == 2:
		r.event(model.Event{Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeVerb(words[0]), Process: "server", Host: model.NodeID(words[1])}})
	default:
		return errors.New("no such event")
	}
	return nil
}

func (r *recorder) message(words []string, line string) error {
	parts := strings.Split(line, " | ")
	m := &model.Message{Type: strings.Join(strings.Fields(parts[0])[3:], " ")}
	var err error
	if m.From, m.FromPort, err = end(words[0]); err != nil {
		return err
	}
	if m.To, m.ToPort, err = end(words[2]); err != nil {
		return err
	}
	fields := parts[1:]
	if more := r.s.Fields[m.Type]; more != "" {
		fields = append(fields, strings.Split(more, " | ")...)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if name = strings.TrimSpace(name); slices.ContainsFunc(m.Fields, func(o model.Field) bool { return o.Name == name }) {
			continue
		}
		m.Fields = append(m.Fields, model.Field{Name: name, Value: strings.ReplaceAll(strings.TrimSpace(value), `\n`, "\n")})
	}
	r.messages++
	m.Num = r.messages
	r.event(model.Event{Kind: model.EventMessage, Message: m})
	if words[1] == ">x" {
		n := r.event(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: m.Num, From: m.From, To: m.To, Messages: []uint64{m.Num}}})
		r.w.Append(rundir.DecisionsFile, model.Decision{Event: n, At: r.at, Frame: m.Num, Action: model.DropPacket, Reason: model.ReasonAcross})
	}
	return nil
}

func end(s string) (model.NodeID, uint16, error) {
	host, port, found := strings.Cut(s, ":")
	if !found {
		return model.NodeID(host), 0, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return model.NodeID(host), uint16(n), err
}
