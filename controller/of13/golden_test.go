package of13

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"netsplit/e2e/need"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata anew; read the difference before you commit it")

const sampleXID = 0x4e5301

// logTime is what ovs-ofctl puts before its log lines: time and number.
var logTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[0-9:]+Z\|\d+\|`)

// ovsPrint is what Open vSwitch says of the message. Its exit status is 0 even
// for rubbish, so bad says whether the text complains.
func ovsPrint(t *testing.T, ofctl string, msg []byte) (text string, bad bool) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(ofctl, "-O", "OpenFlow13", "-m", "ofp-print", hex.EncodeToString(msg))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("ovs-ofctl ofp-print: %v: %s", err, stderr.Bytes())
	}
	text = stdout.String()
	for line := range strings.Lines(stderr.String()) {
		line = logTime.ReplaceAllString(line, "")
		text += "stderr: " + line
		bad = bad || !strings.Contains(line, "|INFO|") // INFO is advice, e.g. "deprecated"
	}
	for _, complaint := range []string{"decode error", "***", "too short", "too long"} {
		bad = bad || strings.Contains(text, complaint)
	}
	return text, bad
}

// TestSamples holds three views of each message against one another: the Go
// value, the bytes in the golden file, and what Open vSwitch reads in them.
func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples() {
		if seen[s.name] {
			t.Fatalf("name %s used twice", s.name)
		}
		seen[s.name] = true
		t.Run(s.name, func(t *testing.T) {
			file := filepath.Join("testdata", "messages", s.name+".txt")
			b, err := Append(nil, s.msg, sampleXID)
			if err != nil {
				t.Fatal(err)
			}
			got, xid, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if xid != sampleXID {
				t.Errorf("xid 0x%x, want 0x%x", xid, sampleXID)
			}
			if h, ok := s.msg.(*Hello); ok {
				h.Version = orVersion(h.Version)
			}
			if e, ok := s.msg.(*Error); ok {
				e.Version = orVersion(e.Version)
			}
			if diff := cmp.Diff(s.msg, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("value came back different (-want +got):\n%s", diff)
			}

			ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
			text, bad := ovsPrint(t, ofctl, b)
			if bad != (s.refused != "") {
				t.Errorf("Open vSwitch complains: %v, known disagreement: %q:\n%s", bad, s.refused, text)
			}
			golden := hexLines(b) + "\n" + text
			compareGolden(t, file, golden)
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "messages", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[strings.TrimSuffix(filepath.Base(f), ".txt")] {
			t.Errorf("%s belongs to no sample: delete it", f)
		}
	}
}

// TestEveryMessageTypeHasASample: each of the 30 types of 7.1.1 is read, with a
// struct of its own or as Raw, and so is every type of multipart message.
func TestEveryMessageTypeHasASample(t *testing.T) {
	types, requested, reported := map[MsgType]bool{}, map[MultipartType]bool{}, map[MultipartType]bool{}
	for _, s := range samples() {
		types[s.msg.MsgType()] = true
		switch m := s.msg.(type) {
		case *MultipartRequest:
			requested[m.Type] = true
		case *MultipartReply:
			reported[m.Type] = true
		}
	}
	for typ := TypeHello; typ <= TypeMeterMod; typ++ {
		if !types[typ] {
			t.Errorf("no sample of %v", typ)
		}
	}
	for typ := MultipartDesc; typ <= MultipartPortDesc; typ++ {
		if !requested[typ] || !reported[typ] {
			t.Errorf("multipart %v: request %v, reply %v", typ, requested[typ], reported[typ])
		}
	}
}

// compareGolden compares the text with the file's, or writes it with -rewrite.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (something new? go test ./controller/of13 -rewrite)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
}

// TestGoldenBytesParse needs no Open vSwitch: the bytes it approved parse to
// the sample's value and are written again unchanged.
func TestGoldenBytesParse(t *testing.T) {
	for _, s := range samples() {
		text, err := os.ReadFile(filepath.Join("testdata", "messages", s.name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		lines, _, _ := strings.Cut(string(text), "\n\n")
		b, err := hex.DecodeString(strings.ReplaceAll(lines, "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		roundTrip(t, b)
		if got, err := Append(nil, s.msg, sampleXID); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: error %v, encoded\n%x\nwant\n%x", s.name, err, got, b)
		}
	}
}

// hexLines is b in lines of 32 bytes.
func hexLines(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := min(32, len(b))
		out.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return out.String()
}

// zeroPads is b with the padding zeroed.
func zeroPads(b []byte, pads []span) []byte {
	b = bytes.Clone(b)
	for _, p := range pads {
		clear(b[p.from:p.to])
	}
	return b
}

// roundTrip parses b; if that works, the message must be written with b's
// bytes, padding zeroed, and those must parse to the same value.
func roundTrip(t *testing.T, b []byte) Message {
	t.Helper()
	var pads []span
	m, xid, err := parse(bytes.Clone(b), &pads)
	if err != nil {
		checkParseError(t, err, len(b))
		return nil
	}
	want := zeroPads(b, pads)
	got, err := Append([]byte("kept"), m, xid)
	if err != nil {
		t.Fatalf("parsed, but does not encode: %v\n%x", err, b)
	}
	if !bytes.Equal(got, append([]byte("kept"), want...)) {
		t.Fatalf("%T came back as\n%x, want\n%x", m, got[4:], want)
	}
	again, _, err := Parse(want)
	if err != nil {
		t.Fatalf("second parse: %v", err)
	}
	if reflect.DeepEqual(m, again) {
		return m // cmp takes its time over long raw bodies
	}
	if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("second parse differs:\n%s", diff)
	}
	return m
}

// checkParseError checks that an error can be answered and points into b.
func checkParseError(t *testing.T, err error, size int) {
	t.Helper()
	p, ok := err.(*ParseError)
	if !ok {
		t.Fatalf("%T is not a *ParseError: %v", err, err)
	}
	if p.Offset < 0 || p.Offset > size || p.Err == nil || p.Type == 0 {
		t.Fatalf("error that cannot be answered: %#v in %d bytes", p, size)
	}
}

// hexDumpLine is a line of a dump of data; ofp-parse has more of them.
var hexDumpLine = regexp.MustCompile(`(?m)^[0-9a-f]{8}  .*\n`)

// TestOpenVSwitchReadsAStream: all messages that it accepts in one file, as on a
// connection, read as each alone. One wrong length spoils what follows.
func TestOpenVSwitchReadsAStream(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	var stream []byte
	var want strings.Builder
	n := 0
	for _, s := range samples() {
		if s.refused != "" {
			continue
		}
		b, err := Append(stream, s.msg, sampleXID)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := ovsPrint(t, ofctl, b[len(stream):])
		text, _, _ = strings.Cut(text, "stderr: ")
		stream, n = b, n+1
		want.WriteString(hexDumpLine.ReplaceAllString(text, ""))
	}
	file := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(file, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ofctl, "-O", "OpenFlow13", "-m", "ofp-parse", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := hexDumpLine.ReplaceAllString(string(out), "")
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%d messages in one file read as something else (-alone +together):\n%s", n, diff)
	}
}
