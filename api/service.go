package api

import (
	"context"
	"os"
	"time"

	"netsplit/model"
)

// Service is what the API serves. Its errors wrap model.ErrNotFound (404),
// model.ErrInvalid (422), model.ErrConflict (409), model.ErrUnavailable (503),
// model.ErrFull (507) or model.ErrDamaged (500); any other is a 500. The text
// of the error goes to the user: it says what failed, why, and what to do.
//
// Lists take a limit (0: the service's default) and a cursor, "" or the one
// that came with the page before, and return the cursor of the next page, ""
// on the last.
type Service interface {
	// CreateCampaign queues a campaign and returns at once.
	CreateCampaign(ctx context.Context, spec model.CampaignSpec) (model.Campaign, error)
	Campaign(ctx context.Context, id string) (model.Campaign, error)
	// Campaigns lists the newest first.
	Campaigns(ctx context.Context, f model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error)
	// CancelCampaign asks a campaign to stop. It is no error if it has ended.
	CancelCampaign(ctx context.Context, id string) (model.Campaign, error)
	// PauseCampaign asks a campaign that is queued or running to stop until it is resumed.
	// It leaves one that is paused as it is; one that has ended is a conflict.
	PauseCampaign(ctx context.Context, id string) (model.Campaign, error)
	// ResumeCampaign queues a campaign that is paused or failed, to continue where it was.
	// It leaves one that is queued or running as it is; one that is done or cancelled is
	// a conflict.
	ResumeCampaign(ctx context.Context, id string) (model.Campaign, error)

	// PutSchedule makes a schedule, or replaces the one of its name. created: it is new.
	PutSchedule(ctx context.Context, c model.Schedule) (_ model.Schedule, created bool, err error)
	Schedule(ctx context.Context, name string) (model.Schedule, error)
	// Schedules lists all by name.
	Schedules(ctx context.Context) ([]model.Schedule, error)
	DeleteSchedule(ctx context.Context, name string) error

	// Runs lists the newest campaign's first, and of each the last one started first. A
	// campaign of the filter that does not exist is ErrNotFound.
	Runs(ctx context.Context, f model.RunFilter, limit int, cursor string) ([]model.RunRow, string, error)
	Run(ctx context.Context, id string) (model.RunSummary, error)
	// JudgeRun judges the record of a run again, and brings its campaign's findings up to
	// date. A run whose campaign is queued or under way, or that was cut short, is a conflict.
	JudgeRun(ctx context.Context, id string) (model.RunSummary, error)
	// LiveState is what a run under way shows; of its events it has those after the given
	// number. A run that has ended is a conflict.
	LiveState(ctx context.Context, id string, after uint64) (model.LiveState, error)
	// RunFile opens a file of the run's directory; the name is one of RunFiles.
	// A file that is not regular, or that a link leads to, is a conflict.
	RunFile(ctx context.Context, id, name string) (*os.File, error)

	// RunLogs lists what processes of a run printed and their log files, by name.
	RunLogs(ctx context.Context, id string) ([]model.LogFile, error)
	// RunLog opens one of them; it refuses what RunFile refuses.
	RunLog(ctx context.Context, id, name string) (*os.File, error)

	// CampaignReport opens the report of a campaign, of one under way as far as it got. It
	// refuses what RunFile refuses.
	CampaignReport(ctx context.Context, id string) (*os.File, error)

	// Compare compares the findings of a campaign with those of an earlier one on the same
	// target; before "" is the last one like it that was done.
	Compare(ctx context.Context, campaign, before string) (model.Comparison, error)

	// PartitionMap says of each type of message on each directed link of a campaign whether
	// faults met it, and how those runs ended, sorted by type, from and to.
	PartitionMap(ctx context.Context, campaign string) (model.PartitionMap, error)
	// MinedPairs mines the clean runs of a campaign again. Without one it is a conflict.
	MinedPairs(ctx context.Context, campaign, about string) (model.MinedPairs, error)
	// Account is of a search that has ended; of others it is a conflict.
	Account(ctx context.Context, campaign string) (model.Account, error)
	// Points says which single faults a search could make, by the clean runs of a campaign.
	Points(ctx context.Context, campaign string, q model.PointsQuery) (model.FaultPoints, error)
	// Causes are what the failed runs of a campaign are of, the costliest first.
	Causes(ctx context.Context, campaign string) ([]model.Cause, error)

	// FindingHistories lists what campaigns showed over time, a failure each; target "" takes all.
	FindingHistories(ctx context.Context, target string) ([]model.FindingHistory, error)
	// NoteFinding keeps what somebody writes about a failure; "" forgets it.
	NoteFinding(ctx context.Context, history, text string) (model.FindingHistory, error)
	// ExportRun gives the record of a run in a format of another tool. The caller closes it.
	ExportRun(ctx context.Context, id string, f model.ExportFormat) (*os.File, error)
	// QueryRun asks the record of a run one SQL query that only reads, and answers with
	// at most that many rows. What is wrong with it or takes too long is ErrInvalid.
	QueryRun(ctx context.Context, id, sql string, rows int) (model.QueryResult, error)

	// Targets lists the targets that campaigns can name.
	Targets(ctx context.Context) ([]model.KnownTarget, error)
	// Scripts lists the scripted tests that come with netsplit, by name.
	Scripts(ctx context.Context) ([]model.KnownScript, error)
	// Target is one of them, with the settings and times of its file.
	Target(ctx context.Context, ref string) (*model.Target, error)
	// UploadTarget keeps the target that a tar archive holds.
	UploadTarget(ctx context.Context, archive []byte) (model.KnownTarget, error)
	// DeleteTarget deletes an upload, NAME:VERSION. One in use is a conflict.
	DeleteTarget(ctx context.Context, ref string) error

	// Findings lists the findings of one campaign, or of all if campaign is "", as
	// rows (model.Finding.Row), newest first.
	Findings(ctx context.Context, campaign string, limit int, cursor string) ([]model.Finding, string, error)
	Finding(ctx context.Context, id string) (model.Finding, error)

	// Invariants lists the invariants of one target, or of all if target is "".
	Invariants(ctx context.Context, target string) ([]model.TargetInvariant, error)
	// Invariant finds one; target "" stands for the only target that has one of this id.
	Invariant(ctx context.Context, target, id string) (model.TargetInvariant, error)
	// PinInvariant pins an invariant given as text.
	PinInvariant(ctx context.Context, target, text string) (model.TargetInvariant, error)
	// SetInvariant changes the status of what Invariant finds.
	SetInvariant(ctx context.Context, target, id string, status model.InvariantStatus) (model.TargetInvariant, error)

	// Switches lists the switches; whole: with what each says of itself, its ports and its rules.
	Switches(ctx context.Context, whole bool) ([]model.SwitchStatus, error)
	Hosts(ctx context.Context) ([]model.TestbedHost, error)
	// Runners lists the runners that have joined, by name.
	Runners(ctx context.Context) ([]model.Runner, error)

	// CreatePartition begins to cut and may return before the cut is in force.
	// The name of a partition that is neither healed nor failed is a conflict.
	CreatePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error)
	// EnsurePartition is CreatePartition, but one that exists under the name and is the same
	// is returned as it is.
	EnsurePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error)
	Partition(ctx context.Context, name string) (model.PartitionStatus, error)
	Partitions(ctx context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error)
	// DeletePartition begins to heal and may return before all is healed. It is no
	// error if the partition is healed already.
	DeletePartition(ctx context.Context, name string) (model.PartitionStatus, error)
	// Reset heals everything and proves it, then returns the names of what it healed.
	Reset(ctx context.Context) ([]string, error)

	// Prune deletes records of runs by age and size.
	Prune(ctx context.Context, r model.Retention) (model.Pruned, error)
	// Backup opens a copy of the store.
	Backup(ctx context.Context) (*os.File, error)
	Health(ctx context.Context) model.Health
	// Diagnose examines the testbed; it takes seconds for each switch.
	Diagnose(ctx context.Context) (model.Diagnosis, error)
	// Annotations lists the cuts that overlap the span from from to to, by their
	// start: the last limit of them. more says whether there were others.
	Annotations(ctx context.Context, from, to time.Time, limit int) (list []model.Annotation, more bool, err error)
	// Events sends the events after the given number, past ones first, or with
	// model.EventsFromNow those that come, and closes the
	// channel when ctx ends. In place of events that are no longer kept it sends one of
	// kind events and state missed.
	Events(ctx context.Context, after uint64) (<-chan model.ServiceEvent, error)
}

// KeyStore remembers idempotency keys for 24 hours; the store implements it.
type KeyStore interface {
	// ClaimKey remembers the key of a request before the API serves it. If the key is
	// known, fresh is false, and ClaimKey returns the hash and response (nil: not
	// answered yet) of the earlier request.
	ClaimKey(key, hash string, now time.Time) (oldHash string, response []byte, fresh bool, err error)
	FinishKey(key string, response []byte) error
	ReleaseKey(key string) error
}

// RunFiles are the files of a run that clients can fetch, with content types.
var RunFiles = map[string]string{
	"report.html":     "text/html; charset=utf-8",
	"meta.json":       "application/json",
	"summary.json":    "application/json",
	"profile.json":    "application/json",
	"evidence.json":   "application/json",
	"target.json":     "application/json",
	"testbed.json":    "application/json",
	"events.jsonl":    "application/jsonl",
	"decisions.jsonl": "application/jsonl",
	"rules.jsonl":     "application/jsonl",
	"history.jsonl":   "application/jsonl",
	"processes.jsonl": "application/jsonl",
	"loglines.jsonl":  "application/jsonl",
	"lines.jsonl":     "application/jsonl",
	"packets.pcapng":  "application/octet-stream",
}
