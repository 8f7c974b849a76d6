package lab

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"netsplit/model"
)

// Spec says what lab to make.
type Spec struct {
	// Name is the lab's name: lower-case letters, digits and '-', at most 32.
	Name string
	// Hosts are the hosts, in port order: the first is on port 1.
	Hosts []model.NodeID
	// Controller is the OpenFlow target the bridge dials, e.g.
	// "tcp:127.0.0.1:6653". Empty: none, set later with SetController.
	Controller string
	// Ports are those that servers on the hosts listen on: no connection is made from them
	// (net.ipv4.ip_local_reserved_ports). A probe of a server that is down would connect to itself
	// one day, and its server not start for a minute after.
	Ports []uint16
	// NoGate leaves the gate port out: held packets go by packet-in.
	NoGate bool
	// Owner is the process the lab belongs to: once it is dead the lab is
	// rubbish, which the next Up or Down removes. 0: the lab stays until Down.
	Owner int
}

const (
	// MaxHosts is the largest number of hosts in one lab: they share a /24.
	MaxHosts = 200
	// MirrorPort is the OpenFlow port number of a lab's mirror port.
	MirrorPort = 1000
	// GatePort is the OpenFlow port number of a lab's gate port.
	GatePort = 1001

	maxLabs = 128 * 256 // second and third byte of 10.64.0.0/9
)

var (
	labName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)
	target   = regexp.MustCompile(`^(tcp|ssl|ptcp|pssl|unix|punix):[^\s,"]+$`)
)

func checkName(name string) error {
	if !labName.MatchString(name) {
		return fmt.Errorf("lab name %q: use 1 to 32 lower-case letters, digits and '-', beginning with a letter or digit", name)
	}
	return nil
}

func (s Spec) validate() error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	if len(s.Hosts) == 0 {
		return fmt.Errorf("lab %s: no hosts; name at least one", s.Name)
	}
	if len(s.Hosts) > MaxHosts {
		return fmt.Errorf("lab %s: %d hosts are too many; one lab holds at most %d, use several labs", s.Name, len(s.Hosts), MaxHosts)
	}
	seen := map[model.NodeID]bool{}
	for _, h := range s.Hosts {
		if !hostName.MatchString(string(h)) {
			return fmt.Errorf("lab %s: host name %q: use 1 to 32 letters, digits, '_', '.' and '-', beginning with a letter or digit", s.Name, h)
		}
		if seen[h] {
			return fmt.Errorf("lab %s: host %s is named twice; host names must differ", s.Name, h)
		}
		seen[h] = true
	}
	if err := checkController(s.Controller); s.Controller != "" && err != nil {
		return fmt.Errorf("lab %s: %w", s.Name, err)
	}
	if s.Owner < 0 {
		return fmt.Errorf("lab %s: owner %d is no process id; use 0 for a lab that stays until it is taken down", s.Name, s.Owner)
	}
	return nil
}

func checkController(c string) error {
	if !target.MatchString(c) {
		return fmt.Errorf("controller %q: want an OpenFlow target such as tcp:127.0.0.1:6653", c)
	}
	return nil
}

// The names below depend on nothing but their arguments, so that a lab made
// twice has the same switch, ports and addresses. Interface names are short
// (IFNAMSIZ is 16, linux/if.h), hence the hash.

// labID is six hex digits; salt counts the attempts after a collision.
func labID(name string, salt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", name, salt))
	return hex.EncodeToString(sum[:3])
}

// datapathOf gives the lab's datapath id. The upper 16 bits spell "ns", so it
// is never a MAC-derived id of another bridge.
func datapathOf(name string) model.DatapathID {
	sum := sha256.Sum256([]byte("dpid/" + name))
	return model.DatapathID(0x6e73<<48 | binary.BigEndian.Uint64(sum[:8])>>16)
}

const (
	linkPrefix  = "nsl"
	netnsPrefix = "nsl-"
)

func bridgeName(id string) string         { return linkPrefix + id + "br" }
func portName(id string, port int) string { return fmt.Sprintf("%s%sp%d", linkPrefix, id, port) }
func mirrorSwitchName(id string) string   { return linkPrefix + id + "ms" }
func mirrorReaderName(id string) string   { return linkPrefix + id + "mr" }
func gateSwitchName(id string) string     { return linkPrefix + id + "gs" }
func gateReaderName(id string) string     { return linkPrefix + id + "gr" }
func netnsName(lab, host string) string   { return netnsPrefix + lab + "-" + host }
func isOurLink(name, id string) bool      { return strings.HasPrefix(name, linkPrefix+id) }
func subnetOf(index int) (hi, lo byte)    { return byte(64 + index/256), byte(index % 256) }
func hostMAC(index, port int) string      { return macOf(index, byte(port)) }
func bridgeMAC(index int) string          { return macOf(index, 0xfe) }
func addrOf(index, port int) netip.Addr {
	hi, lo := subnetOf(index)
	return netip.AddrFrom4([4]byte{10, hi, lo, byte(port)})
}

func macOf(index int, last byte) string {
	hi, lo := subnetOf(index)
	return net.HardwareAddr{0x02, 0x6e, hi, lo, 0, last}.String()
}
