package classify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// counted is a text protocol: SEND is followed by as many bytes as it says and by
// the end of a line, and names a channel that makes its type.
func counted() model.Protocol {
	return model.Protocol{Port: 7, Transport: "tcp", Dissector: NameText, Lines: []model.Line{
		{Match: `^SEND raft\.(?P<type>\w+) (?:\S+ )?(?P<length>\d+)$`, Plus: 2, Fields: map[string]model.Place{"term": {At: 2, Size: 4, Order: "little"}}},
		{Match: `^(?:SEND|\+GOT) .*?(?P<length>\d+)$`, Plus: 2},
	}}
}

// lineTypes are the units as "type bytes", with term and incomplete where they are.
func lineTypes(us []Unit) []string {
	for i := range us {
		var fs []model.Field
		for _, f := range us[i].Fields {
			if f.Name == "term" || f.Name == "incomplete" {
				fs = append(fs, f)
			}
		}
		us[i].Fields = fs
	}
	return reported(us)
}

// TestLinesOfATargetFile: what belongs to a line is no line, whatever it holds,
// and where segments end changes nothing.
func TestLinesOfATargetFile(t *testing.T) {
	const vote = "SEND raft.vote me 8\r\n\n\n\x07\x00\x00\x00\r\n\r\n"
	const data = "SEND news 12\r\nSEND news 1\n\r\n"
	for _, c := range []struct {
		name  string
		steps []step
		want  []string // of direction 0
	}{
		{"several in a segment", []step{{b: []byte("HELLO a=b\r\n" + vote + data + "PING\r\n+GOT 0\r\n\r\n+OK\r\n" + vote)}},
			[]string{"text HELLO 11", "text SEND vote 31 term=7", "text SEND 28", "text PING 6", "text other 10", "text other 5", "text SEND vote 31 term=7"}},
		{"lost inside", []step{{b: []byte(data + vote[:23])}, {gap: 4}, {b: []byte(vote[27:] + data)}},
			[]string{"text SEND 28", "text SEND vote 31 incomplete=true", "text SEND 28"}},
		{"behind a loss", []step{{b: []byte("PING\r\n")}, {gap: 40}, {b: []byte("ITCH\r\n no \x01 line" + "PING\r\n" + data + vote + "PING\r\n")}},
			[]string{"text PING 6", "unknown 16", "text PING 6", "text SEND 28", "text SEND vote 31 term=7", "text PING 6"}},
		{"long after a loss", []step{{gap: 4}, {b: []byte("x\nSEND raft.append 2000\r\n" + strings.Repeat("\x01", 2002) + "PING\r\n")}},
			[]string{"unknown 2", "text SEND append 2025 term=16843009", "text PING 6"}},
		{"the next line at the end of what is looked at", []step{{gap: 4}, {b: []byte("x\nSEND a 1001\r\n" + strings.Repeat("\x01", 1001) + "\r\n" + data)}},
			[]string{"unknown 2", "text SEND 1016", "text SEND 28"}},
		{"no line", []step{{b: []byte("\x00\x01\x02\nPING\r\n" + data + data + data)}},
			[]string{"unknown 10", "text SEND 28", "text SEND 28", "text SEND 28"}},
		{"too short for its field", []step{{b: []byte("SEND raft.vote 3\r\nabc\r\n")}}, []string{"text SEND vote 23"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := rules(t, counted(), c.steps, 1, 20)
			if diff := cmp.Diff(c.want, lineTypes(us[0])); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesByAlternatives: of groups of one name the one that took part is read.
func TestLinesByAlternatives(t *testing.T) {
	p := counted()
	p.Lines = []model.Line{{Match: `^PUT (?P<length>\d+)$|^DATA (?P<type>\w+) (?P<length>\d+) |^(?P<type>\w+)!$`}}
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	us := run(t, d, []step{{b: []byte("PUT 3\nX\n\nDATA a 4 z\nX\nY\nGO!\n")}}, nil)
	if diff := cmp.Diff([]string{"text PUT 9", "text DATA a 15", "text GO 4"}, lineTypes(us[0])); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

// TestWordsOfLinesAreBounded: a group that holds an id leaves the type by the
// first word.
func TestWordsOfLinesAreBounded(t *testing.T) {
	d, err := New(counted())
	if err != nil {
		t.Fatal(err)
	}
	var v Vocabulary
	types := map[string]bool{}
	off := uint64(0)
	for i := range 300 {
		b := []byte("SEND raft.g" + strings.Repeat("x", i%20) + strings.Repeat("y", i/20) + " 0\r\n\r\n")
		d.Data(0, off, b, func(u Unit) { types[v.Type(&u)] = true })
		off += uint64(len(b))
	}
	if len(types) != vocabularyMost+1 || !types["text SEND"] {
		t.Errorf("%d types", len(types))
	}
}

// TestFirstWordsOfLinesAreBounded: a first word may be an id, too (a tag, a name).
func TestFirstWordsOfLinesAreBounded(t *testing.T) {
	p := counted()
	p.Lines = []model.Line{{Match: `^\w+ (?P<type>\w+)$`}}
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	var v Vocabulary
	types := map[string]bool{}
	off := uint64(0)
	for i := range 1000 {
		b := []byte("x" + strings.Repeat("x", i%25) + strings.Repeat("y", i/200) + strings.Repeat("z", i/25%8) + " GET\n")
		d.Data(0, off, b, func(u Unit) { types[v.Type(&u)] = true })
		off += uint64(len(b))
	}
	if len(types) > 2*vocabularyMost+1 || !types["text other"] {
		t.Errorf("%d types", len(types))
	}
}

func TestLinesOfDatagrams(t *testing.T) {
	p := counted()
	p.Transport = "udp"
	if _, err := New(p); err != nil {
		t.Fatal(err)
	}
	got := lineTypes([]Unit{Datagrams(p)(0, []byte("SEND raft.vote 6\r\n\x00\x00\x09\x00\x00\x00")), Datagrams(p)(0, []byte("PING"))})
	if diff := cmp.Diff([]string{"text SEND vote 24 term=9", "text PING 4"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLinesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		dissector string
		line      model.Line
		want      string
	}{
		{NameRESP, model.Line{Match: `^A (?P<length>\d+)$`}, "lines goes with dissector text, not with resp"},
		{NameText, model.Line{Match: `^A (\d+)$`}, "lines[0].match: want a group named length"},
		{NameText, model.Line{Match: `^A (?P<length>\d+$`}, "lines[0].match: error parsing regexp"},
		{NameText, model.Line{Match: `^A (?P<type>\d+)$`, Plus: 2}, "lines[0]: plus and fields are of what follows the line"},
		{NameText, model.Line{Match: `^A (?P<length>\d+)$`, Plus: -2}, "lines[0].plus: want the bytes that length does not count"},
		{NameText, model.Line{Match: `^A (?P<lenght>\d+) (?P<type>\w+)$`}, `lines[0].match: unknown group "lenght": groups here are named length, type`},
		{NameText, model.Line{Match: `^A (?P<length>\d+)$`, Fields: map[string]model.Place{"token1": {At: 1}}}, "lines[0].fields.token1: every line has a field of that name"},
		{NameText, model.Line{Match: `^A (?P<length>\d+)$`, Fields: map[string]model.Place{"x": {At: 1, Size: 9}}}, "lines[0].fields.x: a number has 8 bytes at most"},
	} {
		_, err := New(model.Protocol{Port: 7, Transport: "tcp", Dissector: c.dissector, Lines: []model.Line{c.line}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.line, err)
		}
	}
}

func FuzzTextLines(f *testing.F) {
	seeds(f)
	f.Add("HELLO a=b\r\nSEND raft.vote me 8\r\n\n\n\x07\x00\x00\x00\r\n\r\n<SEND news 12\r\nSEND news 1\n\r\n%\x01PING\r\nSEND x 90\r\n", int64(1))
	f.Add("SEND x 99000\r\n\x03%\xffSEND x 2\r\nab\r\nSEND x 2\r\nab\r\nSEND x 2\r\nab\r\n", int64(1))
	f.Fuzz(func(t *testing.T, in string, seed int64) { rules(t, counted(), steps(in), seed, fuzzCuts) })
}
