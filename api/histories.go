package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"netsplit/api/wire"
	"netsplit/model"
)

type historiesInput struct {
	PageParams
	Target string `query:"target" maxLength:"128" doc:"Only those of this target, whatever its release"`
	State  string `query:"state" enum:"new,known,back,gone" doc:"Only those in this state"`
}

func (s *server) listHistories(ctx context.Context, in *historiesInput) (*body[wire.FindingHistories], error) {
	all, err := s.Service.FindingHistories(ctx, in.Target)
	if err != nil {
		return nil, fromService(err)
	}
	from := 0
	if in.Cursor != "" {
		if from = 1 + slices.IndexFunc(all, func(h model.FindingHistory) bool { return h.ID == in.Cursor }); from == 0 {
			return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%q is not the cursor of a page of this list.", in.Cursor))
		}
	}
	out := wire.FindingHistories{Items: []wire.FindingHistory{}}
	for _, h := range all[from:] {
		if in.State != "" && string(h.State) != in.State {
			continue
		}
		if len(out.Items) == min(in.Limit, maxPage) {
			out.Next = out.Items[len(out.Items)-1].ID
			break
		}
		out.Items = append(out.Items, wire.FromHistory(h))
	}
	return &body[wire.FindingHistories]{out}, nil
}

// history is the failure of this id, over all campaigns.
func (s *server) history(ctx context.Context, id string) (h model.FindingHistory, err error) {
	all, err := s.Service.FindingHistories(ctx, "")
	if err != nil {
		return h, err
	}
	i := slices.IndexFunc(all, func(h model.FindingHistory) bool { return h.ID == id })
	if i < 0 {
		return h, fmt.Errorf("failure %q: %w", id, model.ErrNotFound)
	}
	return all[i], nil
}

func (s *server) getHistory(ctx context.Context, in *IDParam) (*body[wire.FindingHistory], error) {
	h, err := s.history(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.FindingHistory]{wire.FromHistory(h)}, nil
}

type noteInput struct {
	IDParam
	IfMatch
	Body wire.FindingNote
}

func (s *server) noteFinding(ctx context.Context, in *noteInput) (*body[wire.FindingHistory], error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := unchanged(s, in.IfMatch, func() (*body[wire.FindingHistory], error) { return s.getHistory(ctx, &in.IDParam) }); err != nil {
		return nil, err
	}
	h, err := s.Service.NoteFinding(ctx, in.ID, in.Body.Text)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.FindingHistory]{wire.FromHistory(h)}, nil
}
