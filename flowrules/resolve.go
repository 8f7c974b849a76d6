package flowrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// Where is what a partition needs to know of the testbed it is made on.
type Where struct {
	Hosts  []model.NodeID // all of the testbed, in its order
	Labels map[model.NodeID]map[string]string
	// Role tells who has a role now; nil where no host can be queried yet. An
	// error says why it cannot be told.
	Role func(role string) (model.Holders, error)
}

// WhereOn is what a partition on the testbed needs to know; role may be nil.
func WhereOn(t *model.Testbed, role func(string) (model.Holders, error)) Where {
	w := Where{Hosts: t.Names(), Labels: map[model.NodeID]map[string]string{}, Role: role}
	for _, h := range t.Hosts {
		w.Labels[h.Name] = h.Labels
	}
	return w
}

// ErrRoleUnknown is wrapped by Resolve where only the role is missing: all else
// that a person gave is right.
var ErrRoleUnknown = errors.New("there is nobody to ask who has the role")

// Resolve fills in the groups and checks them, so that Links can tell what is
// cut. What a person gives, and what is filled in:
//
//	shape       groups given                    groups afterwards
//	complete    two or more, of all hosts       the same
//	partial     two                             the same
//	simplex     from, to                        the same
//	isolate     those to be cut off             and all others
//	bridge      the bridge, or it and two sides the bridge and two sides; without sides
//	                                            the others in halves, in their order
//	ring        its hosts in order, or none     in order; none: all hosts
//	split       none, but a label               one group for each value; hosts
//	                                            without the label stay connected
//	leader-in   those it may cut off, or none   Size of them, with all that have the
//	                                            role first; and all other hosts
//	leader-out  the same                        Size of them that do not have it
//
// A resolved partition stays as it is.
func Resolve(p model.Partition, w Where) (model.Partition, error) {
	if p.Effect == "" {
		p.Effect = model.Drop
	}
	var err error
	p.Groups = cloneGroups(p.Groups)
	switch p.Shape {
	case model.Isolated:
		if len(p.Groups) == 1 {
			rest := without(w.Hosts, p.Groups...)
			if len(rest) == 0 {
				return p, errors.New("partition: isolate names every host: leave one out of the group, for the other side")
			}
			p.Groups = append(p.Groups, rest)
		}
	case model.Bridge:
		if len(p.Groups) == 1 {
			rest := without(w.Hosts, p.Groups[0])
			half := (len(rest) + 1) / 2
			if len(rest) < 2 {
				return p, fmt.Errorf("partition: a bridge joins two sides, and only %d host(s) are left for them", len(rest))
			}
			p.Groups = append(p.Groups, rest[:half], rest[half:])
		}
	case model.Ring:
		if len(p.Groups) == 0 {
			p.Groups = [][]model.NodeID{slices.Clone(w.Hosts)}
		}
	case model.Split:
		p, err = byLabel(p, w)
	case model.LeaderIn, model.LeaderOut:
		p, err = byRole(p, w)
	}
	if err != nil {
		return p, err
	}
	if p.Shape != model.Split && p.Label != "" {
		return p, fmt.Errorf("partition: %s looks at no label: leave out %q, or use split", p.Shape, p.Label)
	}
	if p.Shape != model.LeaderIn && p.Shape != model.LeaderOut && (p.Role != "" || p.Size != 0) {
		return p, fmt.Errorf("partition: %s looks at no role: leave out role and size, or use leader-in or leader-out", p.Shape)
	}
	return p, p.Validate(w.Hosts)
}

func byLabel(p model.Partition, w Where) (model.Partition, error) {
	if p.Label == "" {
		return p, errors.New("partition: split compares a label of the hosts: name it, as in label=rack")
	}
	if len(p.Groups) > 0 {
		return p, nil
	}
	byValue := map[string][]model.NodeID{}
	known := map[string]bool{}
	for _, h := range w.Hosts {
		for label := range w.Labels[h] {
			known[label] = true
		}
		if v, ok := w.Labels[h][p.Label]; ok {
			byValue[v] = append(byValue[v], h)
		}
	}
	var values []string
	for v := range byValue {
		values = append(values, v)
	}
	slices.Sort(values)
	if len(values) < 2 {
		var labels []string
		for l := range known {
			labels = append(labels, l)
		}
		slices.Sort(labels)
		return p, fmt.Errorf("partition: label %q has %d value(s) among the hosts, and a split takes two: their labels are %s", p.Label, len(values), orNone(labels))
	}
	for _, v := range values {
		p.Groups = append(p.Groups, byValue[v])
	}
	return p, nil
}

func byRole(p model.Partition, w Where) (model.Partition, error) {
	if p.Role == "" {
		p.Role = model.DefaultRole
	}
	size := max(p.Size, 1)
	if p.Size < 0 {
		return p, fmt.Errorf("partition: size %d: cut off one host or more", p.Size)
	}
	if len(p.Groups) == 2 {
		return p, nil
	}
	if len(p.Groups) > 2 {
		return p, fmt.Errorf("partition: %s takes %s, not %d", p.Shape, p.Shape.Takes(), len(p.Groups))
	}
	for _, g := range p.Groups {
		for _, h := range g {
			if !slices.Contains(w.Hosts, h) {
				return p, fmt.Errorf("partition: no host %q in the testbed: it has %s", h, model.SomeHosts(w.Hosts))
			}
		}
	}
	if err := p.CheckOnly(); err != nil {
		return p, err
	}
	if w.Role == nil {
		return p, fmt.Errorf("partition: %s: %w", p.Shape, ErrRoleUnknown)
	}
	who, err := w.Role(p.Role)
	if err != nil {
		return p, fmt.Errorf("partition: %s: %w", p.Shape, err)
	}
	may := who.Of
	if len(p.Groups) == 1 {
		may = p.Groups[0]
	}
	var have, lack []model.NodeID
	// One that did not answer may be dead, or have the role and be slow: it is cut
	// off where there is no other. (Not answering may be how hosts say no.)
	for _, silent := range []bool{false, true} {
		for _, h := range may {
			switch {
			case slices.Contains(who.Silent, h) != silent:
			case slices.Contains(who.Have, h):
				have = append(have, h)
			default:
				lack = append(lack, h)
			}
		}
	}
	var off []model.NodeID
	switch {
	case len(who.Have) == 0:
		return p, fmt.Errorf("partition: %s: nobody has role %q now: none of %v says so", p.Shape, p.Role, who.Of)
	case p.Shape == model.LeaderIn && len(have) == 0:
		return p, fmt.Errorf("partition: %s: %v has role %q, and is not among those to be cut off, %v", p.Shape, who.Have, p.Role, may)
	case p.Shape == model.LeaderIn:
		off = append(have, lack[:min(len(lack), max(0, size-len(have)))]...)
	default:
		off = lack[:min(len(lack), size)]
	}
	if len(off) < size {
		return p, fmt.Errorf("partition: %s: %d host(s) can be cut off, not %d: those are %v, and %v has role %q", p.Shape, len(off), size, may, who.Have, p.Role)
	}
	rest := without(w.Hosts, off)
	if len(rest) == 0 {
		return p, fmt.Errorf("partition: %s: %d hosts to cut off are all there are: leave one on the other side", p.Shape, len(off))
	}
	slices.Sort(off)
	p.Groups = [][]model.NodeID{off, rest}
	return p, nil
}

// without lists the hosts that are in none of the groups.
func without(hosts []model.NodeID, groups ...[]model.NodeID) []model.NodeID {
	in := map[model.NodeID]bool{}
	for _, g := range groups {
		for _, h := range g {
			in[h] = true
		}
	}
	var out []model.NodeID
	for _, h := range hosts {
		if !in[h] {
			out = append(out, h)
		}
	}
	return out
}

func cloneGroups(groups [][]model.NodeID) [][]model.NodeID {
	var out [][]model.NodeID
	for _, g := range groups {
		out = append(out, slices.Clone(g))
	}
	return out
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
