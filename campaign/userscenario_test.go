package campaign

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"netsplit/internal/onecut"
	"netsplit/internal/storetest"
	"netsplit/model"
)

// ringTarget has four nodes and a client.
func ringTarget() *model.Target {
	return &model.Target{Name: "mine", Nodes: []model.NodeID{"n1", "n2", "n3", "n4"}, Clients: []model.NodeID{"c1"},
		Protocols: []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "text"}}, Variables: []model.Variable{{Name: "leader", Kind: "leader"}}}
}

// A scenario's partition is given as one by hand is: what its shape says goes
// without saying is filled in.
func TestAPartitionOfAScenarioIsResolved(t *testing.T) {
	s := &Service{store: storetest.New(t)}
	labelled := &Service{store: storetest.New(t), cfg: Config{Testbed: &model.Testbed{Hosts: []model.TestbedHost{
		{Name: "n1", Labels: map[string]string{"rack": "a"}}, {Name: "n2", Labels: map[string]string{"rack": "a"}}, {Name: "n3", Labels: map[string]string{"rack": "b"}}}}}}
	inv := model.Invariant{A: model.VarRef{Name: "leader", Node: "n1"}, B: model.VarRef{Name: "leader", Node: "n2"}}
	heal := func(from, to model.NodeID) *model.Class { return &model.Class{Type: "text PING", From: from, To: to} }
	for _, c := range []struct {
		name    string
		p       model.Partition
		healAt  *model.Class
		s       *Service
		labels  map[model.NodeID]map[string]string // of the target
		groups  [][]model.NodeID
		isolate model.NodeID
		refused string
	}{
		{name: "isolate", p: model.Partition{Shape: model.Isolated, Groups: [][]model.NodeID{{"n3"}}}, groups: [][]model.NodeID{{"n3"}, {"n1", "n2", "n4", "c1"}}},
		{name: "ring of all", p: model.Partition{Shape: model.Ring}, groups: [][]model.NodeID{{"n1", "n2", "n3", "n4", "c1"}}},
		{name: "ring that heals at a message", p: model.Partition{Shape: model.Ring}, healAt: heal("n2", "n4"), groups: [][]model.NodeID{{"n1", "n2", "n3", "n4", "c1"}}, isolate: "n4"},
		{name: "a bridge", p: model.Partition{Shape: model.Bridge, Groups: [][]model.NodeID{{"n1"}}}, groups: [][]model.NodeID{{"n1"}, {"n2", "n3"}, {"n4", "c1"}}},
		{name: "heals at a message from the other side", p: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1", "n2"}, {"n3"}}}, healAt: heal("n3", "n2"),
			groups: [][]model.NodeID{{"n1", "n2"}, {"n3"}}, isolate: "n2"},
		{name: "a split", s: labelled, p: model.Partition{Shape: model.Split, Label: "rack"}, groups: [][]model.NodeID{{"n1", "n2"}, {"n3"}}},
		{name: "a split of a lab", labels: map[model.NodeID]map[string]string{"n1": {"rack": "a"}, "n2": {"rack": "b"}, "n4": {"rack": "b"}}, p: model.Partition{Shape: model.Split, Label: "rack"}, groups: [][]model.NodeID{{"n1"}, {"n2", "n4"}}},
		{name: "a group of none", p: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{}}}, healAt: heal("n1", "n2"), refused: "two groups of hosts"},
		{name: "two groups of none", p: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{}, {}}}, healAt: heal("n1", "n2"), refused: "group 1 is empty"},
		{name: "no groups", p: model.Partition{Shape: model.Partial}, healAt: heal("n1", "n2"), refused: "two groups of hosts"},
		{name: "whoever leads", p: model.Partition{Shape: model.LeaderIn}, refused: "write isolate: leader"},
		{name: "a split without labels", p: model.Partition{Shape: model.Split, Label: "rack"}, refused: `label "rack" has 0 value(s)`},
		{name: "heals at a message that does not cross", p: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n3"}}}, healAt: heal("n1", "n2"), refused: `no message from "n1" to "n2" crosses it`},
	} {
		if c.s == nil {
			c.s = s
		}
		sc := onecut.Scenario{Strategy: model.StrategyCoFI, Partition: c.p, Invariant: &inv, State: &model.State{A: "n1", B: "n2"}, HealAt: c.healAt, Never: c.healAt == nil}.Model()
		target := ringTarget()
		target.Labels = c.labels
		got, err := c.s.userScenario(model.CampaignSpec{Scenario: &sc}, target)
		if c.refused != "" {
			if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", c.name, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if do := got.Cut().Do; !reflect.DeepEqual(do.Cut.Groups, c.groups) || do.Isolate != c.isolate || do.Cut.Effect != model.Drop {
			t.Errorf("%s: %+v, isolates %q", c.name, do.Cut, do.Isolate)
		}
	}
}

// TestAFaultOfAScenarioNamesRoles: in place of a host, which is known once the step begins.
func TestAFaultOfAScenarioNamesRoles(t *testing.T) {
	target := ringTarget()
	target.Roles = map[string]model.Role{"leader": {Hosts: target.Nodes}}
	target.Processes = []model.Process{{Name: "db", Hosts: target.Nodes}}
	s := &Service{store: storetest.New(t)}
	part := func(shape model.Shape, groups ...[]model.NodeID) model.Fault {
		return model.Fault{Cut: &model.Partition{Shape: shape, Groups: groups}}
	}
	kill := &model.NodeFault{Verb: model.NodeKill, Host: "leader"}
	for name, c := range map[string]struct {
		do   model.Fault
		when model.Trigger
		want string // groups and roles, or what is refused
	}{
		"isolate":           {model.Fault{Isolate: "leader"}, model.Trigger{}, "[[leader] [n1 n2 n3 n4]] [leader]"},
		"a silent crash":    {model.Fault{Isolate: "leader", Cut: &model.Partition{}, Node: kill}, model.Trigger{}, "[[leader] [c1 n1 n2 n3 n4]] [leader]"},
		"with a client":     {part(model.Partial, []model.NodeID{"leader", "c1"}, target.Nodes), model.Trigger{}, "[[leader c1] [n1 n2 n3 n4]] [leader]"},
		"from all others":   {part(model.Isolated, []model.NodeID{"leader"}), model.Trigger{}, "[[leader] [n1 n2 n3 n4 c1]] [leader]"},
		"crash at a change": {model.Fault{Node: kill}, model.Trigger{Role: &model.RoleTrigger{Name: "leader", Changes: true}}, "[leader]"},
		"a disk":            {model.Fault{Disk: &model.DiskFault{Kind: model.DiskFull, Host: "leader"}}, model.Trigger{}, "[leader]"},
		"no such server":    {model.Fault{Disk: &model.DiskFault{Kind: model.DiskFull, Host: "leader", Process: "x"}}, model.Trigger{}, "no such server"},
		"an operation":      {model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "leader"}}, model.Trigger{File: &model.FileTrigger{Op: model.FileWrite, Host: "n1"}}, "is of the operation of when"},
		"a sender":          {model.Fault{Isolate: "sender"}, model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text A"}}}, "[[sender] [n1 n2 n3 n4]] [sender]"},
		"a file host":       {model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "file-host"}}, model.Trigger{File: &model.FileTrigger{}}, "[file-host]"},
		"of no operation":   {model.Fault{Isolate: "file-host"}, model.Trigger{}, "file-host is the host of the file operation"},
		"of no message":     {model.Fault{Isolate: "sender"}, model.Trigger{}, "sender and receiver are the ends of the message"},
		"a ring":            {part(model.Ring, []model.NodeID{"leader", "n1", "n2", "n3"}), model.Trigger{}, "ring has no place for a role"},
		"no such role":      {model.Fault{Isolate: "master"}, model.Trigger{}, `no host and no role "master": there are the roles [leader]`},
		"at no such role":   {model.Fault{Node: kill}, model.Trigger{Role: &model.RoleTrigger{Name: "master", Changes: true}}, `no host and no role "master"`},
	} {
		sc := model.Scenario{Steps: []model.Step{{Do: c.do, When: c.when}}}
		got, err := s.userScenario(model.CampaignSpec{Scenario: &sc}, target)
		said := fmt.Sprint(err)
		if err == nil {
			do := got.Steps[0].Do
			if said = fmt.Sprint(do.Roles); do.Cut != nil {
				said = fmt.Sprint(do.Cut.Groups) + " " + said
			}
		}
		if err == nil && said != c.want || err != nil && !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %s", name, said, c.want)
		}
	}
}
