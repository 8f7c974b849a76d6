package model

import (
	"fmt"
	"slices"
	"strings"
)

// RoleTrigger is the moment at which a host is found to have a role. One of Changes and Is
// is set.
type RoleTrigger struct {
	Name string `json:"name"`
	// Changes: a host has it that did not have it when the trigger was armed.
	Changes bool `json:"changes,omitempty"`
	// Is: this host has it.
	Is NodeID `json:"is,omitempty"`
}

// String is the trigger in words.
func (r *RoleTrigger) String() string {
	if r.Changes {
		return "another host has role " + r.Name
	}
	return string(r.Is) + " has role " + r.Name
}

// Come says whether the moment has come, given who has the role now and who had it when the
// trigger was armed.
func (r *RoleTrigger) Come(have, had []NodeID) bool {
	if !r.Changes {
		return slices.Contains(have, r.Is)
	}
	return slices.ContainsFunc(have, func(h NodeID) bool { return !slices.Contains(had, h) })
}

func (r *RoleTrigger) validate(of string, hosts []NodeID) error {
	switch {
	case r.Name == "":
		return fmt.Errorf("%s: role: no name is given", of)
	case r.Changes == (r.Is != ""):
		return fmt.Errorf("%s: role %s: give either changes: true or is: the host that it waits for", of, r.Name)
	case r.Is != "" && !slices.Contains(hosts, r.Is):
		return fmt.Errorf("%s: role %s: no host %q: there are %v", of, r.Name, r.Is, hosts)
	}
	return nil
}

// Roles of every target: who sends the message at which a step begins, who gets it, and who
// asks for the file operation at which it begins. Of a step that follows a message fault it is
// the first message on which that one acted.
const (
	RoleSender   = "sender"
	RoleReceiver = "receiver"
	RoleFileHost = "file-host"
)

// MomentRoles lists them.
func MomentRoles() []string { return []string{RoleSender, RoleReceiver, RoleFileHost} }

// MomentRole says whether a role is of the moment at which a step begins.
func MomentRole(role string) bool { return slices.Contains(MomentRoles(), role) }

// Asked lists the roles of the fault of which the target is asked who has them.
func (f *Fault) Asked() []string {
	return slices.DeleteFunc(slices.Clone(f.Roles), MomentRole)
}

// RoleFault is what a fault had before hosts stood in place of its roles.
type RoleFault struct {
	Cut     *Partition `json:"cut,omitempty"`
	Isolate NodeID     `json:"isolate,omitempty"`
	Node    *NodeFault `json:"node,omitempty"`
	Disk    *DiskFault `json:"disk,omitempty"`
	Roles   []string   `json:"roles"`
}

// WithRoles are the hosts, and roles as if they were hosts.
func WithRoles(hosts []NodeID, roles []string) []NodeID {
	out := slices.Clone(hosts)
	for _, r := range roles {
		out = append(out, NodeID(r))
	}
	return out
}

// validateRoles says what is wrong with the roles of the step's moment.
func (s *Step) validateRoles() error {
	ends := slices.Contains(s.Do.Roles, RoleSender) || slices.Contains(s.Do.Roles, RoleReceiver)
	switch {
	case ends && s.When.Message == nil && s.When.Follows != FollowsBegin:
		return fmt.Errorf("%s and %s are the ends of the message at which the step begins: add a message to when, or follows: begin after a message fault", RoleSender, RoleReceiver)
	case slices.Contains(s.Do.Roles, RoleFileHost) && s.When.File == nil:
		return fmt.Errorf("%s is the host of the file operation at which the step begins: add a file to when", RoleFileHost)
	}
	return nil
}

// RoleNames lists the roles whose holders begin or end the step.
func (s *Step) RoleNames() (out []string) {
	for _, t := range []*Trigger{&s.When, &s.Until} {
		if t.Role != nil {
			out = append(out, t.Role.Name)
		}
	}
	return out
}

// Resolve is the fault with hosts in place of its roles, given who has them now: of several
// it takes the first, which is in no other group then. The error says which role nobody has, or which group is empty.
func (f *Fault) Resolve(have map[string][]NodeID) (Fault, []RoleHolders, error) {
	r, who := *f, map[NodeID]NodeID{}
	r.Roles = nil
	var said []RoleHolders
	for _, role := range f.Roles {
		if len(have[role]) == 0 {
			return r, said, fmt.Errorf("nobody had role %s", role)
		}
		h := have[role][0]
		who[NodeID(role)] = h
		said = append(said, RoleHolders{Role: role, Have: []NodeID{h}})
	}
	host := func(n NodeID) NodeID {
		if h, ok := who[n]; ok {
			return h
		}
		return n
	}
	r.Isolate = host(f.Isolate)
	if f.Node != nil {
		n := *f.Node
		n.Host = host(n.Host)
		r.Node = &n
	}
	if f.Disk != nil {
		d := *f.Disk
		d.Host = host(d.Host)
		r.Disk = &d
	}
	if f.Cut == nil {
		return r, said, nil
	}
	p := *f.Cut
	p.Groups = make([][]NodeID, len(f.Cut.Groups))
	placed := map[NodeID]int{}
	for i, g := range f.Cut.Groups {
		for _, n := range g {
			if h, ok := who[n]; ok {
				if at, twice := placed[h]; twice && at != i {
					return r, said, fmt.Errorf("%s has %s and is in two groups", h, strings.Join(f.Roles, " and "))
				}
				placed[h] = i
			}
		}
	}
	for i, g := range f.Cut.Groups {
		for _, n := range g {
			h := host(n)
			if at, ok := placed[h]; ok && at != i || slices.Contains(p.Groups[i], h) {
				continue
			}
			p.Groups[i] = append(p.Groups[i], h)
		}
		if len(p.Groups[i]) == 0 {
			return r, said, fmt.Errorf("group %d of the cut is empty without who has %s", i+1, strings.Join(f.Roles, " and "))
		}
	}
	r.Cut = &p
	return r, said, nil
}

// Played is the scenario with the hosts that had its roles as its steps began. A step that
// did not begin keeps its roles.
func (s Scenario) Played(steps []StepResult) Scenario {
	s.Steps = slices.Clone(s.Steps)
	for _, res := range steps {
		if res.Step < 1 || res.Step > len(s.Steps) || len(res.Roles) == 0 || res.Lacked != "" {
			continue
		}
		have := map[string][]NodeID{}
		for _, r := range res.Roles {
			have[r.Role] = r.Have
		}
		st := &s.Steps[res.Step-1]
		if do, _, err := st.Do.Resolve(have); err == nil {
			do.As = &RoleFault{Cut: st.Do.Cut, Isolate: st.Do.Isolate, Node: st.Do.Node, Disk: st.Do.Disk, Roles: st.Do.Roles}
			st.Do = do
		}
	}
	return s
}

// AskedFor is a scenario that was played with its roles again.
func (s Scenario) AskedFor() Scenario {
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		if as := s.Steps[i].Do.As; as != nil {
			s.Steps[i].Do = Fault{Cut: as.Cut, Isolate: as.Isolate, Node: as.Node, Disk: as.Disk, Roles: as.Roles}
		}
	}
	return s
}
