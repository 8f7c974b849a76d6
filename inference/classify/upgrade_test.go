package classify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// hello is a record with a ClientHello or, from the other side, a ServerHello.
func hello(dir int, n int) string {
	b := []byte(tlsBytes(tlsHandshake, byte(1+dir), n))
	copy(b[6:], []byte{0, byte((n - 4) >> 8), byte(n - 4), 3, 3})
	return string(b)
}

// TestTLSThatIsAskedForBetweenTwoMessages: what follows is records of TLS, on both
// sides, also where some were lost.
func TestTLSThatIsAskedForBetweenTwoMessages(t *testing.T) {
	const ask, start = "\x00\x00\x00\x08\x04\xd2\x16\x2f", "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00"
	requested := greeted()
	requested.Frames.First = append(requested.Frames.First, model.First{Name: "yes", Answer: true, Begins: "53", Size: 1})
	counted := model.Protocol{Port: 7, Transport: "tcp", Dissector: NameText, Lines: []model.Line{{Match: `^PUT (?P<length>\d+)$`, Plus: 2}}}
	data := tlsBytes(tlsData, 0, 300)
	for _, c := range []struct {
		name  string
		of    model.Protocol
		steps []step
		want  [2][]string
	}{
		{"frames", requested,
			[]step{{b: []byte(ask)}, {dir: 1, b: []byte("S")}, {b: []byte(hello(0, 300))}, {dir: 1, b: []byte(hello(1, 90) + data)}, {b: []byte(data)}},
			[2][]string{{"frame ask 8", "tls client-hello 305", "tls data 2^8 305 encrypted=true"}, {"frame yes 1", "tls server-hello 95", "tls data 2^8 305 encrypted=true"}}},
		{"frames, behind a loss", requested,
			[]step{{b: []byte(ask)}, {dir: 1, b: []byte("S")}, {b: []byte(hello(0, 300))}, {gap: 40}, {b: []byte("\xc5\xc5" + data)}},
			[2][]string{{"frame ask 8", "tls client-hello 305", "unknown 2", "tls data 2^8 305 encrypted=true"}, {"frame yes 1"}}},
		{"frames that are no records", requested,
			[]step{{b: []byte(start + "\x16\x00\x00\x00\x06\x01\x00" + "\x16\x03\x01\x00")}, {dir: 1, b: []byte("\x16\x00\x00\x00\x04")}},
			[2][]string{{"frame start 13", "frame 0x16 7", "unknown 4"}, {"frame 0x16 5"}}},
		{"lines", counted,
			[]step{{b: []byte("STARTTLS\r\n")}, {dir: 1, b: []byte("OK\r\n")}, {b: []byte(hello(0, 300))}, {dir: 1, b: []byte(hello(1, 90))}, {b: []byte(data)}},
			[2][]string{{"text STARTTLS 10 text=STARTTLS token0=STARTTLS", "tls client-hello 305", "tls data 2^8 305 encrypted=true"}, {"text OK 4 text=OK token0=OK", "tls server-hello 95"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := rules(t, c.of, c.steps, 1, 20)
			for dir := range us {
				if diff := cmp.Diff(c.want[dir], reported(us[dir])); diff != "" {
					t.Errorf("direction %d (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

// TestARecordThatAsksForTLSHoldsItsHello, of a version that there is.
func TestARecordThatAsksForTLSHoldsItsHello(t *testing.T) {
	first := hello(0, 300)
	for name, c := range map[string]struct {
		b    string
		want verdict
	}{
		"a ClientHello":                {first, yes},
		"its first bytes":              {first[:helloLook-1], maybe},
		"from the side that answers":   {hello(1, 300), no},
		"a hello beyond its record":    {first[:8] + "\x29" + first[9:], no},
		"a version that there is none": {first[:10] + "\x05" + first[11:], no},
	} {
		if got := tlsRequested(0, []byte(c.b)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
