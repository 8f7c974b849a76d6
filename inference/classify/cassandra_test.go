package classify

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pierrec/lz4/v4"
)

// cassRows reads a table of testdata/cassandra.
func cassRows(t *testing.T, name string, columns int) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cassandra", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		c := strings.Split(line, "\t")
		if len(c) != columns {
			t.Fatalf("%s: %q", name, line)
		}
		rows = append(rows, c)
	}
	return rows
}

func TestCassandraVerbsAreThoseOfTheReleases(t *testing.T) {
	seen := map[string]int{}
	for _, c := range cassRows(t, "verbs.tsv", 4) {
		n, err := strconv.Atoi(c[1])
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		switch seen[c[0]]++; c[0] {
		case "0.7.0":
			got = cassVerbName(n, 1, true)
		case "1.0.8":
			got = cassVerbName(n, 3, true)
			if strings.HasPrefix(c[2], "UNUSED") {
				continue
			}
		case "3.11.5":
			got = cassVerbName(n, 11, false)
		default:
			got = cassVerb(cassVerbs40, n)
		}
		if got != strings.TrimSuffix(c[2], ";") {
			t.Errorf("%s: verb %d is %s, not %s", c[0], n, c[2], got)
		}
	}
	for v, n := range map[string]int{"0.7.0": 24, "1.0.8": 30, "3.11.5": 42, "4.1.7": 87, "5.0.4": 87} {
		if seen[v] != n {
			t.Errorf("%s has %d verbs, want %d", v, seen[v], n)
		}
	}
}

func TestCassandraStatesAreThoseOfTheReleases(t *testing.T) {
	versions := map[string]int{"0.7.0": 1, "1.0.8": 3, "3.11.5": 11, "4.1.7": 12, "5.0.4": 12}
	left := map[string]bool{"LOAD": true, "SEVERITY": true, "DISK_USAGE": true, "X_11_PADDING": true}
	for _, c := range cassRows(t, "states.tsv", 3) {
		n, err := strconv.Atoi(c[1])
		if err != nil {
			t.Fatal(err)
		}
		names := cassStates(versions[c[0]])
		got := ""
		if n < len(names) {
			got = names[n]
		}
		reserved := len(c[2]) >= 2 && c[2][0] == 'X' && c[2][1] >= '0' && c[2][1] <= '9'
		switch {
		case left[c[2]] && got != "", !left[c[2]] && !reserved && got != c[2]:
			t.Errorf("%s: state %d is %s, not %q", c[0], n, c[2], got)
		}
	}
}

// cassMsg is a message of 3.11.
func cassMsg(id, verb int, params, body string) string {
	b := binary.BigEndian.AppendUint32(nil, cassMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = append(b, 1, 2, 3, 4, 4, 10, 0, 0, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(verb))
	if params == "" {
		params = "\x00\x00\x00\x00"
	}
	b = append(b, params...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return string(b) + body
}

const cassFail = "\x00\x00\x00\x01\x00\x04FAIL\x00\x00\x00\x01\x01"

// frame40 wraps a payload as 4.0 does.
func frame40(f cassFraming, self bool, payload string) string {
	v, n, wire := uint64(len(payload)), 3, payload
	if f == cassLZ4 {
		n = 5
		c := make([]byte, lz4.CompressBlockBound(len(payload)))
		if k, err := lz4.CompressBlock([]byte(payload), c, nil); err == nil && k > 0 {
			wire = string(c[:k])
			v = uint64(k) | uint64(len(payload))<<17
		}
	}
	if self {
		v |= 1 << map[bool]int{true: 34, false: 17}[f == cassLZ4]
	}
	var h []byte
	for i := range n {
		h = append(h, byte(v>>(8*i)))
	}
	crc := crc24(h)
	h = append(h, byte(crc), byte(crc>>8), byte(crc>>16))
	if f == cassUnprotected {
		return string(h) + wire
	}
	return string(h) + wire + string(binary.LittleEndian.AppendUint32(nil, cassCRC32([]byte(wire))))
}

// msg40 is a message of 4.0 with a body of n bytes.
func msg40(id, verb, n int) string {
	b := []byte{byte(id), 1, 2, 3, 4, 0x8f, 0xa0, byte(verb), 0, 0}
	if n < 0x80 {
		b = append(b, byte(n))
	} else {
		b = append(b, 0xe0, byte(n>>16), byte(n>>8), byte(n))
	}
	return string(b) + strings.Repeat("b", n)
}

// initiate40 is the opener's first word of 4.1: messaging, small messages.
func initiate40(f cassFraming) string {
	b := []byte("\xCA\x55\x2D\xFA\x0c\x0a\x0c\x02\x06\x0a\x00\x00\x01\x1b\x58")
	b[7] |= byte(f&1)<<2 | byte(f&2)<<3
	return string(binary.BigEndian.AppendUint32(b, cassCRC32(b)))
}

func TestCassandraConnections(t *testing.T) {
	large := msg40(1, 0, 300_000)
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"3.11", []turn{{0, "\xCA\x55\x2D\xFA\x00\x00\x0b\x00"}, {1, "\x00\x00\x00\x0b"}, {0, "\x00\x00\x00\x0b\x04\x0a\x00\x00\x01" + cassMsg(1, 14, "", "") + cassMsg(2, 0, "", "x")}},
			[]string{"> cassandra connect", "< cassandra version", "> cassandra identify", "> cassandra GOSSIP_DIGEST_SYN", "> cassandra MUTATION"}},
		{"answers", []turn{{0, cassMsg(7, 4, "", "") + cassMsg(8, 4, "", "rows") + cassMsg(9, 4, cassFail, "") + cassMsg(10, 23, "", "") + cassMsg(11, 50, "", "")}},
			[]string{"> cassandra REQUEST_RESPONSE empty", "> cassandra REQUEST_RESPONSE", "> cassandra REQUEST_RESPONSE failure", "> cassandra INTERNAL_RESPONSE empty", "> cassandra verb50"}},
		{"start in the middle", []turn{{0, "end of a message\xCA\x55\x2D" + cassMsg(0x300, 3, "", "r")}}, []string{"> unknown", "> cassandra READ"}},
		{"long", []turn{{0, cassMsg(1, 0, "", strings.Repeat("m", 200_000)) + cassMsg(2, 31, "", "")}},
			[]string{"> cassandra MUTATION", "> cassandra MUTATION end", "> cassandra ECHO"}},
		{"4.1", []turn{{0, initiate40(cassCRC)}, {1, string(binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x0c\x00\x00\x00\x0c"), cassCRC32([]byte("\x00\x00\x00\x0c\x00\x00\x00\x0c"))))},
			{0, frame40(cassCRC, true, msg40(1, 31, 0)+msg40(2, 63, 5)) + frame40(cassCRC, true, msg40(3, 99, 1))}},
			[]string{"> cassandra connect small", "< cassandra version", "> cassandra ECHO_REQ", "> cassandra READ_RSP", "> cassandra FAILURE_RSP"}},
		{"4.1 lz4", []turn{{0, initiate40(cassLZ4) + frame40(cassLZ4, true, msg40(1, 18, 900)+msg40(2, 0, 900)) + frame40(cassLZ4, true, msg40(3, 37, 0))}},
			[]string{"> cassandra connect small", "> cassandra SCHEMA_PUSH_REQ", "> cassandra MUTATION_REQ", "> cassandra PING_REQ"}},
		{"4.1 unprotected", []turn{{0, initiate40(cassUnprotected) + frame40(cassUnprotected, true, msg40(1, 37, 4)) + frame40(cassUnprotected, true, msg40(3, 97, 0))}},
			[]string{"> cassandra connect small", "> cassandra PING_REQ", "> cassandra PING_RSP"}},
		{"4.1 in several frames", []turn{{0, initiate40(cassCRC) + frame40(cassCRC, false, large[:100_000]) + frame40(cassCRC, false, large[100_000:200_000]) + frame40(cassCRC, false, large[200_000:]) + frame40(cassCRC, true, msg40(2, 60, 0))}},
			[]string{"> cassandra connect small", "> cassandra MUTATION_REQ", "> cassandra MUTATION_REQ more", "> cassandra MUTATION_REQ end", "> cassandra MUTATION_RSP"}},
		{"4.1 seen late", []turn{{0, large[7:900] + frame40(cassCRC, false, large[100_000:200_000]) + frame40(cassCRC, true, msg40(2, 60, 0))}},
			[]string{"> unknown", "> cassandra part", "> cassandra MUTATION_RSP"}},
		{"4.1 lz4 seen late", []turn{{0, "xx" + frame40(cassLZ4, true, msg40(2, 60, 500))}}, []string{"> unknown", "> cassandra MUTATION_RSP"}},
		{"4.1 to an older peer", []turn{{0, initiate40(cassCRC)}, {1, "\x00\x00\x00\x0b"}, {0, "\x00\x00\x00\x0b\x04\x0a\x00\x00\x01" + cassMsg(1, 14, "", "")}},
			[]string{"> cassandra connect small", "< cassandra version", "> cassandra identify", "> cassandra GOSSIP_DIGEST_SYN"}},
		{"damaged frame", []turn{{0, initiate40(cassCRC) + "\x05\x00\x02\x00\x00\x00hello" + frame40(cassCRC, true, msg40(2, 60, 0))}},
			[]string{"> cassandra connect small", "> unknown", "> cassandra MUTATION_RSP"}},
		{"files of 3.11", []turn{{0, "\xCA\x55\x2D\xFA\x00\x00\x04\x08\x04\x0a\x00\x00\x03" + strings.Repeat("p", 20) + "\x00\x04Unbo\x01\x00\x00"}, {1, "\x07"}, {0, "\x02" + strings.Repeat("f", 200_000)},
			{1, "\x03" + strings.Repeat("r", 20)}, {0, "\x02another"}, {1, "\x05"}, {0, "\x05"}},
			[]string{"> cassandra connect stream", "< cassandra stream KEEP_ALIVE", "> cassandra stream FILE", "> cassandra stream FILE end",
				"< cassandra stream RECEIVED", "> cassandra stream FILE", "< cassandra stream COMPLETE", "> cassandra stream COMPLETE"}},
		{"files of 0.7", []turn{{0, "\xCA\x55\x2D\xFA\x00\x00\x01\x08\x00\x00\x00\x10" + strings.Repeat("h", 16) + strings.Repeat("f", 100)}},
			[]string{"> cassandra connect stream", "> cassandra stream data"}},
		{"not Cassandra", []turn{{0, "GET / HTTP/1.1\r\n"}, {1, "HTTP/1.1 400\r\n"}}, []string{"> unknown", "< unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newCassandra(), c.turns))); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCassandraGossipFields(t *testing.T) {
	utf := func(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }
	u32 := func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	state := func(k int, v string) string { return u32(k) + utf(v) + u32(9) }
	node := "\x04\x0a\x00\x00\x02" + u32(77) + u32(5)
	body := u32(2) + node + u32(4) + state(2, "s 1") + state(0, "LEFT,1,2") + state(1, "99.5") + state(13, "\x00\x00") +
		"\x04\x0a\x00\x00\x03" + u32(78) + u32(6) + u32(0)
	u := play(newCassandra(), []turn{{0, cassMsg(5, 16, "", body)}})[0]
	for name, want := range map[string]string{
		"verb": "GOSSIP_DIGEST_ACK2", "id": "5", "from": "10.0.0.1",
		"heartbeats": "10.0.0.2 generation=77 version=5\n10.0.0.3 generation=78 version=6",
		"endpoints":  `10.0.0.2 STATUS=LEFT,1,2 SCHEMA="s 1" TOKENS=` + cassDigest("\x00\x00"),
	} {
		if got := field(u, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// Whole endpoints of a message that was cut off are told.
	u = play(newCassandra(), []turn{{0, cassMsg(5, 16, "", body)[:len(cassMsg(5, 16, "", body))-3]}})[0]
	if got := field(u, "heartbeats"); !strings.HasPrefix(got, "10.0.0.2 ") || field(u, "incomplete") != "true" {
		t.Errorf("cut off: %+v", u)
	}
}

func TestCassandraKeepsLittle(t *testing.T) {
	c := newCassandra().(*cassandra)
	var got []string
	add := func(u Unit) { got = append(got, fmt.Sprintf("%s %d", u.Type, u.Bytes)) }
	head := cassMsg(1, 0, "", "")
	head = head[:len(head)-4] + "\x02\xfa\xf0\x80" // 50,000,000 bytes
	c.Data(0, 0, []byte(head), add)
	off := uint64(len(head))
	chunk := []byte(strings.Repeat(cassMsg(2, 31, "", ""), 1000)) // what looks like messages is not read in it
	for left := 50_000_000; left > 0; {
		k := min(left, len(chunk))
		c.Data(0, off, chunk[:k], add)
		off += uint64(k)
		left -= k
		if n := cap(c.framedPair.d[0].buf); n > 2*cassFrameMax {
			t.Fatalf("keeps %d bytes", n)
		}
	}
	want := []string{fmt.Sprintf("cassandra MUTATION %d", cassFrameMax), fmt.Sprintf("cassandra MUTATION end %d", 50_000_000+len(head)-cassFrameMax)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
