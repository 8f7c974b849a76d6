package of13

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"netsplit/e2e/need"
)

// TestErrorNamesAreOpenVSwitchs has Open vSwitch say type and code of every
// name. It does not know the errors of table features, which it never sends.
func TestErrorNamesAreOpenVSwitchs(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	if len(errorTypeNames) != len(errorCodeNames) {
		t.Fatalf("%d types, %d lists of codes", len(errorTypeNames), len(errorCodeNames))
	}
	renamed := map[string]string{ // Open vSwitch keeps older names for some
		"OFPBRC_IS_SLAVE": "OFPBRC_IS_SECONDARY", "OFPBRC_BAD_MULTIPART": "OFPBRC_BAD_STAT",
		"OFPBRC_BAD_EXPERIMENTER": "OFPBRC_BAD_VENDOR",
		"OFPBRC_BAD_EXP_TYPE":     "OFPBRC_BAD_SUBTYPE", "OFPBAC_BAD_EXPERIMENTER": "OFPBAC_BAD_VENDOR",
		"OFPBAC_BAD_EXP_TYPE": "OFPBAC_BAD_VENDOR_TYPE"}
	requested := 0
	for typ, codes := range errorCodeNames {
		if ErrorType(typ) == ErrTypeTableFeaturesFailed {
			continue
		}
		for code, name := range codes.names {
			name = codes.prefix + name
			if n, ok := renamed[name]; ok {
				name = n
			}
			out, err := exec.Command(ofctl, "print-error", name).CombinedOutput()
			if err != nil {
				t.Errorf("%d/%d: %s: %s", typ, code, name, out)
				continue
			}
			want := fmt.Sprintf("OpenFlow 1.3: vendor 0, type %d, code %d\n", typ, code)
			if !strings.Contains(string(out), want) {
				t.Errorf("%s is %d/%d here, but Open vSwitch says\n%s", name, typ, code, out)
			}
			requested++
		}
	}
	if requested < 90 {
		t.Errorf("only %d names compared", requested)
	}
}

func TestErrorText(t *testing.T) {
	request, err := Append(nil, rule(nil), 0x2a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e    *Error
		want string
	}{
		{&Error{Type: ErrTypeFlowModFailed, Code: FlowModFailedTableFull, Data: request},
			"switch answered OFPET_FLOW_MOD_FAILED/OFPFMFC_TABLE_FULL to FLOW_MOD xid 0x2a"},
		{&Error{Type: ErrTypeBadMatch, Code: 99}, "switch answered OFPET_BAD_MATCH/OFPBMC_CODE_99"},
		{&Error{Type: 77, Code: 5}, "switch answered OFPET_TYPE_77/CODE_5"},
		{&Error{Type: ErrTypeExperimenter, Code: 2600, Experimenter: ONF},
			"switch answered OFPET_EXPERIMENTER/0x4f4e4600/2600"},
		{&Error{Type: ErrTypeHelloFailed, Data: []byte("no")}, `switch answered OFPET_HELLO_FAILED/OFPHFC_INCOMPATIBLE: "no"`},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	wrapped := fmt.Errorf("install: %w", &Error{Type: ErrTypeFlowModFailed, Code: FlowModFailedTableFull, Data: request})
	if !errors.Is(wrapped, &Error{Type: ErrTypeFlowModFailed, Code: FlowModFailedTableFull}) {
		t.Error("errors.Is does not find type and code")
	}
	if errors.Is(wrapped, &Error{Type: ErrTypeFlowModFailed, Code: FlowModFailedOverlap}) {
		t.Error("errors.Is takes one code for another")
	}
}
