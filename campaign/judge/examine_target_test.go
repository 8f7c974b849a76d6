package judge

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// examined is a run in which all works as the file says: n1 tells n2 who leads
// on port 7000, both are probed for it, and the leader changes once. Each row of
// the test spoils one thing of it.
func examined() *runFiles {
	f := &runFiles{target: model.Target{
		Nodes:     []model.NodeID{"n1", "n2"},
		Clients:   []model.NodeID{"c1"},
		Args:      map[string]model.TargetArg{"workload": {Default: "data,lock"}},
		Protocols: []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "text"}},
		Processes: []model.Process{{Name: "server", Hosts: []model.NodeID{"n1", "n2"}}},
		Variables: []model.Variable{{Name: "leader", Kind: "leader", MaxAge: time.Second, Sources: []model.VarSource{
			{Type: "text LEADER*", Field: "token1"},
			{Probe: &model.Probe{TCP: "127.0.0.1:7001"}, Regexp: `is (?P<value>\w+)`},
			{Probe: &model.Probe{TCP: "127.0.0.1:7001"}, Regexp: `nobody`, Value: "none"},
		}}},
		Workloads: []model.Workload{{Name: "writer", Host: "c1"}},
	}}
	f.testbed.Hosts = []model.TestbedHost{{Name: "n1"}, {Name: "n2"}, {Name: "c1"}}
	f.evidence.Sources = []record.SourceStat{
		{Variable: "leader", Source: 1, Host: "n1", Requested: 9, Answered: 9, Seen: 8},
		{Variable: "leader", Source: 1, Host: "n2", Requested: 9, Answered: 9, Seen: 8},
		{Variable: "leader", Source: 2, Host: "n1", Requested: 9, Answered: 9, Seen: 1},
		{Variable: "leader", Source: 2, Host: "n2", Requested: 9, Answered: 9, Seen: 1},
	}
	f.events = []model.Event{{Kind: model.EventWorkload}}
	for i := range 200 {
		leader := []string{"n1", "n2"}[i/100]
		f.events = append(f.events, model.Event{Kind: model.EventMessage, Message: &model.Message{Type: "text LEADER", Stream: "tcp x", From: "n1", To: "n2", ToPort: 7000,
			Fields: []model.Field{{Name: "token1", Value: leader}}}},
			model.Event{Kind: model.EventObserve, Observation: &model.Observation{Var: model.VarRef{Name: "leader", Node: "n1"}, Value: leader}})
	}
	f.history = []record.Entry{{Workload: "writer", Operation: model.Operation{Type: model.OpOK}}}
	return f
}

// oneValue has the leader stay.
func oneValue(f *runFiles) {
	for _, e := range f.events {
		if e.Kind == model.EventObserve {
			e.Observation.Value = "n1"
		}
	}
}

// silence has a source show nothing on any host.
func silence(f *runFiles, source int) {
	for i := range f.evidence.Sources {
		if f.evidence.Sources[i].Source == source {
			f.evidence.Sources[i].Seen = 0
		}
	}
}

// TestExamineFindsWhatIsWrong: in each row one thing is spoilt, and that is what
// is found. A row without a problem has a note in its place.
func TestExamineFindsWhatIsWrong(t *testing.T) {
	sources := func(f *runFiles) []model.VarSource { return f.target.Variables[0].Sources }
	retype := func(f *runFiles, n int, typ string) {
		for i := range n {
			f.events[1+2*i].Message.Type = typ
		}
	}
	absent := func(f *runFiles) {
		for _, e := range f.events {
			if e.Kind == model.EventObserve {
				e.Observation.Value = model.Absent
			}
		}
	}
	for _, c := range []struct {
		name          string
		spoil         func(f *runFiles)
		problem, note string
	}{
		{"nothing", func(*runFiles) {}, "", "protocol text on tcp port 7000: 200 messages"},

		{"a run that came to nothing", func(f *runFiles) { f.events, f.history = nil, nil }, "the workload did not start", ""},

		{"a variable that nothing shows", func(f *runFiles) {
			f.target.Variables = append(f.target.Variables, model.Variable{Name: "term", Kind: "term", Sources: []model.VarSource{{Type: "text TERM", Field: "token1"}}})
		}, "variable term was never observed", ""},
		{"one that takes another setting", func(f *runFiles) {
			f.target.Variables = append(f.target.Variables, model.Variable{Name: "term", Kind: "term", When: model.When{"workload": {"vote"}}, Sources: []model.VarSource{{Type: "text TERM", Field: "token1"}}})
		}, "", "variable term was not observed: it needs workload vote"},
		{"one that takes this setting, a word of it", func(f *runFiles) {
			f.target.Variables = append(f.target.Variables, model.Variable{Name: "term", Kind: "term", When: model.When{"workload": {"vote", "lock"}}, Sources: []model.VarSource{{Type: "text TERM", Field: "token1"}}})
		}, "variable term was never observed", ""},
		{"one value throughout, all sources show it", oneValue, "", `variable leader had the value "n1" throughout: these settings never change it`},
		{"one value throughout, and a source with a fixed value that shows nothing", func(f *runFiles) { oneValue(f); silence(f, 2) },
			`variable leader had the value "n1" throughout, and source 3 of it showed no value`, ""},
		{"the same, and it may", func(f *runFiles) { oneValue(f); silence(f, 2); sources(f)[2].Optional = true }, "", "these settings never change it"},
		{"a list of nodes that never names one", func(f *runFiles) { absent(f); sources(f)[1].AbsentFor = "all" },
			"variable leader was always absent", ""},
		{"the same, and it need not", func(f *runFiles) { absent(f); sources(f)[1].AbsentFor, sources(f)[1].Optional = "all", true },
			"", "variable leader had the value"},
		{"the same, and that takes another setting", func(f *runFiles) {
			absent(f)
			sources(f)[1].AbsentFor = "all"
			f.target.Variables[0].When = model.When{"workload": {"vote"}}
		}, "", "variable leader had the value"},
		{"a fixed value that does not occur", func(f *runFiles) { silence(f, 2) }, "", "variable leader, source 3, on n1: 9 answers, none showed a value"},

		{"answers that are not understood", func(f *runFiles) { silence(f, 1) }, "variable leader, source 2: none of 18 answers showed a value", ""},
		{"answers that are understood on one host", func(f *runFiles) { f.evidence.Sources[0].Seen = 0 }, "", "variable leader, source 2, on n1: 9 answers, none showed a value"},
		{"the wrong field", func(f *runFiles) { sources(f)[0].Field = "token7" }, "variable leader, source 1: none of 200 messages of its type showed a value: field token7 was missing; there were token1; does it", ""},
		{"the wrong field, of what need not be", func(f *runFiles) { sources(f)[0].Field, sources(f)[0].Optional = "token7", true }, "", "200 messages"},
		{"a type that does not occur", func(f *runFiles) { sources(f)[0].Type = "text LEAVE" }, "", `variable leader, source 1: no message had type "text LEAVE"; there were "text LEADER"`},
		{"a type that need not occur", func(f *runFiles) { sources(f)[0].Type, sources(f)[0].Optional = "text LEAVE", true }, "", "200 messages"},
		{"a where that does not hold", func(f *runFiles) { sources(f)[0].Where = map[string]string{"group": "^S-"} }, "",
			`variable leader, source 1: 200 messages had type "text LEADER*", but where matched none: field group was not there`},
		{"a type like no other", func(f *runFiles) { sources(f)[0].Type = "text VOTE" }, "", `source 1: no message had type "text VOTE"|protocol text`},
		{"a probe without an answer", func(f *runFiles) {
			f.evidence.Sources[0] = record.SourceStat{Variable: "leader", Source: 1, Host: "n1", Requested: 9, Error: "connection refused"}
		}, "variable leader, source 2, on n1: the probe never answered (asked 9 times): connection refused", ""},
		{"of a source that need not answer everywhere", func(f *runFiles) {
			f.evidence.Sources[0] = record.SourceStat{Variable: "leader", Source: 1, Host: "n1", Requested: 9, Error: "standby"}
			sources(f)[1].Optional = true
		}, "", "the probe never answered, but did elsewhere: standby"},
		{"of one that answers nowhere", func(f *runFiles) {
			f.evidence.Sources = f.evidence.Sources[1:] // n2 is the only one asked
			f.evidence.Sources[0] = record.SourceStat{Variable: "leader", Source: 1, Host: "n2", Requested: 9, Error: "standby"}
			sources(f)[1].Optional = true
		}, "the probe never answered (asked 9 times): standby", ""},
		{"where no server was started", func(f *runFiles) {
			f.target.Processes = append(f.target.Processes, model.Process{Name: "newcomer", Hosts: []model.NodeID{"n3"}, Manual: true})
			f.evidence.Sources = append(f.evidence.Sources, record.SourceStat{Variable: "leader", Source: 1, Host: "n3", Requested: 9, Error: "refused"})
		}, "", "on n3: the probe never answered: no server was started there"},
		{"where a workload started one", func(f *runFiles) {
			f.target.Processes = append(f.target.Processes, model.Process{Name: "newcomer", Hosts: []model.NodeID{"n3"}, Manual: true})
			f.evidence.Sources = append(f.evidence.Sources, record.SourceStat{Variable: "leader", Source: 1, Host: "n3", Requested: 9, Error: "refused"})
			f.events = append(f.events, model.Event{Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeStart, Process: "newcomer", Host: "n3"}})
		}, "on n3: the probe never answered (asked 9 times): refused", ""},

		{"a silent port", func(f *runFiles) {
			f.target.Protocols = append(f.target.Protocols, model.Protocol{Port: 7002, Transport: "tcp", Dissector: "text"})
		}, "protocol text on tcp port 7002: no message was seen: is the port right", ""},
		{"a port of the other transport", func(f *runFiles) {
			f.target.Protocols = append(f.target.Protocols, model.Protocol{Port: 7000, Transport: "udp", Dissector: "text"})
		}, "protocol text on udp port 7000: no message was seen", ""},
		{"one that takes another setting", func(f *runFiles) {
			f.target.Protocols = append(f.target.Protocols, model.Protocol{Port: 7002, Transport: "tcp", Dissector: "text", When: model.When{"workload": {"vote"}}})
		}, "", "port 7002: no message was seen: it is used with workload vote"},
		{"one that takes this setting", func(f *runFiles) {
			f.target.Protocols = append(f.target.Protocols, model.Protocol{Port: 7002, Transport: "tcp", Dissector: "text", When: model.When{"workload": {"data"}}})
		}, "port 7002: no message was seen: is the port right", ""},
		{"one that need not be", func(f *runFiles) {
			f.target.Protocols = append(f.target.Protocols, model.Protocol{Port: 7002, Transport: "tcp", Dissector: "text", Optional: true})
		}, "", "port 7002: no message was seen: it is not used in every run"},
		{"three of 200 messages unknown", func(f *runFiles) { retype(f, 3, "text unknown") },
			`protocol text on tcp port 7000: 3 of 200 messages have no known type: is the reader right? Most are "text LEADER" (98 %), "text unknown" (1 %)`, ""},
		{"two of 200", func(f *runFiles) { retype(f, 2, "text unknown") }, "", "port 7000: 200 messages"},
		{"all unknown to a reader that knows nothing", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "fallback"
			retype(f, 100, "unknown")
		}, "", "protocol fallback on tcp port 7000: 200 messages"},

		{"a word of TLS", func(f *runFiles) { retype(f, 90, "tls data 2^7") }, "", "port 7000: 200 messages"},
		{"TLS", func(f *runFiles) { retype(f, 110, "tls data 2^7") },
			"protocol text on tcp port 7000: 110 of 200 messages are encrypted", ""},
		{"TLS to a reader that knows nothing", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "fallback"
			retype(f, 110, "tls data 2^7")
		}, "", "protocol fallback on tcp port 7000: 110 of 200 messages are encrypted"},
		{"TLS that is expected", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "tls"
			retype(f, 110, "tls data 2^7")
		}, "", "protocol tls on tcp port 7000: 200 messages, most are \"tls data 2^7\" (55 %), \"text LEADER\" (45 %)|2 message types"},

		{"HTTP to a reader that knows nothing", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "fallback"
			f.events[1].Message.Fields = append(f.events[1].Message.Fields, model.Field{Name: "token0", Value: "GET"})
		}, "", "protocol fallback on tcp port 7000: 1 messages begin like HTTP requests: reader http shows more, http-stream if answers last"},
		{"nodes that speak to a reader that knows nothing", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "fallback"
			f.events[1].Message.Bytes = 9
		}, "", "protocol fallback on tcp port 7000: nodes speak to one another there (1 messages), and what one says is known when the other speaks next, which across a cut it seldom does"},
		{"a client that does", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "fallback"
			f.events[1].Message.Bytes, f.events[1].Message.From = 9, "c1"
		}, "", `most are "text LEADER" (100 %)|1 message types`},
		{"words of another protocol to a reader of words", func(f *runFiles) {
			f.events[1].Message.Fields = append(f.events[1].Message.Fields, model.Field{Name: "token0", Value: "GET"})
		}, "", `most are "text LEADER" (100 %)|1 message types`},
		{"lines without an end", func(f *runFiles) {
			for i := range 200 {
				f.events[1+2*i].Message.Bytes = 10
			}
			f.events[3].Message.Bytes = 9000
		}, "", "protocol text on tcp port 7000: 81 % of the bytes are in lines of more than 4096 bytes"},
		{"long bodies that lines count", func(f *runFiles) {
			f.target.Protocols[0].Lines = []model.Line{{Match: "^PUT (?P<length>.*)$"}}
			f.events[3].Message.Bytes = 9000
		}, "", `most are "text LEADER" (100 %)|1 message types`},
		{"answers without an end", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "http"
			for i := range 200 {
				f.events[1+2*i].Message.Bytes = 10
			}
			m := f.events[3].Message
			m.Bytes, m.Fields = 9000, append(m.Fields, model.Field{Name: "incomplete", Value: "true"})
		}, "", "protocol http on tcp port 7000: 81 % of the bytes are in bodies without an end: reader http-stream separates"},
		{"one answer that was torn", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "http"
			for i := range 200 {
				f.events[1+2*i].Message.Bytes = 10
			}
			m := f.events[3].Message
			m.Fields = append(m.Fields, model.Field{Name: "incomplete", Value: "true"})
		}, "", `most are "text LEADER" (100 %)|1 message types`},
		{"requests that never end, and many answers", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "frames"
			for i := range 200 {
				m := f.events[1+2*i].Message
				if m.Bytes = 9000; i%40 == 0 {
					m.Bytes, m.Fields = 100, append(m.Fields, model.Field{Name: "incomplete", Value: "true"})
				} else {
					m.FromPort, m.ToPort = m.ToPort, m.FromPort
				}
			}
		}, "protocol frames on tcp port 7000: 100 % of the bytes to the port are in messages that never ended: is their length elsewhere, or do connections begin with messages of another layout (frames.first)?", ""},
		{"a frame that was torn", func(f *runFiles) {
			f.target.Protocols[0].Dissector = "frames"
			for i := range 200 {
				f.events[1+2*i].Message.Bytes = 10
			}
			m := f.events[3].Message
			m.Fields = append(m.Fields, model.Field{Name: "incomplete", Value: "true"})
		}, "", `most are "text LEADER" (100 %)|1 message types`},

		{"no operation succeeded", func(f *runFiles) { f.history[0].Type = model.OpFail }, "workload writer: no operation succeeded (1 failed)", ""},
		{"no operation under this setting", func(f *runFiles) {
			f.history = nil
			f.target.Workloads[0].When = model.When{"workload": {"vote"}}
		}, "", "workload writer: no operation: it is used with workload vote"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := examined()
			c.spoil(f)
			x := &Examination{}
			if err := x.shown(f); err != nil {
				t.Fatal(err)
			}
			if c.problem == "" && len(x.Problems) > 0 || c.problem != "" && (len(x.Problems) != 1 || !strings.Contains(x.Problems[0], c.problem)) {
				t.Errorf("problems %q, want %q", x.Problems, c.problem)
			}
			if notes := strings.Join(x.Facts, "|"); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", x.Facts, c.note)
			}
		})
	}
}
