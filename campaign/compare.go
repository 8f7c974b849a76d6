package campaign

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"netsplit/model"
)

// Compare compares the findings of a campaign with those of an earlier one; before "" is the
// last one that was done on the same target, with the same strategy and settings.
func (s *Service) Compare(ctx context.Context, id, before string) (model.Comparison, error) {
	var out model.Comparison
	c, err := s.getCampaign(id)
	if err != nil {
		return out, err
	}
	if before == "" {
		if before, err = s.earlier(&c); err != nil {
			return out, err
		}
	}
	b, err := s.getCampaign(before)
	if err != nil {
		return out, err
	}
	if was, is := b.Spec.TargetName(), c.Spec.TargetName(); was != is {
		return out, fmt.Errorf("%w: campaign %s is on target %s, and %s on %s: compare campaigns on one target", model.ErrInvalid, b.ID, was, c.ID, is)
	}
	type key struct{ check, signature string }
	keyed := func(id string) (map[key]bool, []model.Finding, model.Compared, error) {
		of := model.Compared{ID: id}
		if of.Judged, err = s.judged(id); err != nil {
			return nil, nil, of, err
		}
		found, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings(id, page, c) })
		keys := map[key]bool{}
		for _, f := range found {
			keys[key{f.Failure.Check, f.Failure.Signature}] = true
		}
		return keys, found, of, err
	}
	old, wasFound, ofBefore, err := keyed(b.ID)
	if err != nil {
		return out, err
	}
	now, isFound, ofCampaign, err := keyed(c.ID)
	if err != nil {
		return out, err
	}
	out.Campaign, out.Before = ofCampaign, ofBefore
	for _, f := range isFound {
		if old[key{f.Failure.Check, f.Failure.Signature}] {
			out.Still = append(out.Still, f)
		} else {
			out.New = append(out.New, f)
		}
	}
	for _, f := range wasFound {
		if !now[key{f.Failure.Check, f.Failure.Signature}] {
			out.Gone = append(out.Gone, f)
		}
	}
	return out, nil
}

// earlier is the campaign that one is compared with if none is named.
func (s *Service) earlier(c *model.Campaign) (string, error) {
	list, err := s.allCampaigns() // the newest first
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(o model.Campaign) bool {
		return o.Created.Before(c.Created) && o.State == model.CampaignDone && alike(&o, c)
	})
	if i < 0 {
		return "", fmt.Errorf("%w: no earlier campaign on %s with the same strategy and settings is done: name the one to compare with", model.ErrNotFound, c.Spec.TargetName())
	}
	return list[i].ID, nil
}

// alike says whether two campaigns searched one target, whatever its release, with the same
// strategy and settings.
func alike(a, b *model.Campaign) bool {
	return a.Spec.Replay == "" && a.Spec.Scenario == nil && a.Spec.TargetName() == b.Spec.TargetName() && a.Spec.Strategy == b.Spec.Strategy && maps.Equal(a.Spec.Args, b.Spec.Args)
}
