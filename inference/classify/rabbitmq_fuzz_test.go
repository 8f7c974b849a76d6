package classify

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"netsplit/model"
)

func fuzzRabbitMQ(f *testing.F, reader string) {
	b, err := os.ReadFile(filepath.Join("testdata", "rabbitmq", "seed", reader))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, int64(1))
	f.Add(b[200:], int64(2)) // its middle, from anywhere
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: reader}, hadoopSteps(in), seed, fuzzCuts)
	})
}

func FuzzErlang(f *testing.F) { fuzzRabbitMQ(f, NameErlang) }

func FuzzAMQP(f *testing.F) { fuzzRabbitMQ(f, NameAMQP) }

// TestTermsWithinBounds: what is cut off, deep or wide ends the reading, and nothing else.
func TestTermsWithinBounds(t *testing.T) {
	deep := []byte{}
	for range etfDepth + 10 {
		deep = append(deep, etfSmallTuple, 1)
	}
	wide := append([]byte{105, 0xff, 0xff, 0xff, 0xff}, make([]byte, 100)...)
	for name, b := range map[string][]byte{
		"nothing": {}, "deep": deep, "wide": wide, "a long atom": {100, 0xff, 0xff, 'a'}, "a long binary": {109, 0xff, 0xff, 0xff, 0xff},
		"a fun": {112, 0, 0, 0, 1}, "a big number": {111, 0xff, 0xff, 0xff, 0xff, 0}, "no tag": {1}, "an atom that nobody has named": {82, 9, etfSmallTuple},
	} {
		e := etf{b: b}
		v := e.term(0)
		if name == "an atom that nobody has named" {
			if e.bad || v.kind != 'a' || v.text != "" {
				t.Errorf("%s: %+v", name, v)
			}
		} else if !e.bad {
			t.Errorf("%s: %+v", name, v)
		}
	}
	e := etf{b: []byte{etfSmallTuple, 3, 97, 7, 98, 0xff, 0xff, 0xff, 0xff, 110, 2, 1, 0, 1}}
	if v := e.term(0); e.bad || v.elems[0].text != "7" || v.elems[1].text != "-1" || v.elems[2].text != "-256" {
		t.Errorf("%+v", v)
	}
}

// TestNamesOfNodesAreText whatever bytes they are.
func TestNamesOfNodesAreText(t *testing.T) {
	us := run(t, newErlang(), []step{{b: []byte("\x00\x03s\xff\xfe")}, {b: []byte("\x00\x00\x00\x10\x70\x83h\x04a\x06aIajd\x00\x01\xff\x83j")}}, nil)[0]
	if len(us) != 2 || us[0].Fields[0].Value != "\uFFFD" {
		t.Fatalf("%+v", us)
	}
	for _, u := range us {
		for _, f := range u.Fields {
			if !utf8.ValidString(f.Value) {
				t.Errorf("%s is %q", f.Name, f.Value)
			}
		}
	}
}
