package campaign

import (
	"testing"

	"netsplit/model"
)

// TestHostsOfALabAreLabelled as the target file says.
func TestHostsOfALabAreLabelled(t *testing.T) {
	lab := model.Testbed{Hosts: []model.TestbedHost{{Name: "n1"}, {Name: "n2"}, {Name: "c1"}}}
	label(&lab, &model.Target{Labels: map[model.NodeID]map[string]string{"n2": {"rack": "a"}, "c1": {"rack": "b"}}})
	for i, want := range []string{"", "a", "b"} {
		if got := lab.Hosts[i].Labels["rack"]; got != want {
			t.Errorf("%s is in rack %q, want %q", lab.Hosts[i].Name, got, want)
		}
	}
}
