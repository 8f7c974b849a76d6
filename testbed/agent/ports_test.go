package agent

import (
	"encoding/hex"
	"strings"
	"testing"

	"netsplit/model"
)

// TestABareAcknowledgementIsNoMessage: a segment with payload, or one that opens or ends a
// connection, is.
func TestABareAcknowledgementIsNoMessage(t *testing.T) {
	messages := []model.Traffic{{Proto: "tcp", Messages: true}}
	for _, c := range []struct {
		flags, length string
		message       bool
	}{{"10", "0028", false}, {"10", "0029", true}, {"18", "0064", true}, {"11", "0028", true}, {"02", "0028", true}, {"04", "0028", true}, {"30", "0028", false}} {
		f, err := hex.DecodeString("020000000002" + "020000000001" + "0800" + "4500" + c.length + "00000000" + "4006" + "0000" + "0a000001" + "0a000002" +
			"9c400885" + "00000001" + "00000000" + "50" + c.flags + "0100" + "00000000" + "000000000000")
		if err != nil {
			t.Fatal(err)
		}
		if Of(f, messages) != c.message || !Of(f, []model.Traffic{{Proto: "tcp"}}) {
			t.Errorf("flags %s, %s bytes: a message %v", c.flags, c.length, Of(f, messages))
		}
	}
}

// TestPayloadIsCountedByPort: as a reader of messages counts it, whatever the headers
// have of options, padding and extensions, and however little of the frame is seen.
func TestPayloadIsCountedByPort(t *testing.T) {
	const eth = "020000000002" + "020000000001"
	v4 := func(length, ihl, proto, l4 string) string {
		options := strings.Repeat("01", 20*strings.Count(ihl, "a")) // 40 bytes of header
		return eth + "0800" + "4" + ihl + "00" + length + "00000000" + "40" + proto + "0000" + "0a000001" + "0a000002" + options + l4
	}
	tcp := func(from, to, offset string) string {
		return from + to + "00000001" + "00000000" + offset + "010000" + "00000000" + strings.Repeat("00", 12)
	}
	const p2181, p40000, p3888 = "0885", "9c40", "0f30"
	p := new(portBytes)
	for _, c := range []struct {
		frame   string
		payload int32
		change  func(*arrival)
	}{
		{v4("0064", "5", "06", tcp(p40000, p2181, "80")), 100 - 20 - 32, nil},
		{v4("0064", "a", "06", tcp(p2181, p40000, "50")), 100 - 40 - 20, nil},
		{v4("05dc", "5", "06", tcp(p3888, p3888, "50")), 1500 - 40, nil}, // to itself, once
		{v4("0034", "5", "06", tcp(p40000, p2181, "80")), 0, nil},        // an acknowledgement
		{v4("0024", "5", "11", p40000+p2181+"0010"+"0000"+"0102030405060708"), 8, nil},
		{eth + "86dd" + "60000000" + "0020" + "3c" + "40" + strings.Repeat("00", 32) + "06000104" + "00000000" + tcp(p40000, p2181, "50"), 32 - 8 - 20, nil},
		{v4("0064", "5", "06", tcp(p40000, p2181, "50")), 60, func(a *arrival) { a.way = toOther }},        // for another host
		{v4("0064", "5", "06", tcp(p40000, p2181, "50")), 60, func(a *arrival) { a.mac = model.ResetMAC }}, // netsplit's own
	} {
		f, err := hex.DecodeString(c.frame)
		if err != nil {
			t.Fatal(err)
		}
		a, payload, ok := parse(f)
		if !ok || payload != c.payload {
			t.Errorf("%s: payload %d, want %d (%v)", c.frame, payload, c.payload, ok)
		}
		if a.way = toHost; c.change != nil {
			c.change(&a)
		}
		p.add(&a, payload)
	}
	for _, c := range []struct {
		t    int
		port uint16
		want int64
	}{{0, 2181, 68 - 20 + 40 + 4}, {0, 40000, 48 + 40 + 4}, {0, 3888, 1460}, {1, 2181, 8}, {1, 3888, 0}} {
		if got := p[c.t][c.port]; got != c.want {
			t.Errorf("transport %d, port %d: %d bytes, want %d", c.t, c.port, got, c.want)
		}
	}
}
