package of13

import (
	"encoding/hex"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
)

// TestNegotiate covers 6.3.1: by bitmap if both have one, else by the smaller
// header version.
func TestNegotiate(t *testing.T) {
	bare := func(v uint8) *Hello { return &Hello{Version: v} }
	for _, c := range []struct {
		what         string
		ours, theirs *Hello
		want         uint8 // 0: refused
		says         string
	}{
		{"same", NewHello(4), NewHello(4), 4, ""},
		{"open vswitch with 1.3 and 1.4", NewHello(4), NewHello(4, 5), 4, ""},
		{"highest common", NewHello(1, 4), NewHello(1, 2, 3, 4, 5, 6), 4, ""},
		{"bitmap beats the header", NewHello(4), &Hello{Version: 6, Elements: NewHello(4).Elements}, 4, ""},
		{"no bitmap, smaller header version", NewHello(4), bare(4), 4, ""},
		{"no bitmap, they speak more", NewHello(4), bare(6), 4, ""},
		{"nobody has a bitmap", bare(4), bare(1), 1, ""},
		{"switch of 1.0", NewHello(4), bare(1), 0, "we speak up to 1.3, peer up to 1.0"},
		{"theirs lacks the smaller version", bare(4), NewHello(5), 0, "no common version"},
		{"disjoint bitmaps", NewHello(4), NewHello(1, 5), 0, "we speak [1.3], peer speaks [1.0 1.4]"},
		{"empty bitmap", NewHello(4), &Hello{Version: 4, Elements: []HelloElement{{1, make([]byte, 4)}}}, 0, "peer speaks []"},
		{"bitmap too short to be one", NewHello(4), &Hello{Version: 4, Elements: []HelloElement{{1, []byte{1}}}}, 4, ""},
		{"version 33", NewHello(4, 33), NewHello(33), 33, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := Negotiate(c.ours, c.theirs)
			if got != c.want || (err == nil) != (c.want != 0) {
				t.Fatalf("version %d, error %v", got, err)
			}
			if err == nil {
				return
			}
			var p *ParseError
			if !errors.As(err, &p) || p.Type != ErrTypeHelloFailed || p.Code != HelloFailedIncompatible {
				t.Errorf("%v is not HELLO_FAILED", err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}

// TestNewHelloIsOpenVSwitchs compares with ovs-ofctl's own hello.
func TestNewHelloIsOpenVSwitchs(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	for bitmap, versions := range map[string][]uint8{"0x10": {4}, "0x12": {1, 4}, "0x30": {4, 5}} {
		out, err := exec.Command(ofctl, "encode-hello", bitmap).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var want []byte // from a hex dump: offset, bytes with - or spaces, text
		for line := range strings.Lines(string(out)) {
			if len(line) < 10 || !strings.HasPrefix(line, "0000") {
				continue
			}
			b, err := hex.DecodeString(strings.NewReplacer(" ", "", "-", "", "\n", "").Replace(line[10:min(58, len(line))]))
			if err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			want = append(want, b...)
		}
		if len(want) < HeaderLen {
			t.Fatalf("no hello in %q", out)
		}
		got, err := Append(nil, NewHello(versions...), be.Uint32(want[4:]))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-ovs +ours):\n%s", versions, diff)
		}
	}
}

// TestHelloToleratesAnything: what is not a well-formed element is kept, not
// refused (7.5.1).
func TestHelloToleratesAnything(t *testing.T) {
	for _, body := range []string{"x", "\x00\x01\x00\x03", "\x00\x01\x00\x08\x00\x00", "\x00\x01\x00\x05\x00",
		"\x00\x01\x00\x08\x00\x00\x00\x10trailing text"} {
		for _, version := range []byte{1, 4, 6, 0xff} {
			b := msg(TypeHello, body)
			b[0] = version
			if h, ok := roundTrip(t, b).(*Hello); !ok || h.Version != version {
				t.Errorf("%q in version %d read as %v", body, version, h)
			}
		}
	}
}

// TestErrorFromOldSwitch reads what a switch of OpenFlow 1.0 answers.
func TestErrorFromOldSwitch(t *testing.T) {
	text := "We support version 0x01, you support version 0x04, no common versions."
	b := msg(TypeError, "\x00\x00\x00\x00"+text)
	for _, version := range []byte{1, 4} {
		b[0] = version
		e, ok := roundTrip(t, b).(*Error)
		if !ok || e.Version != version || !strings.Contains(e.Error(), text) ||
			!strings.Contains(e.Error(), "OFPHFC_INCOMPATIBLE") {
			t.Errorf("version %d read as %v", version, e)
		}
	}
}
