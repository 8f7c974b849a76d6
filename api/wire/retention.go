package wire

import (
	"time"

	"netsplit/model"
)

// Retention says which records of runs are deleted.
type Retention struct {
	Age    Span  `json:"age,omitempty" pattern:"^([0-9]{1,6}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Records that ended longer ago than this, greater than 0; absent: of any age" example:"720h"`
	Bytes  int64 `json:"bytes,omitempty" minimum:"0" doc:"The oldest records beyond this size of all records; of these passed and vacuous runs go first; absent or 0: of any size"`
	DryRun bool  `json:"dryRun,omitempty" doc:"Delete nothing, and count what would be deleted"`
}

// Model is the model's form.
func (r Retention) Model() model.Retention {
	return model.Retention{Age: time.Duration(r.Age), Bytes: r.Bytes, DryRun: r.DryRun}
}

// FromRetention makes a Retention.
func FromRetention(r model.Retention) Retention {
	return Retention{Age: Span(r.Age), Bytes: r.Bytes, DryRun: r.DryRun}
}

// Pruned counts what was deleted.
type Pruned struct {
	Runs   int    `json:"runs" doc:"Runs whose records were deleted; the runs themselves stay in lists"`
	Bytes  int64  `json:"bytes" doc:"Of these records"`
	Left   int64  `json:"left" doc:"Bytes of the records that are there"`
	Kept   int    `json:"kept" doc:"Runs that were due, but that a finding names or a campaign needs that has not ended"`
	Failed int    `json:"failed,omitempty" doc:"Records that could not be deleted"`
	Why    string `json:"why,omitempty" doc:"Of the first of these"`
}

// FromPruned makes a Pruned.
func FromPruned(p model.Pruned) Pruned {
	return Pruned{Runs: p.Runs, Bytes: p.Bytes, Left: p.Left, Kept: p.Kept, Failed: p.Failed, Why: p.Why}
}
