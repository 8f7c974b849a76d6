package campaign

import (
	"context"

	"netsplit/campaign/run"
	"netsplit/model"
)

// Runner executes work items. The campaign loop meets whatever runs them,
// here or elsewhere, through this interface only.
type Runner interface {
	// Run executes one scenario and returns its summary. The error is
	// netsplit's own or the testbed's failure, never the target's; the summary
	// is then a run of verdict unknown. Run returns when everything that the
	// run started has ended and the network is whole.
	Run(ctx context.Context, w Work) (model.RunSummary, error)
}

// Work is one work item: a target, a scenario and a seed.
type Work struct {
	Campaign string
	Run      string // id of the run; its record goes to <runs>/<campaign>/<run>
	Spec     model.CampaignSpec
	Scenario model.Scenario
	ReplayOf string
}

// Metrics is told what happens, as it happens. Package api implements it.
type Metrics interface {
	run.Metrics
	KnownTarget(target string, strategy model.Strategy)
	RunDone(target string, strategy model.Strategy, verdict model.VerdictValue)
	Finding(f model.Finding)
	SwitchConnected(dpid model.DatapathID, connected bool)
}
