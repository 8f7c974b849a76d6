package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"netsplit/api/wire"
	"netsplit/model"
)

// PageParams, IDParam, NameParam and RetryHeaders are parameters that several
// operations share; they are exported because huma reads embedded structs only
// if they are.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Maximum number of elements; a page has 200 at most"`
	Cursor string `query:"cursor" minLength:"1" maxLength:"4096" doc:"next of the page before"`
}

// IDParam names what the path is about.
type IDParam struct {
	ID string `path:"id" pattern:"^[a-z0-9-]{1,128}$"`
}

// NameParam names the partition that the path is about.
type NameParam struct {
	Name string `path:"name" pattern:"^[a-z0-9-]{1,63}$"`
}

// Answers that may be the outcome (200) or a promise of it (202).
type campaignOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     wire.Campaign
}

type partitionOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     wire.PartitionStatus
}

type campaignsInput struct {
	wire.CampaignFilter
	PageParams
}

func (s *server) listCampaigns(ctx context.Context, in *campaignsInput) (*body[wire.Campaigns], error) {
	list, next, err := s.Service.Campaigns(ctx, in.CampaignFilter.Model(), in.Limit, in.Cursor)
	if err != nil {
		return nil, fromService(err)
	}
	for i := range list {
		list[i].Shrunk = nil
		if f := list[i].Spec.Script; f != nil {
			list[i].Spec.Script = &model.ScriptFile{Name: f.Name}
		}
	}
	return &body[wire.Campaigns]{wire.Campaigns{Items: wire.All(list, wire.FromCampaign), Next: next}}, nil
}

func (s *server) getCampaign(ctx context.Context, in *IDParam) (*body[wire.Campaign], error) {
	c, err := s.Service.Campaign(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Campaign]{wire.FromCampaign(c)}, nil
}

func campaignEnded(s string) bool {
	switch model.CampaignState(s) {
	case model.CampaignDone, model.CampaignCancelled, model.CampaignFailed:
		return true
	}
	return false
}

func campaignAnswer(c wire.Campaign, is func(state string) bool) *campaignOutput {
	out := &campaignOutput{Status: http.StatusAccepted, Location: "/v1/campaigns/" + c.ID, Body: c}
	if is(c.State) {
		out.Status = http.StatusOK
	}
	return out
}

type createCampaignInput struct {
	RetryHeaders
	Body wire.CampaignSpec
}

func (s *server) createCampaign(ctx context.Context, in *createCampaignInput) (*campaignOutput, error) {
	if in.Body.Target == "" && in.Body.Replay == "" && in.Body.Script == nil {
		return nil, newProblem(http.StatusUnprocessableEntity, "Name the target, a run to replay, or a script.",
			&huma.ErrorDetail{Location: "body.target", Message: "required unless replay or script is set"})
	}
	if err := mayPrune(ctx, in.Body.Policies); err != nil {
		return nil, err
	}
	c, err := once(s, in.RetryHeaders, "create-campaign", in.Body, func() (wire.Campaign, error) {
		spec, err := in.Body.Model()
		if err != nil {
			return wire.Campaign{}, err
		}
		c, err := s.Service.CreateCampaign(ctx, spec)
		return wire.FromCampaign(c), err
	})
	if err != nil {
		return nil, err
	}
	return s.campaignOutcome(ctx, in.Prefer, c, campaignEnded)
}

// campaignOutcome waits for a state of a campaign as long as the client wants.
func (s *server) campaignOutcome(ctx context.Context, prefer string, c wire.Campaign, is func(state string) bool) (*campaignOutput, error) {
	c, err := wait(ctx, prefer, c, func(c wire.Campaign) bool { return is(c.State) }, func() (wire.Campaign, error) {
		m, err := s.Service.Campaign(ctx, c.ID)
		return wire.FromCampaign(m), err
	})
	if err != nil {
		return nil, err
	}
	return campaignAnswer(c, is), nil
}

type campaignActionInput struct {
	IDParam
	RetryHeaders
}

func (s *server) pauseCampaign(ctx context.Context, in *campaignActionInput) (*campaignOutput, error) {
	c, err := once(s, in.RetryHeaders, "pause-campaign", in.ID, func() (wire.Campaign, error) {
		c, err := s.Service.PauseCampaign(ctx, in.ID)
		return wire.FromCampaign(c), err
	})
	if err != nil {
		return nil, err
	}
	return s.campaignOutcome(ctx, in.Prefer, c, stopped)
}

// stopped says whether a campaign is under way no more.
func stopped(state string) bool {
	return campaignEnded(state) || model.CampaignState(state) == model.CampaignPaused
}

func (s *server) resumeCampaign(ctx context.Context, in *campaignActionInput) (*campaignOutput, error) {
	c, err := once(s, in.RetryHeaders, "resume-campaign", in.ID, func() (wire.Campaign, error) {
		c, err := s.Service.ResumeCampaign(ctx, in.ID)
		return wire.FromCampaign(c), err
	})
	if err != nil {
		return nil, err
	}
	return s.campaignOutcome(ctx, in.Prefer, c, campaignEnded)
}

func (s *server) cancelCampaign(ctx context.Context, in *IDParam) (*campaignOutput, error) {
	c, err := s.Service.CancelCampaign(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return campaignAnswer(wire.FromCampaign(c), campaignEnded), nil
}

type campaignRunsInput struct {
	IDParam
	PageParams
}

func (s *server) listCampaignRuns(ctx context.Context, in *campaignRunsInput) (*body[wire.Runs], error) {
	return s.runs(ctx, model.RunFilter{Campaign: in.ID}, in.PageParams)
}

type runsInput struct {
	wire.RunFilter
	PageParams
}

func (s *server) listRuns(ctx context.Context, in *runsInput) (*body[wire.Runs], error) {
	return s.runs(ctx, in.RunFilter.Model(), in.PageParams)
}

func (s *server) runs(ctx context.Context, f model.RunFilter, p PageParams) (*body[wire.Runs], error) {
	list, next, err := s.Service.Runs(ctx, f, p.Limit, p.Cursor)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Runs]{wire.Runs{Items: wire.All(list, wire.FromRunRow), Next: next}}, nil
}

func (s *server) getRun(ctx context.Context, in *IDParam) (*body[wire.Run], error) {
	r, err := s.Service.Run(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Run]{wire.FromRun(r)}, nil
}

func (s *server) judgeRun(ctx context.Context, in *IDParam) (*body[wire.Run], error) {
	r, err := s.Service.JudgeRun(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Run]{wire.FromRun(r)}, nil
}

type liveInput struct {
	IDParam
	After uint64 `query:"after" doc:"Number of the last event that you saw; 0 or absent: all that are kept"`
}

func (s *server) liveState(ctx context.Context, in *liveInput) (*body[wire.LiveState], error) {
	l, err := s.Service.LiveState(ctx, in.ID, in.After)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.LiveState]{wire.FromLiveState(l)}, nil
}

type queryInput struct {
	IDParam
	wire.Query
}

func (s *server) queryRun(ctx context.Context, in *queryInput) (*body[wire.QueryResult], error) {
	return s.query(ctx, in.ID, in.Query)
}

type queryLongInput struct {
	IDParam
	Body wire.Query
}

func (s *server) queryRunLong(ctx context.Context, in *queryLongInput) (*body[wire.QueryResult], error) {
	return s.query(ctx, in.ID, in.Body)
}

func (s *server) query(ctx context.Context, id string, q wire.Query) (*body[wire.QueryResult], error) {
	r, err := s.Service.QueryRun(ctx, id, q.SQL, q.Limit)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.QueryResult]{wire.FromQueryResult(r)}, nil
}

type findingsInput struct {
	Campaign string `query:"campaign" pattern:"^[a-z0-9-]{1,128}$" doc:"Only those of this campaign"`
	PageParams
}

func (s *server) listFindings(ctx context.Context, in *findingsInput) (*body[wire.Findings], error) {
	list, next, err := s.Service.Findings(ctx, in.Campaign, in.Limit, in.Cursor)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Findings]{wire.Findings{Items: wire.All(list, wire.FromFinding), Next: next}}, nil
}

func (s *server) getFinding(ctx context.Context, in *IDParam) (*body[wire.Finding], error) {
	f, err := s.Service.Finding(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Finding]{wire.FromFinding(f)}, nil
}

type switchesInput struct {
	Brief bool `query:"brief" doc:"Without hardware, software, ports and flows: nothing is asked of the switches"`
}

func (s *server) listSwitches(ctx context.Context, in *switchesInput) (*body[wire.Switches], error) {
	list, err := s.Service.Switches(ctx, !in.Brief)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Switches]{wire.Switches{Items: wire.All(list, wire.FromSwitch)}}, nil
}

func (s *server) listRunners(ctx context.Context, _ *none) (*body[wire.Runners], error) {
	list, err := s.Service.Runners(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Runners]{wire.Runners{Items: wire.All(list, wire.FromRunner)}}, nil
}

func (s *server) listHosts(ctx context.Context, _ *none) (*body[wire.Hosts], error) {
	list, err := s.Service.Hosts(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Hosts]{wire.Hosts{Items: wire.All(list, wire.FromHost)}}, nil
}

func (s *server) listPartitions(ctx context.Context, in *PageParams) (*body[wire.Partitions], error) {
	list, next, err := s.Service.Partitions(ctx, in.Limit, in.Cursor)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Partitions]{wire.Partitions{Items: wire.All(list, wire.FromPartition), Next: next}}, nil
}

func (s *server) getPartition(ctx context.Context, in *NameParam) (*body[wire.PartitionStatus], error) {
	p, err := s.Service.Partition(ctx, in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.PartitionStatus]{wire.FromPartition(p)}, nil
}

func partitionAnswer(p wire.PartitionStatus, settled bool) *partitionOutput {
	out := &partitionOutput{Status: http.StatusAccepted, Location: "/v1/partitions/" + p.Name, Body: p}
	if settled {
		out.Status = http.StatusOK
	}
	return out
}

type createPartitionInput struct {
	RetryHeaders
	Body wire.PartitionSpec
}

func (s *server) createPartition(ctx context.Context, in *createPartitionInput) (*partitionOutput, error) {
	p, err := once(s, in.RetryHeaders, "create-partition", in.Body, func() (wire.PartitionStatus, error) {
		p, err := s.Service.CreatePartition(ctx, in.Body.Model())
		return wire.FromPartition(p), err
	})
	if err != nil {
		return nil, err
	}
	return s.decidedPartition(ctx, p, in.Prefer)
}

// decidedPartition answers with a partition; it waits for its proof if that is preferred.
func (s *server) decidedPartition(ctx context.Context, p wire.PartitionStatus, prefer string) (*partitionOutput, error) {
	decided := func(p wire.PartitionStatus) bool { return model.PartitionState(p.State) != model.PartitionRequested }
	p, err := wait(ctx, prefer, p, decided, func() (wire.PartitionStatus, error) {
		m, err := s.Service.Partition(ctx, p.Name)
		return wire.FromPartition(m), err
	})
	if err != nil {
		return nil, err
	}
	return partitionAnswer(p, decided(p)), nil
}

type putPartitionInput struct {
	NameParam
	Prefer string `header:"Prefer" maxLength:"100" doc:"wait=N waits up to N seconds (at most 60) for the outcome (RFC 7240)"`
	Body   wire.PartitionSpec
}

// putPartition needs no idempotency key: it is idempotent.
func (s *server) putPartition(ctx context.Context, in *putPartitionInput) (*partitionOutput, error) {
	spec := in.Body.Model()
	if spec.Name != "" && spec.Name != in.Name {
		return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("The path names partition %q, the body %q: leave out the name in the body.", in.Name, spec.Name))
	}
	spec.Name = in.Name
	m, err := s.Service.EnsurePartition(ctx, spec)
	if err != nil {
		return nil, fromService(err)
	}
	return s.decidedPartition(ctx, wire.FromPartition(m), in.Prefer)
}

type deletePartitionInput struct {
	NameParam
	Prefer string `header:"Prefer" maxLength:"100" doc:"wait=N waits up to N seconds (at most 60) for the outcome (RFC 7240)"`
}

func (s *server) deletePartition(ctx context.Context, in *deletePartitionInput) (*partitionOutput, error) {
	m, err := s.Service.DeletePartition(ctx, in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	ended := func(p wire.PartitionStatus) bool {
		st := model.PartitionState(p.State)
		return st == model.PartitionHealed || st == model.PartitionFailed
	}
	p, err := wait(ctx, in.Prefer, wire.FromPartition(m), ended, func() (wire.PartitionStatus, error) {
		m, err := s.Service.Partition(ctx, in.Name)
		return wire.FromPartition(m), err
	})
	if err != nil {
		return nil, err
	}
	return partitionAnswer(p, ended(p)), nil
}

func (s *server) reset(ctx context.Context, _ *none) (*body[wire.Reset], error) {
	names, err := s.Service.Reset(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	if names == nil {
		names = []string{}
	}
	return &body[wire.Reset]{wire.Reset{Healed: names}}, nil
}

func (s *server) examine(ctx context.Context, _ *none) (*body[model.Diagnosis], error) {
	d, err := s.Service.Diagnose(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[model.Diagnosis]{d}, nil
}

type annotationsInput struct {
	From int64 `query:"from" minimum:"0" maximum:"9000000000000" doc:"Milliseconds since 1970; absent: one hour before to"`
	To   int64 `query:"to" minimum:"0" maximum:"9000000000000" doc:"Milliseconds since 1970; absent: now"`

	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"500" doc:"Maximum number of cuts, the last ones; if there are more, the first element says so"`
}

func (s *server) listAnnotations(ctx context.Context, in *annotationsInput) (*body[[]wire.Annotation], error) {
	to := s.Now()
	if in.To != 0 {
		to = time.UnixMilli(in.To)
	}
	from := to.Add(-time.Hour)
	if in.From != 0 {
		from = time.UnixMilli(in.From)
	}
	if to.Before(from) {
		return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("from (%d) is after to (%d): swap them", from.UnixMilli(), to.UnixMilli()))
	}
	list, more, err := s.Service.Annotations(ctx, from, to, in.Limit)
	if err != nil {
		return nil, fromService(err)
	}
	if more && len(list) > 0 {
		list = append([]model.Annotation{{From: from, To: list[0].From, Title: "older cuts are not shown",
			Text: fmt.Sprintf("this span has more than %d cuts: request a shorter one", len(list)), Tags: []string{"not-shown"}}}, list...)
	}
	return &body[[]wire.Annotation]{wire.All(list, func(a model.Annotation) wire.Annotation { return wire.FromAnnotation(a, to) })}, nil
}
