package flowrules_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
)

func nodes(s string) []model.NodeID {
	var out []model.NodeID
	for _, f := range strings.Fields(s) {
		out = append(out, model.NodeID(f))
	}
	return out
}

func groups(s string) [][]model.NodeID {
	var out [][]model.NodeID
	for _, g := range strings.Split(s, "|") {
		if g = strings.TrimSpace(g); g != "" {
			out = append(out, nodes(g))
		}
	}
	return out
}

var testbed = flowrules.Where{
	Hosts:  nodes("n1 n2 n3 n4 c1"),
	Labels: map[model.NodeID]map[string]string{"n1": {"rack": "a"}, "n2": {"rack": "b"}, "n3": {"rack": "a", "zone": "z"}, "n4": {"rack": "b"}},
	Role: func(role string) (model.Holders, error) {
		switch role {
		case "leader":
			return model.Holders{Have: nodes("n2"), Of: nodes("n1 n2 n3 n4")}, nil
		case "voter":
			return model.Holders{Have: nodes("n1 n3"), Of: nodes("n1 n2 n3 n4")}, nil
		case "slow":
			return model.Holders{Have: nodes("n2"), Of: nodes("n1 n2 n3 n4"), Silent: nodes("n1")}, nil
		case "nobody":
			return model.Holders{Of: nodes("n1 n2")}, nil
		}
		return model.Holders{}, fmt.Errorf("the testbed has no role %q", role)
	},
}

// TestResolve: what a person gives, and the groups it stands for.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		p    model.Partition
		want string // as String writes it
	}{
		{model.Partition{Shape: model.Complete, Groups: groups("n1 | n2 n3 | n4 c1")}, "complete n1 | n2,n3 | n4,c1"},
		{model.Partition{Shape: model.Partial, Effect: model.Reset, Groups: groups("n1 | n2")}, "partial n1 | n2 (reset)"},
		{model.Partition{Shape: model.Simplex, Groups: groups("n1 | n2 n3")}, "simplex n1 | n2,n3"},
		{model.Partition{Shape: model.Isolated, Groups: groups("n3 n1")}, "isolate n3,n1 | n2,n4,c1"},
		{model.Partition{Shape: model.Bridge, Groups: groups("n3")}, "bridge n3 | n1,n2 | n4,c1"},
		{model.Partition{Shape: model.Bridge, Groups: groups("c1 | n1 | n2 n3 n4")}, "bridge c1 | n1 | n2,n3,n4"},
		{model.Partition{Shape: model.Ring}, "ring n1,n2,n3,n4,c1"},
		{model.Partition{Shape: model.Ring, Groups: groups("n4 n1 n3 n2")}, "ring n4,n1,n3,n2"},
		{model.Partition{Shape: model.Split, Label: "rack"}, "split label=rack n1,n3 | n2,n4"},
		{model.Partition{Shape: model.LeaderIn}, "leader-in role=leader n2 | n1,n3,n4,c1"},
		{model.Partition{Shape: model.LeaderIn, Size: 2}, "leader-in role=leader n1,n2 | n3,n4,c1"},
		{model.Partition{Shape: model.LeaderIn, Size: 2, Groups: groups("n2 n3")}, "leader-in role=leader n2,n3 | n1,n4,c1"},
		{model.Partition{Shape: model.LeaderIn, Role: "voter"}, "leader-in role=voter n1,n3 | n2,n4,c1"},
		{model.Partition{Shape: model.LeaderOut, Size: 2}, "leader-out role=leader n1,n3 | n2,n4,c1"},
		{model.Partition{Shape: model.LeaderOut, Role: "slow"}, "leader-out role=slow n3 | n1,n2,n4,c1"},
		{model.Partition{Shape: model.LeaderOut, Role: "slow", Size: 3}, "leader-out role=slow n1,n3,n4 | n2,c1"},
		{model.Partition{Shape: model.LeaderIn, Role: "slow", Size: 2}, "leader-in role=slow n2,n3 | n1,n4,c1"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n2"), Only: []model.Traffic{{Proto: "tcp", Port: 7000, Opening: true}, {Proto: "arp"}}},
			"partial n1 | n2 only tcp/7000-opening, arp"},
	} {
		r, err := flowrules.Resolve(c.p, testbed)
		if err != nil || r.String() != c.want {
			t.Errorf("%s: %s, %v; want %s", c.p, r, err, c.want)
			continue
		}
		again, err := flowrules.Resolve(r, flowrules.Where{Hosts: testbed.Hosts})
		if err != nil || again.String() != c.want {
			t.Errorf("%s again: %s, %v", c.want, again, err)
		}
	}
}

// TestResolveSaysWhatIsWrong: every refusal names what was given and what to do.
func TestResolveSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		p    model.Partition
		says string
	}{
		{model.Partition{Shape: "star"}, "use complete, partial,"},
		{model.Partition{Shape: model.Complete, Effect: "delay", Groups: groups("n1 | n2 n3 n4 c1")}, "use drop or reset"},
		{model.Partition{Shape: model.Complete, Groups: groups("n1 | n2")}, `"n3" is in no group`},
		{model.Partition{Shape: model.Complete, Groups: groups("n1")}, "at least two groups"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n2 | n3")}, "takes two groups of hosts, not 3"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n9")}, `no host "n9"`},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n1")}, "belongs to one group"},
		{model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {}}}, "group 2 is empty"},
		{model.Partition{Shape: model.Isolated, Groups: groups("n1 n2 n3 n4 c1")}, "leave one out"},
		{model.Partition{Shape: model.Isolated}, "takes one group of hosts, those to be cut off, not 0"},
		{model.Partition{Shape: model.LeaderIn, Groups: groups("n1 | n2 | n3")}, "takes one group of hosts that may be cut off, or none for any, not 3"},
		{model.Partition{Shape: model.Isolated, Effect: model.Reset, Groups: groups("n1"), Only: []model.Traffic{{Proto: "icmp"}}}, "only icmp is to be cut: add tcp, or use drop"},
		{model.Partition{Shape: model.Bridge, Groups: groups("n1 n2 n3 n4")}, "only 1 host(s) are left"},
		{model.Partition{Shape: model.Bridge, Groups: groups("n1 | n2 | n3")}, `"n4" is in no group`},
		{model.Partition{Shape: model.Ring, Groups: groups("n1 n2 n3")}, "takes four or more"},
		{model.Partition{Shape: model.Split}, "label=rack"},
		{model.Partition{Shape: model.Split, Label: "zone"}, "1 value(s) among the hosts, and a split takes two: their labels are rack, zone"},
		{model.Partition{Shape: model.Ring, Label: "rack"}, "or use split"},
		{model.Partition{Shape: model.Partial, Role: "leader", Groups: groups("n1 | n2")}, "use leader-in or leader-out"},
		{model.Partition{Shape: model.LeaderIn, Role: "nobody"}, `nobody has role "nobody"`},
		{model.Partition{Shape: model.LeaderIn, Role: "king"}, `no role "king"`},
		{model.Partition{Shape: model.LeaderIn, Groups: groups("n1")}, "is not among those"},
		{model.Partition{Shape: model.LeaderOut, Size: 4}, "3 host(s) can be cut off, not 4"},
		{model.Partition{Shape: model.LeaderOut, Size: -1}, "size -1"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n2"), Only: []model.Traffic{{Proto: "sctp"}}}, "use tcp, udp, icmp or arp"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n2"), Only: []model.Traffic{{Proto: "icmp", Port: 7}}}, "leave out port 7"},
		{model.Partition{Shape: model.Partial, Groups: groups("n1 | n2"), Only: []model.Traffic{{Proto: "udp", Opening: true}}}, "only tcp"},
	} {
		if r, err := flowrules.Resolve(c.p, testbed); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s, %v; want an error with %q", c.p, r, err, c.says)
		}
	}
	early := testbed
	early.Role = nil
	if _, err := flowrules.Resolve(model.Partition{Shape: model.LeaderIn}, early); !errors.Is(err, flowrules.ErrRoleUnknown) {
		t.Errorf("without anybody to ask: %v", err)
	}
	if _, err := flowrules.Resolve(model.Partition{Shape: model.LeaderIn, Groups: groups("n9")}, early); err == nil || errors.Is(err, flowrules.ErrRoleUnknown) {
		t.Errorf("a host that is not there, without anybody to ask: %v", err)
	}
}

// TestCrowd: of as many hosts as a testbed may have one is cut off; what would take millions of
// rules is refused before they are made.
func TestCrowd(t *testing.T) {
	w := flowrules.Where{Labels: map[model.NodeID]map[string]string{}}
	in := flowrules.Input{Lab: 1, HardTimeout: 5 * time.Second}
	for i := range model.MaxHosts {
		h := model.NodeID(fmt.Sprintf("h%05d", i))
		w.Hosts, w.Labels[h] = append(w.Hosts, h), map[string]string{"rack": fmt.Sprint(i % 2)}
		in.Hosts = append(in.Hosts, flowrules.Host{Name: h, Port: uint32(i + 1), MAC: flowrules.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, IP: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})})
	}
	for name, p := range map[string]model.Partition{
		"ring": {Shape: model.Ring}, "split": {Shape: model.Split, Label: "rack"}, "bridge": {Shape: model.Bridge, Groups: [][]model.NodeID{{"h00000"}}},
		"isolate": {Shape: model.Isolated, Groups: [][]model.NodeID{w.Hosts[:100]}}, "simplex": {Shape: model.Simplex, Groups: [][]model.NodeID{w.Hosts[:1000], w.Hosts[1000:]}},
	} {
		if _, err := flowrules.Resolve(p, w); err == nil || !strings.Contains(err.Error(), "and the most is 200000") || len(err.Error()) > 500 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
	if _, err := flowrules.Resolve(model.Partition{Shape: model.Isolated, Groups: [][]model.NodeID{{"none"}}}, w); err == nil || !strings.Contains(err.Error(), "and 1980 more") || len(err.Error()) > 500 {
		t.Errorf("a host that is not there: %.500v", err)
	}
	p, err := flowrules.Resolve(model.Partition{Shape: model.Isolated, Groups: [][]model.NodeID{{"h00000"}}}, w)
	if err != nil || len(p.Links()) != 2*1999 {
		t.Fatalf("%d links, %v", len(p.Links()), err)
	}
	in.Partitions = []flowrules.Desired{{ID: 1, Partition: p}}
	plan, err := flowrules.Compile(in)
	if err != nil || len(plan.Rules) < 2*1999 || len(plan.Rules) > 10*1999 {
		t.Errorf("%d rules, %v", len(plan.Rules), err)
	}
}
