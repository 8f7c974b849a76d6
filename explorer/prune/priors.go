package prune

import (
	"netsplit/explorer/sequence"
	"netsplit/model"
)

func leaderFirst(c sequence.Candidate, _ *sequence.Known) string {
	if k := c.Faults[0].Kind; k != model.PointLeader {
		return "its first fault is " + string(k) + " and not of the leader"
	}
	return ""
}
