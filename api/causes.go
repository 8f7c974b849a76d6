package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"netsplit/api/wire"
	"netsplit/model"
)

// maxPage bounds the causes on a page.
const maxPage = 200

type causesInput struct {
	IDParam
	PageParams
}

func (s *server) listCauses(ctx context.Context, in *causesInput) (*body[wire.Causes], error) {
	all, err := s.Service.Causes(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	from := 0
	if in.Cursor != "" {
		if from = 1 + slices.IndexFunc(all, func(c model.Cause) bool { return c.ID == in.Cursor }); from == 0 {
			return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%q is not the cursor of a page of causes of campaign %s.", in.Cursor, in.ID))
		}
	}
	out := wire.Causes{Items: []wire.Cause{}}
	for _, c := range all[from:] {
		if len(out.Items) == min(in.Limit, maxPage) {
			out.Next = out.Items[len(out.Items)-1].ID
			break
		}
		c.Runs = nil
		out.Items = append(out.Items, wire.FromCause(c))
	}
	return &body[wire.Causes]{out}, nil
}

func (s *server) getMap(ctx context.Context, in *IDParam) (*body[wire.PartitionMap], error) {
	m, err := s.Service.PartitionMap(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.PartitionMap]{wire.FromPartitionMap(m)}, nil
}

type pruneInput struct {
	Body wire.Retention
}

func (s *server) prune(ctx context.Context, in *pruneInput) (*body[wire.Pruned], error) {
	out, err := s.Service.Prune(ctx, in.Body.Model())
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Pruned]{wire.FromPruned(out)}, nil
}

type compareInput struct {
	IDParam
	Before string `query:"before" pattern:"^[a-z0-9-]{1,128}$" doc:"The earlier campaign; absent: the last one that was done on the same target, with the same strategy and settings"`
}

func (s *server) compare(ctx context.Context, in *compareInput) (*body[wire.Comparison], error) {
	c, err := s.Service.Compare(ctx, in.ID, in.Before)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Comparison]{wire.FromComparison(c)}, nil
}

type causeInput struct {
	IDParam
	Cause string `path:"cause" pattern:"^[a-z0-9-]{1,128}$"`
}

func (s *server) getCause(ctx context.Context, in *causeInput) (*body[wire.Cause], error) {
	all, err := s.Service.Causes(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	i := slices.IndexFunc(all, func(c model.Cause) bool { return c.ID == in.Cause })
	if i < 0 {
		return nil, fromService(fmt.Errorf("%w: campaign %s has no cause %s", model.ErrNotFound, in.ID, in.Cause))
	}
	return &body[wire.Cause]{wire.FromCause(all[i])}, nil
}
