package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"netsplit/model"
)

// FindingHistories lists what campaigns showed over time, a failure each: what is new or came
// back first, then what is known, then what is gone; within a state the costliest first.
// target "" takes all.
func (s *Service) FindingHistories(ctx context.Context, target string) ([]model.FindingHistory, error) {
	campaigns, err := s.allCampaigns() // the newest first
	if err != nil {
		return nil, err
	}
	found, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings("", page, c) })
	if err != nil {
		return nil, err
	}
	by := map[string]*model.Campaign{}
	for i := range campaigns {
		by[campaigns[i].ID] = &campaigns[i]
	}
	histories := map[string]*model.FindingHistory{}
	for _, f := range found {
		c := by[f.Campaign]
		if c == nil || target != "" && c.Spec.TargetName() != target {
			continue
		}
		name := c.Spec.TargetName()
		id := model.HistoryID(name, f.Failure.Check, f.Failure.Signature)
		h := histories[id]
		if h == nil {
			h = &model.FindingHistory{ID: id, Target: name, Check: f.Failure.Check, Signature: f.Failure.Signature, First: c.Created}
			histories[id] = h
		}
		h.Campaigns = append(h.Campaigns, c.ID)
		if h.Newest.ID == "" || c.Created.After(h.Last) {
			h.Newest, h.Last = f, c.Created
		}
		if c.Created.Before(h.First) {
			h.First = c.Created
		}
	}
	like := map[string][]*model.Campaign{} // by what they search, the newest first
	for i := range campaigns {
		if key := searches(&campaigns[i]); key != "" {
			like[key] = append(like[key], &campaigns[i])
		}
	}
	var out []model.FindingHistory
	for _, h := range histories {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		slices.SortFunc(h.Campaigns, func(a, b string) int { return by[b].Created.Compare(by[a].Created) })
		h.Campaigns = slices.Compact(h.Campaigns)
		if h.State, err = s.stateOf(h, by, like); err != nil {
			return nil, err
		}
		if h.Note, err = s.store.GetNote(h.ID); err != nil {
			return nil, err
		}
		out = append(out, *h)
	}
	order := []model.FindingState{model.FindingNew, model.FindingBack, model.FindingKnown, model.FindingGone}
	slices.SortFunc(out, func(a, b model.FindingHistory) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)), cmp.Compare(a.Newest.Rank, b.Newest.Rank), b.Last.Compare(a.Last), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// stateOf compares the newest search that shows a failure with those like it.
func (s *Service) stateOf(h *model.FindingHistory, by map[string]*model.Campaign, like map[string][]*model.Campaign) (model.FindingState, error) {
	shows := map[string]bool{}
	for _, id := range h.Campaigns {
		shows[id] = true
	}
	key := ""
	for _, id := range h.Campaigns { // the newest first
		if key = searches(by[id]); key != "" {
			break
		}
	}
	var looked []*model.Campaign // the newest first
	for _, c := range like[key] {
		if !shows[c.ID] { // those that do count while they are under way, too
			if c.State != model.CampaignDone {
				continue
			}
			if did, err := s.didJudge(c.ID); err != nil {
				return "", err
			} else if !did {
				continue
			}
		}
		looked = append(looked, c)
	}
	switch {
	case len(looked) > 0 && !shows[looked[0].ID] && looked[0].Created.After(h.Last):
		return model.FindingGone, nil
	case len(h.Campaigns) == 1:
		return model.FindingNew, nil
	case len(looked) > 2 && shows[looked[0].ID] && !shows[looked[1].ID] && slices.ContainsFunc(looked[2:], func(c *model.Campaign) bool { return shows[c.ID] }):
		return model.FindingBack, nil
	}
	return model.FindingKnown, nil
}

// didJudge says whether a campaign that is done judged a fault run. It remembers the answer.
func (s *Service) didJudge(campaign string) (bool, error) {
	if did, known := s.judging.Load(campaign); known {
		return did.(bool), nil
	}
	n, err := s.judged(campaign)
	if err != nil {
		return false, err
	}
	s.judging.Store(campaign, n > 0)
	return n > 0, nil
}

// judged counts the fault runs of a campaign that could be judged.
func (s *Service) judged(campaign string) (n int, err error) {
	runs, err := all(func(c string) ([]model.RunRow, string, error) {
		return s.store.ListRuns(model.RunFilter{Campaign: campaign}, page, c)
	})
	for _, r := range runs {
		if v := r.Verdict.Value; r.Strategy != model.StrategyClean && r.ReplayOf == "" && (v == model.VerdictPass || v == model.VerdictFail) {
			n++
		}
	}
	return n, err
}

// searches returns a key: campaigns with equal keys can find the same failures. Bounds and seed
// are not in it. The key is "" if the campaign is not a search but a replay, a user's scenario or
// a script.
func searches(c *model.Campaign) string {
	s := c.Spec
	if s.Replay != "" || s.Scenario != nil || s.Strategy == model.StrategyScripted {
		return ""
	}
	_, release, _ := strings.Cut(s.Target, "@")
	if filepath.IsAbs(s.Target) {
		release = ""
	}
	key, _ := json.Marshal([]any{s.TargetName(), release, s.Strategy, s.Effect, s.Depth, s.Faults, s.Policies, s.Prioritised, s.Only, s.Keys, s.Args}) // plain values always encode
	return string(key)
}

// NoteFinding keeps what somebody writes about a failure, for all campaigns; "" forgets it.
func (s *Service) NoteFinding(ctx context.Context, history, text string) (model.FindingHistory, error) {
	if n := utf8.RuneCountInString(text); n > model.MaxNote {
		return model.FindingHistory{}, fmt.Errorf("%w: the note has %d characters, more than %d", model.ErrInvalid, n, model.MaxNote)
	}
	list, err := s.FindingHistories(ctx, "")
	if err != nil {
		return model.FindingHistory{}, err
	}
	i := slices.IndexFunc(list, func(h model.FindingHistory) bool { return h.ID == history })
	if i < 0 {
		return model.FindingHistory{}, fmt.Errorf("%w: no campaign showed a failure %s: netsplit findings history lists them", model.ErrNotFound, history)
	}
	h := list[i]
	h.Note = model.FindingNote{Text: strings.TrimSpace(text)}
	if h.Note.Text != "" {
		h.Note.At = time.Now().UTC()
	}
	return h, s.store.PutNote(h.ID, h.Note)
}
