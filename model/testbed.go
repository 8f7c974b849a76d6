package model

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxHosts is the most hosts of a testbed: rules for a switch take time with the square of them.
const MaxHosts = 2000

// Testbed is one or several OpenFlow 1.3 switches and the hosts on their ports. The lab writes such a
// file; one written by hand makes netsplit drive other switches, or hosts without a switch.
type Testbed struct {
	// A short name.
	// Required. Example: rack7
	Name string `yaml:"name"`
	// What drops the packets of partitions: `switch`, or `nftables` (the hosts themselves; manual partitions only).
	// Default: switch. Example: nftables
	Backend Backend `yaml:"backend,omitempty"`
	// The hosts.
	// Required.
	Hosts []TestbedHost `yaml:"hosts"`
	// Cables between switches; hosts on different switches need them.
	Links []SwitchLink `yaml:"links,omitempty"`
	// Ports that get a copy of watched packets. Without one, clean runs use the gate.
	Mirrors []MirrorPort `yaml:"mirrors,omitempty"`
	// Ports by which held packets leave the switch and return, at most one per switch. Without one, they take the controller's session.
	Gates []GatePort `yaml:"gates,omitempty"`
	// How manual partitions are cut: `meters` first and then drop rules, or `rules` alone.
	// Default: meters, where a switch has them. Example: rules
	Cuts CutBy `yaml:"cuts,omitempty"`
	// How to see which host has a role now, for partitions that name a leader.
	Roles map[string]Role `yaml:"roles,omitempty"`
	// Commands that start and stop the target's servers. Without them, netsplit starts the servers itself.
	Hooks Hooks `yaml:"hooks,omitempty"`
}

// Hooks are lines for `sh` on this machine, one for each action on a server. A hook has succeeded when it ends with
// status 0; what it leaves in the background goes on. Templates: `.Host`, `.Address` (the host's `ip`), `.Process` and
// `.Command` (of the target file), `.Labels`, `.Run`, and `quote`, which quotes for one more shell.
type Hooks struct {
	// Starts a server. Required.
	// Example: "ssh root@{{.Address}} systemctl start {{.Process}}"
	Start string `yaml:"start,omitempty"`
	// Stops it in order. One of `stop` and `crash` is required.
	// Example: "ssh root@{{.Address}} systemctl stop {{.Process}}"
	Stop string `yaml:"stop,omitempty"`
	// Kills it.
	// Example: "ssh root@{{.Address}} systemctl kill -s KILL {{.Process}}"
	Crash string `yaml:"crash,omitempty"`
	// Suspends it.
	// Example: "ssh root@{{.Address}} systemctl kill -s STOP {{.Process}}"
	Pause string `yaml:"pause,omitempty"`
	// Resumes it.
	// Example: "ssh root@{{.Address}} systemctl kill -s CONT {{.Process}}"
	Resume string `yaml:"resume,omitempty"`
	// Brings a node back to the state in which a run starts; runs on every node before every run.
	// Example: "ssh root@{{.Address}} rm -rf /var/lib/thing"
	Reset string `yaml:"reset,omitempty"`
	// How long each may take, after which it is killed with all that it started.
	// Default: 30s. Example: 20s
	Timeout time.Duration `yaml:"timeout,omitempty"`
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
	// The switch.
	// Required. Example: 0000a1b2c3d4e5f6
	Datapath DatapathID `yaml:"datapath"`
	// Its port, by number or by the name that the switch gives it.
	// Required. Example: 48
	Port Port `yaml:"port"`
}

// SwitchLink joins two ports of different switches.
type SwitchLink struct {
	// One end.
	// Required.
	A SwitchPort `yaml:"a,flow"`
	// The other end.
	// Required.
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
	BackendSwitch   Backend = "switch"   // OpenFlow 1.3: manual partitions, and campaigns
	BackendNFTables Backend = "nftables" // the hosts themselves: manual partitions only
)

// CutBy is what a partition that is not the gate's cuts by.
type CutBy string

// Ways to cut.
const (
	CutByMeters CutBy = "meters" // turned down, then drop rules; the default where a switch has meters
	CutByRules  CutBy = "rules"  // drop rules alone
)

// Role says which hosts have a role now: those whose answer to the probe matches.
type Role struct {
	// The hosts that may have it.
	// Required. Example: [n1, n2, n3]
	Hosts []NodeID `yaml:"hosts,flow"`
	// What to ask each of them.
	// Required.
	Probe Probe `yaml:"probe"`
	// The regular expression that the answer of a host with the role matches.
	// Required. Example: 'role:master'
	Match string `yaml:"match"`
}

// TestbedHost is one host, on one port of one switch.
type TestbedHost struct {
	// Its name: 1 to 63 letters, digits, `-`, `_` and `.`, starting with a letter, a digit or `_`.
	// Required. Example: n1
	Name NodeID `yaml:"name"`
	// The id of the switch that it is on (`ovs-vsctl get bridge BR datapath_id`). Required with backend `switch`, as `port`.
	// Example: 0000a1b2c3d4e5f6
	Datapath DatapathID `yaml:"datapath,omitempty"`
	// The port, by number (at most 4093 beside a gate port) or by the name that the switch gives it.
	// Example: eth1
	Port Port `yaml:"port,omitempty"`
	// Its Ethernet address.
	// Required. Example: "52:54:00:00:00:01"
	MAC string `yaml:"mac"`
	// Its address.
	// Required. Example: 192.0.2.1
	IP netip.Addr `yaml:"ip"`
	// The command prefix that runs a command on it. ssh must not ask for anything; netsplit quotes for it.
	// Required. Example: [ssh, root@n1]
	Exec []string `yaml:"exec,flow"`
	// The path of the netsplit program on it.
	// Default: the path here; on a host reached by ssh, a copy that netsplit puts there. Example: /usr/local/bin/netsplit
	Agent string `yaml:"agent,omitempty"`
	// What it has in common with others, for partitions by label.
	// Example: {rack: a}
	Labels map[string]string `yaml:"labels,omitempty,flow"`
}

// MirrorPort is a switch port whose other end netsplit can read.
type MirrorPort struct {
	// The switch.
	// Required. Example: 0000a1b2c3d4e5f6
	Datapath DatapathID `yaml:"datapath"`
	// Its port.
	// Required. Example: 40
	Port Port `yaml:"port"`
	// The interface of this machine at the other end.
	// Required. Example: eth3
	Interface string `yaml:"interface"`
	// The network namespace that has the interface.
	// Default: ours. Example: lab
	Netns string `yaml:"netns,omitempty"`
}

// GatePort is a switch port whose other end netsplit can read and write. Frames cross it with one more VLAN
// tag: its MTU, and that of the interface, must be 4 larger than the hosts'.
type GatePort struct {
	// The switch.
	// Required. Example: 0000a1b2c3d4e5f6
	Datapath DatapathID `yaml:"datapath"`
	// Its port.
	// Required. Example: 41
	Port Port `yaml:"port"`
	// The interface of this machine at the other end.
	// Required. Example: eth4
	Interface string `yaml:"interface"`
	// The network namespace that has the interface.
	// Default: ours. Example: lab
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

// Holders of a role.
type Holders struct {
	Have []NodeID // who has it; several, or none, while a system is divided
	Of   []NodeID // all who were asked
	// Silent are those of them who did not answer: nobody knows whether they have it.
	Silent []NodeID
}
