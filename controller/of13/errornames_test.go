package of13

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"netsplit/e2e/need"
)

// ovsErrorNames gives Open vSwitch's word where it is not the specification's.
// Older and later versions of OpenFlow call these errors so.
var ovsErrorNames = map[string]string{
	"OFPBRC_BAD_MULTIPART":    "OFPBRC_BAD_STAT",
	"OFPBRC_BAD_EXPERIMENTER": "OFPBRC_BAD_VENDOR",
	"OFPBRC_BAD_EXP_TYPE":     "OFPBRC_BAD_SUBTYPE",
	"OFPBRC_IS_SLAVE":         "OFPBRC_IS_SECONDARY",
	"OFPBAC_BAD_EXPERIMENTER": "OFPBAC_BAD_VENDOR",
	"OFPBAC_BAD_EXP_TYPE":     "OFPBAC_BAD_VENDOR_TYPE",
	"OFPTFFC_BAD_TYPE":        "OFPBPC_BAD_TYPE",
	"OFPTFFC_BAD_LEN":         "OFPBPC_BAD_LEN",
	"OFPTFFC_BAD_ARGUMENT":    "OFPBPC_BAD_VALUE",
}

// TestErrorNamesAgree has Open vSwitch encode an error reply of every name that
// this package has: type and code must be ours, and so must the data.
func TestErrorNamesAgree(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	about := []byte{Version, byte(TypeBarrierRequest), 0, HeaderLen, 0, 0, 0, 42}
	for typ, group := range errorCodeNames {
		for code, short := range group.names {
			want := &Error{Type: ErrorType(typ), Code: ErrorCode(code), Data: about}
			name := group.prefix + short
			if theirs, ok := ovsErrorNames[name]; ok {
				name = theirs
			}
			out, err := exec.Command(ofctl, "-O", "OpenFlow13", "encode-error-reply", name, hex.EncodeToString(about)).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", want.Name(), err, out)
				continue
			}
			b := hexDump(t, string(out))
			m := roundTrip(t, b)
			got, ok := m.(*Error)
			if !ok || !errors.Is(got, want) || !bytes.Equal(got.Data, about) {
				t.Errorf("%s: Open vSwitch's %s is %v", want.Name(), name, m)
			}
		}
	}
}

// hexDump reads the bytes of Open vSwitch's hex dump: offset, bytes, text.
func hexDump(t *testing.T, dump string) []byte {
	t.Helper()
	var b []byte
	for line := range strings.Lines(dump) {
		_, digits, _ := strings.Cut(line, " ")
		digits, _, _ = strings.Cut(digits, "|")
		part, err := hex.DecodeString(strings.NewReplacer(" ", "", "-", "", "\n", "").Replace(digits))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		b = append(b, part...)
	}
	return b
}
