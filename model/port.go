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
// gives it, whose number Testbed.Locate finds and fills in. In YAML it is the
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
		return fmt.Errorf("port %q is a number, but none from 1 to %d, or one in quotes: write it without them; a port whose name is a number is given by its number", n, MaxPort)
	case strings.TrimSpace(n) != n || strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("port %q: a name neither begins nor ends with blanks, and can be printed", n)
	case slices.Contains(reserved, strings.TrimPrefix(n, "OFPP_")):
		return fmt.Errorf("port %q is a name of OpenFlow's own, for no port that a cable is in: give a port's number or name", n)
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

// eachPort shows every port of the testbed on one switch, with what is on it.
func (t *Testbed) eachPort(id DatapathID, f func(what string, p *Port)) {
	show := func(at DatapathID, p *Port, format string, args ...any) {
		if at == id {
			f(fmt.Sprintf(format, args...), p)
		}
	}
	for i := range t.Hosts {
		show(t.Hosts[i].Datapath, &t.Hosts[i].Port, "host %s", t.Hosts[i].Name)
	}
	for i := range t.Links {
		show(t.Links[i].A.Datapath, &t.Links[i].A.Port, "link number %d", i+1)
		show(t.Links[i].B.Datapath, &t.Links[i].B.Port, "link number %d", i+1)
	}
	for i := range t.Gates {
		show(t.Gates[i].Datapath, &t.Gates[i].Port, "gate number %d", i+1)
	}
	for i := range t.Mirrors {
		show(t.Mirrors[i].Datapath, &t.Mirrors[i].Port, "mirror number %d", i+1)
	}
}

// NamesPorts says whether the testbed has ports of a switch by name.
func (t *Testbed) NamesPorts(id DatapathID) (names bool) {
	t.eachPort(id, func(_ string, p *Port) { names = names || p.Name != "" })
	return names
}

// With is the testbed with other numbers: number gives that of each port of a
// switch, as it is in the file.
func (t Testbed) With(id DatapathID, number func(Port) uint32) Testbed {
	t.Hosts, t.Links, t.Gates, t.Mirrors = slices.Clone(t.Hosts), slices.Clone(t.Links), slices.Clone(t.Gates), slices.Clone(t.Mirrors)
	t.eachPort(id, func(_ string, p *Port) { p.Number = number(*p) })
	return t
}

// Locate finds the numbers of the ports that the testbed has by name on one
// switch, which has these ports. Of each port of the file it gives the number,
// or why it cannot be used: the switch has no such name, or two, or something
// else is on the same port.
func (t Testbed) Locate(id DatapathID, has []Port) (numbers map[Port]uint32, wrong map[Port]error) {
	numbers, wrong = map[Port]uint32{}, map[Port]error{}
	onIt := map[uint32]string{} // what was found on a number
	gated := slices.ContainsFunc(t.Gates, func(g GatePort) bool { return g.Datapath == id })
	t.eachPort(id, func(what string, p *Port) {
		n, err := p.Number, error(nil)
		if p.Name != "" {
			n, err = find(p.Name, has)
		}
		if err == nil && p.Name != "" && gated && strings.HasPrefix(what, "host ") && n > MaxGatedPort {
			err = fmt.Errorf("port %q is number %d, and beside a gate port hosts are on ports 1 to %d: give it such a number (ovs-vsctl set interface %s ofport_request=N), or leave the gate out", p.Name, n, MaxGatedPort, p.Name)
		}
		if err != nil {
			wrong[*p] = err
			return
		}
		if other := onIt[n]; other != "" { // of one name or number check tells
			err := fmt.Errorf("%s and %s are both on port %d of the switch: each needs a port of its own", other, what, n)
			for q, m := range numbers {
				if m == n {
					wrong[q] = err
				}
			}
			wrong[*p] = err
		}
		numbers[*p], onIt[n] = n, what
	})
	for p := range wrong {
		delete(numbers, p)
	}
	return numbers, wrong
}

// find gives the number of the one port with a name.
func find(name string, has []Port) (uint32, error) {
	var at []uint32
	for _, p := range has {
		if p.Name == name {
			at = append(at, p.Number)
		}
	}
	slices.Sort(at)
	switch {
	case len(at) == 0:
		return 0, fmt.Errorf("the switch has no port called %q: it has %s", name, listed(has))
	case len(at) > 1:
		return 0, fmt.Errorf("the switch has %d ports called %q, numbers %s: give the number of the one that is meant", len(at), name, strings.Trim(fmt.Sprint(at), "[]"))
	case at[0] == 0 || at[0] > MaxPort:
		return 0, fmt.Errorf("%q is the switch's own port, which no cable is in: the switch has %s", name, listed(has))
	}
	return at[0], nil
}

// listed names the ports of a switch that a cable can be in, sorted.
func listed(has []Port) string {
	const most = 30
	has = slices.DeleteFunc(slices.Clone(has), func(p Port) bool { return p.Number > MaxPort })
	slices.SortFunc(has, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	var out []string
	for _, p := range has[:min(len(has), most)] {
		out = append(out, Port{Number: p.Number, Name: cmp.Or(p.Name, "?")}.String())
	}
	if len(has) > most {
		out = append(out, fmt.Sprintf("and %d more", len(has)-most))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
