package campaign

import (
	"fmt"
	"slices"

	"netsplit/model"
)

// nameRoles notes what of a fault is a role and not a host.
func nameRoles(do *model.Fault, hosts []model.NodeID, roles []string) error {
	names := []model.NodeID{do.Isolate}
	if do.Node != nil {
		names = append(names, do.Node.Host)
	}
	if do.Disk != nil {
		names = append(names, do.Disk.Host)
	}
	if do.Cut != nil {
		names = slices.Concat(names, slices.Concat(do.Cut.Groups...))
	}
	do.Roles = nil
	for _, n := range names {
		switch {
		case n == "" || slices.Contains(hosts, n) || slices.Contains(do.Roles, string(n)):
		case slices.Contains(roles, string(n)) || model.MomentRole(string(n)):
			do.Roles = append(do.Roles, string(n))
		case len(roles) > 0:
			return noRole(string(n), roles)
		}
	}
	return nil
}

func noRole(name string, roles []string) error {
	if len(roles) == 0 {
		return fmt.Errorf("no role %q: the target has none: declare roles in its file", name)
	}
	return fmt.Errorf("no host and no role %q: there are the roles %v, at a message also %s and %s, at a file operation %s", name, slices.Sorted(slices.Values(roles)), model.RoleSender, model.RoleReceiver, model.RoleFileHost)
}
