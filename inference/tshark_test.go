package inference

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"netsplit/e2e/need"
	"netsplit/inference/packet"
	"netsplit/inference/stream"
	"netsplit/model"
)

func tshark(t *testing.T, args ...string) []byte {
	t.Helper()
	need.Program(t, "tshark", "tshark")
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark %.300s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// flow is both directions of a connection, as one of the two readers saw it.
type flow struct {
	from, to string // from opened it
	data     [2][]byte
}

// followed returns tshark's reassembly of every TCP stream, in its order.
func followed(t *testing.T, path string) []flow {
	t.Helper()
	n := 0
	for _, line := range strings.Fields(string(tshark(t, "-r", path, "-T", "fields", "-e", "tcp.stream"))) {
		k, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("tcp.stream %q: %v", line, err)
		}
		n = max(n, k+1)
	}
	flows := make([]flow, n)
	args := []string{"-r", path, "-q"}
	for k := range n {
		args = append(args, "-z", fmt.Sprintf("follow,tcp,raw,%d", k))
	}
	var cur *flow
	sc := bufio.NewScanner(bytes.NewReader(tshark(t, args...)))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		line := sc.Text()
		switch {
		case strings.HasPrefix(line, "===") || line == "" || strings.HasPrefix(line, "Follow:"):
		case strings.HasPrefix(line, "Filter:"):
			k, err := strconv.Atoi(strings.Fields(line)[3])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			cur = &flows[k]
		case strings.HasPrefix(line, "Node 0: "):
			cur.from = line[8:]
		case strings.HasPrefix(line, "Node 1: "):
			cur.to = line[8:]
		default:
			d := 0
			if line[0] == '\t' {
				d, line = 1, line[1:]
			}
			b, err := hex.DecodeString(line)
			if err != nil {
				t.Fatalf("follow: %v", err)
			}
			cur.data[d] = append(cur.data[d], b...)
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return flows
}

// TestStreamsEqualTsharks compares the bytes of every TCP stream.
func TestStreamsEqualTsharks(t *testing.T) {
	for _, c := range captures {
		t.Run(c.path[9:], func(t *testing.T) {
			want := followed(t, c.path)
			var got []*flow // in order of appearance, as tshark numbers them
			flows := map[*stream.Conn]*flow{}
			d, table := packet.NewDecoder(nil), stream.NewTable(nil)
			for _, f := range c.frames(t) {
				p := d.Decode(f)
				for _, e := range table.Step(&p) {
					switch e.Kind {
					case stream.Open:
						fl := &flow{from: e.Conn.Addr[0].String(), to: e.Conn.Addr[1].String()}
						flows[e.Conn] = fl
						got = append(got, fl)
					case stream.Data:
						fl := flows[e.Conn]
						if int(e.Off) != len(fl.data[e.Dir]) {
							t.Fatalf("%s: data at %d after %d bytes", e.Conn.Name(e.Dir), e.Off, len(fl.data[e.Dir]))
						}
						fl.data[e.Dir] = append(fl.data[e.Dir], e.Bytes...)
					case stream.Gap, stream.Ignored, stream.Differs, stream.Again:
						t.Errorf("%s: %s %s in a clean capture", e.Conn.Name(e.Dir), e.Kind, e.Why)
					}
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d streams, tshark has %d", len(got), len(want))
			}
			total := 0
			for i, w := range want {
				g := got[i]
				if g.from != w.from || g.to != w.to {
					t.Fatalf("stream %d: %s>%s, tshark says %s>%s", i, g.from, g.to, w.from, w.to)
				}
				for d := range 2 {
					if !bytes.Equal(g.data[d], w.data[d]) {
						t.Errorf("stream %d %s>%s direction %d: %d bytes, tshark has %d, and they differ", i, w.from, w.to, d, len(g.data[d]), len(w.data[d]))
					}
					total += len(w.data[d])
				}
			}
			t.Logf("%d streams, %d bytes equal", len(want), total)
			if total == 0 {
				t.Fatal("tshark followed nothing")
			}
		})
	}
}

// value is a top-level RESP value as tshark dissects it.
type value struct {
	off  uint64
	size int
	kind string   // "array", "bulk_string", "string", "integer", "error", "fragment"
	args []string // its strings and numbers; "?" for what is nested or has none
}

// field is an element of PDML.
type field struct {
	Name   string  `xml:"name,attr"`
	Size   int     `xml:"size,attr"`
	Show   string  `xml:"show,attr"`
	Value  string  `xml:"value,attr"`
	Fields []field `xml:"field"`
	Protos []field `xml:"proto"`
}

func (f field) find(name string) (string, bool) {
	for _, g := range f.Fields {
		if g.Name == name {
			return g.Show, true
		}
	}
	return "", false
}

// scalar is the text of a RESP value that is not an array.
func (f field) scalar() string {
	switch f.Name {
	case "resp.bulk_string":
		for _, g := range f.Fields {
			if b, err := hex.DecodeString(g.Value); g.Name == "resp.bulk_string.value" && err == nil {
				return string(b)
			}
		}
	case "resp.string", "resp.error", "resp.integer":
		return f.Show
	}
	return "?"
}

// respValues returns tshark's RESP values of each direction, keyed by the name
// the pipeline gives the stream. Offsets are sums of sizes.
func respValues(t *testing.T, c capture) map[string][]value {
	t.Helper()
	args := []string{"-r", c.path, "-Y", "resp", "-J", "tcp resp", "-T", "pdml"}
	for _, port := range c.ports {
		args = append(args, "-d", fmt.Sprintf("tcp.port==%d,resp", port))
	}
	dec := xml.NewDecoder(bytes.NewReader(tshark(t, args...)))
	out := map[string][]value{}
	end := map[string]uint64{}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := tok.(xml.StartElement)
		if !ok || start.Name.Local != "packet" {
			continue
		}
		var pk field
		if err := dec.DecodeElement(&pk, &start); err != nil {
			t.Fatal(err)
		}
		name := ""
		for _, proto := range pk.Protos {
			switch proto.Name {
			case "tcp":
				s, _ := proto.find("tcp.srcport")
				d, _ := proto.find("tcp.dstport")
				name = "tcp 127.0.0.1:" + s + ">127.0.0.1:" + d + "#1"
			case "resp":
				for _, f := range proto.Fields {
					v := value{off: end[name], size: f.Size, kind: strings.TrimPrefix(f.Name, "resp.")}
					if v.kind == "array" {
						for _, e := range f.Fields {
							if e.Name != "resp.array.length" {
								v.args = append(v.args, e.scalar())
							}
						}
					} else {
						v.args = []string{f.scalar()}
					}
					end[name] += uint64(f.Size)
					out[name] = append(out[name], v)
				}
			}
		}
	}
}

// hard reports whether tshark 4.0 cannot dissect a message: an RDB transfer
// (no line end behind it), an array of thousands over many segments.
func hard(m model.Message) bool { return m.Type == "resp rdb" || m.Bytes > 20000 }

// same compares a message with tshark's value: length, and every field that
// holds a part of the value. It returns what differs, and the number of fields
// compared.
func same(m model.Message, v value) (diff string, compared int) {
	if m.Bytes != v.size {
		return fmt.Sprintf("%d bytes, tshark says %d", m.Bytes, v.size), 0
	}
	for _, f := range m.Fields {
		i := -1
		switch {
		case f.Name == "reply" || f.Name == "error":
			i = 0
		case strings.HasPrefix(f.Name, "arg"):
			i, _ = strconv.Atoi(f.Name[3:])
		case strings.HasPrefix(f.Name, "reply"):
			i, _ = strconv.Atoi(f.Name[5:])
		case f.Name == "channel":
			i = 1
		case f.Name == "payload":
			i = 2
		}
		if i < 0 || i < len(v.args) && v.args[i] == "?" {
			continue
		}
		if i >= len(v.args) {
			return fmt.Sprintf("field %s, tshark has %d elements", f.Name, len(v.args)), compared
		}
		if head, isCut := strings.CutSuffix(f.Value, "…"); f.Value != v.args[i] && !(isCut && strings.HasPrefix(v.args[i], head)) {
			return fmt.Sprintf("field %s = %q, tshark says %q", f.Name, f.Value, v.args[i]), compared
		}
		compared++
	}
	return "", compared
}

// TestMessagesEqualTsharks compares RESP messages one by one: place, length and
// content. Behind what tshark cannot dissect, its values are compared from the
// end of the stream backwards, where it has found its feet again.
func TestMessagesEqualTsharks(t *testing.T) {
	for _, c := range captures {
		t.Run(c.path[9:], func(t *testing.T) {
			want := respValues(t, c)
			got := map[string][]model.Message{}
			for _, m := range read(c.pipeline(t, "resp"), c.frames(t)) {
				if strings.HasPrefix(m.Type, "tcp ") {
					continue
				}
				got[m.Stream] = append(got[m.Stream], m)
			}
			messages, equal, fields, lost := 0, 0, 0, 0
			for name, ws := range want {
				if len(got[name]) == 0 {
					t.Errorf("%s: no message, tshark has %d", name, len(ws))
				}
			}
			for name, all := range got {
				ws := want[name]
				var ms []model.Message
				exact := true // tshark's offsets are good
				for _, m := range all {
					if m.Type == "resp newline" { // a sign of life, not a value
						exact = false
						if m.Bytes != 1 {
							t.Errorf("%s: newline of %d bytes", name, m.Bytes)
						}
						continue
					}
					ms = append(ms, m)
				}
				messages += len(ms)
				check := func(m model.Message, v value) string {
					diff, n := same(m, v)
					if exact && diff == "" && m.Offset != v.off {
						diff = fmt.Sprintf("offset %d, tshark says %d", m.Offset, v.off)
					}
					if diff == "" {
						equal++
						fields += n
					}
					return diff
				}
				i := 0
				for ; i < len(ms) && !hard(ms[i]); i++ {
					if i >= len(ws) {
						t.Fatalf("%s: tshark has %d messages; ours goes on with %s", name, len(ws), describe(ms[i]))
					}
					if diff := check(ms[i], ws[i]); diff != "" {
						t.Fatalf("%s message %d %.200s: %s", name, i, describe(ms[i]), diff)
					}
				}
				if i == len(ms) {
					if len(ws) != len(ms) {
						t.Errorf("%s: %d messages, tshark has %d", name, len(ms), len(ws))
					}
					continue
				}
				exact = false
				j, k := len(ms)-1, len(ws)-1
				for ; j > i && k >= i && check(ms[j], ws[k]) == ""; j, k = j-1, k-1 {
				}
				lost += j - i + 1
				if j-i > 2 {
					t.Errorf("%s: %d messages behind the hard one do not meet tshark's, the last %.200s", name, j-i, describe(ms[j]))
				}
			}
			t.Logf("%d messages, %d equal to tshark's in %d fields, %d that tshark cannot dissect", messages, equal, fields, lost)
			if equal < 900 || fields < equal || equal+lost != messages {
				t.Error("too little was compared")
			}
		})
	}
}
