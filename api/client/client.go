package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsplit/api/trust"
	"netsplit/api/wire"
	"netsplit/model"
)

// ErrNoDaemon says that nothing listens at the address.
var ErrNoDaemon = errors.New("no netsplit daemon")

// Problem is an error that the daemon answered (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors,omitempty"`
}

// Error is the detail and what was wrong where.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Detail)
	if p.Detail == "" {
		fmt.Fprintf(&b, "the daemon answered %d %s", p.Status, http.StatusText(p.Status))
	}
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", e.Location, e.Message)
	}
	return b.String()
}

// Is matches the kinds of errors of package model by status.
func (p *Problem) Is(target error) bool {
	switch target {
	case model.ErrNotFound:
		return p.Status == http.StatusNotFound
	case model.ErrInvalid:
		return p.Status == http.StatusUnprocessableEntity
	case model.ErrConflict:
		return p.Status == http.StatusConflict
	case model.ErrUnavailable:
		return p.Status == http.StatusServiceUnavailable
	case model.ErrFull:
		return p.Status == http.StatusInsufficientStorage
	}
	return false
}

// Client speaks with one daemon. It may be used by several goroutines.
type Client struct {
	base  string
	where string // what the user knows it as
	token string
	http  *http.Client
}

// retries of a request that got no answer, and the pause before the first.
const (
	retries = 2
	pause   = 200 * time.Millisecond
)

// send sends a request and returns whatever the answer is.
func (c *Client) send(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // its text repeats the address
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("client: %w at %s: start one with netsplit serve, or name another with --api: %w", ErrNoDaemon, c.where, err)
	}
	if unknownAuthority(err) {
		return nil, fmt.Errorf("client: %s: %w: if the daemon made its certificate itself, give the fingerprint that netsplit serve printed with --api-fingerprint", c.where, err)
	}
	if outOfTime(err) {
		return nil, fmt.Errorf("client: %s: %w: nothing was sent: renew the certificate of the daemon (serve --api-cert), or set the clock that is wrong", c.where, err)
	}
	if err != nil {
		return nil, fmt.Errorf("client: %s %s at %s: %w", method, path, c.where, err)
	}
	return res, nil
}

// open sends a request; an answer that is a problem is an error.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	res, err := c.send(ctx, method, path, body, header)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close()
	return nil, c.problem(method, path, res)
}

// problem reads the error that an answer is.
func (c *Client) problem(method, path string, res *http.Response) error {
	p := &Problem{}
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || t != "application/problem+json" || json.Unmarshal(b, p) != nil {
		return fmt.Errorf("client: %s %s: status %d from a server that is not a netsplit daemon: is %s the right address?", method, path, res.StatusCode, c.where)
	}
	return p
}

// call sends and decodes. It repeats a request if the connection broke: a POST with a body has an
// idempotency key, and all others do no harm twice.
func call[O any](ctx context.Context, c *Client, method, path string, in any, wait time.Duration) (O, error) {
	var out O
	var body []byte
	header := http.Header{}
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return out, fmt.Errorf("client: %w", err)
		}
		body = b
		if method == http.MethodPost {
			header.Set("Idempotency-Key", rand.Text())
		}
	}
	if wait > 0 {
		header.Set("Prefer", "wait="+strconv.Itoa(int(wait.Round(time.Second)/time.Second)))
	}
	var res *http.Response
	var err error
	for try := 0; ; try++ {
		res, err = c.open(ctx, method, path, body, header)
		var p *Problem
		if err == nil || errors.As(err, &p) || errors.Is(err, ErrNoDaemon) || errors.Is(err, trust.ErrStranger) || ctx.Err() != nil || try == retries {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause << try):
		}
	}
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("client: %s %s: answer: %w", method, path, err)
	}
	return out, nil
}

func get[O any](ctx context.Context, c *Client, path string) (O, error) {
	return call[O](ctx, c, http.MethodGet, path, nil, 0)
}

// stream opens what is no JSON; whoever asked closes it.
func (c *Client) stream(ctx context.Context, method, path string) (io.ReadCloser, error) {
	res, err := c.open(ctx, method, path, nil, http.Header{})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// remove deletes what is at a path; the answer says nothing.
func (c *Client) remove(ctx context.Context, path string) error {
	res, err := c.open(ctx, http.MethodDelete, path, nil, http.Header{})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// query appends the parameters that are not empty.
func query(path string, kv ...string) string {
	q := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] != "" {
			q.Set(kv[i], kv[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func id(s string) string { return url.PathEscape(s) }

// CreateCampaign starts a campaign. With wait > 0 it waits up to that long
// (at most 60 s) for its end.
func (c *Client) CreateCampaign(ctx context.Context, spec wire.CampaignSpec, wait time.Duration) (wire.Campaign, error) {
	return call[wire.Campaign](ctx, c, http.MethodPost, "/v1/campaigns", spec, wait)
}

// Query asks the record of a run with SQL.
func (c *Client) Query(ctx context.Context, run string, q wire.Query) (wire.QueryResult, error) {
	return call[wire.QueryResult](ctx, c, http.MethodPost, "/v1/runs/"+id(run)+"/query", q, 0)
}

// Points says which single faults a search could make at points of a campaign's clean runs, and
// which of them policies keep.
func (c *Client) Points(ctx context.Context, campaign string, q wire.PointsQuery) (wire.FaultPoints, error) {
	return call[wire.FaultPoints](ctx, c, http.MethodPost, "/v1/campaigns/"+id(campaign)+"/points", q, 0)
}

// PutSchedule makes a schedule, or replaces the one of its name.
func (c *Client) PutSchedule(ctx context.Context, name string, spec wire.ScheduleSpec) (wire.Schedule, error) {
	return call[wire.Schedule](ctx, c, http.MethodPut, "/v1/schedules/"+id(name), spec, 0)
}

// Schedule shows a schedule.
func (c *Client) Schedule(ctx context.Context, name string) (wire.Schedule, error) {
	return get[wire.Schedule](ctx, c, "/v1/schedules/"+id(name))
}

// Schedules lists all schedules by name.
func (c *Client) Schedules(ctx context.Context) ([]wire.Schedule, error) {
	out, err := get[wire.Schedules](ctx, c, "/v1/schedules")
	return out.Items, err
}

// DeleteSchedule deletes a schedule; its campaigns stay.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	return c.remove(ctx, "/v1/schedules/"+id(name))
}

// Campaign shows a campaign.
func (c *Client) Campaign(ctx context.Context, campaign string) (wire.Campaign, error) {
	return get[wire.Campaign](ctx, c, "/v1/campaigns/"+id(campaign))
}

func num(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// CancelCampaign asks a campaign to stop.
func (c *Client) CancelCampaign(ctx context.Context, campaign string) (wire.Campaign, error) {
	return call[wire.Campaign](ctx, c, http.MethodDelete, "/v1/campaigns/"+id(campaign), nil, 0)
}

// Compare compares the findings of a campaign with those of an earlier one; before "" is the
// last one like it.
func (c *Client) Compare(ctx context.Context, campaign, before string) (wire.Comparison, error) {
	return get[wire.Comparison](ctx, c, query("/v1/campaigns/"+id(campaign)+"/comparison", "before", before))
}

// Prune deletes records of runs by age and size.
func (c *Client) Prune(ctx context.Context, r wire.Retention) (wire.Pruned, error) {
	return call[wire.Pruned](ctx, c, http.MethodPost, "/v1/store/prune", r, 0)
}

// Backup opens a copy of the daemon's store.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodPost, "/v1/store/backup")
}

// PauseCampaign asks a campaign to stop until it is resumed. With wait > 0 it waits up to that
// long (at most 60 s) until it has.
func (c *Client) PauseCampaign(ctx context.Context, campaign string, wait time.Duration) (wire.Campaign, error) {
	return call[wire.Campaign](ctx, c, http.MethodPost, "/v1/campaigns/"+id(campaign)+"/pause", nil, wait)
}

// ResumeCampaign goes on with a campaign that is paused or failed.
func (c *Client) ResumeCampaign(ctx context.Context, campaign string) (wire.Campaign, error) {
	return call[wire.Campaign](ctx, c, http.MethodPost, "/v1/campaigns/"+id(campaign)+"/resume", nil, 0)
}

// Campaigns lists one page of campaigns, newest first.
func (c *Client) Campaigns(ctx context.Context, f wire.CampaignFilter, limit int, cursor string) (wire.Campaigns, error) {
	return get[wire.Campaigns](ctx, c, query("/v1/campaigns", "target", f.Target, "state", f.State, "schedule", f.Schedule, "limit", num(limit), "cursor", cursor))
}

// Runs lists one page of runs: the newest campaign's first, and of each the last one
// started first.
func (c *Client) Runs(ctx context.Context, f wire.RunFilter, limit int, cursor string) (wire.Runs, error) {
	return get[wire.Runs](ctx, c, query("/v1/runs", "campaign", f.Campaign, "target", f.Target, "strategy", f.Strategy, "verdict", f.Verdict, "limit", num(limit), "cursor", cursor))
}

// PartitionMap says which messages the faults of a campaign met, and how those runs ended.
func (c *Client) PartitionMap(ctx context.Context, campaign string) (wire.PartitionMap, error) {
	return get[wire.PartitionMap](ctx, c, "/v1/campaigns/"+id(campaign)+"/map")
}

// MinedPairs says of each pair of variables in a campaign's clean runs why it is an invariant or
// not; about narrows them to pairs that contain this text.
func (c *Client) MinedPairs(ctx context.Context, campaign, about string) (wire.MinedPairs, error) {
	return get[wire.MinedPairs](ctx, c, query("/v1/campaigns/"+id(campaign)+"/pairs", "about", about))
}

// Account says what became of all that a search could have run.
func (c *Client) Account(ctx context.Context, campaign string) (model.Account, error) {
	return get[model.Account](ctx, c, "/v1/campaigns/"+id(campaign)+"/account")
}

// Causes lists one page of the causes of a campaign's failed runs, the costliest first.
func (c *Client) Causes(ctx context.Context, campaign string, limit int, cursor string) (wire.Causes, error) {
	return get[wire.Causes](ctx, c, query("/v1/campaigns/"+id(campaign)+"/causes", "limit", num(limit), "cursor", cursor))
}

// Cause shows a cause of a campaign's failed runs, with all of them.
func (c *Client) Cause(ctx context.Context, campaign, cause string) (wire.Cause, error) {
	return get[wire.Cause](ctx, c, "/v1/campaigns/"+id(campaign)+"/causes/"+id(cause))
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, run string) (wire.Run, error) {
	return get[wire.Run](ctx, c, "/v1/runs/"+id(run))
}

// JudgeRun has the daemon judge the record of a run again.
func (c *Client) JudgeRun(ctx context.Context, run string) (wire.Run, error) {
	return call[wire.Run](ctx, c, http.MethodPost, "/v1/runs/"+id(run)+"/judgement", nil, 0)
}

// LiveState is what a run under way shows, with its events after the given number.
func (c *Client) LiveState(ctx context.Context, run string, after uint64) (wire.LiveState, error) {
	return get[wire.LiveState](ctx, c, "/v1/runs/"+id(run)+"/live?after="+strconv.FormatUint(after, 10))
}

// RunFile opens a file of a run's record, such as packets.pcapng.
func (c *Client) RunFile(ctx context.Context, run, name string) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/v1/runs/"+id(run)+"/files/"+id(name))
}

// Report opens the report of a run: HTML.
func (c *Client) Report(ctx context.Context, run string) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/v1/runs/"+id(run)+"/report")
}

// CampaignReport opens the report of a campaign: HTML.
func (c *Client) CampaignReport(ctx context.Context, campaign string) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/v1/campaigns/"+id(campaign)+"/report")
}

// RunLogs lists what processes of a run printed, and their log files.
func (c *Client) RunLogs(ctx context.Context, run string) ([]model.LogFile, error) {
	out, err := get[wire.LogFiles](ctx, c, "/v1/runs/"+id(run)+"/logs")
	return out.Items, err
}

// RunLog opens one of them.
func (c *Client) RunLog(ctx context.Context, run, name string) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, query("/v1/runs/"+id(run)+"/log", "name", name))
}

// Runners lists the runners that have joined.
func (c *Client) Runners(ctx context.Context) ([]wire.Runner, error) {
	out, err := get[wire.Runners](ctx, c, "/v1/runners")
	return out.Items, err
}

// ExportRun opens the record of a run in a format of another tool.
func (c *Client) ExportRun(ctx context.Context, run string, f model.ExportFormat) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/v1/runs/"+id(run)+"/export/"+string(f))
}

// Findings lists one page of the findings of a campaign, or of all if that is
// "", newest first.
func (c *Client) Findings(ctx context.Context, campaign string, limit int, cursor string) (wire.Findings, error) {
	return get[wire.Findings](ctx, c, query("/v1/findings", "campaign", campaign, "limit", num(limit), "cursor", cursor))
}

// FindingHistories lists one page of failures over all campaigns.
func (c *Client) FindingHistories(ctx context.Context, target, state string, limit int, cursor string) (wire.FindingHistories, error) {
	return get[wire.FindingHistories](ctx, c, query("/v1/finding-histories", "target", target, "state", state, "limit", num(limit), "cursor", cursor))
}

// FindingHistory shows a failure over all campaigns.
func (c *Client) FindingHistory(ctx context.Context, history string) (wire.FindingHistory, error) {
	return get[wire.FindingHistory](ctx, c, "/v1/finding-histories/"+id(history))
}

// NoteFinding writes a note about a failure; "" forgets it.
func (c *Client) NoteFinding(ctx context.Context, history, text string) (wire.FindingHistory, error) {
	return call[wire.FindingHistory](ctx, c, http.MethodPut, "/v1/finding-histories/"+id(history)+"/note", wire.FindingNote{Text: text}, 0)
}

// Finding shows a finding.
func (c *Client) Finding(ctx context.Context, finding string) (wire.Finding, error) {
	return get[wire.Finding](ctx, c, "/v1/findings/"+id(finding))
}

// Invariants lists those of a target, or of all if that is "".
func (c *Client) Invariants(ctx context.Context, target string) ([]wire.Invariant, error) {
	out, err := get[wire.Invariants](ctx, c, query("/v1/invariants", "target", target))
	return out.Items, err
}

// Invariant shows one; an empty target stands for the only one that has it.
func (c *Client) Invariant(ctx context.Context, target, invariant string) (wire.Invariant, error) {
	return get[wire.Invariant](ctx, c, query("/v1/invariants/"+id(invariant), "target", target))
}

// SetInvariant pins, drops or releases an invariant; an empty target stands
// for the only one that has it.
func (c *Client) SetInvariant(ctx context.Context, target, invariant, status string) (wire.Invariant, error) {
	return call[wire.Invariant](ctx, c, http.MethodPut, query("/v1/invariants/"+id(invariant), "target", target), wire.InvariantChange{Status: status}, 0)
}

// PinInvariant pins an invariant of a target that is written down: two variables.
func (c *Client) PinInvariant(ctx context.Context, target, text string) (wire.Invariant, error) {
	return call[wire.Invariant](ctx, c, http.MethodPost, "/v1/invariants", wire.InvariantText{Target: target, Text: text}, 0)
}

// Examine has the daemon examine its testbed, which takes seconds for each
// switch.
func (c *Client) Examine(ctx context.Context) (model.Diagnosis, error) {
	return call[model.Diagnosis](ctx, c, http.MethodPost, "/v1/diagnosis", nil, 0)
}

// CreatePartition cuts manually. With wait > 0 it waits up to that long (at
// most 60 s) until the cut is proved.
func (c *Client) CreatePartition(ctx context.Context, spec wire.PartitionSpec, wait time.Duration) (wire.PartitionStatus, error) {
	return call[wire.PartitionStatus](ctx, c, http.MethodPost, "/v1/partitions", spec, wait)
}

// Partition shows a partition.
func (c *Client) Partition(ctx context.Context, name string) (wire.PartitionStatus, error) {
	return get[wire.PartitionStatus](ctx, c, "/v1/partitions/"+id(name))
}

// Partitions lists one page of the manual partitions, newest first; cursor is
// "" or Next of the page before.
func (c *Client) Partitions(ctx context.Context, limit int, cursor string) (wire.Partitions, error) {
	return get[wire.Partitions](ctx, c, query("/v1/partitions", "limit", num(limit), "cursor", cursor))
}

// DeletePartition heals a partition. With wait > 0 it waits up to that long
// (at most 60 s) until that is proved.
func (c *Client) DeletePartition(ctx context.Context, name string, wait time.Duration) (wire.PartitionStatus, error) {
	return call[wire.PartitionStatus](ctx, c, http.MethodDelete, "/v1/partitions/"+id(name), nil, wait)
}

// Reset heals everything and returns, after proof, what it healed.
func (c *Client) Reset(ctx context.Context) ([]string, error) {
	out, err := call[wire.Reset](ctx, c, http.MethodPost, "/v1/reset", nil, 0)
	return out.Healed, err
}

// AccessPage makes an address that opens the page in a browser, once; with controls, to
// operate, too; with start, also to start campaigns.
func (c *Client) AccessPage(ctx context.Context, controls, start bool) (wire.AccessPage, error) {
	path := "/v1/access/page"
	switch {
	case start:
		path += "?start=true"
	case controls:
		path += "?controls=true"
	}
	return call[wire.AccessPage](ctx, c, http.MethodPost, path, nil, 0)
}

// ReadToken gives the token that allows reading; with another, a new one.
func (c *Client) ReadToken(ctx context.Context, another bool) (string, error) {
	path := "/v1/access/read-token"
	if another {
		path += "?new=true"
	}
	t, err := call[wire.AccessToken](ctx, c, http.MethodPost, path, nil, 0)
	return t.Token, err
}
