package campaign

import (
	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/sut"
)

// around is what faults of the NEAT study, and those of all nodes, need to know of a target.
func (s *Service) around(spec model.CampaignSpec, t *model.Target) (sequence.Around, error) {
	a := sequence.AroundOf(t)
	for name := range a.Periods {
		d, err := sut.PeriodOf(t, sut.ExpandInput{Args: spec.Args}, name)
		if err != nil {
			return a, err
		}
		a.Periods[name] = d
	}
	return a, nil
}
