package campaign

import (
	"slices"

	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/sut"
)

// around is what faults of the NEAT study, and those of all nodes, need to know of a target.
func (s *Service) around(spec model.CampaignSpec, t *model.Target) (sequence.Around, error) {
	a := sequence.AroundOf(t)
	for name := range a.Periods {
		if !slices.ContainsFunc(spec.Faults, func(k model.PointFaultKind) bool {
			of, one := k.Period()
			return k == model.PointNEAT || k == model.PointPeriod || one && of == name
		}) {
			continue // one that the settings make no sense of matters to nobody
		}
		d, err := sut.PeriodOf(t, sut.ExpandInput{Args: spec.Args}, name)
		if err != nil {
			return a, err
		}
		a.Periods[name] = d
	}
	return a, nil
}
