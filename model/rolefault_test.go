package model

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostsStandForRoles: who has a role leaves the other groups of a cut.
func TestHostsStandForRoles(t *testing.T) {
	have := map[string][]NodeID{"leader": {"n2", "n3"}, "monitor": {"n2"}, "nobody": nil, "old": {"n3"}}
	cut := func(roles string, groups ...string) Fault {
		f := Fault{Cut: &Partition{Shape: Partial}, Roles: strings.Fields(roles)}
		for _, g := range groups {
			var hosts []NodeID
			for _, h := range strings.Fields(g) {
				hosts = append(hosts, NodeID(h))
			}
			f.Cut.Groups = append(f.Cut.Groups, hosts)
		}
		return f
	}
	isolated := cut("leader", "leader", "n1 n2 n3")
	isolated.Isolate = "leader"
	for name, c := range map[string]struct {
		f    Fault
		want string
	}{
		"isolate":                {isolated, "n2 [[n2] [n1 n3]]"},
		"with a client":          {cut("leader", "leader c1", "n1 n2 n3 c2"), " [[n2 c1] [n1 n3 c2]]"},
		"two roles of one host":  {cut("leader monitor", "leader monitor", "n1 n2 n3"), " [[n2] [n1 n3]]"},
		"two roles of two hosts": {cut("old monitor", "old", "monitor n1"), " [[n3] [n2 n1]]"},
		"on both sides":          {cut("leader monitor", "leader", "monitor"), "n2 has leader and monitor and is in two groups"},
		"an empty group":         {cut("leader", "leader", "n2"), "group 2 of the cut is empty"},
		"nobody":                 {cut("nobody", "nobody", "n2"), "nobody had role nobody"},
	} {
		before := fmt.Sprint(c.f.Cut.Groups)
		got, _, err := c.f.Resolve(have)
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(got.Isolate, " ", got.Cut.Groups)
		}
		if !strings.HasPrefix(said, c.want) || fmt.Sprint(c.f.Cut.Groups) != before || len(got.Roles) > 0 {
			t.Errorf("%s: %s, want %s", name, said, c.want)
		}
	}
}

// TestARoleTriggerThatMakesNoSenseIsRefused.
func TestARoleTriggerThatMakesNoSenseIsRefused(t *testing.T) {
	crash := Fault{Node: &NodeFault{Verb: NodeKill, Host: "n1"}}
	for want, s := range map[string]Step{
		"":                                    {When: Trigger{Role: &RoleTrigger{Name: "leader", Changes: true}}, Do: crash, Until: Trigger{Role: &RoleTrigger{Name: "leader", Is: "n2"}}},
		"when: role: no name":                 {When: Trigger{Role: &RoleTrigger{Is: "n2"}}, Do: crash},
		"give either changes":                 {When: Trigger{Role: &RoleTrigger{Name: "leader", Is: "n2", Changes: true}}, Do: crash},
		`until: role leader: no host "n9"`:    {Do: crash, Until: Trigger{Role: &RoleTrigger{Name: "leader", Is: "n9"}}},
		"give one of role, message and state": {Do: crash, When: Trigger{Role: &RoleTrigger{Name: "leader", Is: "n2"}, Message: &MessageTrigger{Match: MessageMatch{Type: "A"}}}},
		`no host "leader"`:                    {Do: Fault{Node: &NodeFault{Verb: NodeKill, Host: "leader"}}},
		"a class names hosts":                 {Do: Fault{Cut: &Partition{}, Roles: []string{"leader"}}, Until: Trigger{Class: &Class{}}},
	} {
		if err := s.Validate([]NodeID{"n1", "n2"}, 1); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
