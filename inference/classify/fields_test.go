package classify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestRESPFields(t *testing.T) {
	long := strings.Repeat("v", 300)
	for _, c := range []struct {
		name  string
		turns []turn
		unit  int
		want  map[string]string
	}{
		{"arguments", []turn{{0, cmdBytes("set", "k", long)}}, 0,
			map[string]string{"arg0": "set", "arg1": "k", "arg2": strings.Repeat("v", 256) + "…", "arg3": "(none)"}},
		{"published", []turn{{0, cmdBytes("PUBLISH", "__sentinel__:hello", "a,b")}}, 0,
			map[string]string{"channel": "__sentinel__:hello", "payload": "a,b", "arg2": "a,b"}},
		{"not UTF-8", []turn{{0, cmdBytes("SET", "k", "\xff\xfe")}}, 0, map[string]string{"arg2": "\uFFFD"}},
		{"inline", []turn{{0, "SET k v\r\n"}}, 0, map[string]string{"arg0": "SET", "arg2": "v"}},
		{"reply of one value", []turn{{0, cmdBytes("GET", "k")}, {1, "$2\r\nab\r\n"}}, 1, map[string]string{"reply": "ab", "text": "(none)"}},
		{"null", []turn{{0, cmdBytes("GET", "k")}, {1, "$-1\r\n"}}, 1, map[string]string{"reply": "(nil)"}},
		{"INFO", []turn{{0, cmdBytes("INFO")}, {1, "$36\r\n# Replication\r\nrole:master\r\nslaves:0\r\n"}}, 1,
			map[string]string{"text": "# Replication\r\nrole:master\r\nslaves:0"}},
		{"verbatim", []turn{{0, cmdBytes("INFO")}, {1, "=7\r\ntxt:a\nb\r\n"}}, 1, map[string]string{"text": "a\nb"}},
		{"ROLE", []turn{{0, cmdBytes("ROLE")}, {1, "*3\r\n$6\r\nmaster\r\n:15\r\n*1\r\n*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n"}}, 1,
			map[string]string{"reply0": "master", "reply1": "15", "reply.2.0.0": "10.0.0.2", "reply.2.0.1": "6379"}},
		{"map", []turn{{0, cmdBytes("HELLO", "3")}, {1, "%2\r\n+role\r\n+master\r\n+ok\r\n#t\r\n"}}, 1,
			map[string]string{"reply0": "role", "reply1": "master", "reply2": "ok", "reply3": "true"}},
		{"attribute is no part", []turn{{0, cmdBytes("GET", "k")}, {1, "|1\r\n+ttl\r\n:9\r\n$1\r\nv\r\n"}}, 1, map[string]string{"reply": "v", "reply0": "(none)"}},
		{"streamed string", []turn{{0, cmdBytes("GET", "k")}, {1, "$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n"}}, 1, map[string]string{"reply": "abc"}},
		{"error", []turn{{0, cmdBytes("SET", "k", "v")}, {1, "-READONLY no\r\n"}}, 1, map[string]string{"error": "READONLY no", "request": "SET"}},
		{"pattern message", []turn{{1, "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$6\r\n+sdown\r\n$1\r\nx\r\n"}}, 0,
			map[string]string{"pattern": "*", "channel": "+sdown", "payload": "x"}},
		{"cut off", []turn{{0, "*2\r\n$3\r\nGET\r\n$9\r\nab"}}, 0, map[string]string{"arg0": "GET", "incomplete": "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := play(newRESP(), c.turns)
			for name, want := range c.want {
				if got := field(us[c.unit], name); got != want {
					t.Errorf("%s: field %s is %q, want %q (%+v)", us[c.unit].Type, name, got, want, us[c.unit].Fields)
				}
			}
		})
	}
}

func TestRESPLongMessagesAreEmittedBeforeTheirEnd(t *testing.T) {
	body := strings.Repeat("x", 200_000)
	set := cmdBytes("SET", "k", body)
	r := newRESP()
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	r.Data(0, 0, []byte(set[:respLong-1]), add)
	if len(us) != 0 {
		t.Fatalf("%v emitted too early", us)
	}
	r.Data(0, respLong-1, []byte(set[respLong-1:respLong]), add)
	if len(us) != 1 || us[0].Type != "resp SET" || us[0].Bytes != respLong {
		t.Fatalf("want the first %d bytes of resp SET, got %+v", respLong, us)
	}
	r.Data(0, respLong, []byte(set[respLong:]), add)
	if len(us) != 2 || us[1].Type != "resp SET end" || us[1].Offset != respLong || us[1].Bytes != len(set)-respLong {
		t.Fatalf("want the rest of resp SET, got %+v", us)
	}
	r.Data(1, 0, []byte("+OK\r\n"), add)
	if us[2].Type != "resp reply SET" {
		t.Errorf("the request was lost: %+v", us[2])
	}
}

func TestRESPKeepsLittleOfASnapshot(t *testing.T) {
	r := newRESP().(*resp)
	var got []string
	add := func(u Unit) { got = append(got, fmt.Sprintf("%s %d", u.Type, u.Bytes)) }
	r.Data(0, 0, []byte(cmdBytes("PSYNC", "?", "-1")), add)
	head := "+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 1\r\n$50000000\r\n"
	r.Data(1, 0, []byte(head), add)
	chunk := []byte(strings.Repeat("*1\r\n$4\r\nPING\r\n", 3572)) // what looks like commands is not read in it
	off := uint64(len(head))
	for left := 50_000_000; left > 0; {
		k := min(left, len(chunk))
		r.Data(1, off, chunk[:k], add)
		off += uint64(k)
		left -= k
		if d := &r.d[1]; cap(d.buf)+cap(d.line)+cap(d.tail)+cap(d.cand) > 64<<10 {
			t.Fatalf("keeps %d bytes", cap(d.buf)+cap(d.line)+cap(d.tail)+cap(d.cand))
		}
	}
	r.Data(1, off, []byte(cmdBytes("PING")), add)
	want := []string{"resp PSYNC ? 30", "resp reply PSYNC FULLRESYNC 56", fmt.Sprintf("resp rdb %d", respLong),
		fmt.Sprintf("resp rdb end %d", 50_000_000+11-respLong), "resp repl PING 14"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRESPAfterAGap(t *testing.T) {
	play := func(f func(r Dissector, add func(Unit))) []string {
		var us []Unit
		f(newRESP(), func(u Unit) { us = append(us, u) })
		return types(us)
	}
	t.Run("inside a long value the frame holds", func(t *testing.T) {
		got := play(func(r Dissector, add func(Unit)) {
			r.Data(0, 0, []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n"+strings.Repeat("x", 2000)), add)
			r.Gap(0, 2029, 1500, add)
			r.Data(0, 3529, []byte(strings.Repeat("x", 1500)+"\r\n"+cmdBytes("PING")), add)
			r.Data(1, 0, []byte("+OK\r\n+PONG\r\n"), add)
		})
		if diff := cmp.Diff([]string{"> resp SET", "> resp PING", "< resp reply SET", "< resp reply PING"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a lost reply shifts no other", func(t *testing.T) {
		got := play(func(r Dissector, add func(Unit)) {
			r.Data(0, 0, []byte(cmdBytes("GET", "a")+cmdBytes("PING")), add)
			r.Gap(1, 0, 10, add)
			r.Data(1, 10, []byte("ab\r\n+PONG\r\n"), add)
			r.Data(0, 34, []byte(cmdBytes("INFO")), add)
			r.Data(1, 21, []byte("$1\r\nx\r\n"), add)
		})
		if diff := cmp.Diff([]string{"> resp GET", "> resp PING", "< unknown", "< resp reply unmatched", "> resp INFO", "< resp reply INFO"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("behind a request a bulk is found", func(t *testing.T) {
		got := play(func(r Dissector, add func(Unit)) {
			r.Data(1, 0, []byte("est of a value"), add)
			r.Data(0, 0, []byte(cmdBytes("GET", "a")), add)
			r.Data(1, 14, []byte("$2\r\nhi\r\n"), add)
			r.Data(0, 20, []byte(cmdBytes("GET", "b")), add)
			r.Data(1, 22, []byte(":1\r\n"), add)
		})
		if diff := cmp.Diff([]string{"> resp GET", "< unknown", "< resp reply GET", "> resp GET", "< resp reply GET"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRESPTypesDoNotGrowWithData(t *testing.T) {
	seen := map[string]bool{}
	for i := range 500 {
		id := fmt.Sprintf("id%d", i)
		for _, u := range play(newRESP(), []turn{
			{0, cmdBytes("SET", id, id) + cmdBytes("PUBLISH", id, id) + cmdBytes("SUBSCRIBE", "ch."+id) + cmdBytes("CONFIG", id) + cmdBytes(id, "x") + cmdBytes("PSYNC", id, "1")},
			{1, "+" + id + "\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n-" + id + " bad\r\n-ERR " + id + "\r\n"}}) {
			seen[u.Type] = true
		}
	}
	if len(seen) > 12 {
		t.Errorf("%d types: %v", len(seen), seen)
	}
}

func TestTextLines(t *testing.T) {
	us := play(newText(), []turn{{0, "JOIN a=1 b=x\r\nQU"}, {1, "42 then\n"}, {0, "IT\n\x00\x01\nhello"}, {1, "\n"}})
	if diff := cmp.Diff([]string{"> text JOIN", "< text other", "> text QUIT", "> unknown", "< text other", "> text hello"}, types(us)); diff != "" {
		t.Error(diff)
	}
	want := []model.Field{{Name: "text", Value: "JOIN a=1 b=x"}, {Name: "token0", Value: "JOIN"}, {Name: "token1", Value: "a=1"},
		{Name: "token2", Value: "b=x"}, {Name: "a", Value: "1"}, {Name: "b", Value: "x"}}
	if diff := cmp.Diff(want, us[0].Fields); diff != "" {
		t.Error(diff)
	}
}

// A line of which bytes were lost says so, and is not typed by the word that its
// rest begins with.
func TestTextAfterAGap(t *testing.T) {
	d := newText()
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	d.Data(0, 0, []byte("STATE n1=UP\nSTATE n2=DO"), add)
	d.Gap(0, 24, 20, add)
	d.Data(0, 44, []byte("ALSO n3=UP\nSTATE n4=UP\n"), add)
	if diff := cmp.Diff([]string{"> text STATE", "> text STATE", "> unknown", "> text STATE"}, types(us)); diff != "" {
		t.Fatal(diff)
	}
	for i, want := range []bool{false, true, true, false} {
		if got := slices.Contains(us[i].Fields, incomplete); got != want {
			t.Errorf("unit %d incomplete: %v, want %v: %v", i, got, want, us[i].Fields)
		}
	}
	if text := us[1].Fields[0].Value; text != "STATE n2=DO…" {
		t.Errorf("the line without its end: %q", text)
	}
}

func TestFallbackTurns(t *testing.T) {
	us := play(newFallback(), []turn{{0, "GET /a"}, {0, "bc"}, {1, "HTTP/1.1 200"}, {0, "\x00\x01\x02"}, {1, "word"}, {1, "s go on"}})
	got := []string{}
	for _, u := range us {
		got = append(got, fmt.Sprintf("%s %d", u.Type, u.Bytes))
	}
	want := []string{`tcp data > 2^3 "GET" 8`, "tcp data < 2^3 12", "tcp data > 2^1 3", `tcp data < 2^3 "words" 11`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	us = play(newFallback(), []turn{{0, "ab"}, {1, "abcd"}, {0, "cd"}, {1, "e"}}) // offsets that meet are no turn's going on
	if len(us) != 4 {
		t.Errorf("four turns: %+v", us)
	}
	us = play(newFallback(), []turn{{0, strings.Repeat("x", fallbackMax+1)}})
	if len(us) != 2 || us[0].Bytes != fallbackMax || us[1].Bytes != 1 {
		t.Errorf("a long turn: %+v", us)
	}
	// The rest of a long turn, or what is behind a gap, begins with no token.
	us = play(newFallback(), []turn{{0, "PUT " + strings.Repeat("x", fallbackMax-4) + "and so on"}, {1, "OK so"}, {0, "PUT b"}})
	f := newFallback()
	add := func(u Unit) { us = append(us, u) }
	f.Data(0, 0, []byte("GET a"), add)
	f.Gap(0, 5, 5, add)
	f.Data(0, 10, []byte("ab cd"), add)
	f.Data(1, 0, []byte("OK so"), add)
	f.Close(1, add)
	if diff := cmp.Diff([]string{`> tcp data > 2^16 "PUT"`, "> tcp data > 2^3", `< tcp data < 2^2 "OK"`, `> tcp data > 2^2 "PUT"`,
		`> tcp data > 2^2 "GET"`, "> tcp data > 2^2", `< tcp data < 2^2 "OK"`}, types(us)); diff != "" {
		t.Error(diff)
	}
}

func TestDatagrams(t *testing.T) {
	for _, c := range []struct{ dissector, payload, want string }{
		{"text", "GOSSIP n1=1\n", "text GOSSIP"}, {"fallback", "GOSSIP n1=1\n", `udp data 2^3 "GOSSIP"`},
		{"fallback", "", "udp data 0"}, {"resp", "*1\r\n$4\r\nPING\r\n", "resp PING"}, {"resp", "\x00", model.TypeUnknown},
	} {
		u := Datagrams(model.Protocol{Transport: "udp", Dissector: c.dissector})(0, []byte(c.payload))
		if u.Type != c.want || u.Bytes != len(c.payload) {
			t.Errorf("%s of %q: %+v", c.dissector, c.payload, u)
		}
	}
}

func BenchmarkRESP(b *testing.B) {
	req := []byte(cmdBytes("SET", "key:1", "value") + cmdBytes("PUBLISH", "__sentinel__:hello", "10.0.0.1,26379,id,3,m,10.0.0.2,6379,3"))
	ans := []byte("+OK\r\n:1\r\n")
	r := newRESP()
	emit := func(Unit) {}
	var off [2]uint64
	b.ReportAllocs()
	for b.Loop() { // four messages
		r.Data(0, off[0], req, emit)
		r.Data(1, off[1], ans, emit)
		off[0] += uint64(len(req))
		off[1] += uint64(len(ans))
	}
}
