package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shape of a partition. Complete, partial and simplex are the NEAT study's
// (OSDI'18 §2.1, §7.2); the others name the ones that people ask for.
type Shape string

// Shapes. What the groups of each mean, as a person gives them and once they
// are resolved, is in flowrules.Resolve.
const (
	// Complete cuts groups that together hold every host.
	Complete Shape = "complete"
	// Partial cuts two groups; the others stay connected to both.
	Partial Shape = "partial"
	// Simplex lets packets flow only from the first group to the second.
	Simplex Shape = "simplex"
	// Isolated cuts one group from all other hosts.
	Isolated Shape = "isolate"
	// Bridge cuts two sides that a third group stays connected to.
	Bridge Shape = "bridge"
	// Ring leaves every host of one group connected to a majority of it, and no
	// two to the same: each to its neighbours in a ring. Jepsen calls it
	// majorities-ring.
	Ring Shape = "ring"
	// Split cuts hosts whose values of a label differ: one rack from another.
	Split Shape = "split"
	// LeaderIn cuts off a group with whoever has a role, LeaderOut one without.
	// Who has it is looked up when the cut is made.
	LeaderIn  Shape = "leader-in"
	LeaderOut Shape = "leader-out"
)

// Shapes lists all shapes, in the order in which they are explained.
func Shapes() []Shape {
	return []Shape{Complete, Partial, Simplex, Isolated, Bridge, Ring, Split, LeaderIn, LeaderOut}
}

// Effect says what happens to what wants to cross.
type Effect string

// Drop loses packets silently; Reset also resets the TCP connections that cross
// the cut, at both ends: at the gate at the moment of the cut, at line rate when
// a packet of theirs first wants to cross.
const (
	Drop  Effect = "drop"
	Reset Effect = "reset"
)

// ResetMAC is the Ethernet source of the resets that a cut at line rate sends in
// the name of a host, a locally administered address (IEEE 802-2014 §8.2.2): it
// tells them from packets that crossed.
var ResetMAC = [6]byte{0x4e, 'S', 'P', 'L', 'I', 'T'}

// Partition is a shape over groups of hosts.
type Partition struct {
	Shape  Shape      `json:"shape" yaml:"shape"`
	Effect Effect     `json:"effect" yaml:"effect"`
	Groups [][]NodeID `json:"groups" yaml:"groups"`

	// Label is what Split compares.
	Label string `json:"label,omitempty" yaml:"label,omitempty"`
	// Role is what LeaderIn and LeaderOut look up; "" means DefaultRole.
	Role string `json:"role,omitempty" yaml:"role,omitempty"`
	// Size is how many hosts LeaderIn and LeaderOut cut off; 0 means 1.
	Size int `json:"size,omitempty" yaml:"size,omitempty"`

	// Only, when set, cuts no other traffic between the groups.
	Only []Traffic `json:"only,omitempty" yaml:"only,omitempty"`
}

// DefaultRole is the role of LeaderIn and LeaderOut.
const DefaultRole = "leader"

// Traffic selects packets between two hosts. They match if all that is set fits.
type Traffic struct {
	// Proto is tcp, udp, icmp or arp. icmp includes ICMPv6, but neighbour
	// discovery goes with arp: both find addresses.
	Proto string `json:"proto" yaml:"proto"`
	// Port is the port of the service, at whichever end; 0 means any. TCP, UDP.
	Port uint16 `json:"port,omitempty" yaml:"port,omitempty"`
	// Opening selects only what opens a connection (TCP with SYN and without
	// ACK): who may not open one may still answer on those there are.
	Opening bool `json:"opening,omitempty" yaml:"opening,omitempty"`
	// Messages selects only TCP packets that carry something: payload, SYN, FIN or RST.
	// Bare acknowledgements pass, so who hears nothing any more goes on believing that
	// it is heard. No switch can match this: only the gate of a run cuts it.
	Messages bool `json:"messages,omitempty" yaml:"messages,omitempty"`
}

// Selects says whether a packet is of this traffic, given its protocol as Proto
// names it, its ports (0 where it has none, as a later fragment), whether it opens a
// connection, and whether it is a bare acknowledgement.
func (t Traffic) Selects(proto string, src, dst uint16, opening, bare bool) bool {
	return proto == t.Proto && (t.Port == 0 || t.Port == src || t.Port == dst) && (!t.Opening || opening) && !(t.Messages && bare)
}

// Covers says that whatever is of traffic u is of t as well.
func (t Traffic) Covers(u Traffic) bool {
	return t.Proto == u.Proto && (t.Port == 0 || t.Port == u.Port) && (!t.Opening || u.Opening) &&
		(!t.Messages || u.Messages || u.Opening)
}

// Link is one direction between two hosts.
type Link struct {
	Src NodeID `json:"src"`
	Dst NodeID `json:"dst"`
}

// Compare orders by source then destination.
func (l Link) Compare(m Link) int {
	return cmp.Or(cmp.Compare(l.Src, m.Src), cmp.Compare(l.Dst, m.Dst))
}

// Reverse is the other direction.
func (l Link) Reverse() Link { return Link{Src: l.Dst, Dst: l.Src} }

// String is src>dst.
func (l Link) String() string { return string(l.Src) + ">" + string(l.Dst) }

// Isolate cuts one host from all others of the testbed.
func Isolate(host NodeID, all []NodeID, e Effect) Partition {
	return IsolateAll([]NodeID{host}, all, e)
}

// IsolateAll is the Complete partition of these hosts, together, from the rest.
func IsolateAll(hosts, all []NodeID, e Effect) Partition {
	var rest []NodeID
	for _, h := range all {
		if !slices.Contains(hosts, h) {
			rest = append(rest, h)
		}
	}
	slices.Sort(rest)
	return Partition{Shape: Complete, Effect: e, Groups: [][]NodeID{hosts, rest}}
}

// groupsOf says how many groups a resolved shape has, 0 for two or more, and how many
// a person gives it.
var groupsOf = map[Shape]struct {
	resolved, least, most int
	given                 string
}{
	Complete:  {0, 2, math.MaxInt, "two or more groups of hosts"},
	Partial:   {2, 2, 2, "two groups of hosts"},
	Simplex:   {2, 2, 2, "two groups of hosts, the one that sends and the one that receives"},
	Isolated:  {2, 1, 1, "one group of hosts, those to be cut off"},
	Bridge:    {3, 1, 1, "one group of hosts that join the sides, or that and the two sides"},
	Ring:      {1, 0, 1, "one group of hosts in their order, or none for all hosts"},
	LeaderIn:  {2, 0, 1, "one group of hosts that may be cut off, or none for any"},
	LeaderOut: {2, 0, 1, "one group of hosts that may be cut off, or none for any"},
}

// TakesGroups says whether a person may give a partition of the shape so many groups. Those of
// a resolved one are taken, too.
func (s Shape) TakesGroups(n int) bool {
	takes, ok := groupsOf[s]
	return !ok || takes.least <= n && n <= takes.most || n > 0 && n == takes.resolved
}

// Takes says which groups a person gives a partition of the shape.
func (s Shape) Takes() string { return groupsOf[s].given }

// Validate checks a resolved partition against the hosts that it is of: it fits
// them, and where its shape places every host none is left out. The error says
// which host or group is wrong and what is allowed.
func (p Partition) Validate(hosts []NodeID) error {
	if err := p.Fits(hosts); err != nil {
		return err
	}
	if !slices.Contains([]Shape{Complete, Isolated, Bridge, LeaderIn, LeaderOut}, p.Shape) {
		return nil
	}
	placed := map[NodeID]bool{}
	for _, g := range p.Groups {
		for _, h := range g {
			placed[h] = true
		}
	}
	for _, h := range hosts {
		if !placed[h] {
			return fmt.Errorf("partition: %s must place every host, and %q is in no group: add it, or use partial", p.Shape, h)
		}
	}
	return nil
}

// Fits checks a resolved partition against the hosts of a testbed, which may have
// more than those that it is of: a target need not use them all. What is in no
// group stays connected to all. The error says which host or group is wrong.
func (p Partition) Fits(hosts []NodeID) error {
	if !slices.Contains(Shapes(), p.Shape) {
		return fmt.Errorf("partition: unknown shape %q: use %s", p.Shape, oneOf(Shapes()))
	}
	switch p.Effect {
	case Drop, Reset:
	default:
		return fmt.Errorf("partition: unknown effect %q: use drop or reset", p.Effect)
	}
	switch takes, n := groupsOf[p.Shape], len(p.Groups); {
	case takes.resolved == 0 && n < 2:
		return fmt.Errorf("partition: %d group(s): name at least two groups of hosts", n)
	case takes.resolved > 0 && n != takes.resolved:
		return fmt.Errorf("partition: %s takes %s, not %d", p.Shape, takes.given, n)
	}
	if n := p.CountLinks(); n > MaxLinks {
		return fmt.Errorf("partition: it cuts %d links, and the most is %d: cut fewer hosts off, or name those of each side that use one another (partial)", n, MaxLinks)
	}
	known := map[NodeID]bool{}
	for _, h := range hosts {
		known[h] = true
	}
	in := map[NodeID]int{}
	for i, g := range p.Groups {
		if len(g) == 0 {
			return fmt.Errorf("partition: group %d is empty: name its hosts", i+1)
		}
		for _, h := range g {
			if !known[h] {
				return fmt.Errorf("partition: no host %q in the testbed: it has %s", h, SomeHosts(hosts))
			}
			if j, dup := in[h]; dup {
				return fmt.Errorf("partition: host %q is in group %d and in group %d: a host belongs to one group", h, j+1, i+1)
			}
			in[h] = i
		}
	}
	if p.Shape == Ring && len(p.Groups[0]) < 4 {
		return fmt.Errorf("partition: a ring of %d hosts cuts nothing: it takes four or more", len(p.Groups[0]))
	}
	return p.CheckOnly()
}

// CheckOnly checks Only alone; the error says what is allowed.
func (p Partition) CheckOnly() error {
	tcp := func(t Traffic) bool { return t.Proto == "tcp" }
	if p.Effect == Reset && len(p.Only) > 0 && !slices.ContainsFunc(p.Only, tcp) {
		return fmt.Errorf("partition: effect reset ends TCP connections, and only %s is to be cut: add tcp, or use drop", p.Only[0])
	}
	for _, t := range p.Only {
		switch {
		case !slices.Contains([]string{"tcp", "udp", "icmp", "arp"}, t.Proto):
			return fmt.Errorf("partition: unknown protocol %q: use tcp, udp, icmp or arp", t.Proto)
		case t.Port != 0 && t.Proto != "tcp" && t.Proto != "udp":
			return fmt.Errorf("partition: %s has no ports: leave out port %d", t.Proto, t.Port)
		case t.Messages && t.Proto != "tcp":
			return fmt.Errorf("partition: %s has no bare acknowledgements: only tcp can be cut by messages", t.Proto)
		case t.Messages && t.Opening:
			return fmt.Errorf("partition: packets that open a connection carry a message anyway: leave out opening or messages")
		case t.Messages && p.Effect == Reset:
			return fmt.Errorf("partition: effect reset ends the connections whose acknowledgements are to pass: use drop")
		case t.Opening && t.Proto != "tcp":
			return fmt.Errorf("partition: %s opens no connections: only tcp can be cut by who opens them", t.Proto)
		}
	}
	return nil
}

// MaxLinks is the most directed links that a partition cuts. Each is a rule of a switch or more,
// and the daemon keeps counters of it.
const MaxLinks = 200_000

// CountLinks is the length of Links.
func (p Partition) CountLinks() int {
	all, within := 0, 0
	for _, g := range p.Groups {
		all, within = all+len(g), within+len(g)*len(g)
	}
	switch n := len(p.Groups); {
	case p.Shape == Ring && n == 1:
		sides, opposite := ringKeeps(all)
		keeps := 2 * sides
		if opposite {
			keeps++
		}
		return all * (all - 1 - keeps)
	case p.Shape == Simplex && n == 2:
		return len(p.Groups[0]) * len(p.Groups[1])
	case p.Shape == Bridge && n == 3:
		return 2 * len(p.Groups[1]) * len(p.Groups[2])
	}
	return all*all - within
}

// maxNamed is how many hosts an error names.
const maxNamed = 20

// SomeHosts lists hosts for an error: the first ones, and how many more there are.
func SomeHosts(hosts []NodeID) string {
	if len(hosts) <= maxNamed {
		return fmt.Sprint(hosts)
	}
	return fmt.Sprintf("%v and %d more", hosts[:maxNamed], len(hosts)-maxNamed)
}

// Links lists the directed links that a resolved partition cuts, sorted.
func (p Partition) Links() []Link {
	var out []Link
	for i, a := range p.Groups {
		for j, b := range p.Groups {
			switch {
			case i == j, p.Shape == Simplex && i == 0, p.Shape == Bridge && (i == 0 || j == 0):
				continue
			}
			for _, s := range a {
				for _, d := range b {
					out = append(out, Link{s, d})
				}
			}
		}
	}
	if p.Shape == Ring && len(p.Groups) == 1 {
		out = ringLinks(p.Groups[0])
	}
	slices.SortFunc(out, Link.Compare)
	return out
}

// ringKeeps says how many neighbours a host of a ring keeps on either side, and whether it keeps the
// host opposite: as many as a majority takes, itself included. Where that is an odd number the host
// opposite makes it up, or one more on each side if there is none.
func ringKeeps(n int) (sides int, opposite bool) {
	degree := n / 2 // a majority is n/2+1, itself included
	sides = degree / 2
	if degree%2 == 1 {
		if n%2 == 0 {
			return sides, true
		}
		sides++
	}
	return sides, false
}

// ringLinks cuts every pair that are no neighbours.
func ringLinks(ring []NodeID) []Link {
	n := len(ring)
	sides, opposite := ringKeeps(n)
	var out []Link
	for i := range n {
		for j := range n {
			far := min((i-j+n)%n, (j-i+n)%n)
			if far > sides && !(opposite && 2*far == n) {
				out = append(out, Link{ring[i], ring[j]})
			}
		}
	}
	return out
}

// String is the partition as a person writes it on one line.
func (p Partition) String() string {
	var b strings.Builder
	b.WriteString(string(p.Shape))
	for _, o := range []struct{ name, value string }{{"label", p.Label}, {"role", p.Role}} {
		if o.value != "" {
			fmt.Fprintf(&b, " %s=%s", o.name, o.value)
		}
	}
	for i, g := range p.Groups {
		sep := " | "
		if i == 0 {
			sep = " "
		}
		b.WriteString(sep)
		for j, h := range g {
			if j > 0 {
				b.WriteString(",")
			}
			b.WriteString(string(h))
		}
	}
	for i, t := range p.Only {
		sep := ", "
		if i == 0 {
			sep = " only "
		}
		b.WriteString(sep + t.String())
	}
	if p.Effect != Drop && p.Effect != "" {
		fmt.Fprintf(&b, " (%s)", p.Effect)
	}
	return b.String()
}

// String is proto, proto/port, with -opening for what opens connections, -messages for
// what carries something.
func (t Traffic) String() string {
	s := t.Proto
	if t.Port != 0 {
		s += fmt.Sprintf("/%d", t.Port)
	}
	if t.Opening {
		s += "-opening"
	}
	if t.Messages {
		s += "-messages"
	}
	return s
}

// NeedsGate says why the partition can only be cut by the gate of a run; nil: a switch's
// rules, or hosts, can do it, too.
func (p Partition) NeedsGate() error {
	for _, t := range p.Only {
		if t.Messages {
			return fmt.Errorf("partition: %s drops packets with payload and passes bare acknowledgements, which no rule of a switch can tell apart: "+
				"only the gate of a run can (netsplit run TARGET --scenario FILE); by hand and in scripts cut all of %s", t, t.Proto)
		}
	}
	return nil
}

// ParseTraffic reads what Traffic.String writes.
func ParseTraffic(s string) (Traffic, error) {
	var t Traffic
	rest, messages := strings.CutSuffix(s, "-messages")
	rest, opening := strings.CutSuffix(rest, "-opening")
	t.Opening, t.Messages = opening, messages
	proto, port, has := strings.Cut(rest, "/")
	t.Proto = proto
	if has {
		var n uint16
		if _, err := fmt.Sscanf(port, "%d", &n); err != nil || n == 0 || fmt.Sprint(n) != port {
			return Traffic{}, fmt.Errorf("partition: %q: want a port from 1 to 65535 after the protocol, as in tcp/7000", s)
		}
		t.Port = n
	}
	return t, Partition{Only: []Traffic{t}}.CheckOnly()
}

func oneOf[T ~string](all []T) string {
	var names []string
	for _, s := range all {
		names = append(names, string(s))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
