package model

import "net/netip"

// Testbed is a switch (or several) and the hosts on its ports. It is all that
// the lab hands to the rest of the program; a file like it written by hand
// makes netsplit drive any other OpenFlow 1.3 switch.
type Testbed struct {
	Name  string        `yaml:"name"`
	Hosts []TestbedHost `yaml:"hosts"`
	// Mirrors are ports that get a copy of watched packets. Optional: without
	// one, clean runs use the gate.
	Mirrors []MirrorPort `yaml:"mirrors,omitempty"`
	// Roles tell who has a role now, by name: for partitions about a leader.
	Roles map[string]Role `yaml:"roles,omitempty"`
}

// Role is a probe that every host is asked; the hosts whose answer matches have
// the role.
type Role struct {
	Hosts []NodeID `yaml:"hosts,flow"`
	Probe Probe    `yaml:"probe"`
	Match string   `yaml:"match"` // regular expression
}

// TestbedHost is one host, on one port of one switch.
type TestbedHost struct {
	Name     NodeID     `yaml:"name"`
	Datapath DatapathID `yaml:"datapath"`
	Port     uint32     `yaml:"port"`
	MAC      string     `yaml:"mac"`
	IP       netip.Addr `yaml:"ip"`
	// Exec is the command prefix that runs a command on the host, e.g.
	// ["ip","netns","exec","nsl-demo-n1"] or ["ssh","n1"].
	Exec []string `yaml:"exec,flow"`
	// Labels say what hosts have in common, as rack: a.
	Labels map[string]string `yaml:"labels,omitempty,flow"`
}

// MirrorPort is a switch port whose far end netsplit can read.
type MirrorPort struct {
	Datapath  DatapathID `yaml:"datapath"`
	Port      uint32     `yaml:"port"`
	Interface string     `yaml:"interface"` // local interface to read
	// Netns is the named network namespace holding Interface; "" for ours.
	Netns string `yaml:"netns,omitempty"`
}

// DatapathID identifies a switch (OpenFlow 1.3 §7.3.1).
type DatapathID uint64

// Host returns the named host.
func (t *Testbed) Host(name NodeID) (TestbedHost, bool) {
	for _, h := range t.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return TestbedHost{}, false
}

// HostOf returns the host that owns the address.
func (t *Testbed) HostOf(ip netip.Addr) (NodeID, bool) {
	for _, h := range t.Hosts {
		if h.IP == ip {
			return h.Name, true
		}
	}
	return "", false
}

// Names lists the hosts in file order.
func (t *Testbed) Names() []NodeID {
	out := make([]NodeID, len(t.Hosts))
	for i, h := range t.Hosts {
		out[i] = h.Name
	}
	return out
}

// Where is what a partition on the testbed needs to know; role may be nil.
func (t *Testbed) Where(role func(string) (Holders, error)) Where {
	w := Where{Hosts: t.Names(), Labels: map[NodeID]map[string]string{}, Role: role}
	for _, h := range t.Hosts {
		w.Labels[h.Name] = h.Labels
	}
	return w
}
