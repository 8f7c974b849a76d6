package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"netsplit/api/wire"
)

func (s *server) scheduleRoutes() {
	get(s, "/v1/schedules", "list-schedules", "List schedules by name", s.listSchedules)
	get(s, schedulePath, "get-schedule", "Show a schedule", s.getSchedule)
	put(s, schedulePath, "put-schedule", "Make campaigns at a time, or again and again; replaces the schedule of this name", s.putSchedule)
	op := s.api.OpenAPI().Paths[schedulePath].Put
	created := *op.Responses["200"]
	created.Description = "Created: it is new"
	op.Responses["201"] = &created
	huma.Register(s.api, operation(http.MethodDelete, schedulePath, "delete-schedule", "Delete a schedule; its campaigns stay", http.StatusNoContent), s.deleteSchedule)
}

const schedulePath = "/v1/schedules/{name}"

func (s *server) listSchedules(ctx context.Context, _ *none) (*body[wire.Schedules], error) {
	list, err := s.Service.Schedules(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Schedules]{wire.Schedules{Items: wire.All(list, wire.FromSchedule)}}, nil
}

func (s *server) getSchedule(ctx context.Context, in *NameParam) (*body[wire.Schedule], error) {
	c, err := s.Service.Schedule(ctx, in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Schedule]{wire.FromSchedule(c)}, nil
}

type putScheduleInput struct {
	NameParam
	IfMatch
	Body wire.ScheduleSpec
}

type scheduleOutput struct {
	Status int
	Body   wire.Schedule
}

func (s *server) putSchedule(ctx context.Context, in *putScheduleInput) (*scheduleOutput, error) {
	if err := mayPrune(ctx, in.Body.Campaign.Policies); err != nil {
		return nil, err
	}
	c, err := in.Body.Model(in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := unchanged(s, in.IfMatch, func() (*body[wire.Schedule], error) { return s.getSchedule(ctx, &in.NameParam) }); err != nil {
		return nil, err
	}
	c, created, err := s.Service.PutSchedule(ctx, c)
	if err != nil {
		return nil, fromService(err)
	}
	out := &scheduleOutput{Status: http.StatusOK, Body: wire.FromSchedule(c)}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (s *server) deleteSchedule(ctx context.Context, in *struct {
	NameParam
	IfMatch
}) (*struct{}, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := unchanged(s, in.IfMatch, func() (*body[wire.Schedule], error) { return s.getSchedule(ctx, &in.NameParam) }); err != nil {
		return nil, err
	}
	if err := s.Service.DeleteSchedule(ctx, in.Name); err != nil {
		return nil, fromService(err)
	}
	return nil, nil
}
