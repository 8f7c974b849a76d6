package report

import (
	"slices"
	"testing"
	"time"

	"netsplit/model"
)

// TestAMachinesCrashAndRolesAreTold: what left it, who had a role, and that nobody had one.
func TestAMachinesCrashAndRolesAreTold(t *testing.T) {
	in := failing(t)
	cut := in.Summary.Scenario.Cut()
	cut.When, cut.Until = model.Trigger{}, model.Trigger{Role: &model.RoleTrigger{Name: "leader", Changes: true}}
	cut.Do.Node = &model.NodeFault{Verb: model.NodeKill, Host: "n1"}
	nobody := model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "leader"}, Roles: []string{"leader"}}}
	in.Summary.Scenario = model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{cut, nobody}}
	in.Summary.Result.Steps = []model.StepResult{
		{Step: 1, By: model.ReasonTime, Began: time.Second, EndedBy: model.ReasonRole, Ended: 2 * time.Second, Slip: 3, Roles: []model.RoleHolders{{Role: "leader", Have: []model.NodeID{"n1"}}}},
		{Step: 2, Lacked: "nobody had role leader"},
	}
	in.Decisions = slices.Clone(in.Decisions)
	for i := range in.Decisions {
		switch d := &in.Decisions[i]; {
		case d.Cut:
			d.Verb, d.Step, d.Reason = model.NodeKill, 1, model.ReasonTime
		case d.Heal:
			d.Verb, d.Step, d.Reason, d.Message, d.Class, d.Frame, d.Action = model.NodeStart, 1, model.ReasonRole, 0, nil, 0, ""
		}
	}
	in.Decisions = append(in.Decisions, model.Decision{Event: in.Events[len(in.Events)-1].Num, At: 3 * time.Second, Step: 2, Ask: "leader", Reason: model.ReasonTime})
	page := write(t, in)
	wants(t, "report", page, "crash the machine n1", "until another host has role leader", "time; leader was n1", "went on to send 3 more packets, none of which left it",
		"could not begin: nobody had role leader", "cut, then kill", "heal, then start", "ask who has role leader",
		"It was healed as a host was found to have the role that the step waited for.")
}
