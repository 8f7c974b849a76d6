package model

import (
	"fmt"
	"net/netip"
)

// Testbed is a switch (or several) and the hosts on its ports. It is all that
// the lab hands to the rest of the program; a file like it written by hand
// makes netsplit drive any other OpenFlow 1.3 switch.
type Testbed struct {
	Name  string        `yaml:"name"`
	Hosts []TestbedHost `yaml:"hosts"`
	// Mirrors are ports that get a copy of watched packets. Optional: without
	// one, clean runs use the gate.
	Mirrors []MirrorPort `yaml:"mirrors,omitempty"`
	// Gates are ports by which held packets leave the switch and come back, at
	// most one per switch. Optional: without one, they go through the
	// controller's session.
	Gates []GatePort `yaml:"gates,omitempty"`
	// Cuts say how partitions by drop rules bite: default by meters first.
	Cuts CutBy `yaml:"cuts,omitempty"`
	// Roles tell who has a role now, by name: for partitions about a leader.
	Roles map[string]Role `yaml:"roles,omitempty"`
}

// CutBy is what a partition that is not the gate's cuts by.
type CutBy string

// Ways to cut.
const (
	CutByMeters CutBy = "meters" // turned down, then drop rules; the default where a switch has meters
	CutByRules  CutBy = "rules"  // drop rules alone
)

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

// GatePort is a switch port whose far end netsplit can read and write. Frames
// cross it with a VLAN tag more than they have: its MTU, and that of Interface,
// is larger by 4 than the hosts'.
type GatePort struct {
	Datapath  DatapathID `yaml:"datapath"`
	Port      uint32     `yaml:"port"`
	Interface string     `yaml:"interface"` // local interface to read and write
	// Netns is the named network namespace holding Interface; "" for ours.
	Netns string `yaml:"netns,omitempty"`
}

// MaxGatedPort is the largest port number that a host beside a gate port can
// have: the tags there carry it in the 12 bits of a VLAN id, of which 0 and 4095
// are reserved (IEEE 802.1Q-2018 table 9-2) and 4094 is the gate's own.
const MaxGatedPort uint32 = 4093

// Gate is how held packets get to netsplit and back. "" leaves the choice to
// the testbed: by port on switches that have a gate port.
type Gate string

// Transports of the gate.
const (
	GateByPort     Gate = "port"      // by a gate port
	GateByPacketIn Gate = "packet-in" // by the controller's session
)

// Validate says what is wrong with the name of a transport.
func (g Gate) Validate() error {
	switch g {
	case "", GateByPort, GateByPacketIn:
		return nil
	}
	return fmt.Errorf("gate %q: use %s (by a port of the switch) or %s (by the controller's session)", string(g), GateByPort, GateByPacketIn)
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
