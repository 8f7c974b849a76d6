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
	get(s, "/v1/campaigns/{id}/pairs", "list-mined-pairs", "Say of each pair of variables in a campaign's clean runs why it is an invariant or not", s.minedPairs)
	get(s, "/v1/campaigns/{id}/account", "get-account", "Say what became of all that a search could have run: run, pruned and why, or given up", s.account)
	post(s, pointsPath, "try-policies", "Say which of these faults policies keep; nothing is run", http.StatusOK, s.tryPolicies)
}

func (s *server) minedPairs(ctx context.Context, in *struct {
	IDParam
	About string `query:"about" maxLength:"256" doc:"Only pairs that contain this text, such as a variable's name"`
}) (*body[wire.MinedPairs], error) {
	p, err := s.Service.MinedPairs(ctx, in.ID, in.About)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.MinedPairs]{wire.FromMinedPairs(p)}, nil
}

func (s *server) account(ctx context.Context, in *IDParam) (*body[model.Account], error) {
	a, err := s.Service.Account(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[model.Account]{a}, nil
}

type pointsInput struct {
	IDParam
	Fault string `query:"fault" enum:"crash,isolate,lose,silence,partial,isolate-with-client,isolate-leader,lose-answer,isolate-period,neat,isolate-both,pause,disk-error,disk-failure,corrupt,power-cut,disk,torn,crash-all,power-cut-all,shift-crash,shift-power-cut" doc:"Only this kind of faults, or those that the name stands for"`
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
	if err := mayPrune(ctx, in.Body.Policies); err != nil {
		return nil, err
	}
	return s.points(ctx, in.ID, in.Body.Model())
}

func (s *server) points(ctx context.Context, campaign string, q model.PointsQuery) (*body[wire.FaultPoints], error) {
	p, err := s.Service.Points(ctx, campaign, q)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.FaultPoints]{wire.FromFaultPoints(p)}, nil
}
