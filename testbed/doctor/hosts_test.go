package doctor

import (
	"net/netip"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// TestWayOut: hosts that a host does not reach by its own interface are named.
func TestWayOut(t *testing.T) {
	const mac = "02:00:00:00:00:01"
	tb := model.Testbed{Name: "x", Hosts: []model.TestbedHost{
		{Name: "a", MAC: mac, IP: netip.MustParseAddr("10.79.0.1")}, {Name: "b", MAC: "02:00:00:00:00:02", IP: netip.MustParseAddr("10.79.0.2")}}}
	for _, k := range []struct {
		own, other string // addresses of eth1, which is the host's, and of eth0
		want       string
	}{
		{"10.79.0.1/24", "10.0.0.1/8", "ok interface"},
		{"10.79.0.1/32", "10.0.0.1/8", "ok interface, fail way to others: eth1 is not on the network of all; it reaches b (10.79.0.2) by eth0"},
		{"10.79.0.1/32", "192.0.2.1/24", "ok interface, warn way to others: no interface is on the network of b (10.79.0.2)"},
	} {
		var got []string
		newExam(Config{Testbed: tb}).links(tb.Hosts[0], []agent.Link{{Name: "eth0", MAC: "02:00:00:00:01:01", Up: true, Addrs: []string{k.other}},
			{Name: "eth1", MAC: mac, MTU: 1500, Up: true, Addrs: []string{k.own}}}, func(level model.CheckLevel, name, found, _ string, _ ...model.Ability) {
			if level == model.CheckOK {
				found = ""
			} else {
				found = ": " + found
			}
			got = append(got, string(level)+" "+name+found)
		})
		if text := strings.Join(got, ", "); text != k.want {
			t.Errorf("%s beside %s: %s, want %s", k.own, k.other, text, k.want)
		}
	}
}
