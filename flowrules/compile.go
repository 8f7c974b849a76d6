package flowrules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// Compile turns the input into the rules of the switch. Two equal inputs give
// equal plans, whatever the order of their lists. The error says which part of
// the input is wrong.
func Compile(in Input) (Plan, error) {
	c, err := newCompiler(in)
	if err != nil {
		return Plan{}, err
	}
	c.admit()
	c.policy()
	c.forward()
	c.plan.sort()
	return c.plan, nil
}

// link is a directed pair of hosts, as indices into compiler.hosts.
type link struct{ src, dst int }

type compiler struct {
	in      Input
	hosts   []Host // sorted by port
	index   map[model.NodeID]int
	timeout uint16

	// Links that are dropped as a whole, each with the lowest id of a partition that cuts
	// it: cut in the policy table, guard behind the gate.
	cut, guard map[link]uint32
	// The same for links of which only some traffic is dropped.
	cutSome, guardSome map[link]some
	resets             map[link]some // the part of the dropped traffic that the controller resets
	gate               map[link]bool
	mirror             map[link]bool
	down               map[link]bool // its meter is turned down
	plan               Plan
}

func newCompiler(in Input) (*compiler, error) {
	c := &compiler{in: in, hosts: slices.Clone(in.Hosts), index: map[model.NodeID]int{},
		cut: map[link]uint32{}, guard: map[link]uint32{}, cutSome: map[link]some{}, guardSome: map[link]some{}, resets: map[link]some{}, gate: map[link]bool{}, mirror: map[link]bool{}, down: map[link]bool{},
		plan: Plan{Lab: in.Lab}}
	if in.HardTimeout%time.Second != 0 || in.HardTimeout < time.Second || in.HardTimeout > 65535*time.Second {
		return nil, fmt.Errorf("flow rules: hard timeout %v: use whole seconds from 1s to 65535s", in.HardTimeout)
	}
	c.timeout = uint16(in.HardTimeout / time.Second)
	if err := c.checkHosts(); err != nil {
		return nil, err
	}
	var err error
	if c.gate, err = c.links("gate", in.Gate); err != nil {
		return nil, err
	}
	if c.mirror, err = c.links("mirror", in.Mirror); err != nil {
		return nil, err
	}
	if len(c.mirror) > 0 {
		if in.MirrorPort == 0 || in.MirrorPort > portMax {
			return nil, fmt.Errorf("flow rules: mirrored pairs but mirror port %d: name a port of the switch in the testbed's mirrors", in.MirrorPort)
		}
		for _, h := range c.local() {
			if h.Port == in.MirrorPort {
				return nil, fmt.Errorf("flow rules: mirror port %d is the port of host %s: give the mirror a port of its own", in.MirrorPort, h.Name)
			}
		}
	}
	if err := c.checkGatePort(); err != nil {
		return nil, err
	}
	if need := MetersFor(len(c.local()), len(c.hosts)-len(c.local())); in.TopMeter != 0 && uint64(in.TopMeter) < uint64(need) {
		return nil, fmt.Errorf("flow rules: the switch's highest meter is %d, and %d hosts of %d need %d meters: write cuts: rules in the testbed file", in.TopMeter, len(c.local()), len(c.hosts), need)
	}
	return c, c.partitions()
}

func (c *compiler) checkGatePort() error {
	gate := c.in.GatePort
	if gate == 0 {
		if c.in.ByPort {
			return errors.New("flow rules: pairs gated by a port but no gate port: name a port of the switch in the testbed's gates")
		}
		return nil
	}
	if gate > portMax {
		return fmt.Errorf("flow rules: gate port %d: ports go from 1 to %#x", gate, portMax)
	}
	if gate == c.in.MirrorPort {
		return fmt.Errorf("flow rules: port %d is both gate and mirror port: give each a port of its own", gate)
	}
	if slices.Contains(c.in.Trunks, gate) {
		return fmt.Errorf("flow rules: gate port %d leads to another switch: give the gate a port of its own", gate)
	}
	for _, h := range c.local() {
		switch {
		case h.Port == gate:
			return fmt.Errorf("flow rules: gate port %d is the port of host %s: give the gate a port of its own", gate, h.Name)
		case h.Port > model.MaxGatedPort:
			return fmt.Errorf("flow rules: host %s on port %d beside a gate port, whose tags carry ports 1 to %d: "+
				"give the host a port in that range, or gate by packet-in", h.Name, h.Port, model.MaxGatedPort)
		}
	}
	return nil
}

func (c *compiler) checkHosts() error {
	slices.SortFunc(c.hosts, func(a, b Host) int { // those of this switch first
		return cmp.Or(model.FalseFirst(a.far(), b.far()), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name))
	})
	macs, ips := map[MAC]model.NodeID{}, map[string]model.NodeID{}
	for i, h := range c.hosts {
		switch {
		case h.Port == 0 || h.Port > portMax:
			return fmt.Errorf("flow rules: host %s on port %d: ports go from 1 to %#x", h.Name, h.Port, portMax)
		case !h.far() && slices.Contains(c.in.Trunks, h.Port):
			return fmt.Errorf("flow rules: host %s is on port %d, which leads to another switch", h.Name, h.Port)
		case !h.far() && i > 0 && c.hosts[i-1].Port == h.Port:
			return fmt.Errorf("flow rules: hosts %s and %s are both on port %d: give each host a port of its own", c.hosts[i-1].Name, h.Name, h.Port)
		case h.MAC == MAC{} || h.MAC[0]&1 != 0:
			return fmt.Errorf("flow rules: host %s has MAC %s: want the unicast address of its interface", h.Name, h.MAC)
		case !h.IP.Is4():
			return fmt.Errorf("flow rules: host %s has address %v: want an IPv4 address", h.Name, h.IP)
		}
		if o, dup := macs[h.MAC]; dup {
			return fmt.Errorf("flow rules: hosts %s and %s have the same MAC %s", o, h.Name, h.MAC)
		}
		if o, dup := ips[h.IP.String()]; dup {
			return fmt.Errorf("flow rules: hosts %s and %s have the same address %s", o, h.Name, h.IP)
		}
		if _, dup := c.index[h.Name]; dup {
			return fmt.Errorf("flow rules: two hosts are called %s", h.Name)
		}
		macs[h.MAC], ips[h.IP.String()], c.index[h.Name] = h.Name, h.Name, i
	}
	return nil
}

// local lists the hosts of this switch.
func (c *compiler) local() []Host {
	n := slices.IndexFunc(c.hosts, Host.far)
	if n < 0 {
		n = len(c.hosts)
	}
	return c.hosts[:n]
}

// tree lists the ports by which broadcasts that came in by port go on to other
// switches.
func (c *compiler) tree(port uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(c.in.Tree), func(t uint32) bool { return t == port })
}

// here resolves a directed pair. ok is false if one end is on another switch.
func (c *compiler) here(what string, l model.Link) (li link, ok bool, err error) {
	s, sok := c.index[l.Src]
	d, dok := c.index[l.Dst]
	for _, e := range []struct {
		name model.NodeID
		ok   bool
	}{{l.Src, sok}, {l.Dst, dok}} {
		if !e.ok && !slices.Contains(c.in.Elsewhere, e.name) {
			return link{}, false, fmt.Errorf("flow rules: %s names host %q, which the testbed does not have", what, e.name)
		}
	}
	return link{s, d}, sok && dok, nil
}

func (c *compiler) links(what string, pairs []Pair) (map[link]bool, error) {
	out := map[link]bool{}
	for _, p := range pairs {
		if p.A == p.B {
			return nil, fmt.Errorf("flow rules: %s pair %s and %s: a pair is two different hosts", what, p.A, p.B)
		}
		li, ok, err := c.here(what, model.Link{Src: p.A, Dst: p.B})
		if err != nil {
			return nil, err
		}
		if ok {
			out[li], out[link{li.dst, li.src}] = true, true
		}
	}
	return out, nil
}

func (c *compiler) partitions() error {
	names := slices.Clone(c.in.Elsewhere)
	for _, h := range c.hosts {
		names = append(names, h.Name)
	}
	seen := map[uint32]bool{}
	for _, p := range c.in.Partitions {
		if p.ID == 0 || seen[p.ID] {
			return fmt.Errorf("flow rules: partition id %d: ids start at 1 and are unique", p.ID)
		}
		seen[p.ID] = true
		if err := p.Partition.Fits(names); err != nil { // a target's hosts need not be all
			return err
		}
		for _, l := range p.Partition.Links() {
			li, ok, err := c.here("partition", l)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			into, intoSome := c.cut, c.cutSome
			if p.Behind && c.gate[li] {
				into, intoSome = c.guard, c.guardSome
			}
			if c.metered(li) && len(p.Partition.Only) == 0 {
				c.down[li] = true
			}
			if p.Lifted {
				continue
			}
			if err := p.Partition.NeedsGate(); err != nil && !(p.Behind && c.gate[li]) {
				return err // behind the gate no rule is needed: the gate decides on every held packet
			}
			if p.Partition.Effect == model.Reset && !p.Behind {
				c.resets[li] = c.resets[li].add(tcpOf(p.Partition.Only), p.ID)
			}
			if len(p.Partition.Only) > 0 {
				intoSome[li] = intoSome[li].add(p.Partition.Only, p.ID)
				continue
			}
			if id, has := into[li]; !has || p.ID < id {
				into[li] = p.ID
			}
		}
	}
	return nil
}

func (c *compiler) add(r Rule, partition uint32) {
	r.Cookie = NewCookie(r.Kind, c.in.Lab, partition)
	c.plan.Rules = append(c.plan.Rules, r)
}

func (c *compiler) admit() {
	if gate := c.in.GatePort; gate != 0 {
		back := Rule{Kind: KindAdmit, Table: TableAdmit, Priority: prioFromGate}
		for _, h := range c.local() {
			back.Match = Match{InPort: gate, VLAN: uint16(h.Port)}
			back.Do = Do{Pop: true, Output: []uint32{h.Port}}
			c.add(back, 0)
		}
		back.Match = Match{InPort: gate, VLAN: GateFence}
		back.Do = Do{Output: []uint32{portInPort}}
		c.add(back, 0)
	}
	c.add(Rule{Kind: KindAdmit, Table: TableAdmit, Priority: prioFromController,
		Match: Match{InPort: portController}, Do: Do{Goto: TableForward}}, 0)
	for _, h := range c.local() {
		c.admitPort(h.Port, c.in.Changes[h.Name], h.MAC)
	}
	n := 0
	for _, h := range c.hosts[len(c.local()):] {
		n += c.in.Changes[h.Name]
	}
	for _, t := range c.in.Trunks {
		c.admitPort(t, n, MAC{})
	}
}

// admitPort admits what comes in by a port. After each change it matches another bit of
// the source address, so that the switch looks at every packet anew.
func (c *compiler) admitPort(port uint32, changes int, mac MAC) {
	c.add(Rule{Kind: KindAdmit, Table: TableAdmit, Priority: prioFromHost,
		Match: Match{InPort: port}, Do: Do{Metadata: uint64(port), Goto: TablePolicy}}, 0)
	r := Rule{Kind: KindFresh, Table: TableAdmit, Priority: prioFresh,
		Match: Match{InPort: port}, Do: Do{Metadata: uint64(port), Goto: TablePolicy}}
	n := ((changes % 48) + 48) % 48
	r.Match.EthSrcMask[n/8] = 1 << (n % 8)
	r.Match.EthSrc[n/8] = mac[n/8] & r.Match.EthSrcMask[n/8]
	c.add(r, 0)
}

func (c *compiler) policy() {
	c.add(Rule{Kind: KindDefault, Table: TablePolicy, Priority: prioDefault, Do: Do{Goto: TableForward}}, 0)
	for s, src := range c.hosts {
		if g := c.reach(s); g.narrowed() || g.tapped() {
			c.flooded(s, Match{}, prioFlood, g)
		}
		c.floodSome(s)
		if src.far() {
			continue // its own switch does the rest
		}
		asks := c.reach(s, model.Traffic{Proto: "arp"})
		for d, dst := range c.hosts {
			if s == d {
				continue
			}
			li := link{s, d}
			r := Rule{Table: TablePolicy, Link: model.Link{Src: src.Name, Dst: dst.Name}}
			c.dropSome(r, src, dst, c.cutSome[li], prioDropSome)
			c.reset(r, src, dst, c.resets[li])
			usual := r
			usual.Do.Goto = TableForward
			switch {
			case c.cut[li] != 0:
				r.Kind, r.Priority, r.HardTimeout = KindDrop, prioDrop, c.timeout
				c.pair(r, src, dst, c.cut[li])
			case c.gate[li]:
				r.Kind, r.Priority, r.HardTimeout = KindGate, prioGate, c.timeout
				c.hold(&r.Do, src)
				c.pair(r, src, dst, 0)
				usual = r
			case c.mirror[li]:
				r.Kind, r.Priority = KindMirror, prioMirror
				r.Do = Do{Output: []uint32{c.in.MirrorPort}, Goto: TableForward}
				usual = r
				uni, arp := unicast(r, src, dst), request(r, src, dst)
				c.add(uni, 0)
				if asks.narrowed() { // the flood of table 2 would go to everybody
					arp.HardTimeout, arp.Do = c.timeout, Do{Output: append([]uint32{c.in.MirrorPort}, asks.ports...)}
				}
				c.add(arp, 0)
			case asks.tapped() && !c.metered(li): // ARP requests for a host that is not tapped go to no tap
				arp := request(r, src, dst)
				arp.Kind, arp.Priority, arp.HardTimeout, arp.Do = KindFlood, prioMeter, c.timeout, Do{Output: asks.ports}
				c.add(arp, 0)
			}
			if c.metered(li) {
				c.meter(r, src, dst, li, asks)
				usual.Do.Meter = c.meterOf(li)
			}
			c.spare(usual, src, dst, c.cutSome[li], prioDropSome)
			if c.in.TopMeter != 0 { // even if a tap takes the pair now: taps come and go
				c.plan.Meters = append(c.plan.Meters, Meter{ID: c.meterOf(li), Link: r.Link, Down: c.down[li]})
			}
		}
	}
}

// from matches the broadcasts of a host on this switch.
func from(h Host) Match {
	if h.far() {
		return Match{InPort: h.Tree, EthSrc: h.MAC, EthSrcMask: allOnes}
	}
	return Match{InPort: h.Port}
}

// reached is where this switch sends the broadcasts of a host.
type reached struct {
	ports  []uint32 // they leave by these
	lowest uint32   // lowest id of a partition that keeps them from a host of this switch; 0: none does
	gated  bool     // a gate keeps them from a host of this switch
	held   bool     // the gate of this switch gets them
	copied bool     // the mirror port of this switch gets them
}

// narrowed says that the broadcasts do not simply go to every host.
func (r reached) narrowed() bool { return r.lowest != 0 || r.gated || r.held }

// tapped says that a tap of this switch gets them.
func (r reached) tapped() bool { return r.held || r.copied }

// reach is where this switch sends those broadcasts of host s that belong to all of the
// traffic. Only the sender's switch taps them. Only the receiver's switch keeps them from a
// host.
func (c *compiler) reach(s int, of ...model.Traffic) (out reached) {
	for d, dst := range c.hosts {
		if d == s {
			continue
		}
		li := link{s, d}
		cut := []uint32{c.cut[li]} // not c.guard: the gate decides on that
		for _, t := range of {
			cut = append(cut, c.cutSome[li].cuts(t))
		}
		passes := slices.Max(cut) == 0
		if passes && !c.hosts[s].far() {
			out.held = out.held || c.gate[li]
			out.copied = out.copied || c.mirror[li] && !c.gate[li]
		}
		if dst.far() {
			continue
		}
		for _, id := range cut {
			if id != 0 && (out.lowest == 0 || id < out.lowest) {
				out.lowest = id
			}
		}
		out.gated = out.gated || c.gate[li]
		if passes && !c.gate[li] {
			out.ports = append(out.ports, dst.Port)
		}
	}
	out.ports = append(out.ports, c.tree(c.hosts[s].Tree)...)
	return out
}

// hold sends what comes from a host to the gate, by the gate's transport.
func (c *compiler) hold(do *Do, src Host) {
	if c.in.ByPort {
		do.Push, do.PushTo = uint16(src.Port), c.in.GatePort
		return
	}
	do.Output = append(do.Output, portController)
}

func (c *compiler) pair(r Rule, src, dst Host, partition uint32) {
	c.add(unicast(r, src, dst), partition)
	c.add(request(r, src, dst), partition)
}

// unicast completes r for frames addressed to dst.
func unicast(r Rule, src, dst Host) Rule {
	r.Match = Match{InPort: src.Port, EthDst: dst.MAC, EthDstMask: allOnes}
	return r
}

// request completes r for ARP requests to everybody that ask for dst.
func request(r Rule, src, dst Host) Rule {
	r.Match = Match{InPort: src.Port, EthDst: allOnes, EthDstMask: allOnes, EthType: etherTypeARP, ARPTarget: dst.IP}
	return r
}

func (c *compiler) forward() {
	for s, src := range c.hosts {
		c.add(Rule{Kind: KindForward, Table: TableForward, Priority: prioUnicast,
			Match: Match{EthDst: src.MAC, EthDstMask: allOnes}, Do: Do{Output: []uint32{src.out()}}}, 0)
		if src.far() {
			continue
		}
		for d, dst := range c.hosts {
			if d == s {
				continue
			}
			if id := c.guard[link{s, d}]; id != 0 {
				r := Rule{Kind: KindDrop, Table: TableForward, Priority: prioGuard, HardTimeout: c.timeout,
					Link: model.Link{Src: src.Name, Dst: dst.Name}}
				c.pair(r, src, dst, id)
			}
			r := Rule{Table: TableForward, Link: model.Link{Src: src.Name, Dst: dst.Name}}
			c.dropSome(r, src, dst, c.guardSome[link{s, d}], prioGuardSome)
			r.Do.Output = []uint32{dst.out()}
			c.spare(r, src, dst, c.guardSome[link{s, d}], prioGuardSome)
		}
		c.flood(src.Port)
	}
	for _, t := range c.in.Tree {
		c.flood(t)
	}
}

// flood sends broadcasts that came in by port to everybody else.
func (c *compiler) flood(port uint32) {
	var others []uint32
	for _, h := range c.local() {
		if h.Port != port {
			others = append(others, h.Port)
		}
	}
	others = append(others, c.tree(port)...)
	if len(others) > 0 {
		c.add(Rule{Kind: KindForward, Table: TableForward, Priority: prioGroup,
			Match: Match{Metadata: uint64(port), EthDst: group, EthDstMask: group}, Do: Do{Output: others}}, 0)
	}
}
