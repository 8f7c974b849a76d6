package api

import (
	"context"

	"netsplit/api/wire"
	"netsplit/model"
)

type targetInput struct {
	Target string `query:"target" minLength:"1" maxLength:"1024" doc:"Only those of this target"`
}

func (s *server) listInvariants(ctx context.Context, in *targetInput) (*body[wire.Invariants], error) {
	list, err := s.Service.Invariants(ctx, in.Target)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Invariants]{wire.Invariants{Items: wire.All(list, wire.FromInvariant)}}, nil
}

// InvariantParam names an invariant.
type InvariantParam struct {
	IDParam
	Target string `query:"target" minLength:"1" maxLength:"1024" doc:"Required if more than one target has an invariant of this id"`
}

func (s *server) getInvariant(ctx context.Context, in *InvariantParam) (*body[wire.Invariant], error) {
	i, err := s.Service.Invariant(ctx, in.Target, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Invariant]{wire.FromInvariant(i)}, nil
}

type setInvariantInput struct {
	InvariantParam
	IfMatch
	Body wire.InvariantChange
}

func (s *server) setInvariant(ctx context.Context, in *setInvariantInput) (*body[wire.Invariant], error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := unchanged(s, in.IfMatch, func() (*body[wire.Invariant], error) { return s.getInvariant(ctx, &in.InvariantParam) }); err != nil {
		return nil, err
	}
	i, err := s.Service.SetInvariant(ctx, in.Target, in.ID, model.InvariantStatus(in.Body.Status))
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Invariant]{wire.FromInvariant(i)}, nil
}

type pinInvariantInput struct{ Body wire.InvariantText }

func (s *server) pinInvariant(ctx context.Context, in *pinInvariantInput) (*body[wire.Invariant], error) {
	i, err := s.Service.PinInvariant(ctx, in.Body.Target, in.Body.Text)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Invariant]{wire.FromInvariant(i)}, nil
}
