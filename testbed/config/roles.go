package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"netsplit/model"
)

func checkRoles(t *model.Testbed, l lines) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(t.Roles)) {
		r := t.Roles[name]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%srole %s: %s", l.of("roles", name), name, fmt.Sprintf(format, args...)))
		}
		if !model.Labelling(name) {
			bad("%s", model.WantLabelling)
		}
		if model.MomentRole(name) {
			bad("%s are names of netsplit's own; choose another name", strings.Join(model.MomentRoles(), ", "))
		}
		if len(r.Hosts) == 0 {
			bad("hosts is missing; name the hosts that may have it")
		}
		for _, h := range r.Hosts {
			if _, ok := t.Host(h); !ok {
				bad("no host %q in the testbed: it has %v", h, t.Names())
			}
		}
		r.Probe.Check(func(key, format string, args ...any) {
			bad("%s: %s", strings.TrimSuffix("probe."+key, "."), fmt.Sprintf(format, args...))
		})
		if _, err := regexp.Compile(r.Match); err != nil || r.Match == "" {
			bad("match %q: want a regular expression for the answer of a host that has the role (https://pkg.go.dev/regexp/syntax)", r.Match)
		}
	}
	return errs
}
