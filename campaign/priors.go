package campaign

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/sut"
)

// around is what faults of the NEAT study, and those of all nodes, need to know of a target.
func (s *Service) around(spec model.CampaignSpec, t *model.Target) (sequence.Around, error) {
	a := sequence.Around{Nodes: t.Nodes, Clients: t.Clients}
	roles := slices.Sorted(maps.Keys(t.Roles))
	switch {
	case slices.Contains(roles, model.DefaultRole):
		a.Role = model.DefaultRole
	case len(roles) == 1:
		a.Role = roles[0]
	}
	for _, name := range slices.Sorted(maps.Keys(t.Periods)) {
		d, err := sut.PeriodOf(t, sut.ExpandInput{Args: spec.Args}, name)
		if err != nil {
			return a, err
		}
		if a.Periods == nil {
			a.Periods = map[string]time.Duration{}
		}
		a.Periods[name] = d
	}
	return a, nil
}

// kinds are the faults that a search of sequences has: those that are named, or FATE's at
// messages.
func kinds(named []model.PointFaultKind, a sequence.Around) (out []sequence.FaultAt, err error) {
	add := func(from []sequence.FaultAt, is func(model.PointFaultKind) bool) (n int) {
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
	if len(named) == 0 {
		return sequence.AtMessages(), nil
	}
	priors := sequence.Priors(slices.Sorted(maps.Keys(a.Periods)))
	lacks := map[model.PointFaultKind]string{}
	if len(a.Clients) == 0 {
		lacks[model.PointWithClient] = "the target has no clients"
	}
	if a.Role == "" {
		lacks[model.PointLeader] = "the target has no role leader, nor one role alone"
	}
	if len(a.Periods) == 0 {
		lacks[model.PointPeriod] = "the target names no periods"
	}
	disks := slices.DeleteFunc(sequence.AtDisks(), func(k sequence.FaultAt) bool { return k.Kind == model.PointCrash })
	single := slices.Concat(sequence.AtMessages(), disks, sequence.Rare(), priors)
	for _, name := range named {
		if name == model.PointNEAT {
			add(sequence.AtMessages(), func(k model.PointFaultKind) bool { return k == model.PointCrash || k == model.PointIsolate })
			add(priors, func(k model.PointFaultKind) bool { return lacks[k] == "" })
			continue
		}
		if name == model.PointDisk {
			add(sequence.AtDisks(), func(model.PointFaultKind) bool { return true })
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
