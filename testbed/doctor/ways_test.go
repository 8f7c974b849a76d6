package doctor

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestSwitchesThatNothingJoins: hosts on switches that no link joins are named,
// with what follows; a way over a third switch will do.
func TestSwitchesThatNothingJoins(t *testing.T) {
	link := func(a, b model.DatapathID) model.SwitchLink {
		return model.SwitchLink{A: model.SwitchPort{Datapath: a, Port: model.Port{Number: uint32(10 + b)}}, B: model.SwitchPort{Datapath: b, Port: model.Port{Number: uint32(10 + a)}}}
	}
	hosts := []model.TestbedHost{{Name: "a", Datapath: 1, Port: model.Port{Number: 1}}, {Name: "b", Datapath: 2, Port: model.Port{Number: 1}}, {Name: "c", Datapath: 2, Port: model.Port{Number: 2}}}
	for name, c := range map[string]struct {
		hosts []model.TestbedHost
		links []model.SwitchLink
		level model.CheckLevel // "" for no check
		says  string
	}{
		"one switch":     {hosts: hosts[1:]},
		"joined":         {hosts, []model.SwitchLink{link(1, 2)}, model.CheckOK, "all 2 switches"},
		"over a third":   {hosts, []model.SwitchLink{link(1, 3), link(3, 2)}, model.CheckOK, "all 2 switches"},
		"not joined":     {hosts, nil, model.CheckWarn, "none leads from switch 0000000000000001 (a) to switch 0000000000000002 (b, c)"},
		"joined by half": {hosts, []model.SwitchLink{link(1, 3)}, model.CheckWarn, "none leads from"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExam(Config{Testbed: model.Testbed{Hosts: c.hosts, Links: c.links}})
			x.ways()
			if c.level == "" {
				if len(x.d.Checks) > 0 {
					t.Errorf("%+v", x.d.Checks)
				}
				return
			}
			if len(x.d.Checks) != 1 || x.d.Checks[0].Level != c.level || !strings.Contains(x.d.Checks[0].Found, c.says) {
				t.Fatalf("%+v; want %s with %q", x.d.Checks, c.level, c.says)
			}
			if c.level == model.CheckWarn && (!strings.Contains(x.d.Checks[0].Means, "under links") || len(x.d.Checks[0].Affects) == 0) {
				t.Errorf("what follows: %+v", x.d.Checks[0])
			}
		})
	}
}
