//go:build vectors

package of13

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"netsplit/e2e/need"
)

var vectorsDir = flag.String("vectors", "", "folder that holds checkouts of the projects whose test messages are read, each under the name that vectorSources gives it")

// vectorSources are the projects whose tests hold messages of OpenFlow 1.3, and
// how they write them. Their messages stay theirs: testdata/vectors holds what
// we make of each, found again by its digest.
var vectorSources = []struct {
	name, files string // files is a pattern below the checkout
	read        func(t *testing.T, file string, text []byte) []vector
}{
	{"openvswitch", "tests/ofp-*.at", readAutotest},
	{"os-ken", "os_ken/tests/packet_data/of13/*", readStream},
	{"loxigen", "test_data/of13/*.data", readLoxigen},
	{"python-openflow", "raw/v0x04/*.dat", readStream},
}

// vector is a message that somebody else's test holds.
type vector struct {
	title string // file, and within it the title of the test
	msg   []byte
}

// TestVectors reads each vector, writes it again, and has Open vSwitch read
// both: what came of it must be what testdata/vectors/<project>.txt says, where
// a vector on which Open vSwitch and we differ has the reason in vectorsDiffer.
func TestVectors(t *testing.T) {
	if *vectorsDir == "" {
		t.Fatal("needs the projects' tests: make vectors")
	}
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	for _, s := range vectorSources {
		t.Run(s.name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(*vectorsDir, s.name, s.files))
			if err != nil || len(files) == 0 {
				t.Fatalf("no %s in %s: %v", s.files, filepath.Join(*vectorsDir, s.name), err)
			}
			var list strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range s.read(t, filepath.Base(file), text) {
					t.Run(v.title, func(t *testing.T) { list.WriteString(judgeVector(t, ofctl, v)) })
				}
			}
			compareGolden(t, filepath.Join("testdata", "vectors", s.name+".txt"), list.String())
		})
	}
}

// judgeVector is the vector's lines of the list: its digest and title, what we
// read (type, and a digest of the text that String gives) or why we do not,
// and whether Open vSwitch accepts it.
func judgeVector(t *testing.T, ofctl string, v vector) string {
	t.Helper()
	ours, took := "", false
	if m := roundTrip(t, v.msg); m != nil {
		text := fmt.Sprint(m)
		ours, took = fmt.Sprintf("%v, reads as %s", m.MsgType(), digest([]byte(text))), true
		t.Log(text)
		if match, ok := matchOf(m); ok {
			if err := match.Validate(); err != nil {
				ours += ", not valid: " + err.Error()
			}
		}
	} else {
		_, _, err := Parse(v.msg)
		ours = "refused, " + err.Error()
	}
	text, bad := ovsPrint(t, ofctl, v.msg)
	theirs, why, known := "accepted", "", false
	if bad {
		complaint := strings.Join(vectorComplaint.FindStringSubmatch(text)[1:], "")
		theirs = "refused, " + complaint
		why, known = vectorsDiffer[complaint]
	}
	if w, ok := vectorsDiffer[v.title]; ok {
		why, known = w, true
	}
	if took {
		// What we write where the vector has padding that is not zero.
		var pads []span
		if _, _, err := parse(bytes.Clone(v.msg), &pads); err != nil {
			t.Fatal(err)
		}
		if again := zeroPads(v.msg, pads); !bytes.Equal(again, v.msg) && !bad {
			if reads, _ := ovsPrint(t, ofctl, again); reads != text {
				t.Errorf("Open vSwitch reads the vector and what we wrote as different messages:\n%s\n%s", text, reads)
			}
		}
	}
	out := fmt.Sprintf("%s %s\n\tof13: %s\n\tOpen vSwitch: %s\n", digest(v.msg), v.title, ours, theirs)
	if took != bad { // of one mind
		return out
	}
	if !known {
		t.Errorf("Open vSwitch: %s; of13: %s; who is right?\n%s\n%x", theirs, ours, text, v.msg)
	}
	if strings.HasPrefix(why, "Match.Validate") && !strings.Contains(ours, "not valid") {
		t.Errorf("Match.Validate does not say the same:\n%s", out)
	}
	return out + "\twhy: " + why + "\n"
}

// vectorComplaint is what Open vSwitch says first of a message that it refuses:
// the specification's name of an error, or that something is too short.
var vectorComplaint = regexp.MustCompile(`decode error: (\w+)|(too short|truncated)|stderr: (.*)`)

// vectorsDiffer says why of13 reads what Open vSwitch refuses, by what that says
// of it or by the vector's title. Nearly all is one thing: of13 reads whatever
// has the form of a message, since a switch may know more than we do;
// Open vSwitch also asks whether it could carry it out.
var vectorsDiffer = map[string]string{
	"OFPBRC_BAD_VENDOR":         "an experimenter that Open vSwitch does not know; kept byte for byte",
	"OFPBIC_BAD_EXPERIMENTER":   "an experimenter that Open vSwitch does not know; kept byte for byte",
	"OFPBAC_BAD_VENDOR_TYPE":    "an action of Nicira's that this Open vSwitch does not know; kept byte for byte",
	"OFPBIC_UNKNOWN_INST":       "an instruction that 1.3 does not have; kept byte for byte",
	"OFPBMC_BAD_FIELD":          "a match field that Open vSwitch does not know; kept byte for byte",
	"OFPBMC_BAD_VALUE":          "a value of a field, not the form",
	"OFPBMC_BAD_MASK":           "Match.Validate says the same",
	"OFPBMC_BAD_PREREQ":         "Match.Validate says the same",
	"OFPBMC_BAD_WILDCARDS":      "Match.Validate says the same",
	"OFPBAC_MATCH_INCONSISTENT": "what an action needs of the match is for the switch to check",
	"OFPBAC_BAD_OUT_PORT":       "a port that Open vSwitch cannot have",
	"OFPBAC_BAD_SET_TYPE":       "a field to set that Open vSwitch does not know; kept byte for byte",
	"OFPBAC_BAD_SET_MASK":       "a mask in a field to set, which Open vSwitch takes and here finds fault with",
	"OFPBIC_BAD_TABLE_ID":       "goto a table that is not behind the rule's own is for the switch to refuse",
	"OFPBIC_DUP_INST":           "two instructions of a type are for the switch to refuse",
	"OFPGMFC_INVALID_GROUP":     "group-mod is not looked into",
	"OFPMMFC_BAD_BAND":          "a band that Open vSwitch does not have",
	"OFPMMFC_BAD_COMMAND":       "a command is for the switch to refuse",
	"OFPMMFC_BAD_FLAGS":         "flags are for the switch to refuse",
	"too short":                 "an error whose data is no message; it is not looked into",
	"truncated":                 "an error whose data is no message; it is not looked into",

	"4-36-ofp_queue_get_config_reply.packet": "not looked into",
	"4-41-ofp_error_msg_experimenter.packet": "an error whose data is no message; it is not looked into",
	"libofproto-OFP13-error_msg.packet":      "an error whose data is half a message; it is not looked into",
	"4-63-onf_flow_monitor_request.packet":   "an experimenter's multipart; not looked into",
	"4-2-ofp_flow_mod.packet":                "an action that Open vSwitch does not know (copy_ttl_out)",
	"ovs-ofctl-of13-action_ct.packet":        "an action of Nicira's with which this Open vSwitch finds fault; kept byte for byte",
	"action_set_field__bsn_lag_id.data":      "a field to set that Open vSwitch does not know; kept byte for byte",
	"hello.data":                             "it offers version 0 beside others, which is never agreed on",
}

func matchOf(m Message) (Match, bool) {
	switch m := m.(type) {
	case *FlowMod:
		return m.Match, true
	case *FlowRemoved:
		return m.Match, true
	case *PacketIn:
		match, err := m.Match()
		return match, err == nil
	}
	return nil, false
}

func digest(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:6]) }

// readStream reads a file of one or more messages as on a connection. What is
// not whole at the end is a vector too.
func readStream(_ *testing.T, file string, b []byte) []vector {
	var out []vector
	for i := 1; len(b) > 0; i++ {
		title := file
		if i > 1 {
			title = fmt.Sprintf("%s, message %d", file, i)
		}
		n, err := PeekLength(b)
		if err != nil || n > len(b) {
			n = len(b)
		}
		out, b = append(out, vector{title, b[:n]}), b[n:]
	}
	return out
}

// readLoxigen reads a file whose section "binary" is hex with comments. Parts
// of messages are put into a message: an action, an instruction or a match into
// a flow-mod.
func readLoxigen(t *testing.T, file string, text []byte) []vector {
	_, after, ok := strings.Cut(string(text), "-- binary")
	if !ok {
		t.Fatalf("%s: no section binary", file)
	}
	section, _, _ := strings.Cut(after, "\n--")
	// A digit alone is a byte.
	digits := regexp.MustCompile(`\b[0-9a-fA-F]\b`).ReplaceAllString(regexp.MustCompile(`#.*`).ReplaceAllString(section, ""), "0$0")
	b := fromHex(t, file, digits)
	kind, _, _ := strings.Cut(file, "_")
	switch {
	case strings.Contains(file, "_id_"), strings.HasPrefix(file, "hello_elem"), strings.HasPrefix(file, "bsn_tlv"):
		return nil // parts of table features, of a hello, of an experimenter's messages
	case kind == "action":
		b = flowModOf(nil, applied(b))
	case kind == "instruction":
		b = flowModOf(nil, b)
	case kind == "oxm":
		b = flowModOf(b, nil)
	case kind == "match":
		b = flowModOf(b[4:be.Uint16(b[2:])], nil)
	}
	return []vector{{file, b}}
}

func flowModOf(fields, instructions []byte) []byte {
	n := 4 + len(fields)
	m := append([]byte{0, 1, byte(n >> 8), byte(n)}, fields...)
	m = append(m, make([]byte, pad8(n))...)
	head, err := Append(nil, NewFlowMod(FlowAdd), sampleXID)
	if err != nil {
		panic(err)
	}
	b := append(append(head[:len(head)-8], m...), instructions...)
	be.PutUint16(b[2:], uint16(len(b)))
	return b
}

// applied is an apply-actions instruction with these bytes of actions (7.2.4).
func applied(actions []byte) []byte {
	n := 8 + len(actions)
	return append([]byte{0, 4, byte(n >> 8), byte(n), 0, 0, 0, 0}, actions...)
}

var (
	atSetup = regexp.MustCompile(`(?m)^AT_SETUP\(\[(.*)\]\)$`)
	// The quotes of the shell, or none.
	atPrint = regexp.MustCompile(`ofp-print\s+(?:"([^"]*)"|'([^']*)'|([0-9a-f]+))`)
	atData  = regexp.MustCompile(`(?s)AT_DATA\(\[test-data\], \[dnl\n(.*?)\n\]\)`)
)

// readAutotest reads what the tests of a file have ovs-ofctl print, if it is
// of version 1.3, and the actions and instructions that they have it parse,
// those of 1.1 and 1.2 too: in a message of 1.3 they stand for what 1.3 makes of
// them.
func readAutotest(t *testing.T, file string, text []byte) []vector {
	var out []vector
	add := func(title string, n int, b []byte) {
		title = file + ": " + title
		if n > 0 {
			title += fmt.Sprintf(", %d", n+1)
		}
		out = append(out, vector{title, b})
	}
	at := atSetup.FindAllSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		title, body := string(text[m[2]:m[3]]), string(text[m[1]:end])
		for n, p := range atPrint.FindAllStringSubmatch(body, -1) {
			digits := strings.ReplaceAll(p[1]+p[2]+p[3], "\\\n", " ")
			if b, err := hex.DecodeString(strings.Join(strings.Fields(digits), "")); err == nil && len(b) >= HeaderLen && b[0] == Version {
				add(title, n, b)
			}
		}
		if !regexp.MustCompile(`^OpenFlow 1\.[123] `).MatchString(title) {
			continue
		}
		for _, d := range atData.FindAllStringSubmatch(body, -1) {
			data := regexp.MustCompile(`(?m)dnl.*\n?`).ReplaceAllString(d[1], "")
			data = regexp.MustCompile(`(?m)^[#&].*\n`).ReplaceAllString(data+"\n", "")
			n := 0
			for line := range strings.Lines(data) {
				if strings.TrimSpace(line) == "" {
					continue
				}
				table, digits, found := strings.Cut(line, ",") // "2,…": of a rule in table 2
				if !found {
					table, digits = "0", line
				}
				b := fromHex(t, title, digits)
				if strings.Contains(title, "action") {
					b = applied(b)
				}
				b = flowModOf(nil, b)
				id, err := strconv.ParseUint(table, 10, 8)
				if err != nil {
					t.Fatalf("%s: table %s: %v", title, table, err)
				}
				b[HeaderLen+16] = uint8(id) // 7.3.4.1
				add(title, n, b)
				n++
			}
		}
	}
	return out
}

func fromHex(t *testing.T, where, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return b
}
