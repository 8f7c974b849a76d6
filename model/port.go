package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// MaxPort is the largest number a switch port can have (OpenFlow 1.3 §7.2.1,
// OFPP_MAX).
const MaxPort uint32 = 0xffffff00

// MaxPortName is how many bytes of a port's name a switch tells: its field has
// 16, the last of which is a zero (OpenFlow 1.3 §7.2.1, OFP_MAX_PORT_NAME_LEN).
const MaxPortName = 15

// Port is a port of a switch: by its number, or by the name that the switch
// gives it, whose number config.Locate (package testbed/config) finds and fills in. In YAML it is the
// one or the other; the number of a name is not written.
type Port struct {
	Number uint32 // 0: not known
	Name   string // "": the port is meant by its number
}

// String is the port as it stands in a sentence: 7, "eth1", or "eth1" (7).
func (p Port) String() string {
	switch {
	case p.Name == "":
		return fmt.Sprint(p.Number)
	case p.Number == 0:
		return strconv.Quote(p.Name)
	}
	return fmt.Sprintf("%q (%d)", p.Name, p.Number)
}

// reserved are the names that OpenFlow gives to numbers above OFPP_MAX (1.3
// §7.2.1, ofp_port_no).
var reserved = []string{"IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY", "MAX"}

// Validate says what is wrong with a port as somebody wrote it.
func (p Port) Validate() error {
	n := p.Name
	switch {
	case n == "" && (p.Number == 0 || p.Number > MaxPort):
		return fmt.Errorf("port %d is no switch port: give a number from 1 to %d (`ovs-vsctl get interface IF ofport` prints it) or the port's name", p.Number, MaxPort)
	case n == "":
		return nil
	case len(n) > MaxPortName:
		return fmt.Errorf("port %q has %d bytes: a switch tells the first %d of a port's name (ovs-ofctl dump-ports-desc shows them): give those, or the number", shortened(n), len(n), MaxPortName)
	case numeric(n):
		return fmt.Errorf("port %q is a number in quotes, or not from 1 to %d: write the number without quotes, also for a port whose name is a number", n, MaxPort)
	case strings.TrimSpace(n) != n || strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("port %q: a name neither begins nor ends with blanks, and can be printed", n)
	case slices.Contains(reserved, strings.TrimPrefix(n, "OFPP_")):
		return fmt.Errorf("port %q is a reserved name of OpenFlow: write a port's number or name", n)
	}
	return nil
}

// numeric says whether somebody may have meant a number.
func numeric(s string) bool {
	_, whole := strconv.ParseInt(s, 0, 64)
	_, real := strconv.ParseFloat(s, 64)
	return (whole == nil || real == nil) && strings.ContainsAny(s, "0123456789")
}

// shortened is what an error can hold of a name.
func shortened(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// Compare orders ports: numbers, then names.
func (p Port) Compare(o Port) int {
	return cmp.Or(FalseFirst(p.Name != "", o.Name != ""), cmp.Compare(p.Name, o.Name), cmp.Compare(p.Number, o.Number))
}

// IsZero says that no port is given.
func (p Port) IsZero() bool { return p == Port{} }

// UnmarshalYAML reads a number or a name.
func (p *Port) UnmarshalYAML(read func(any) error) error {
	*p = Port{}
	var n uint32
	if read(&n) == nil {
		var text string
		if err := read(&text); err != nil {
			return err
		}
		if _, err := strconv.ParseUint(text, 0, 32); err == nil { // package yaml would round 1.5
			p.Number = n
			return nil
		}
	}
	return read(&p.Name)
}

// MarshalYAML writes the name, or the number where there is none.
func (p Port) MarshalYAML() (any, error) {
	if p.Name != "" {
		return p.Name, nil
	}
	return p.Number, nil
}

// namedPort is a port with a name in the JSON of a record.
type namedPort struct {
	Number uint32 `json:",omitempty"`
	Name   string
}

// MarshalJSON writes the number, with the name where there is one.
func (p Port) MarshalJSON() ([]byte, error) {
	if p.Name != "" {
		return json.Marshal(namedPort(p))
	}
	return json.Marshal(p.Number)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Port) UnmarshalJSON(b []byte) error {
	*p = Port{}
	if json.Unmarshal(b, &p.Number) == nil {
		return nil
	}
	return json.Unmarshal(b, (*namedPort)(p))
}
