package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/internal/onecut"
	"netsplit/model"
	"netsplit/record"
)

// failing is a trimmed run of Redis + Sentinel in which acknowledged writes
// were lost: cut at a state, healed by a message 13 ms later.
func failing(t testing.TB) Input {
	t.Helper()
	b, err := os.ReadFile("testdata/failing.json")
	if err != nil {
		t.Fatal(err)
	}
	var in Input
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

func write(t testing.TB, in Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// section is the part of the page with the id.
func section(t testing.TB, page, id string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<section id="`+id+`"`)
	s, _, ok2 := strings.Cut(rest, "</section>")
	if !ok || !ok2 {
		t.Fatalf("no section %s in the page", id)
	}
	return s
}

func wants(t *testing.T, where, page string, words ...string) {
	t.Helper()
	page += html.UnescapeString(page)
	for _, w := range words {
		if !strings.Contains(page, w) {
			t.Errorf("%s does not say %q", where, w)
		}
	}
}

func TestFailingRunIsToldInWords(t *testing.T) {
	page := write(t, failing(t))
	wants(t, "page", page, `class="verdict documented"`, "✕ Fail, as documented")
	broken := failing(t)
	broken.Summary.Verdict.Failures = append(broken.Summary.Verdict.Failures, model.Failure{Check: "fatal-log", Class: model.Broken, Summary: "n1 logged: Time is up."})
	wants(t, "page of a run that broke a promise too", write(t, broken), `class="verdict fail"`, "✕ Fail<", "<p>n1 logged: Time is up.</p>")
	story := section(t, page, "story")
	wants(t, "story", story,
		"Redis + Sentinel, 3 nodes ran on n1, n2 and n3, its clients on c1 and c2",
		"redis_master@n1 = n1 while redis_master@n2 = n2",
		"cut n1 from c1, c2, n2 and n3",
		"A probe of n2 (redis_master#4; ① in the picture) revealed it",
		"lasted 12.9 ms",
		"4 packets wanted to cross: 3 dropped, 1 was held until the heal and then passed; none leaked",
		"healed by message 1051 (② in the picture), resp SET from c1 to n1",
		"at state {n1, n2}",
		"stable again",
		"netsplit replay "+failing(t).Summary.Run+" -n 10")
	if n := strings.Count(story, ". "); n < 3 || n > 12 {
		t.Errorf("the story has about %d sentences", n)
	}
	wants(t, "failures", section(t, page, "failures"), "documented", "226 of 536 acknowledged writes lost", "amount 226",
		"does not guarantee that acknowledged writes are retained")
	wants(t, "decisions", section(t, page, "decisions"), "state-reached", "across-cut", "new-class")
}

func TestPictureShowsBandCrossesAndNumbers(t *testing.T) {
	in := failing(t)
	pic := section(t, write(t, in), "picture")
	if n := strings.Count(pic, `class="band"`); n != 1 {
		t.Errorf("%d bands, want 1: between n1 and the others only", n)
	}
	// Three dropped packets, the two from n2 folded into one.
	if n := strings.Count(pic, `class="cross"`); n != 2 {
		t.Errorf("%d crosses, want 2", n)
	}
	wants(t, "picture", pic, "① redis_master: n1 → n2", "② SET", `class="arrow heal"`, "×2 in", "held 620 µs", `class="lane bad"`, "idle ",
		"cut: n1 | n2 n3 c1 c2")
	if c := regexp.MustCompile(`class="msg"`).FindAllString(pic, -1); len(c) < 25 || len(c) > 80 {
		t.Errorf("%d messages drawn, want about 60", len(c))
	}
}

// A cross stands at the edge of the band on the sender's side, and the arrow of
// a packet between hosts that are not cut from each other goes through.
func TestDroppedMessageEndsAtTheNearEdge(t *testing.T) {
	in := failing(t)
	tl := newTimeline(&in)
	p := newPicture(tl)
	b := p.bands()
	if len(b) != 1 {
		t.Fatalf("bands %v, want one", b)
	}
	for _, c := range []struct {
		from, to model.NodeID
		x        float64
	}{{"n3", "n1", b[0].right}, {"n1", "n2", b[0].left}, {"c2", "n1", b[0].right}} {
		if x, ok := p.stop(c.from, c.to); !ok || x != c.x {
			t.Errorf("%s to %s stops at %v (%v), want %v", c.from, c.to, x, ok, c.x)
		}
	}
	if tl.hosts[0] != "n1" || len(tl.hosts) != 5 {
		t.Errorf("columns %v, want n1 first: the two sides side by side", tl.hosts)
	}
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	first := write(t, failing(t))
	for range 5 {
		if write(t, failing(t)) != first {
			t.Fatal("two reports of one run differ")
		}
	}
}

const attack = `</script><img src=x onerror=alert(1)>`

// hostile puts the attack wherever a target or its traffic chooses text.
func hostile(t testing.TB) Input {
	in := failing(t)
	s := &in.Summary
	in.Title, s.Target, s.Verdict.Reason, s.Scenario.Why = attack, attack, attack, attack
	for i := range s.Verdict.Failures {
		f := &s.Verdict.Failures[i]
		f.Check, f.Signature, f.Summary, f.Quote, f.Detail = attack, attack, attack, attack, []string{attack}
	}
	for i := range in.Events {
		if m := in.Events[i].Message; m != nil {
			m.Type += attack
			m.Fields = append(m.Fields, model.Field{Name: attack, Value: attack + "\u202e\x00\xff"})
		}
		if o := in.Events[i].Observation; o != nil {
			o.Value += attack
		}
	}
	for i := range in.History {
		in.History[i].Key += attack
		in.History[i].F += attack
	}
	for i := range in.Decisions {
		in.Decisions[i].Reason += attack
		if c := in.Decisions[i].Class; c != nil {
			c.Type, c.State.A = attack, attack
		}
	}
	s.Messages = map[string]int{attack: 3}
	s.Release = attack
	for i := range s.Verdict.Failures {
		s.Verdict.Failures[i].Known = attack
		s.Verdict.Failures[i].Detail = append(s.Verdict.Failures[i].Detail, "    "+attack)
	}
	in.Known = []model.KnownFailure{{ID: attack, Title: attack}}
	s.Verdict.Excuses = []model.Excuse{{F: attack, Error: attack, Node: model.NodeID(attack), Why: attack, Count: 1}}
	s.Verdict.Lines = []model.ExcusedLine{{Host: model.NodeID(attack), Process: attack, Line: attack, Why: attack, Count: 1}}
	in.Events = append(in.Events, model.Event{Kind: model.EventNode, Node: &model.NodeAction{Verb: model.NodeVerb(attack), Process: attack, Host: model.NodeID(attack)}})
	host := model.NodeID(attack)
	in.Exits, in.Incomplete = []record.Exit{{Host: host, Process: attack}}, []string{attack}
	in.LogLines = []record.LogLine{{Host: host, Process: attack, Line: attack}}
	v := model.VarRef{Name: attack, Node: host}
	in.Recovery.Pending, in.Recovery.Violated = []string{attack}, []record.Violation{{Invariant: model.Invariant{A: v, B: v, Relation: attack}, State: model.State{A: attack, B: attack}}}
	return in
}

func TestHostileTextIsInert(t *testing.T) {
	page := write(t, hostile(t))
	low := strings.ToLower(page)
	if strings.Contains(low, "<img") {
		t.Error("markup from a payload reached the page")
	}
	if n := strings.Count(low, "</script>"); n != 2 {
		t.Errorf("%d closing script tags, want the page's own 2", n)
	}
	if !strings.Contains(page, "&lt;img src=x onerror") {
		t.Error("the attack is not shown as text: the test proves nothing")
	}
	if strings.ContainsAny(page, "\u202e\x00") || !strings.Contains(page, "�") {
		t.Error("control characters from a payload reached the page")
	}
	if regexp.MustCompile(`\son[a-z]+=["']`).MatchString(page) || strings.Contains(page, "style=") {
		t.Error("the page has an inline handler or style, which its policy forbids")
	}
	var c bytes.Buffer
	if err := Campaign(&c, hostileCampaign(t)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.String(), "<img") || strings.Contains(c.String(), `href="javascript:`) || !strings.Contains(c.String(), "&lt;img") {
		t.Error("markup or a script link reached the campaign's page")
	}
}

// The policy lets exactly the page's own script and style run.
func TestPolicyNamesWhatThePageHolds(t *testing.T) {
	page := write(t, failing(t))
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("no policy")
	}
	p := strings.ReplaceAll(strings.ReplaceAll(policy[1], "&#39;", "'"), "&#43;", "+")
	wants(t, "policy", p, "default-src 'none'")
	for _, re := range []string{`(?s)<style>(.*?)</style>`, `(?s)<script>(.*?)</script>`} {
		for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(page, -1) {
			h := sha256.Sum256([]byte(m[1]))
			wants(t, "policy", p, "'sha256-"+base64.StdEncoding.EncodeToString(h[:])+"'")
		}
	}
	if regexp.MustCompile(`(?i)(src|href)="?(https?:)?//`).MatchString(page) {
		t.Error("the page points to the network")
	}
}

// many is a run of n messages with a cut in the middle.
func many(n int) Input {
	hosts := []model.NodeID{"n1", "n2", "n3", "c1"}
	in := Input{Title: "Many", Hosts: hosts, Nodes: hosts[:3], ReplayCommand: "netsplit replay r -n 10"}
	in.Summary.Run, in.Summary.Tap = "r", "gate"
	in.Summary.Verdict = model.Verdict{Value: model.VerdictPass, Reason: "all checks hold"}
	in.Summary.Scenario = onecut.Scenario{Strategy: model.StrategyRandom, Isolate: "n1", Partition: model.Isolate("n1", hosts, model.Drop)}.Model()
	at := time.Duration(0)
	num := uint64(0)
	for i := range n {
		at += time.Duration(100+i*i%4001) * time.Microsecond
		from, to := hosts[i%4], hosts[(i+1+i/4%3)%4]
		m := &model.Message{Num: uint64(i + 1), Frame: uint64(i + 1), At: at, From: from, To: to, Bytes: 40 + i%900,
			Type: fmt.Sprintf("resp COMMAND-%d", i%37), Fields: []model.Field{{Name: "arg0", Value: fmt.Sprintf("key-%d", i)}}}
		num++
		in.Events = append(in.Events, model.Event{Num: num, At: at, Kind: model.EventMessage, Message: m})
		num++
		in.Events = append(in.Events, model.Event{Num: num, At: at, Kind: model.EventPacket,
			Packet: &model.HeldPacket{Frame: m.Frame, From: from, To: to, Bytes: 100, Messages: []uint64{m.Num}}})
		switch d := (model.Decision{Event: num, At: at, Frame: m.Frame, Action: model.Pass, Reason: model.ReasonNotCut}); {
		case i == n/2:
			in.Decisions = append(in.Decisions, model.Decision{Event: num, At: at, Cut: true, Reason: model.ReasonTime})
		case i == n*3/4:
			in.Decisions = append(in.Decisions, model.Decision{Event: num, At: at, Heal: true, Reason: model.ReasonMaxCut})
		case i > n/2 && i < n*3/4:
			if from == "n1" || to == "n1" {
				d.Action, d.Reason = model.DropPacket, model.ReasonAcross
			}
			in.Decisions = append(in.Decisions, d)
		}
	}
	return in
}

func TestTenThousandMessagesStaySmall(t *testing.T) {
	page := write(t, many(10000))
	if len(page) > 400_000 {
		t.Errorf("the report of 10,000 messages is %d KB, want less than 400", len(page)/1000)
	}
	if n := len(write(t, many(100_000))); n > 2_000_000 {
		t.Errorf("the report of 100,000 messages is %d KB, want less than 2000", n/1000)
	}
	pic := section(t, page, "picture")
	if n := strings.Count(pic, `class="msg"`); n < 20 || n > 80 {
		t.Errorf("%d messages in the static picture of a long cut, want about 60", n)
	}
	wants(t, "picture", pic, "×", `class="cross"`, "heal: the longest time allowed for a cut was over")
}

// Whatever is missing from a record, the report is written and says so.
func TestReportsOfPoorRecords(t *testing.T) {
	clean := failing(t)
	clean.Decisions, clean.Summary.Proof = nil, nil
	clean.Summary.Scenario = model.Scenario{Strategy: model.StrategyClean}
	unreached := failing(t)
	unreached.Decisions, unreached.Summary.Proof = nil, nil
	unhealed := failing(t)
	unhealed.Decisions = unhealed.Decisions[:3]
	leaky := failing(t)
	leaky.Summary.Proof.Leaked = 2
	dead := failing(t)
	dead.Recovery.StableAt, dead.Exits = 0, []record.Exit{{Host: "n2", Process: "redis-server", Status: 139}}
	dead.LogLines = []record.LogLine{{Host: "n2", Process: "redis", Line: "ASSERTION FAILED"}}
	dead.Summary.Verdict = model.Verdict{Value: model.VerdictUnknown, Reason: "no history"}
	renumbered := failing(t)
	scn := onecut.Of(renumbered.Summary.Scenario)
	scn.State, scn.Nth = &model.State{A: "#3", B: "#4"}, 2
	renumbered.Summary.Scenario = scn.Model()
	renumbered.Summary.Result.CutState = &model.State{A: "#5", B: "#6"}
	first := renumbered
	scn.Nth = 1
	first.Summary.Scenario = scn.Model()
	for name, c := range map[string]struct {
		in   Input
		says []string
	}{
		"renumbered": {renumbered, []string{"= #5 while", "waited for", "= #3 while", "or for state number 2 with other numbers in the same order"}},
		"the first":  {first, []string{"or for the first state with other numbers in the same order"}},
		"empty":      {Input{}, []string{"? Not judged", "cannot be judged", "No message was recorded"}},
		"clean":      {clean, []string{"Nothing was cut: this is a clean run", "around the first change"}},
		"unreached":  {unreached, []string{"which never occurred, so nothing was cut"}},
		"unhealed":   {unhealed, []string{"No decision healed the cut"}},
		"leaky":      {leaky, []string{"2 LEAKED"}},
		"dead":       {dead, []string{"? Unknown", "not stable again within 25.0 s", "ended with status 139", "ASSERTION FAILED"}},
	} {
		t.Run(name, func(t *testing.T) { wants(t, "report", write(t, c.in), c.says...) })
	}
}

func BenchmarkWriteTenThousand(b *testing.B) {
	in := many(10000)
	b.ReportAllocs()
	for b.Loop() {
		var w bytes.Buffer
		if err := Write(&w, in); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w.Len()), "bytes/page")
	}
}

// TestTenThousandHosts: a report has columns for the hosts that took part, and says how many more
// there are.
func TestTenThousandHosts(t *testing.T) {
	in := many(1000)
	for i := range 10_000 {
		in.Hosts = append(in.Hosts, model.NodeID(fmt.Sprintf("x%05d", i)))
	}
	in.Nodes = append(in.Nodes[:3:3], in.Hosts[4:]...)
	in.Summary.Scenario = onecut.Scenario{Strategy: model.StrategyRandom, Isolate: "n1", Partition: model.Isolate("n1", in.Hosts, model.Drop)}.Model()
	page := write(t, in)
	if len(page) > 400_000 {
		t.Errorf("the report of 10,000 hosts is %d bytes, want less than 400,000", len(page))
	}
	wants(t, "picture", section(t, page, "picture"), "n1", "n2", "n3", "c1", "10000 hosts that sent and received nothing have no column")
	wants(t, "the page", page, "ran on n1, n2, n3, x00000", "and 9983 more")
}
