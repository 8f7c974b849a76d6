package campaign

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestPeriodsOfASearch: those that its faults last are of its settings; of another one that makes
// no sense with them nothing is said.
func TestPeriodsOfASearch(t *testing.T) {
	target := &model.Target{Name: "mine", Nodes: []model.NodeID{"n1", "n2"},
		Args:    map[string]model.TargetArg{"beat": {Default: "2"}, "lease": {Default: "3s"}},
		Periods: map[string]model.Period{"dead": {Length: "{{times .Args.beat 10}}s"}, "lease": {Length: "{{.Args.lease}}"}}}
	for _, c := range []struct {
		kinds []model.PointFaultKind
		beat  string
		dead  time.Duration
		err   string
	}{
		{[]model.PointFaultKind{model.PointCrash}, "1s", 0, ""},
		{[]model.PointFaultKind{model.PointPeriod.For("lease")}, "1s", 0, ""},
		{[]model.PointFaultKind{model.PointPeriod.For("dead")}, "3", 30 * time.Second, ""},
		{[]model.PointFaultKind{model.PointPeriod}, "1s", 0, `"1s" is no number`},
		{[]model.PointFaultKind{model.PointNEAT}, "1s", 0, `"1s" is no number`},
	} {
		a, err := (&Service{}).around(model.CampaignSpec{Faults: c.kinds, Args: map[string]string{"beat": c.beat}}, target)
		if c.err == "" && (err != nil || a.Periods["dead"] != c.dead) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v with %s: %v, %v; want %v%s", c.kinds, c.beat, a.Periods, err, c.dead, c.err)
		}
	}
}
