package state

import (
	"fmt"
	"math/rand"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

var (
	nodes = []model.NodeID{"n1", "n2", "n3"}
	hosts = []model.TestbedHost{
		{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}, {Name: "n2", IP: netip.MustParseAddr("10.0.0.2")},
		{Name: "n3", IP: netip.MustParseAddr("10.0.0.3")}, {Name: "c1", IP: netip.MustParseAddr("10.0.0.9")}}
	vars = []model.Variable{
		{Name: "leader", Kind: "leader", As: "host", MaxAge: 3 * time.Second, Sources: []model.VarSource{
			{Type: "resp PUBLISH __sentinel__:*", Field: "payload", Regexp: `^(?:[^,]*,){5}(?P<value>[^,]*)`},
			{Type: "resp SLAVEOF", Field: "arg1", Of: "receiver"},
			{Probe: &model.Probe{}, Regexp: `(?m)^master_host:(?P<value>\S+)`},
			{Probe: &model.Probe{}, Regexp: `role:master`, Value: "$self"},
			{Type: "resp push message *", Field: "payload", Regexp: `^(?P<of>[^,]+),(?:[^,]*,){4}(?P<value>[^,]*)`}}},
		{Name: "told", Kind: "told", Sources: []model.VarSource{{Type: "resp FAILOVER*", Value: "$sender>$receiver"}}},
		{Name: "status", Kind: "status", MaxAge: time.Second, Sources: []model.VarSource{
			{Type: "gossip", Field: "text", Regexp: `(?P<about>[\w.]+)=(?P<value>\w+)`, AbsentFor: "nodes"},
			{Probe: &model.Probe{}, Regexp: `(?P<about>\S+) is (?P<value>\w+)`, AbsentFor: "n1, n2"}}},
		{Name: "view", Kind: "view", Sources: []model.VarSource{
			{Type: "heartbeat reply", Field: "state", Of: "receiver", About: "$sender"},
			{Probe: &model.Probe{}, Regexp: `^I am (?P<value>\w+)`, About: "$self"}}},
		{Name: "raw", Kind: "raw", Sources: []model.VarSource{{Probe: &model.Probe{}}}},
	}
)

func extractor(t *testing.T) *Extractor {
	t.Helper()
	e, err := NewExtractor(hosts, nodes, vars)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func lines(obs []model.Observation) []string {
	var out []string
	for _, o := range obs {
		out = append(out, fmt.Sprintf("%s = %s (%s, message %d, probe %q)", o.Var, o.Value, o.Kind, o.Message, o.Probe))
	}
	return out
}

func TestMessagesRevealVariables(t *testing.T) {
	hello := "10.0.0.1,26379,3f2,7,m,10.0.0.2,6379,7"
	for _, c := range []struct {
		name string
		m    model.Message
		want []string
	}{
		{"sender's, group value, host", model.Message{From: "n1", To: "n2", Type: "resp PUBLISH __sentinel__:hello", Fields: []model.Field{{Name: "payload", Value: hello}}},
			[]string{`leader@n1 = n2 (leader, message 7, probe "")`}},
		{"what the text says is the sender's", model.Message{From: "n1", To: "n2", Type: "resp push message __sentinel__:hello", Fields: []model.Field{{Name: "payload", Value: hello}}},
			[]string{`leader@n1 = n2 (leader, message 7, probe "")`}},
		{"what the sender passes on", model.Message{From: "n3", To: "n2", Type: "resp push message __sentinel__:hello", Fields: []model.Field{{Name: "payload", Value: hello}}}, nil},
		{"receiver's, whole field", model.Message{From: "n1", To: "n3", Type: "resp SLAVEOF", Fields: []model.Field{{Name: "arg1", Value: "10.0.0.1:6379"}}},
			[]string{`leader@n3 = n1 (leader, message 7, probe "")`}},
		{"an address of nobody stays", model.Message{From: "n1", To: "n3", Type: "resp SLAVEOF", Fields: []model.Field{{Name: "arg1", Value: "192.0.2.1"}}},
			[]string{`leader@n3 = 192.0.2.1 (leader, message 7, probe "")`}},
		{"pattern is anchored", model.Message{From: "n1", To: "n3", Type: "resp SLAVEOF NO ONE", Fields: []model.Field{{Name: "arg1", Value: "NO"}}}, nil},
		{"no such field", model.Message{From: "n1", To: "n3", Type: "resp SLAVEOF"}, nil},
		{"a client has no variables", model.Message{From: "c1", To: "n3", Type: "resp PUBLISH __sentinel__:hello", Fields: []model.Field{{Name: "payload", Value: hello}}}, nil},
		{"value from sender and receiver", model.Message{From: "n2", To: "c1", Type: "resp FAILOVER TO"}, []string{`told@n2 = n2>c1 (told, message 7, probe "")`}},
		{"what one thinks of who told it", model.Message{From: "n2", To: "n3", Type: "heartbeat reply", Fields: []model.Field{{Name: "state", Value: "up"}}},
			[]string{`view[n2]@n3 = up (view, message 7, probe "")`}},
		{"instances and absence", model.Message{From: "n2", To: "n1", Type: "gossip", Fields: []model.Field{{Name: "text", Value: "10.0.0.1=Left n3=Normal n3=Left"}}},
			[]string{`status[n1]@n2 = Left (status, message 7, probe "")`, `status[n2]@n2 = ∅ (status, message 7, probe "")`, `status[n3]@n2 = Normal (status, message 7, probe "")`}},
		{"a cut text shows no absence", model.Message{From: "n2", To: "n1", Type: "gossip", Fields: []model.Field{{Name: "text", Value: "n1=Left n…"}}},
			[]string{`status[n1]@n2 = Left (status, message 7, probe "")`}},
		{"an incomplete message shows nothing", model.Message{From: "n2", To: "n1", Type: "gossip", Fields: []model.Field{{Name: "text", Value: "n1=Left"}, {Name: "incomplete", Value: "true"}}}, nil},
		{"an empty text shows absence", model.Message{From: "n2", To: "n1", Type: "gossip", Fields: []model.Field{{Name: "text", Value: ""}}},
			[]string{`status[n1]@n2 = ∅ (status, message 7, probe "")`, `status[n2]@n2 = ∅ (status, message 7, probe "")`, `status[n3]@n2 = ∅ (status, message 7, probe "")`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.m.Num, c.m.At = 7, time.Second
			e := extractor(t)
			for range 2 { // the second time from the cache
				got := e.Message(&c.m)
				if diff := cmp.Diff(c.want, lines(got)); diff != "" {
					t.Error(diff)
				}
				for _, o := range got {
					if o.At != time.Second {
						t.Errorf("at %v", o.At)
					}
				}
			}
		})
	}
}

// TestOtherFieldsTellWhatIsRead: sources of one message type, distinguished by where.
func TestOtherFieldsTellWhatIsRead(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{
		{Name: "meta", Kind: "term", Sources: []model.VarSource{{Type: "frame *", Field: "term", Where: map[string]string{"group": "^meta$", "error": "^0$"}}}},
		{Name: "data", Kind: "term", Sources: []model.VarSource{{Type: "frame 0x1", Field: "term", Where: map[string]string{"group": "^S-"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fields []model.Field
		want   []string
	}{
		{[]model.Field{{Name: "group", Value: "meta"}, {Name: "term", Value: "3"}, {Name: "error", Value: "0"}}, []string{`meta@n1 = 3 (term, message 0, probe "")`}},
		{[]model.Field{{Name: "group", Value: "S-x"}, {Name: "term", Value: "4"}}, []string{`data@n1 = 4 (term, message 0, probe "")`}},
		{[]model.Field{{Name: "group", Value: "meta"}, {Name: "term", Value: "5"}, {Name: "error", Value: "10"}}, nil},
		{[]model.Field{{Name: "group", Value: "meta"}, {Name: "term", Value: "6"}}, nil}, // no error field
		{[]model.Field{{Name: "term", Value: "7"}}, nil},
	} {
		if diff := cmp.Diff(c.want, lines(e.Message(&model.Message{From: "n1", To: "n2", Type: "frame 0x1", Fields: c.fields}))); diff != "" {
			t.Errorf("%v: %s", c.fields, diff)
		}
	}
}

// TestTheSenderKnowsFirst: what both ends of a message know by it the sender knew
// before, whatever they are called: else they seem to differ the other way round.
func TestTheSenderKnowsFirst(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "order", Kind: "order", Sources: []model.VarSource{
		{Type: "start reply", Field: "of", Regexp: `(?P<about>\w+)`, Value: "started"},
		{Type: "start reply", Field: "of", Regexp: `(?P<about>\w+)`, Value: "started", Of: "receiver"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []model.NodeID{"n1", "n2"} {
		to := model.NodeID("n2")
		if from == to {
			to = "n1"
		}
		got := lines(e.Message(&model.Message{Num: 4, From: from, To: to, Type: "start reply", Fields: []model.Field{{Name: "of", Value: "b a"}}}))
		var want []string
		for _, at := range []model.NodeID{from, to} {
			for _, about := range []string{"a", "b"} {
				want = append(want, fmt.Sprintf(`order[%s]@%s = started (order, message 4, probe "")`, about, at))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from %s: %s", from, diff)
		}
	}
}

func TestProbesRevealVariables(t *testing.T) {
	e := extractor(t)
	for _, c := range []struct {
		variable string
		source   int
		host     model.NodeID
		answer   string
		want     []string
	}{
		{"leader", 2, "n3", "# Replication\r\nrole:slave\r\nmaster_host:10.0.0.2\r\n", []string{`leader@n3 = n2 (leader, message 0, probe "leader#2")`}},
		{"leader", 3, "n2", "role:master\r\n", []string{`leader@n2 = n2 (leader, message 0, probe "leader#3")`}},
		{"leader", 3, "n2", "role:slave\r\n", nil},
		{"status", 1, "n2", "n1 is up", []string{`status[n1]@n2 = up (status, message 0, probe "status#1")`, `status[n2]@n2 = ∅ (status, message 0, probe "status#1")`}},
		{"view", 1, "n1", "I am up", []string{`view[n1]@n1 = up (view, message 0, probe "view#1")`}},
		{"raw", 0, "n1", " 42\n", []string{`raw@n1 = 42 (raw, message 0, probe "raw#0")`}},
		{"raw", 0, "c1", "42", nil},
		{"raw", 1, "n1", "42", nil},
		{"leader", 0, "n1", "42", nil}, // a message source
		{"nobody", 0, "n1", "42", nil},
	} {
		if diff := cmp.Diff(c.want, lines(e.Probe(c.variable, c.source, c.host, 0, c.answer))); diff != "" {
			t.Errorf("%s#%d on %s: %q\n%s", c.variable, c.source, c.host, c.answer, diff)
		}
	}
}

// Of alternatives the one that took part is read; a match that leaves the value
// or whom it is about open shows nothing, rather than an empty value.
func TestGroupsThatTakeNoPart(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{
		{Name: "role", Kind: "role", Sources: []model.VarSource{{Type: "t", Field: "f", Regexp: `role=(?P<value>\w+)|(?P<value>\w+) role|none(?P<value>x)?`}}},
		{Name: "view", Kind: "view", Sources: []model.VarSource{{Type: "t", Field: "f", Regexp: `(?P<about>n\d)?=(?P<value>\w+)|(?P<value>\w+)@(?P<about>n\d)`}}},
		{Name: "flag", Kind: "flag", Sources: []model.VarSource{{Type: "t", Field: "f", Regexp: `flag(?P<value>x)?`, Value: "set"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"role=master": {`role@n1 = master (role, message 1, probe "")`},
		"its master role, and n2=up, down@n3": {`role@n1 = master (role, message 1, probe "")`,
			`view[n2]@n1 = up (view, message 1, probe "")`, `view[n3]@n1 = down (view, message 1, probe "")`},
		"none": nil,
		"flag": {`flag@n1 = set (flag, message 1, probe "")`},
	} {
		m := model.Message{Num: 1, From: "n1", To: "n2", Type: "t", Fields: []model.Field{{Name: "f", Value: text}}}
		if diff := cmp.Diff(want, lines(e.Message(&m))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestBadVariablesAreRefusedWithAdvice(t *testing.T) {
	src := func(s model.VarSource) []model.Variable {
		return []model.Variable{{Name: "v", Kind: "k", Sources: []model.VarSource{s}}}
	}
	ok := model.VarSource{Type: "t", Field: "f"}
	for _, c := range []struct {
		vars []model.Variable
		want string
	}{
		{[]model.Variable{{Kind: "k", Sources: []model.VarSource{ok}}}, "without a name"},
		{[]model.Variable{{Name: "v", Sources: []model.VarSource{ok}}}, "no kind"},
		{[]model.Variable{{Name: "v", Kind: "k", As: "node", Sources: []model.VarSource{ok}}}, "use host"},
		{[]model.Variable{{Name: "v", Kind: "k"}}, "no sources"},
		{append(src(ok), src(ok)...), "defined twice"},
		{src(model.VarSource{Field: "f"}), "neither type nor probe"},
		{src(model.VarSource{Type: "t", Probe: &model.Probe{}}), "two sources"},
		{src(model.VarSource{Type: "t"}), "neither field nor value"},
		{src(model.VarSource{Type: "t", Regexp: "x", Value: "y"}), "regexp without field"},
		{src(model.VarSource{Type: "t", Field: "f", Of: "both"}), "sender or receiver"},
		{src(model.VarSource{Type: "t", Field: "f", Regexp: "("}), "regexp"},
		{src(model.VarSource{Type: "t", Field: "f", Regexp: "x", AbsentFor: "nodes"}), "group named about"},
		{src(model.VarSource{Type: "t", Field: "f", Regexp: "(?P<about>x)", About: "n1"}), "keep one"},
		{src(model.VarSource{Type: "t", Field: "f", Where: map[string]string{"g": "("}}), "where, field g: "},
		{src(model.VarSource{Probe: &model.Probe{}, About: "$sender"}), "use $self"},
		{src(model.VarSource{Probe: &model.Probe{}, Field: "f"}), "belong to messages"},
		{src(model.VarSource{Probe: &model.Probe{}, Where: map[string]string{"f": "x"}}), "belong to messages"},
		{src(model.VarSource{Type: "t", Field: "f", Tells: "all"}), "use changes"},
		{src(model.VarSource{Probe: &model.Probe{}, Tells: "changes"}), "cannot tell every change"},
		{src(model.VarSource{Type: "t", Value: "$from"}), "unknown $from: use $sender, $receiver or $self"},
		{src(model.VarSource{Probe: &model.Probe{}, Value: "$sender"}), "use $self"},
	} {
		_, err := NewExtractor(hosts, nodes, c.vars)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.vars, err, c.want)
		}
	}
}

func obs(name string, node model.NodeID, value string, at time.Duration) model.Observation {
	return model.Observation{At: at, Var: model.VarRef{Name: name, Node: node}, Kind: name, Value: value}
}

func TestTableKeepsTheLatestAndItsAge(t *testing.T) {
	tab := NewTable(vars)
	ref := model.VarRef{Name: "leader", Node: "n1"}
	if _, ok := tab.Value(ref, 0); ok {
		t.Error("an empty table has a value")
	}
	tab.Set(obs("leader", "n1", "n2", 5*time.Second))
	tab.Set(obs("leader", "n1", "n3", 4*time.Second)) // came late
	tab.Set(obs("leader", "n2", "n2", time.Second))
	for _, c := range []struct {
		now   time.Duration
		fresh bool
	}{{5 * time.Second, true}, {8 * time.Second, true}, {8*time.Second + 1, false}} {
		if v, fresh := tab.Value(ref, c.now); v != "n2" || fresh != c.fresh {
			t.Errorf("at %v: %q, fresh %v", c.now, v, fresh)
		}
	}
	inv := &model.Invariant{A: ref, B: model.VarRef{Name: "leader", Node: "n2"}}
	if st, ok := tab.State(inv, 4*time.Second); st != (model.State{A: "n2", B: "n2"}) || !ok {
		t.Errorf("state %v %v", st, ok)
	}
	if _, ok := tab.State(inv, 5*time.Second); ok {
		t.Error("a stale value counts in a state")
	}
	tab.Set(obs("raw", "n1", "x", 0))
	if v, ok := tab.Value(model.VarRef{Name: "raw", Node: "n1"}, time.Hour); v != "x" || !ok {
		t.Error("max_age 0 must set no bound")
	}
	if n := len(tab.Values()); n != 3 {
		t.Errorf("%d values, want 3", n)
	}
}

func TestTableIsBounded(t *testing.T) {
	tab := NewTable(vars)
	for i := range 3 * tableVars {
		o := obs("status", "n1", "x", time.Duration(i)*time.Millisecond)
		o.Var.About = fmt.Sprint(i)
		tab.Set(o)
	}
	if n := len(tab.Values()); n > tableVars {
		t.Errorf("%d variables kept, bound %d", n, tableVars)
	}
	last := model.VarRef{Name: "status", About: fmt.Sprint(3*tableVars - 1), Node: "n1"}
	if _, ok := tab.Value(last, 3*tableVars*time.Millisecond); !ok {
		t.Error("stale variables were not replaced by fresh ones")
	}
}

// script plays "at kind ..." lines: "msg FROM TO TYPE" and "obs NAME NODE
// VALUE", with "own" at the end for what the latest message revealed.
func script(s *Sampler, text string) []string {
	var out []string
	add := func(ss []model.Sample) {
		for _, x := range ss {
			var vs []string
			for _, v := range x.Values {
				vs = append(vs, v.Var.String()+"="+v.Value)
			}
			out = append(out, fmt.Sprintf("%d %s>%s %s: %s", x.Message, x.Point.From, x.Point.To, x.Point.Type, strings.Join(vs, " ")))
		}
	}
	var num uint64
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Fields(line)
		at, err := time.ParseDuration(f[0])
		if err != nil {
			panic(err)
		}
		e := model.Event{At: at}
		switch f[1] {
		case "msg":
			num++
			e.Kind = model.EventMessage
			e.Message = &model.Message{Num: num, At: at, From: model.NodeID(f[2]), To: model.NodeID(f[3]), Type: f[4], Bytes: 1}
		case "syn":
			num++
			e.Kind = model.EventMessage
			e.Message = &model.Message{Num: num, At: at, From: model.NodeID(f[2]), To: model.NodeID(f[3]), Type: "tcp syn"}
		case "kill", "pause":
			e.Kind, e.Node = model.EventNode, &model.NodeAction{Verb: model.NodeVerb(f[1]), Host: model.NodeID(f[2])}
		case "obs", "change":
			o := obs(f[2], model.NodeID(f[3]), f[4], at)
			o.Lasts = f[1] == "change"
			if len(f) > 5 {
				o.Message = num
			}
			e.Kind, e.Observation = model.EventObserve, &o
		case "tick":
			e.Kind = model.EventTick
		}
		add(s.Step(e))
	}
	add(s.Flush())
	return out
}

func TestSamplesPairBeforeSendWithAfterHandle(t *testing.T) {
	for _, c := range []struct {
		name, script string
		settle       time.Duration
		want         []string
	}{
		{"sender before, receiver after", `
			1s obs leader n1 a
			1s obs leader n2 old
			2s msg n1 n2 hello
			2100ms obs leader n1 later
			2200ms obs leader n2 b
			2300ms obs leader n2 c`, -1, []string{"1 n1>n2 hello: leader@n1=a leader@n2=b"}},
		{"what the message itself reveals", `
			1s obs leader n1 old
			2s msg n1 n2 hello
			2s obs leader n1 a own
			2s obs told n2 b own
			3s obs told n2 c`, -1, []string{"1 n1>n2 hello: leader@n1=a told@n2=b"}},
		{"nothing after it, but fresh", `
			1s obs leader n1 a
			1500ms obs leader n2 b
			2s msg n1 n2 hello
			4100ms tick
			4200ms obs leader n2 c`, -1, []string{"1 n1>n2 hello: leader@n1=a leader@n2=b"}},
		{"stale at either end", `
			1s obs leader n1 a
			4100ms msg n1 n2 hello
			4200ms obs leader n2 b
			4300ms msg n2 n1 ping`, -1, nil},
		{"only nodes, only payload, never oneself", `
			1s obs leader n1 a
			1s obs leader n2 a
			2s msg c1 n2 get
			2s msg n1 c1 reply
			2s syn n1 n2
			2s msg n1 n1 self`, -1, nil},
		{"a change nearby is left out", `
			1s obs leader n1 a
			1s obs leader n2 a
			1500ms msg n1 n2 one
			2s obs leader n1 a
			2s obs leader n2 a
			3s obs leader n1 b
			3s obs leader n2 a
			3100ms msg n1 n2 two
			3200ms obs leader n2 b
			3600ms obs leader n1 b
			3700ms obs leader n2 b
			3800ms msg n1 n2 three`, 500 * time.Millisecond,
			[]string{"3 n1>n2 three: leader@n1=b leader@n2=b"}},
		{"a change lies between two sights", `
			1s obs leader n1 a
			1s obs leader n2 a
			1200ms msg n1 n2 one
			3s obs leader n1 b
			3s obs leader n2 b
			3s msg n1 n2 two`, 0, nil},
		{"settled values count", `
			1s obs leader n1 a
			1s obs leader n2 a
			2s obs leader n1 a
			2s obs leader n2 a
			2s msg n1 n2 one
			4s obs leader n1 a
			4s obs leader n2 a
			5s obs leader n1 b
			5s obs leader n2 b`, 500 * time.Millisecond,
			[]string{"1 n1>n2 one: leader@n1=a leader@n2=a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSampler("r", nodes, vars)
			s.Settle = c.settle
			if diff := cmp.Diff(c.want, script(s, c.script)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSamplerIsBounded(t *testing.T) {
	s := NewSampler("r", nodes, vars)
	s.Open = 50
	rng := rand.New(rand.NewSource(1))
	samples := 0
	for i := range 20_000 {
		at := time.Duration(i) * time.Millisecond
		var e model.Event
		if rng.Intn(2) == 0 {
			e = model.Event{At: at, Kind: model.EventMessage, Message: &model.Message{Num: uint64(i + 1), At: at, From: nodes[rng.Intn(3)], To: nodes[rng.Intn(3)], Type: "t", Bytes: 1}}
		} else {
			o := obs("leader", nodes[rng.Intn(3)], "x", at)
			e = model.Event{At: at, Kind: model.EventObserve, Observation: &o}
		}
		samples += len(s.Step(e))
		if len(s.open) > 50 {
			t.Fatalf("%d messages wait, bound 50", len(s.open))
		}
		for _, h := range s.seen {
			for ref, past := range h.vars {
				if len(past) > historyLength {
					t.Fatalf("%d sights of %v kept", len(past), ref)
				}
			}
		}
	}
	if samples < 5000 {
		t.Errorf("%d samples of about 6700 messages", samples)
	}
}

func TestHistoryOfAVariableIsBounded(t *testing.T) {
	s := NewSampler("r", nodes, vars)
	s.Step(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: 1, From: "n1", To: "n2", Type: "t", Bytes: 1}})
	for i := range 3 * historyLength {
		o := obs("leader", "n2", "x", time.Duration(i)*time.Microsecond)
		s.Step(model.Event{At: o.At, Kind: model.EventObserve, Observation: &o})
	}
	if n := len(s.seen["n2"].vars[model.VarRef{Name: "leader", Node: "n2"}]); n != historyLength {
		t.Errorf("%d sights kept, want %d", n, historyLength)
	}
}

// TestOrdinalsOutliveTheRunsIDs: the same story told with other ids gives the
// same values, over two variables of one kind.
func TestOrdinalsOutliveTheRunsIDs(t *testing.T) {
	vars := []model.Variable{
		{Name: "schema", Kind: "schema", As: "ordinal", MaxAge: time.Second, Sources: []model.VarSource{{Probe: &model.Probe{TCP: "x"}, Regexp: `id=(?P<value>\S+)`}}},
		{Name: "heard", Kind: "schema", As: "ordinal", MaxAge: time.Second, Sources: []model.VarSource{{Probe: &model.Probe{TCP: "x"}, Regexp: `id=(?P<value>\S+)`}}},
	}
	tell := func(first, second string) string {
		e, err := NewExtractor(hosts, nodes, vars)
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, s := range []struct{ v, id string }{{"schema", first}, {"heard", first}, {"schema", second}, {"heard", first}, {"heard", second}} {
			for _, o := range e.Probe(s.v, 0, nodes[0], 0, "id="+s.id) {
				out += o.Value + " "
			}
		}
		return out
	}
	a, b := tell("59adb24e", "0f2c"), tell("77", "1")
	if a != b || a != "#1 #1 #2 #1 #2 " {
		t.Errorf("%q and %q, want #1 #1 #2 #1 #2 twice", a, b)
	}
}

// TestOrdinalsAreOfWhatWasRead: a text of the target file is the same in every
// run and stays what it is, and takes no number from the ids.
func TestOrdinalsAreOfWhatWasRead(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "leader", Kind: "leader", As: "ordinal", MaxAge: time.Second, Sources: []model.VarSource{
		{Probe: &model.Probe{TCP: "x"}, Regexp: `leader=(?P<value>\S+)`},
		{Probe: &model.Probe{TCP: "x"}, Regexp: `no leader`, Value: "none"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, answer := range []string{"no leader", "leader=59ad", "no leader", "leader=7", "leader=59ad"} {
		for source := range 2 {
			for _, o := range e.Probe("leader", source, nodes[0], 0, answer) {
				out += o.Value + " "
			}
		}
	}
	if want := "none #1 none #2 #1 "; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestEpochsTellInstancesApart: a number that comes again after a start of the
// system is another instance, whatever the ids are, over all variables.
func TestEpochsTellInstancesApart(t *testing.T) {
	vars := []model.Variable{
		{Name: "app", Kind: "app", MaxAge: time.Second, Sources: []model.VarSource{{Probe: &model.Probe{TCP: "x"}, Regexp: `(?P<epoch>\d+)_(?P<about>\d+)=(?P<value>\S+)`}}},
		{Name: "box", Kind: "box", MaxAge: time.Second, Sources: []model.VarSource{{Probe: &model.Probe{TCP: "x"}, Regexp: `(?P<epoch>\d+)_(?P<about>\d+)=(?P<value>\S+)`}}},
	}
	for _, ids := range []struct{ first, second string }{{"17", "23"}, {"99", "4"}} {
		e, err := NewExtractor(hosts, nodes, vars)
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, s := range []struct{ v, text string }{{"app", ids.first + "_1=RUNNING"}, {"box", ids.second + "_1=NEW " + ids.first + "_1=DONE"}, {"app", ids.second + "_2=RUNNING"}} {
			for _, o := range e.Probe(s.v, 0, nodes[0], 0, s.text) {
				out += o.Var.Name + "[" + o.Var.About + "]=" + o.Value + " "
			}
		}
		if want := "app[1]=RUNNING box[1]=DONE box[1#2]=NEW app[2#2]=RUNNING "; out != want {
			t.Errorf("%q, want %q", out, want)
		}
	}
	vars[0].Sources[0].Regexp = `(?P<epoch>\d+)=(?P<value>\S+)`
	if _, err := NewExtractor(hosts, nodes, vars); err == nil || !strings.Contains(err.Error(), "needs a group named about") {
		t.Error(err)
	}
}

// TestWhatNodesThatLeftKnowIsOutdated: a node that says of itself that it left is
// told nothing any more; what it says of itself still counts.
func TestWhatNodesThatLeftKnowIsOutdated(t *testing.T) {
	tab := NewTable([]model.Variable{{Name: "status", Gone: []string{"LEFT"}}, {Name: "schema"}})
	set := func(name, about string, node model.NodeID, value string) {
		tab.Set(model.Observation{Var: model.VarRef{Name: name, About: about, Node: node}, Value: value})
	}
	set("status", "n2", "n1", "LEFT") // another's word of it
	set("status", "n3", "n3", "LEFT")
	for text, want := range map[string]bool{
		"schema[n2]@n2 == schema[n2]@n3": true,
		"schema@n1 == schema@n3":         true,
		"status[n3]@n1 == status[n3]@n3": false,
		"schema[n2]@n1 == schema[n2]@n2": false,
	} {
		inv, _, err := model.ParseInvariant(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.Outdated(&inv); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestValuesThatMeanTheSame: one node's word is read as the other's.
func TestValuesThatMeanTheSame(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{
		{Name: "state", Kind: "state", Same: map[string]string{"KILLED": "FINISHED"}, MaxAge: time.Second,
			Sources: []model.VarSource{{Probe: &model.Probe{TCP: "x"}, Regexp: `(?P<about>\w+)=(?P<value>\S+)`}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, o := range e.Probe("state", 0, nodes[0], 0, "a=KILLED b=FINISHED c=RUNNING") {
		out += o.Var.About + " " + o.Value + " "
	}
	if want := "a FINISHED b FINISHED c RUNNING "; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}
