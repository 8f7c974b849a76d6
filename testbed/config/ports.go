package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

func eachPort(t *model.Testbed, id model.DatapathID, f func(what string, p *model.Port)) {
	show := func(at model.DatapathID, p *model.Port, format string, args ...any) {
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
func NamesPorts(t *model.Testbed, id model.DatapathID) (names bool) {
	eachPort(t, id, func(_ string, p *model.Port) { names = names || p.Name != "" })
	return names
}

// Renumbered is the testbed with other port numbers: number gives that of each port
// of a switch, as it is in the file.
func Renumbered(t model.Testbed, id model.DatapathID, number func(model.Port) uint32) model.Testbed {
	t.Hosts, t.Links, t.Gates, t.Mirrors = slices.Clone(t.Hosts), slices.Clone(t.Links), slices.Clone(t.Gates), slices.Clone(t.Mirrors)
	eachPort(&t, id, func(_ string, p *model.Port) { p.Number = number(*p) })
	return t
}

// Locate finds the numbers of the ports that the testbed has by name on one
// switch, which has these ports. Of each port of the file it gives the number,
// or why it cannot be used: the switch has no such name, or two, or something
// else is on the same port.
func Locate(t model.Testbed, id model.DatapathID, has []model.Port) (numbers map[model.Port]uint32, wrong map[model.Port]error) {
	numbers, wrong = map[model.Port]uint32{}, map[model.Port]error{}
	onIt := map[uint32]string{} // what was found on a number
	gated := slices.ContainsFunc(t.Gates, func(g model.GatePort) bool { return g.Datapath == id })
	eachPort(&t, id, func(what string, p *model.Port) {
		n, err := p.Number, error(nil)
		if p.Name != "" {
			n, err = find(p.Name, has)
		}
		if err == nil && p.Name != "" && gated && strings.HasPrefix(what, "host ") && n > model.MaxGatedPort {
			err = fmt.Errorf("port %q is number %d, and beside a gate port hosts are on ports 1 to %d: give it such a number (ovs-vsctl set interface %s ofport_request=N), or leave the gate out", p.Name, n, model.MaxGatedPort, p.Name)
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

func find(name string, has []model.Port) (uint32, error) {
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
		return 0, fmt.Errorf("the switch has %d ports called %q, numbers %s: write the number instead", len(at), name, strings.Trim(fmt.Sprint(at), "[]"))
	case at[0] == 0 || at[0] > model.MaxPort:
		return 0, fmt.Errorf("%q is the switch's own port, which has no cable: the switch has %s", name, listed(has))
	}
	return at[0], nil
}

// listed names the ports of a switch that a cable can be in, sorted.
func listed(has []model.Port) string {
	const most = 30
	has = slices.DeleteFunc(slices.Clone(has), func(p model.Port) bool { return p.Number > model.MaxPort })
	slices.SortFunc(has, func(a, b model.Port) int { return cmp.Compare(a.Number, b.Number) })
	var out []string
	for _, p := range has[:min(len(has), most)] {
		out = append(out, model.Port{Number: p.Number, Name: cmp.Or(p.Name, "?")}.String())
	}
	if len(has) > most {
		out = append(out, fmt.Sprintf("and %d more", len(has)-most))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
