package sut

import (
	"regexp"
	"slices"
	"strconv"

	"netsplit/model"
)

// probePort finds the port in the address of a probe.
var probePort = regexp.MustCompile(`^(?:http://)?[^/]*:(\d+)(?:/|$)`)

// Ports lists, sorted, the ports on which the target's servers listen, as far as its file
// says: those of its protocols and probes.
func Ports(t *model.Target) []uint16 {
	var out []uint16
	for _, p := range t.Protocols {
		out = append(out, p.Port)
	}
	probe := func(p *model.Probe) {
		if p == nil {
			return
		}
		if m := probePort.FindStringSubmatch(p.TCP + p.HTTP); m != nil {
			if n, err := strconv.ParseUint(m[1], 10, 16); err == nil {
				out = append(out, uint16(n))
			}
		}
	}
	conditions := slices.Clone(t.Stable)
	if t.Quiesce != nil {
		probe(t.Quiesce.Ask)
		conditions = append(conditions, t.Quiesce.Until...)
	}
	for i := range conditions {
		probe(&conditions[i].Probe)
	}
	for _, v := range t.Variables {
		for _, s := range v.Sources {
			probe(s.Probe)
		}
	}
	for _, r := range t.Roles {
		probe(&r.Probe)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
