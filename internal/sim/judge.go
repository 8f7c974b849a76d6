package sim

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// judge says whether a member came back that was decommissioned: once the
// decommission was acknowledged, a node that reported it LEFT or not at all
// must never report it NORMAL, and at the end no node may.
func judge(history []model.Operation) model.Verdict {
	var member string
	done := false
	gone := map[model.NodeID]bool{} // nodes that reported it LEFT or not at all
	for _, op := range history {
		if op.F == "decommission" {
			done = done || op.Type == model.OpOK
			member = op.Value
			continue
		}
		if op.Type != model.OpOK || !done {
			continue
		}
		is := slices.Contains(strings.Fields(op.Value), member+"="+normal)
		if is && (gone[op.Node] || op.F == "final-status") {
			return model.Verdict{Value: model.VerdictFail, Reason: "a decommissioned node is back", Failures: []model.Failure{{
				Check: "resurrected", Signature: "resurrected: decommissioned node reported NORMAL", Class: model.Broken,
				Summary: fmt.Sprintf("%s was decommissioned, and %s reports it NORMAL at %s", member, op.Node, op.Time),
			}}}
		}
		if !is {
			gone[op.Node] = true
		}
	}
	return model.Verdict{Value: model.VerdictPass, Reason: "no decommissioned node came back"}
}
