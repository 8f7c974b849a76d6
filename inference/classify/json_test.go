package classify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestJSONTypes(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct{ value, want string }{
		{`{"id":null,"method":"append_request","params":[{"term":2}]}`, "json append_request"},
		{`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}`, "json textDocument/didOpen"},
		{`{"params":[],"method":"update2","id":null}`, "json update2"},
		{`{"term":3,"type":"vote"}`, "json vote"},
		{`{"op":"put","type":"string"}`, "json string"}, // the order of jsonNames
		{`{"type":4,"term":7}`, "json type:4"},
		{`{"type":12345,"term":7}`, "json {term,type}"},
		{`{"type":"two words","cmd":"go"}`, "json go"},
		{`{"method":"` + long + `"}`, "json {method}"},
		{`{"src":"n1","dest":"n2","body":{"type":"init","msg_id":1}}`, "json init"},
		{`{"log":[{"op":"put"}],"term":1}`, "json {log,term}"},
		{`{"a":{"b":{"type":"deep"}}}`, "json {a}"},
		{`{"term":1,"from":"n1","10.0.0.1":true,"n2":1}`, "json {from,term,…}"},
		{`{}`, "json {}"},
		{` [ "EVENT", {"id":1}]`, "json [EVENT]"},
		{`[48,1,{}]`, "json [48]"},
		{`[{"method":"a"}]`, "json []"},
		{`[]`, "json []"},
		{`{"id":9,"result":[],"error":null}`, "json reply"},
		{`{"jsonrpc":"2.0","id":9,"error":{"code":1}}`, "json error"},
		{`{"id":9,"result":{"type":"x"}}`, "json reply"},
		{`{"id":9,"type":"done","result":1}`, "json done"},
		{`{"error":"x"}`, "json {error}"},
		{`"text"` + "\n", "json (string)"}, {"-1.5e3\n", "json (number)"}, {"true ", "json (boolean)"}, {"null\n", "json (null)"},
		{"\x1e" + `{"type":"a"}`, "json a"},
		{`{"type":"a",}`, model.TypeUnknown},
		{`{"type":"a"]`, model.TypeUnknown},
		{`{type:1}`, model.TypeUnknown},
	} {
		us := play(NewJSON(), []turn{{0, c.value}})
		if us[0].Type != c.want {
			t.Errorf("%s: %q, want %q", c.value, us[0].Type, c.want)
		}
		u := Datagrams(model.Protocol{Transport: "udp", Dissector: NameJSON})(1, []byte(c.value))
		if u.Type != c.want || u.Bytes != len(c.value) {
			t.Errorf("datagram %s: %+v, want %q", c.value, u, c.want)
		}
	}
	if u := jsonDatagram([]byte(`{"type":"a"} {}`)); u.Type != model.TypeUnknown {
		t.Errorf("two values in a datagram: %+v", u)
	}
}

func TestJSONFields(t *testing.T) {
	many := strings.Repeat(`{"k":1},`, 100) + "{}"
	for _, c := range []struct {
		value string
		want  map[string]string
	}{
		{`{"id":null,"method":"append_request","params":[{"term":2,"to":"a\"b","log":[{"term":1}]}]}`,
			map[string]string{"id": "null", "method": "append_request", "params.0.term": "2", "params.0.to": `a"b`, "params.0.log.0.term": "1"}},
		{`{"n":12345678901234567890,"ok":true,"no":false,"s":"\u00e9\n"}`, map[string]string{"n": "12345678901234567890", "ok": "true", "no": "false", "s": "é\n"}},
		{`{"a":{"b":{"c":{"d":{"e":{"f":1,"g":{"h":2}}}}}}}`, map[string]string{"a.b.c.d.e.f": "1", "a.b.c.d.e.g.h": "(none)"}},
		{`{"log":[` + many + `],"term":9}`, map[string]string{"term": "9", "log.0.k": "1", "log.99.k": "(none)"}}, // short paths first
		{`{"x\u0000":1,"` + strings.Repeat("k", 65) + `":{"y":2},"z":3}`, map[string]string{"z": "3", "y": "(none)"}},
		{`{"v":"` + strings.Repeat("v", 300) + `"}`, map[string]string{"v": strings.Repeat("v", 256) + "…"}},
		{`[1,"b",[{"c":2}]]`, map[string]string{"0": "1", "1": "b", "2.0.c": "2"}},
		{"17\n", map[string]string{"value": "17"}},
		{`{"a":1,"b":2` + "\x00", map[string]string{"a": "(none)"}},
	} {
		us := play(NewJSON(), []turn{{0, c.value}})
		for name, want := range c.want {
			if got := field(us[0], name); got != want {
				t.Errorf("%.80s: field %s is %q, want %q", c.value, name, got, want)
			}
		}
		if len(us[0].Fields) > jsonFields {
			t.Errorf("%.80s: %d fields", c.value, len(us[0].Fields))
		}
	}
}

func TestJSONStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"nothing between", []turn{{0, `{"type":"a"}{"type":"b"}[1][2]{}`}}, []string{"> json a 12", "> json b 12", "> json [1] 3", "> json [2] 3", "> json {} 2"}},
		{"in strings", []turn{{0, `{"type":"a","s":"}{\"]["}{"type":"b"}`}}, []string{"> json a 25", "> json b 12"}},
		{"over segments", []turn{{0, `{"type":"a","s":"\`}, {1, `{}`}, {0, `"}"}{"type"`}, {0, `:"b"}`}}, []string{"< json {} 2", "> json a 22", "> json b 12"}},
		// The first end of line shows that values end lines; it belongs to the second.
		{"lines", []turn{{0, "{\"type\":\"a\"}\n{\"type\":\"b\"} \r\n{\"type\":\"c\"}\n"}}, []string{"> json a 12", "> json b 16", "> json c 13"}},
		{"last line", []turn{{0, "{\"type\":\"a\"}\n"}}, []string{"> json a 12", "> json (blank) 1"}},
		{"lines, one without end", []turn{{0, "1\n{\"type\":\"a\"}{\"type\":\"b\"}"}}, []string{"> json (number) 1", "> json a 13", "> json b 12"}},
		{"text sequence", []turn{{0, "\x1e{\"type\":\"a\"}\n\x1e7\n\x1e\"x\"\n"}}, []string{"> json a 13", "> json (number) 4", "> json (string) 5"}},
		{"indented", []turn{{0, "{\n  \"type\": \"a\"\n}\n\n{\n}\n"}}, []string{"> json a 17", "> json {} 6"}},
		{"values by themselves", []turn{{0, `1 true "a" null`}}, []string{"> json (number) 1", "> json (boolean) 5", "> json (string) 4", "> json (null) 5"}},
		{"banner", []turn{{0, "HELLO {1}\n{\"type\":\"a\"}{\"type\":\"b\"}"}}, []string{"> unknown 10", "> json a 12", "> json b 12"}},
		{"cut off", []turn{{0, `{"type":"a","term`}}, []string{"> json a 17 incomplete"}},
		{"cut off before its name", []turn{{0, `{"term":1,"ty`}}, []string{"> json (other) 13 incomplete"}},
		{"no JSON", []turn{{0, "GET / HTTP/1.1\r\nHost: {a}\r\n\r\n"}}, []string{"> unknown 29"}},
		{"a wrong one between", []turn{{0, `{"type":"a"}{"type":}{"type":"b"}`}}, []string{"> json a 12", "> unknown 9", "> json b 12"}},
		{"counted by lines", []turn{{0, "PUB 12\n{\"type\":\"a\"}\nPUB 2\n{}\n"}}, []string{"> unknown 7", "> json a 12", "> unknown 7", "> json {} 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, u := range play(NewJSON(), c.turns) {
				s := fmt.Sprintf("%c %s %d", "><"[u.Dir], u.Type, u.Bytes)
				if field(u, "incomplete") == "true" {
					s += " incomplete"
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An answer has its request's method, found by the id, of either side.
func TestJSONAnswers(t *testing.T) {
	us := play(NewJSON(), []turn{
		{0, `{"id":1,"method":"transact"}{"id":"1","method":"echo"}{"id":null,"method":"update"}`},
		{1, `{"id":"1","result":[],"error":null}{"id":1,"method":"ask"}{"id":1,"result":null,"error":"bad"}{"id":1,"result":1}{"id":null,"error":{}}`},
		{0, `{"result":1,"id":1}`},
	})
	want := []string{"> json transact", "> json echo", "> json update", "< json reply echo", "< json ask", "< json error transact",
		"< json reply", "< json {error,id}", "> json reply ask"}
	if diff := cmp.Diff(want, types(us)); diff != "" {
		t.Error(diff)
	}
	if got := field(us[3], "request"); got != "echo" {
		t.Errorf("request %q", got)
	}
}

func TestJSONAfterAGap(t *testing.T) {
	said := `{"type":"a","list":[{"type":"b"},{"type":"a"}],"x":{"y":1}}{"type":"c"}`
	for _, c := range []struct {
		name   string
		before string
		lost   int
		after  string
		want   []string
	}{
		{"within a message", said[:8], 10, said[18:], []string{"json (other) incomplete", "unknown", "json c"}},
		{"between two", said[:59], 5, said[59:], []string{"json a", "unknown"}}, // c was not seen before
		{"between two of types known", "{}" + said + said[:59], 5, said[59:], []string{"json {}", "json a", "json c", "json a", "json c"}},
		{"before a part", said + said[:8], 11, said[19:], []string{"json a", "json c", "json (other) incomplete", "unknown", "unknown", "json c"}},
		{"before a part that is no message", said + said[:8], 12, said[20:], []string{"json a", "json c", "json (other) incomplete", "unknown", "unknown", "json c"}},
		{"a part that was a message", said + said[:8], 25, said[33:], []string{"json a", "json c", "json (other) incomplete", "json a", "unknown", "json c"}},
		{"lines", "{\"type\":\"a\"}\n{\"typ", 9, "x\"}\n{\"z\":1}\n", []string{"json a", "json (other) incomplete", "unknown", "json {z}"}},
		{"record", "{\"typ", 9, "x\x1e{\"z\":1}\n", []string{"json (other) incomplete", "unknown", "json {z}", "json (blank)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, got := NewJSON(), []string{}
			add := func(u Unit) {
				if field(u, "incomplete") == "true" {
					u.Type += " incomplete"
				}
				got = append(got, u.Type)
			}
			j.Data(0, 0, []byte(c.before), add)
			j.Gap(0, uint64(len(c.before)), uint64(c.lost), add)
			j.Data(0, uint64(len(c.before)+c.lost), []byte(c.after), add)
			j.Close(0, add)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSONLongMessages(t *testing.T) {
	body := strings.Repeat("x", 3*jsonKeep)
	message := `{"type":"snapshot","term":7,"data":"` + body + `","late":12}`
	j := NewJSON().(*jsonStream)
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	j.Data(0, 0, []byte(message[:jsonKeep-1]), add)
	if len(us) != 0 {
		t.Fatalf("emitted too early: %+v", us)
	}
	for i := jsonKeep - 1; i < len(message); i += 1000 {
		j.Data(0, uint64(i), []byte(message[i:min(i+1000, len(message))]), add)
		if cap(j.d[0].keep) > 2*jsonKeep {
			t.Fatalf("keeps %d bytes", cap(j.d[0].keep))
		}
	}
	j.Data(0, uint64(len(message)), []byte(`{"type":"next"}`), add)
	if diff := cmp.Diff([]string{"> json snapshot", "> json snapshot end", "> json next"}, types(us)); diff != "" {
		t.Fatal(diff)
	}
	if us[0].Bytes != jsonKeep || us[1].Bytes != len(message)-jsonKeep || field(us[0], "term") != "7" || field(us[0], "late") != "(none)" {
		t.Errorf("%d and %d bytes, %v", us[0].Bytes, us[1].Bytes, us[0].Fields)
	}
	// A number at the end of what is kept may go on behind it.
	head := `{"type":"a","` + strings.Repeat("k", jsonKeep-18) + `":123`
	us = play(NewJSON(), []turn{{0, head + `45}`}})
	for _, f := range us[0].Fields {
		if f.Name != "type" {
			t.Errorf("%.20s: %s", f.Name, f.Value)
		}
	}
	// Bytes lost in the rest of a long message: what follows is found again.
	us = nil
	j = NewJSON().(*jsonStream)
	j.Data(0, 0, []byte(message[:2*jsonKeep]), add)
	j.Gap(0, 2*jsonKeep, 100, add)
	j.Data(0, 2*jsonKeep+100, []byte(message[2*jsonKeep+100:]+`{"type":"next"}`), add)
	if diff := cmp.Diff([]string{"> json snapshot", "> json snapshot end", "> unknown", "> json next"}, types(us)); diff != "" {
		t.Error(diff)
	}
}

func TestJSONTypesDoNotGrowWithData(t *testing.T) {
	var v Vocabulary
	seen := map[string]bool{}
	for i := range 500 {
		id := fmt.Sprintf("x%c%c", 'a'+i%26, 'a'+i/26)
		for _, u := range play(NewJSON(), []turn{
			{0, fmt.Sprintf(`{"type":"%s"}{"%s":1}["%s"]{"id":1,"method":"%s"}{"op":%d}`, id, id, id, id, i)}, {1, `{"id":1,"result":2}`}}) {
			seen[v.Type(&u)] = true
		}
	}
	if len(seen) > vocabularyMost+3 {
		t.Errorf("%d types", len(seen))
	}
}

func FuzzJSON(f *testing.F) {
	seeds(f)
	for _, s := range []string{
		`>{"id":1,"method":"a","p":[{"x":"}{\""}]}{"id":2}<{"id":1,"result":null}%{"a":1}]}{"b":2}`,
		">{\"type\":\"a\"}\n{\"type\":\"b\"} \r\n1 \"x\" true\n%\x05\n{\"type\":\"a\"}\n",
		">\x1e[1,2]\n\x1e{\"k\":\"\x03\x03\"}\n<banner\n{} [] {\"a\":tru}{\"b\":1}",
		">{\"type\":\"x\",\"k\":\"\x03%\x20\x03\"}{\"type\":\"x\"}>\x03{\"a\":[\"\x03\x03\x03\"],\"b\":3}",
	} {
		f.Add(s, int64(1))
	}
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameJSON, in, seed) })
}

func BenchmarkJSON(b *testing.B) {
	ask := []byte(`{"id":null,"method":"append_request","params":[{"log":[],"comment":"heartbeat","prev_log_term":2,"to":"370b4297-70dd-41f1-afbc-6fd9453c15ce","leader_commit":4,"term":2}]}`)
	j := NewJSON()
	emit := func(Unit) {}
	var off uint64
	b.ReportAllocs()
	b.SetBytes(int64(len(ask)))
	for b.Loop() {
		j.Data(0, off, ask, emit)
		off += uint64(len(ask))
	}
}
