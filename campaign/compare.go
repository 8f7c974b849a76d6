package campaign

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"netsplit/explorer/report"
	"netsplit/model"
	"netsplit/record/rundir"
)

// maxOthers bounds the searches that a report shows beside its own.
const maxOthers = 5

// otherStrategies are the ended searches of a campaign's target and release, with its settings:
// the newest of each other strategy, with what narrows it.
func (s *Service) otherStrategies(c *model.Campaign) (out []report.Search, err error) {
	if searches(c) == "" {
		return nil, nil
	}
	target, release, err := s.ran(c.ID)
	if err != nil || target == "" {
		return nil, err
	}
	campaigns, err := s.allCampaigns() // the newest first
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{anywhere(c): true}
	for _, o := range campaigns {
		if len(out) == maxOthers {
			break
		}
		key := anywhere(&o)
		if key == "" || seen[key] || o.State != model.CampaignDone || o.Spec.Strategy == model.StrategyClean || !maps.Equal(c.Spec.Args, o.Spec.Args) {
			continue
		}
		if t, r, err := s.ran(o.ID); err != nil {
			return nil, err
		} else if t != target || r != release {
			continue
		}
		seen[key] = true
		x := report.Search{Campaign: o}
		if x.Map, err = s.PartitionMap(context.Background(), o.ID); err != nil {
			return nil, err
		}
		if x.Findings, err = s.allFindings(o.ID); err != nil {
			return nil, err
		}
		if x.Judged, err = s.judged(o.ID); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(s.cfg.RunsDir, o.ID, rundir.ReportFile)); err == nil {
			x.Report = "../" + o.ID + "/" + rundir.ReportFile
		}
		out = append(out, x)
	}
	return out, nil
}

// anywhere is the key of searches without the target: one target may be named by its path, or as
// an upload.
func anywhere(c *model.Campaign) string {
	of := *c
	of.Spec.Target = ""
	return searches(&of)
}

// ran is the target and the release of a campaign's last run; "" if it has none.
func (s *Service) ran(campaign string) (target, release string, err error) {
	rows, _, err := s.store.ListRuns(model.RunFilter{Campaign: campaign}, 1, "")
	if err != nil || len(rows) == 0 {
		return "", "", err
	}
	return rows[0].Target, rows[0].Release, nil
}

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
// strategy and settings, or played the same script on it. What a program plays has no text to
// compare.
func alike(a, b *model.Campaign) bool {
	if a.Spec.OnStage() || (a.Spec.Script == nil) != (b.Spec.Script == nil) || a.Spec.Script != nil && a.Spec.Script.Text != b.Spec.Script.Text {
		return false
	}
	return a.Spec.Replay == "" && a.Spec.Scenario == nil && a.Spec.TargetName() == b.Spec.TargetName() && a.Spec.Strategy == b.Spec.Strategy && maps.Equal(a.Spec.Args, b.Spec.Args)
}
