package sut_test

import (
	"slices"
	"testing"

	"netsplit/model"
	"netsplit/sut"
)

func TestPortsOfServers(t *testing.T) {
	target := &model.Target{
		Protocols: []model.Protocol{{Port: 8020}, {Port: 50010}},
		Stable:    []model.Condition{{Probe: model.Probe{HTTP: "http://{{.IPs.n1}}:50070/fsck?at=10:30"}}, {Probe: model.Probe{Command: []string{"ask", ":99"}}}},
		Quiesce:   &model.Quiesce{Ask: &model.Probe{TCP: "127.0.0.1:8020"}, Until: []model.Condition{{Probe: model.Probe{TCP: "{{.IP}}:50075"}}}},
		Variables: []model.Variable{{Sources: []model.VarSource{{Probe: &model.Probe{HTTP: "http://127.0.0.1:9864"}}, {}}}},
		Roles:     map[string]model.Role{"leader": {Probe: model.Probe{TCP: "{{.IP}}:{{.Args.port}}"}}},
	}
	if got, want := sut.Ports(target), []uint16{8020, 9864, 50010, 50070, 50075}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
