package model

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Testbed is a switch (or several) and the hosts on its ports. It is all that
// the lab hands to the rest of the program; a file like it written by hand
// makes netsplit drive any other OpenFlow 1.3 switch, or hosts without one.
type Testbed struct {
	Name string `yaml:"name"`
	// Backend is what drops the packets of partitions; "" means BackendSwitch.
	Backend Backend       `yaml:"backend,omitempty"`
	Hosts   []TestbedHost `yaml:"hosts"`
	// Links join switches: hosts on different ones reach one another over them.
	Links []SwitchLink `yaml:"links,omitempty"`
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
	// Hooks start and stop the target's servers where netsplit cannot do so
	// itself; none: they are its own child processes.
	Hooks Hooks `yaml:"hooks,omitempty"`
}

// Hooks are lines for sh on this machine, one for each node action, with
// template fields such as {{.Address}}: see docs/testbeds.md. A hook has done its
// work when it ends with status 0.
type Hooks struct {
	Start  string `yaml:"start,omitempty"`
	Stop   string `yaml:"stop,omitempty"`
	Crash  string `yaml:"crash,omitempty"`
	Pause  string `yaml:"pause,omitempty"`
	Resume string `yaml:"resume,omitempty"`
	// Reset brings a node back to where a run starts; once per run and node.
	Reset   string        `yaml:"reset,omitempty"`
	Timeout time.Duration `yaml:"timeout,omitempty"` // of each; 0: 30 s
}

// HookVerbs are the verbs that hooks are for.
var HookVerbs = []NodeVerb{NodeStart, NodeStop, NodeKill, NodePause, NodeResume, NodeReset}

// Of is the hook for a verb; "" for none.
func (h Hooks) Of(v NodeVerb) string {
	return map[NodeVerb]string{NodeStart: h.Start, NodeStop: h.Stop, NodeKill: h.Crash, NodePause: h.Pause, NodeResume: h.Resume, NodeReset: h.Reset}[v]
}

// Hook is what the verb is called among the hooks.
func (v NodeVerb) Hook() string {
	if v == NodeKill {
		return "crash"
	}
	return string(v)
}

// SwitchPort is one port of one switch.
type SwitchPort struct {
	Datapath DatapathID `yaml:"datapath"`
	Port     Port       `yaml:"port"`
}

// SwitchLink joins two ports of different switches.
type SwitchLink struct {
	A SwitchPort `yaml:"a,flow"`
	B SwitchPort `yaml:"b,flow"`
}

// Switches lists the switches that hosts or links are on, sorted.
func (t *Testbed) Switches() []DatapathID {
	var out []DatapathID
	for _, h := range t.Hosts {
		out = append(out, h.Datapath)
	}
	for _, l := range t.Links {
		out = append(out, l.A.Datapath, l.B.Datapath)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Backend is what drops the packets of partitions.
type Backend string

// Backends.
const (
	BackendSwitch   Backend = "switch"   // OpenFlow 1.3: partitions by hand, and campaigns
	BackendNFTables Backend = "nftables" // the hosts themselves: partitions by hand only
)

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
	Datapath DatapathID `yaml:"datapath,omitempty"` // with BackendSwitch only, as Port
	Port     Port       `yaml:"port,omitempty"`
	MAC      string     `yaml:"mac"`
	IP       netip.Addr `yaml:"ip"`
	// Exec is the command prefix that runs a command on the host, e.g.
	// ["ip","netns","exec","nsl-demo-n1"] or ["ssh","n1"]; see Argv.
	Exec []string `yaml:"exec,flow"`
	// Agent is the path of the netsplit program on the host. "": where it is
	// here, or, on a host reached by ssh, a copy that is put there.
	Agent string `yaml:"agent,omitempty"`
	// Labels say what hosts have in common, as rack: a.
	Labels map[string]string `yaml:"labels,omitempty,flow"`
}

// MirrorPort is a switch port whose far end netsplit can read.
type MirrorPort struct {
	Datapath  DatapathID `yaml:"datapath"`
	Port      Port       `yaml:"port"`
	Interface string     `yaml:"interface"` // local interface to read
	// Netns is the named network namespace holding Interface; "" for ours.
	Netns string `yaml:"netns,omitempty"`
}

// GatePort is a switch port whose far end netsplit can read and write. Frames
// cross it with a VLAN tag more than they have: its MTU, and that of Interface,
// is larger by 4 than the hosts'.
type GatePort struct {
	Datapath  DatapathID `yaml:"datapath"`
	Port      Port       `yaml:"port"`
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

// Remote says that the host is another machine, as far as its prefix tells: it
// runs ssh. Such a host has files, processes and a clock of its own.
func (h TestbedHost) Remote() bool {
	return slices.ContainsFunc(h.Exec, func(word string) bool { return path.Base(word) == "ssh" && !strings.HasPrefix(word, "-") })
}

// Argv is the command line that, run here, runs the command on the host. ssh
// joins its words with blanks and hands them to a shell at the other side; so
// that they arrive as they are, they are quoted for it.
func (h TestbedHost) Argv(command ...string) []string {
	argv := slices.Clone(h.Exec)
	if !h.Remote() {
		return append(argv, command...)
	}
	for _, word := range command {
		argv = append(argv, Quoted(word))
	}
	return argv
}

// Quoted is the word as a POSIX shell has to read it.
func Quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

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
