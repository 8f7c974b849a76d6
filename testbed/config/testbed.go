package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$`)

// Read reads and checks a testbed file. An error names the file, and the line
// where there is one.
func Read(path string) (*model.Testbed, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("testbed: %w; `netsplit lab up` prints one, netsplit testbed learn writes one from what it sees, docs/testbeds.md explains it", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("testbed %s: %w", path, err)
	}
	return t, nil
}

// Parse reads and checks the text of a testbed file.
func Parse(data []byte) (*model.Testbed, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, explain(err, lines{})
	}
	at := lines{&doc}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	t := new(model.Testbed)
	if err := dec.Decode(t); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("is empty; it needs name and hosts")
		}
		return nil, explain(err, at)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one YAML document; keep one")
	}
	return t, check(t, at)
}

// Check says what is wrong with a testbed, if anything is.
func Check(t *model.Testbed) error { return check(t, lines{}) }

// Write checks a testbed and writes its file, with this mode. The file is replaced whole.
func Write(path string, t *model.Testbed, mode os.FileMode) error {
	if err := Check(t); err != nil {
		return fmt.Errorf("testbed %s: %w", path, err)
	}
	data, err := yaml.Marshal(t)
	if err != nil {
		return fmt.Errorf("testbed %s: %w", path, err)
	}
	if err := renameio.WriteFile(path, data, mode, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("testbed %s: cannot write it: %w", path, err)
	}
	return nil
}

func check(t *model.Testbed, l lines) error {
	var errs []error
	bad := func(where, format string, args ...any) {
		errs = append(errs, fmt.Errorf(where+format, args...))
	}
	if t.Name == "" {
		bad("", "name is missing; give the testbed a name")
	}
	if len(t.Hosts) == 0 {
		bad("", "hosts is missing; name at least one host")
	}
	if n := len(t.Hosts); n > model.MaxHosts {
		return fmt.Errorf("%d hosts are too many; a testbed has at most %d: write several testbeds", n, model.MaxHosts)
	}
	switched := t.Backend != model.BackendNFTables
	switch t.Backend {
	case "", model.BackendSwitch, model.BackendNFTables:
	default:
		bad("", "backend %q is unknown; use %s (OpenFlow) or %s (the hosts drop packets themselves)", string(t.Backend), model.BackendSwitch, model.BackendNFTables)
	}
	if !switched && len(t.Mirrors)+len(t.Gates) > 0 {
		bad("", "mirrors and gates are ports of a switch, and with backend %s there is none; leave them out", t.Backend)
	}
	if t.Cuts != "" && t.Cuts != model.CutByMeters && t.Cuts != model.CutByRules {
		bad("", "cuts %q: want %s (the default) or %s", t.Cuts, model.CutByMeters, model.CutByRules)
	}
	names, macs, ips, ports := map[string]string{}, map[string]string{}, map[string]string{}, map[model.SwitchPort]string{}
	for i, h := range t.Hosts {
		at := l.at("hosts", i)
		who := fmt.Sprintf("host %s", h.Name)
		if h.Name == "" {
			who = fmt.Sprintf("host number %d", i+1)
			bad(at, "%s: name is missing", who)
		} else if !hostName.MatchString(string(h.Name)) {
			bad(at, "host name %q: use 1 to 63 letters, digits, -, _ and ., a letter, digit or _ first: the name stands in lists with commas, in paths and in file names", h.Name)
		} else if names[string(h.Name)] != "" {
			bad(at, "%s is listed twice; host names must differ", who)
		}
		names[string(h.Name)] = who
		for _, name := range slices.Sorted(maps.Keys(h.Labels)) {
			if !model.Labelling(name) {
				bad(at, "%s: label %q: %s", who, name, model.WantLabelling)
			}
		}
		if !switched && (h.Datapath != 0 || !h.Port.IsZero()) {
			bad(at, "%s: datapath and port belong to a switch, and with backend %s there is none; leave them out", who, t.Backend)
		}
		if h.Datapath == 0 && switched {
			bad(at, "%s: datapath is missing; `ovs-vsctl get bridge BR datapath_id` prints it", who)
		}
		if !switched {
			// it has no port
		} else if err := h.Port.Validate(); err != nil {
			bad(at, "%s: %w", who, err)
		} else {
			p := model.SwitchPort{Datapath: h.Datapath, Port: h.Port}
			if other := ports[p]; other != "" {
				bad(at, "%s and %s are both on port %v of switch %s; every host needs a port of its own", other, who, h.Port, h.Datapath)
			}
			ports[p] = who
		}
		if mac, err := net.ParseMAC(h.MAC); err != nil || len(mac) != 6 {
			bad(at, "%s: mac %q is no Ethernet address; write it as 02:00:00:00:00:01", who, h.MAC)
		} else {
			if mac[0]&1 != 0 {
				bad(at, "%s: mac %s is a group address; give the host's own", who, mac)
			}
			if other := macs[mac.String()]; other != "" {
				bad(at, "%s and %s have the same mac %s", other, who, mac)
			}
			macs[mac.String()] = who
		}
		switch {
		case !h.IP.IsValid():
			bad(at, "%s: ip is missing; give the address by which other hosts reach it", who)
		case h.IP.IsUnspecified() || h.IP.IsMulticast() || h.IP.IsLoopback():
			bad(at, "%s: ip %s is not the address of one host on the switch", who, h.IP)
		case switched && !h.IP.Is4():
			bad(at, "%s: ip %s is no IPv4 address, which the rules for a switch want; a cut holds for the host's IPv6 packets too", who, h.IP)
		case ips[h.IP.String()] != "":
			bad(at, "%s and %s have the same ip %s", ips[h.IP.String()], who, h.IP)
		}
		ips[h.IP.String()] = who
		if len(h.Exec) == 0 || h.Exec[0] == "" {
			bad(at, "%s: exec is missing; give the command that runs another on the host, e.g. [nsenter, --net=/run/netns/NAME]", who)
		}
	}
	for i, k := range t.Links {
		at := l.at("links", i)
		for _, p := range []model.SwitchPort{k.A, k.B} {
			if p.Datapath == 0 || p.Port.IsZero() {
				bad(at, "link number %d: a and b must each name datapath and port", i+1)
			} else if err := p.Port.Validate(); err != nil {
				bad(at, "link number %d: %w", i+1, err)
			} else if other := ports[p]; other != "" {
				bad(at, "link number %d is on the port of %s; it needs a port of its own at both ends", i+1, other)
			}
			ports[p] = fmt.Sprintf("link number %d", i+1)
		}
		if k.A.Datapath == k.B.Datapath {
			bad(at, "link number %d: both ends are on switch %s; a link joins two switches", i+1, k.A.Datapath)
		}
	}
	for i, m := range t.Mirrors {
		at := l.at("mirrors", i)
		if m.Datapath == 0 || m.Port.IsZero() {
			bad(at, "mirror number %d: datapath and port must name a switch port", i+1)
		} else if err := m.Port.Validate(); err != nil {
			bad(at, "mirror number %d: %w", i+1, err)
		}
		if m.Interface == "" {
			bad(at, "mirror number %d: interface is missing; give the local interface that reads the copies", i+1)
		}
		if other := ports[model.SwitchPort{Datapath: m.Datapath, Port: m.Port}]; other != "" {
			bad(at, "mirror number %d is on the port of %s; it needs a port of its own", i+1, other)
		}
		ports[model.SwitchPort{Datapath: m.Datapath, Port: m.Port}] = fmt.Sprintf("mirror number %d", i+1)
	}
	type end struct{ netns, iface string }
	gates, read := map[model.DatapathID]int{}, map[end]int{}
	for i, m := range t.Mirrors {
		read[end{m.Netns, m.Interface}] = i + 1
	}
	for i, g := range t.Gates {
		at := l.at("gates", i)
		if g.Datapath == 0 || g.Port.IsZero() {
			bad(at, "gate number %d: datapath and port must name a switch port", i+1)
		} else if err := g.Port.Validate(); err != nil {
			bad(at, "gate number %d: %w", i+1, err)
		}
		if g.Interface == "" {
			bad(at, "gate number %d: interface is missing; give the local interface that the held packets come to", i+1)
		} else if n := read[end{g.Netns, g.Interface}]; n > 0 {
			bad(at, "gate number %d and mirror number %d are both on interface %s; each needs one of its own", i+1, n, g.Interface)
		}
		if other := ports[model.SwitchPort{Datapath: g.Datapath, Port: g.Port}]; other != "" {
			bad(at, "gate number %d is on the port of %s; it needs a port of its own", i+1, other)
		}
		ports[model.SwitchPort{Datapath: g.Datapath, Port: g.Port}] = fmt.Sprintf("gate number %d", i+1)
		if other := gates[g.Datapath]; other > 0 {
			bad(at, "gates number %d and %d are both on switch %s; a switch has one", other, i+1, g.Datapath)
		}
		gates[g.Datapath] = i + 1
		hosts := 0
		for _, h := range t.Hosts {
			if h.Datapath != g.Datapath {
				continue
			}
			hosts++
			if h.Port.Number > model.MaxGatedPort && h.Port.Number <= model.MaxPort {
				bad(at, "gate number %d: host %s of its switch is on port %v; the tags of a gate port carry ports 1 to %d, so give the host such a port or leave the gate out",
					i+1, h.Name, h.Port, model.MaxGatedPort)
			}
		}
		if hosts == 0 && g.Datapath != 0 {
			bad(at, "gate number %d: no host is on switch %s, so it holds nothing; leave it out or correct its datapath", i+1, g.Datapath)
		}
	}
	return errors.Join(slices.Concat(errs, checkRoles(t, l), checkHooks(t))...)
}
