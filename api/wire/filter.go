package wire

import "netsplit/model"

// RunFilter says which runs a list has; what is absent takes all.
type RunFilter struct {
	Campaign string `query:"campaign" pattern:"^[a-z0-9-]{1,128}$" doc:"Only those of this campaign"`
	Target   string `query:"target" minLength:"1" maxLength:"1024" doc:"Only those of the target with this name"`
	Strategy string `query:"strategy" enum:"clean,cofi,random,steps,sequences,scripted" doc:"Only those whose scenario has this strategy; clean: without a fault"`
	Verdict  string `query:"verdict" enum:"pass,fail,unknown,vacuous" doc:"Only those with this verdict"`
}

// Model is the filter as the service takes it.
func (f RunFilter) Model() model.RunFilter {
	return model.RunFilter{Campaign: f.Campaign, Target: f.Target, Strategy: model.Strategy(f.Strategy), Verdict: model.VerdictValue(f.Verdict)}
}

// CampaignFilter says which campaigns a list has; what is absent takes all.
type CampaignFilter struct {
	Target string `query:"target" minLength:"1" maxLength:"1024" doc:"Only those on this target, whatever the release or the version of an upload"`
	State  string `query:"state" enum:"queued,running,paused,done,cancelled,failed" doc:"Only those in this state"`

	Schedule string `query:"schedule" pattern:"^[a-z0-9-]{1,63}$" doc:"Only those that this schedule made"`
}

// Model is the filter as the service takes it.
func (f CampaignFilter) Model() model.CampaignFilter {
	return model.CampaignFilter{Target: f.Target, State: model.CampaignState(f.State), Schedule: f.Schedule}
}
