package model

import (
	"fmt"
	"slices"
)

// Shape of a partition, as in the NEAT study (OSDI'18 §2.1, §7.2).
type Shape string

// Complete cuts groups that together hold every host; partial cuts two groups
// and leaves the others connected to both; simplex lets packets flow only
// from the first group to the second.
const (
	Complete Shape = "complete"
	Partial  Shape = "partial"
	Simplex  Shape = "simplex"
)

// Effect says what happens to what wants to cross.
type Effect string

// Drop loses packets silently; Reset also resets, at the moment of the cut,
// the TCP connections that cross it, at both ends.
const (
	Drop  Effect = "drop"
	Reset Effect = "reset"
)

// Partition is a shape over groups of hosts.
type Partition struct {
	Shape  Shape      `json:"shape" yaml:"shape"`
	Effect Effect     `json:"effect" yaml:"effect"`
	Groups [][]NodeID `json:"groups" yaml:"groups"`
}

// Link is one direction between two hosts.
type Link struct {
	Src NodeID `json:"src"`
	Dst NodeID `json:"dst"`
}

// Compare orders by source then destination.
func (l Link) Compare(m Link) int {
	return firstNonZero(cmpString(string(l.Src), string(m.Src)), cmpString(string(l.Dst), string(m.Dst)))
}

// Reverse is the other direction.
func (l Link) Reverse() Link { return Link{Src: l.Dst, Dst: l.Src} }

// String is src>dst.
func (l Link) String() string { return string(l.Src) + ">" + string(l.Dst) }

// Isolate cuts one host from all others of the testbed.
func Isolate(host NodeID, all []NodeID, e Effect) Partition {
	var rest []NodeID
	for _, h := range all {
		if h != host {
			rest = append(rest, h)
		}
	}
	slices.Sort(rest)
	return Partition{Shape: Complete, Effect: e, Groups: [][]NodeID{{host}, rest}}
}

// Validate checks the partition against the hosts it may name. The error says
// which host or group is wrong and what is allowed.
func (p Partition) Validate(hosts []NodeID) error {
	switch p.Shape {
	case Complete, Partial, Simplex:
	default:
		return fmt.Errorf("partition: unknown shape %q: use complete, partial or simplex", p.Shape)
	}
	switch p.Effect {
	case Drop, Reset:
	default:
		return fmt.Errorf("partition: unknown effect %q: use drop or reset", p.Effect)
	}
	if len(p.Groups) < 2 {
		return fmt.Errorf("partition: %d group(s): name at least two groups of hosts", len(p.Groups))
	}
	if p.Shape != Complete && len(p.Groups) != 2 {
		return fmt.Errorf("partition: %s takes two groups, not %d", p.Shape, len(p.Groups))
	}
	in := map[NodeID]int{}
	for i, g := range p.Groups {
		if len(g) == 0 {
			return fmt.Errorf("partition: group %d is empty: name its hosts", i+1)
		}
		for _, h := range g {
			if !slices.Contains(hosts, h) {
				return fmt.Errorf("partition: no host %q in the testbed: it has %v", h, hosts)
			}
			if j, dup := in[h]; dup {
				return fmt.Errorf("partition: host %q is in group %d and in group %d: a host belongs to one group", h, j+1, i+1)
			}
			in[h] = i
		}
	}
	if p.Shape == Complete {
		for _, h := range hosts {
			if _, ok := in[h]; !ok {
				return fmt.Errorf("partition: complete must place every host, and %q is in no group: add it, or use partial", h)
			}
		}
	}
	return nil
}

// Links lists the directed links the partition cuts, sorted.
func (p Partition) Links() []Link {
	var out []Link
	for i, a := range p.Groups {
		for j, b := range p.Groups {
			if i == j || (p.Shape == Simplex && i == 0) {
				continue
			}
			for _, s := range a {
				for _, d := range b {
					out = append(out, Link{s, d})
				}
			}
		}
	}
	slices.SortFunc(out, Link.Compare)
	return out
}
