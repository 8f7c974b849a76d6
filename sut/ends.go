package sut

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/inference/classify"
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

// Gives says why no message of a target can have a type of this pattern, in which * is any text;
// nil: one may.
func Gives(t *model.Target, pattern string) error {
	if classify.CanGive(t.Protocols, pattern) {
		return nil
	}
	return fmt.Errorf("no message of target %s has a type like %q: its readers give types that begin with %s", t.Name, pattern, strings.Join(classify.Begins(t.Protocols), ", "))
}
