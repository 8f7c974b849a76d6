package api

import (
	"context"
	"net/http"

	"netsplit/api/wire"
	"netsplit/model"
)

const pointsPath = "/v1/campaigns/{id}/points"

func (s *server) pointRoutes() {
	get(s, pointsPath, "list-points", "List the faults that the recorded clean runs of a campaign have a point for", s.listPoints)
	post(s, pointsPath, "try-policies", "Say which of these faults policies keep; nothing is run", http.StatusOK, s.tryPolicies)
}

type pointsInput struct {
	IDParam
	Fault string `query:"fault" enum:"crash,isolate,lose,disk-error,disk-failure,corrupt,power-cut" doc:"Only this kind of fault"`
}

func (s *server) listPoints(ctx context.Context, in *pointsInput) (*body[wire.FaultPoints], error) {
	q := wire.PointsQuery{}
	if in.Fault != "" {
		q.Faults = []string{in.Fault}
	}
	return s.points(ctx, in.ID, q.Model())
}

func (s *server) tryPolicies(ctx context.Context, in *struct {
	IDParam
	Body wire.PointsQuery
}) (*body[wire.FaultPoints], error) {
	return s.points(ctx, in.ID, in.Body.Model())
}

func (s *server) points(ctx context.Context, campaign string, q model.PointsQuery) (*body[wire.FaultPoints], error) {
	p, err := s.Service.Points(ctx, campaign, q)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.FaultPoints]{wire.FromFaultPoints(p)}, nil
}
