package sut

import (
	"fmt"
	"slices"

	"netsplit/model"
)

// Ends reads what stands for a host in a match and is a role as one.
func Ends(m *model.MessageMatch, hosts []model.NodeID, roles []string) error {
	for _, end := range []struct {
		host *model.NodeID
		role *string
	}{{&m.From, &m.FromRole}, {&m.To, &m.ToRole}} {
		switch name := string(*end.host); {
		case name == "" || slices.Contains(hosts, *end.host):
		case slices.Contains(roles, name):
			*end.host, *end.role = "", name
		case len(roles) > 0:
			return fmt.Errorf("message fault: no host and no role %q: there are hosts %v and roles %v", name, hosts, slices.Sorted(slices.Values(roles)))
		}
	}
	for _, role := range m.Roles() {
		if !slices.Contains(roles, role) {
			return fmt.Errorf("message fault: no role %q: there are %v", role, slices.Sorted(slices.Values(roles)))
		}
	}
	return nil
}
