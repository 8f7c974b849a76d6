package sequence

import (
	"slices"
	"strings"
	"testing"

	"netsplit/model"
)

// TestFaultsThatATargetCannotHaveAreRefused, and neat leaves them out.
func TestFaultsThatATargetCannotHaveAreRefused(t *testing.T) {
	bare := &model.Target{Name: "mine", Nodes: []model.NodeID{"n1", "n2"}}
	full := &model.Target{Name: "mine", Nodes: bare.Nodes, Clients: []model.NodeID{"c1"}, Roles: map[string]model.Role{"master": {}},
		Periods: map[string]model.Period{"beat": {Length: "2s"}, "dead": {Length: "8s"}}}
	all := []string{"crash", "isolate", "silence", "partial", "isolate-with-client", "isolate-leader", "lose-answer", "isolate-period:beat", "isolate-period:dead"}
	for _, c := range []struct {
		t     *model.Target
		named string
		want  string
	}{
		{bare, "", "crash isolate lose"},
		{bare, "neat", "crash isolate silence partial lose-answer"},
		{full, "neat", strings.Join(all, " ")},
		{full, "isolate-period partial", "isolate-period:beat isolate-period:dead partial"},
		{bare, "isolate-with-client", "the target has no clients"},
		{bare, "isolate-leader", "the target has no role leader"},
		{bare, "isolate-period", "the target names no periods"},
		{bare, "power-cut disk-error", "power-cut disk-error"},
		{bare, "power-cut-all crash-all torn", "power-cut-all crash-all torn"},
		{bare, "disk", "crash disk-error disk-failure corrupt power-cut"},
		{bare, "isolate-both", "no third node"},
		{bare, "shift-crash", "no three nodes"},
		{bare, "shift-power-cut", "no three nodes"},
		{full, "disc", `no fault "disc"`},
	} {
		var named []model.PointFaultKind
		for _, n := range strings.Fields(c.named) {
			named = append(named, model.PointFaultKind(n))
		}
		got, err := Kinds(named, AroundOf(c.t), false)
		var said []string
		for _, k := range got {
			if !slices.Contains(said, string(k.Kind)) {
				said = append(said, string(k.Kind))
			}
		}
		if err == nil && strings.Join(said, " ") != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d clients: %v, %v; want %s", c.named, len(c.t.Clients), said, err, c.want)
		}
	}
}
