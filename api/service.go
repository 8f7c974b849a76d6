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
	Campaigns(ctx context.Context, limit int, cursor string) ([]model.Campaign, string, error)
	// CancelCampaign asks a campaign to stop. It is no error if it has ended.
	CancelCampaign(ctx context.Context, id string) (model.Campaign, error)
	// ResumeCampaign queues a campaign that failed, to go on where it was. One that is
	// queued or under way is left as it is; one that is done or cancelled a conflict.
	ResumeCampaign(ctx context.Context, id string) (model.Campaign, error)

	// Runs lists those of one campaign, the last one started first.
	Runs(ctx context.Context, campaign string, limit int, cursor string) ([]model.RunRow, string, error)
	Run(ctx context.Context, id string) (model.RunSummary, error)
	// RunFile opens a file of the run's directory; the name is one of RunFiles.
	// What is no regular file, or is reached by a link, is a conflict.
	RunFile(ctx context.Context, id, name string) (*os.File, error)

	// Targets lists what campaigns can name.
	Targets(ctx context.Context) ([]model.KnownTarget, error)
	// UploadTarget keeps the target that a tar archive holds.
	UploadTarget(ctx context.Context, archive []byte) (model.KnownTarget, error)
	// DeleteTarget deletes an upload, NAME:VERSION. One in use is a conflict.
	DeleteTarget(ctx context.Context, ref string) error

	// Findings lists rows (model.Finding.Row) of those of one campaign, or of all if
	// that is "", newest first.
	Findings(ctx context.Context, campaign string, limit int, cursor string) ([]model.Finding, string, error)
	Finding(ctx context.Context, id string) (model.Finding, error)

	// Invariants lists those of one target, or of all if that is "".
	Invariants(ctx context.Context, target string) ([]model.TargetInvariant, error)
	// PinInvariant pins an invariant that a person wrote down.
	PinInvariant(ctx context.Context, target, text string) (model.TargetInvariant, error)
	// SetInvariant changes the status; an empty target stands for the only one
	// that has an invariant of this id.
	SetInvariant(ctx context.Context, target, id string, status model.InvariantStatus) (model.TargetInvariant, error)

	Switches(ctx context.Context) ([]model.SwitchStatus, error)
	Hosts(ctx context.Context) ([]model.TestbedHost, error)

	// CreatePartition begins to cut and may return before the cut is in force.
	// A name that is in use by a partition not yet healed or failed is a
	// conflict.
	CreatePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error)
	Partition(ctx context.Context, name string) (model.PartitionStatus, error)
	Partitions(ctx context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error)
	// DeletePartition begins to heal and may return before all is healed. It
	// is no error if it is healed.
	DeletePartition(ctx context.Context, name string) (model.PartitionStatus, error)
	// Reset heals everything and returns, with the names of what it healed,
	// once that is proved.
	Reset(ctx context.Context) ([]string, error)

	Health(ctx context.Context) model.Health
	// Diagnose examines the testbed; it takes seconds for each switch.
	Diagnose(ctx context.Context) (model.Diagnosis, error)
	// Annotations lists the cuts that overlap the span, by their start: the last
	// limit of them, and whether there are more.
	Annotations(ctx context.Context, from, to time.Time, limit int) (list []model.Annotation, more bool, err error)
	// Events sends the events after the given number, the next of which may
	// long have happened, until ctx ends; if some are kept no more, one of kind
	// events and state missed comes in their place; then the channel is closed. A reader
	// that is too slow has its channel closed early and resumes by number.
	Events(ctx context.Context, after uint64) (<-chan model.ServiceEvent, error)
}

// KeyStore remembers idempotency keys for 24 hours; the store implements it.
type KeyStore interface {
	// ClaimKey remembers the key of a request about to be served. If it is
	// known, fresh is false, and the hash and response (nil: not answered yet)
	// of the earlier request are returned.
	ClaimKey(key, hash string, now time.Time) (oldHash string, response []byte, fresh bool, err error)
	FinishKey(key string, response []byte) error
	ReleaseKey(key string) error
}

// RunFiles are the files of a run that can be fetched, with content types.
var RunFiles = map[string]string{
	"report.html":     "text/html; charset=utf-8",
	"meta.json":       "application/json",
	"summary.json":    "application/json",
	"evidence.json":   "application/json",
	"target.json":     "application/json",
	"testbed.json":    "application/json",
	"events.jsonl":    "application/jsonl",
	"decisions.jsonl": "application/jsonl",
	"rules.jsonl":     "application/jsonl",
	"history.jsonl":   "application/jsonl",
	"processes.jsonl": "application/jsonl",
	"loglines.jsonl":  "application/jsonl",
	"packets.pcapng":  "application/octet-stream",
}
