package classify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// tlsBytes is a record of n bytes that begins with the message kind.
func tlsBytes(content, kind byte, n int) string {
	return string([]byte{content, 3, 3, byte(n >> 8), byte(n), kind}) + strings.Repeat("\xc5", n-1)
}

func TestTLS(t *testing.T) {
	hello, server := tlsBytes(tlsHandshake, 1, 200), tlsBytes(tlsHandshake, 2, 80)+tlsBytes(tlsHandshake, 11, 3000)
	change, finished := tlsBytes(tlsChange, 1, 1), tlsBytes(tlsHandshake, 1, 40)
	steps := []step{
		{0, []byte(hello), 0}, {1, []byte(server), 0},
		{0, []byte(change + finished), 0}, {1, []byte(change + finished), 0},
		{0, []byte(tlsBytes(tlsData, 0, 300) + tlsBytes(tlsData, 0, 20)), 0},
		{1, []byte(tlsBytes(tlsData, 0, 16000)[:9000]), 0}, {1, nil, 7005}, {1, []byte(tlsBytes(tlsData, 0, 33)), 0},
		{1, nil, 50}, {1, []byte("\xc5\x17\x00" + tlsBytes(tlsData, 0, 33)), 0},
		{0, []byte(tlsBytes(tlsAlert, 1, 2)), 0},
	}
	want := [2][]string{
		{"tls client-hello 205", "tls change-cipher-spec 6", "tls handshake 45 encrypted", "tls data 2^8 305 encrypted", "tls data 2^4 25 encrypted", "tls alert 7 encrypted"},
		{"tls server-hello 85", "tls certificate 3005", "tls change-cipher-spec 6", "tls handshake 45 encrypted",
			"tls data 2^13 16005 encrypted incomplete", "tls data 2^5 38 encrypted", "unknown 3", "tls data 2^5 38 encrypted"},
	}
	for _, name := range Names() {
		if name == NameTLS {
			continue
		}
		d, err := New(protocolOf(name))
		if err != nil {
			t.Fatal(err)
		}
		us := run(t, d, steps, nil)
		for dir := range us {
			covered(t, dir, us[dir], steps)
			var got []string
			for _, u := range us[dir] {
				s := fmt.Sprint(u.Type, " ", u.Bytes)
				for _, f := range u.Fields {
					s += " " + f.Name
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(want[dir], got); diff != "" {
				t.Errorf("%s, direction %d (-want +got):\n%s", name, dir, diff)
			}
		}
	}
}

// TestOpaqueProtocolsAreSaidToBe: bytes that nobody can read have a name
func TestOpaqueProtocolsAreSaidToBe(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns []turn
		want  string
	}{
		{"ssh", []turn{{0, "SSH-2.0-a\r\n"}, {1, "SSH-2.0-b\r\n"}, {0, "\x00\x01\x02\x03"}}, "ssh data > 2^3, ssh data < 2^3, ssh data > 2^2"},
		{"ssh, the server first", []turn{{1, "SSH-2.0-b\r\n"}, {0, "SSH-2.0-a\r\n"}}, "ssh data < 2^3, ssh data > 2^3"},
		{"ssh, in two segments", []turn{{1, "SS"}, {1, "H-2.0-b\r\n"}}, "ssh data < 2^3"},
		{"not ssh", []turn{{1, "SS"}, {0, "H-"}}, `tcp data < 2^1 "SS", tcp data > 2^1 "H-"`},
		{"tls that is asked for first", []turn{{0, "STARTTLS\r\n"}, {1, "S"}, {0, tlsBytes(tlsHandshake, 1, 200)}, {1, tlsBytes(tlsHandshake, 2, 200)}, {0, "x"}},
			`tcp data > 2^3 "STARTTLS", tcp data < 2^0, tls data > 2^7, tls data < 2^7, tls data > 2^0`},
		{"a hello from the wrong side", []turn{{1, tlsBytes(tlsHandshake, 1, 200)}}, "tcp data < 2^7"},
		{"no hello", []turn{{0, tlsBytes(tlsHandshake, 2, 200)}}, "tcp data > 2^7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := New(model.Protocol{Dissector: NameFallback})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range play(d, c.turns) {
				got = append(got, u.Type)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

// protocolOf is one that a dissector reads.
func protocolOf(name string) model.Protocol {
	p := model.Protocol{Dissector: name}
	if name == NameFrames {
		p.Frames = &model.Framing{Length: &model.Place{Size: 4, Plus: 4}, Type: []model.Place{{At: 4}}}
	}
	return p
}

// TestTLSFromTheMiddle: where the start was not seen, a record of data tells.
func TestTLSFromTheMiddle(t *testing.T) {
	for _, name := range Names() {
		d, err := New(protocolOf(name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range play(d, []turn{{1, tlsBytes(tlsData, 0, 9)}, {0, tlsBytes(tlsData, 0, 90)}, {1, tlsBytes(tlsHandshake, 1, 200)}}) {
			got = append(got, u.Type)
		}
		if want := "tls data 2^3, tls data 2^6, tls client-hello"; strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

func FuzzTLS(f *testing.F) {
	seeds(f)
	f.Add(">"+tlsBytes(tlsHandshake, 1, 30)+"<"+tlsBytes(tlsHandshake, 2, 30)+">"+tlsBytes(tlsData, 0, 30), int64(1))
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameTLS, in, seed) })
}
