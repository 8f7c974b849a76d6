package campaign

import (
	"context"
	"time"

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

// backend drops the packets of partitions by hand: the switches of a testbed
// (fabric.Fabric) or, where there are none, its hosts (hosts.Hosts).
type backend interface {
	// Cut puts a partition in force and returns when that was confirmed, which is
	// not yet proof. On error nothing of it is desired any more.
	Cut(ctx context.Context, id uint32, p model.Partition) error
	// Heal lifts the partition with that id, if it is in force.
	Heal(ctx context.Context, id uint32) error
	// Drops is what was dropped of a partition so far, by link; it may lag.
	Drops(ctx context.Context, id uint32) (map[model.Link]uint64, error)
	// DropCount is all that was dropped of it, and waits until it is complete.
	DropCount(ctx context.Context, id uint32) (uint64, error)
}

// metered is a backend that cuts by meters first, where it can.
type metered interface {
	// Bite says why a partition's cut is by rules alone; nil: it is not.
	Bite(p model.Partition) error
	// Lift takes a partition's drop rules away and leaves its meters down. It
	// returns the links that nothing but a meter holds.
	Lift(ctx context.Context, id uint32) ([]model.Link, error)
	// Held is how many packets came to a partition's meters so far, by link.
	Held(ctx context.Context, id uint32) (map[model.Link]uint64, error)
}

// Metrics is told what happens, as it happens. Package api implements it.
type Metrics interface {
	KnownLinks(links []model.Link)
	KnownTarget(target string, strategy model.Strategy)
	CutStarted(shape model.Shape, links []model.Link)
	CutEnded(reason string, links []model.Link)
	PacketFate(link model.Link, fate string, n int)
	MessageSeen(messageType, verdict string)
	// MessageFault counts a decision of a message fault, by its reason.
	MessageFault(kind model.FaultKind, reason string)
	GateDelay(d time.Duration)
	HealTime(d time.Duration)
	RunDone(target string, strategy model.Strategy, verdict model.VerdictValue)
	Finding(f model.Finding)
	SwitchConnected(dpid model.DatapathID, connected bool)
}

// Fates of packets that wanted to cross a cut.
const (
	FateWanted  = "wanted"
	FateDropped = "dropped"
	FateLeaked  = "leaked"
)
