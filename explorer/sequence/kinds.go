package sequence

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// Around is what faults of the NEAT study, and those of all nodes, need to know of a target.
type Around struct {
	Nodes, Clients []model.NodeID
	// Role is whom PointLeader isolates.
	Role string
	// Periods are the lengths of the target's periods.
	Periods map[string]time.Duration
}

// AroundOf is what a target file says of it. The lengths of the periods are 0: they depend on
// the campaign.
func AroundOf(t *model.Target) Around {
	a := Around{Nodes: t.Nodes, Clients: t.Clients, Periods: map[string]time.Duration{}}
	roles := slices.Sorted(maps.Keys(t.Roles))
	switch {
	case slices.Contains(roles, model.DefaultRole):
		a.Role = model.DefaultRole
	case len(roles) == 1:
		a.Role = roles[0]
	}
	for name := range t.Periods {
		a.Periods[name] = 0
	}
	return a
}

// Kinds are the faults of a search: those that are named, or FATE's at messages. files: the
// runs have operations on files whatever is named, so that a crash may be before one, and FATE's
// at files need not be named. It is an error if the target cannot have one.
func Kinds(named []model.PointFaultKind, a Around, files bool) (out []FaultAt, err error) {
	add := func(from []FaultAt, is func(model.PointFaultKind) bool) (n int) {
		for _, k := range from {
			if is(k.Kind) && !slices.Contains(out, k) {
				out = append(out, k)
			}
			if is(k.Kind) {
				n++
			}
		}
		return n
	}
	switch {
	case len(named) == 0 && files:
		return AllKinds(), nil
	case len(named) == 0:
		return AtMessages(), nil
	}
	priors := Priors(slices.Sorted(maps.Keys(a.Periods)))
	lacks := map[model.PointFaultKind]string{}
	if len(a.Clients) == 0 {
		lacks[model.PointWithClient] = "the target has no clients"
	}
	if a.Role == "" {
		lacks[model.PointLeader] = "the target has no role leader, nor one role alone"
	}
	if len(a.Nodes) < 3 {
		lacks[model.PointBoth] = "the target has no third node to cut two off from"
		lacks[model.PointShiftCrash] = "the target has no three nodes"
		lacks[model.PointShiftPowerCut] = lacks[model.PointShiftCrash]
	}
	if len(a.Periods) == 0 {
		lacks[model.PointPeriod] = "the target names no periods"
	}
	disks := slices.DeleteFunc(AtDisks(), func(k FaultAt) bool { return k.Kind == model.PointCrash && !files })
	single := slices.Concat(AtMessages(), disks, Rare(), priors)
	for _, name := range named {
		if name == model.PointNEAT {
			add(AtMessages(), func(k model.PointFaultKind) bool { return k == model.PointCrash || k == model.PointIsolate })
			add(priors, func(k model.PointFaultKind) bool { return lacks[k] == "" })
			continue
		}
		if name == model.PointDisk {
			add(AtDisks(), func(model.PointFaultKind) bool { return true })
			continue
		}
		if why := lacks[name]; why != "" {
			return nil, fmt.Errorf("no fault %s: %s", name, why)
		}
		if add(single, func(k model.PointFaultKind) bool {
			_, period := k.Period()
			return k == name || period && name == model.PointPeriod
		}) == 0 {
			return nil, fmt.Errorf("no fault %q: there are %v", name, model.SearchedFaults())
		}
	}
	return out, nil
}

// possible says whether a search can have a kind of fault there.
func possible(k FaultAt) bool {
	var periods []string
	if p, ok := k.Kind.Period(); ok {
		periods = []string{p}
	}
	return slices.Contains(AllKinds(), k) || slices.Contains(Rare(), k) || slices.Contains(Priors(periods), k)
}
