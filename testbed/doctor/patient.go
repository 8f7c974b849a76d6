package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed/config"
)

// patient is one switch under examination.
type patient struct {
	*exam
	Testbed model.Testbed         // with the numbers of this switch's ports
	numbers map[model.Port]uint32 // of the ports of the file
	sw      *controller.Switch
	about   string
	ports   []of13.Port
	unfit   string // the check whose outcome makes others useless; "" for none
}

func (p *patient) add(level model.CheckLevel, name, found, means string, affects ...model.Ability) {
	if level == model.CheckOK {
		means = ""
	}
	p.d.Checks = append(p.d.Checks, model.DiagnosisCheck{About: p.about, Name: name, Level: level, Found: found, Means: means, Affects: affects})
}

// look is one thing that is looked at. One that loads the switch, or has its
// packets come where others look, names what depends on it.
type look struct {
	at    func(context.Context)
	name  string
	loads []model.Ability
}

func (p *patient) looks() []look {
	out := []look{{at: p.identity}, {at: p.tables}, {at: p.portsThere}, {at: p.roundTrips}, {at: p.foreign}, {at: p.meters}, {at: p.groups},
		{p.trials, "rules", everything}, {p.packetIns, "packet-in", []model.Ability{model.AbilityPacketIn}}, {p.installs, "room for rules", []model.Ability{model.AbilityCut}}}
	if slices.ContainsFunc(p.Testbed.Gates, func(g model.GatePort) bool { return g.Datapath == p.sw.ID() }) {
		out = append(out, look{p.gatePort, "gate port", []model.Ability{model.AbilityPort}})
	}
	if slices.ContainsFunc(p.Testbed.Mirrors, func(m model.MirrorPort) bool { return m.Datapath == p.sw.ID() }) {
		out = append(out, look{p.mirrorPort, "mirror port", []model.Ability{model.AbilityMirror}})
	}
	return out
}

func (p *patient) examine(ctx context.Context) {
	for _, l := range p.looks() {
		if ctx.Err() != nil {
			return
		}
		if l.loads != nil {
			if p.unfit != "" {
				p.add(model.CheckFail, l.name, "not tried, because of: "+p.unfit, "nothing until that is fixed", l.loads...)
				continue
			}
			if why := p.Busy(); why != "" && l.name != "gate port" { // of a daemon, that watches it
				p.add(model.CheckWarn, l.name, "not tried: "+why, "unknown for now: examine it again when that is over", l.loads...)
				continue
			}
		}
		lctx, cancel := context.WithTimeout(ctx, 4*p.Limit)
		l.at(lctx)
		cancel()
	}
}

func (p *patient) identity(ctx context.Context) {
	d, err := p.sw.Desc(ctx)
	if err != nil {
		p.add(model.CheckWarn, "make", err.Error(), "nothing depends on it")
		return
	}
	p.add(model.CheckOK, "make", strings.TrimSpace(d.Manufacturer+" "+d.Hardware+" "+d.Software), "")
}

// tablesNeeded are those that netsplit's rules are in.
const tablesNeeded = 3

func (p *patient) tables(context.Context) {
	f := p.sw.Features()
	found := fmt.Sprintf("%d tables, capabilities %v", f.Tables, f.Capabilities)
	switch {
	case f.Tables < tablesNeeded:
		p.add(model.CheckFail, "features", found, fmt.Sprintf("netsplit's rules need tables 0 to %d: this switch cannot be used; set it to a mode with more tables, or put the hosts on another", tablesNeeded-1), everything...)
		p.unfit = "features"
	case f.Capabilities&of13.CapFlowStats == 0:
		p.add(model.CheckWarn, "features", found, "without flow statistics a cut is proved by silence, which takes longer, and drops are not counted; nothing needs to be done",
			model.AbilityCut, model.AbilityProof)
	default:
		p.add(model.CheckOK, "features", found, "")
	}
}

func (p *patient) portsThere(ctx context.Context) {
	ports, err := p.sw.PortDesc(ctx)
	if err != nil {
		p.numbers, _ = config.Locate(p.Testbed, p.sw.ID(), nil)
		p.add(model.CheckFail, "ports", err.Error(), "without a list of ports netsplit cannot find the hosts: this switch cannot be used", everything...)
		return
	}
	p.ports = ports
	named := make([]model.Port, len(ports))
	for i, o := range ports {
		named[i] = model.Port{Number: uint32(o.No), Name: o.Name}
	}
	numbers, misplaced := config.Locate(p.Testbed, p.sw.ID(), named)
	p.numbers = numbers
	file := p.Testbed
	p.Testbed = config.Renumbered(file, p.sw.ID(), func(o model.Port) uint32 { return numbers[o] })
	at := map[uint32]of13.Port{}
	for _, o := range ports {
		at[uint32(o.No)] = o
	}
	var wrong []string
	affects := map[model.Ability]bool{}
	n := 0
	ours := map[uint32]bool{}
	look := func(what string, ref model.Port, hurts ...model.Ability) {
		n++
		port := numbers[ref]
		ours[port] = true
		o, is := at[port]
		switch why := misplaced[ref]; {
		case why != nil:
			wrong = append(wrong, fmt.Sprintf("%s: %v", what, why))
		case !is:
			wrong = append(wrong, fmt.Sprintf("%s: no port %d", what, port))
		case o.Config&of13.PortConfigDown != 0 || o.State&of13.PortStateLinkDown != 0:
			wrong = append(wrong, fmt.Sprintf("%s: port %d (%s) is down", what, port, o.Name))
		case o.Config&(of13.PortConfigNoRecv|of13.PortConfigNoFwd) != 0:
			wrong = append(wrong, fmt.Sprintf("%s: port %d (%s) is set to %v", what, port, o.Name, o.Config))
		default:
			return
		}
		for _, a := range hurts {
			affects[a] = true
		}
	}
	for _, h := range file.Hosts {
		if h.Datapath == p.sw.ID() {
			look("host "+string(h.Name), h.Port, everything...)
		}
	}
	for _, l := range file.Links {
		for _, e := range []model.SwitchPort{l.A, l.B} {
			if e.Datapath == p.sw.ID() {
				look("link", e.Port, everything...)
			}
		}
	}
	for _, g := range file.Gates {
		if g.Datapath == p.sw.ID() {
			look("gate", g.Port, model.AbilityPort)
		}
	}
	for _, m := range file.Mirrors {
		if m.Datapath == p.sw.ID() {
			look("mirror", m.Port, model.AbilityMirror)
		}
	}
	p.strangers(ours)
	if len(wrong) == 0 {
		p.add(model.CheckOK, "ports", fmt.Sprintf("all %d ports of the testbed file are there and up", n), "")
		return
	}
	var names []string
	for _, o := range ports {
		if o.No <= of13.PortMax {
			names = append(names, fmt.Sprintf("%d (%s)", uint32(o.No), o.Name))
		}
	}
	var hurts []model.Ability
	for _, a := range everything {
		if affects[a] {
			hurts = append(hurts, a)
		}
	}
	p.add(model.CheckFail, "ports", strings.Join(wrong, "; "), "the switch has ports "+strings.Join(names, ", ")+": correct the testbed file or the cable", hurts...)
}

// strangers tells of ports in use that the file does not have: our hosts reach
// nobody there while netsplit drives the switch, so that a gateway, a server of
// names or files, or the way in by ssh may be lost.
func (p *patient) strangers(ours map[uint32]bool) {
	var up []string
	for _, o := range p.ports {
		if o.No <= of13.PortMax && !ours[uint32(o.No)] && (o.Config&of13.PortConfigDown == 0 && o.State&of13.PortStateLinkDown == 0) {
			up = append(up, fmt.Sprintf("%d (%s)", uint32(o.No), o.Name))
		}
	}
	if len(up) > 0 {
		p.add(model.CheckWarn, "other ports", "up, and not in the testbed file: "+strings.Join(up, ", "),
			"while netsplit drives the switch, hosts of the file do not reach these ports: if they need one (a gateway, a file server, access by ssh), give them another network for it; a port that leads to another switch belongs under links")
	}
}

func (p *patient) route() flowrules.Route {
	routes, _ := flowrules.Routes(p.exam.Testbed.Links) // ways tells of an error
	return routes[p.sw.ID()]
}

// input is the switch's part of the testbed, as netsplit serve has it.
func (p *patient) input() flowrules.Input {
	macs := map[model.NodeID]flowrules.MAC{}
	for _, h := range p.Testbed.Hosts {
		if mac, err := net.ParseMAC(h.MAC); err == nil && len(mac) == len(flowrules.MAC{}) {
			macs[h.Name] = flowrules.MAC(mac)
		}
	}
	return flowrules.Place(p.exam.Testbed, p.sw.ID(), p.route(), macs, p.numbers)
}

func (p *patient) foreign(ctx context.Context) {
	have, err := p.sw.DumpFlows(ctx, 0, 0)
	if err != nil {
		p.add(model.CheckFail, "rules of others", "the flow tables cannot be read: "+err.Error(),
			"netsplit cannot tell its rules from others', nor repair them: this switch cannot be used; if it was only busy, examine it again", everything...)
		p.unfit = "rules of others"
		return
	}
	others := 0
	for _, s := range have {
		if s.Cookie>>56 != flowrules.Tag {
			others++
		}
	}
	var bypass, lose []string
	for _, f := range flowrules.InTheWay(have, p.input()) {
		if f.Drops {
			lose = append(lose, f.String())
		} else {
			bypass = append(bypass, f.String())
		}
	}
	found := fmt.Sprintf("%d rules, %d of them somebody else's", len(have), others)
	switch {
	case len(bypass) > 0:
		p.add(model.CheckFail, "rules of others", found+": "+strings.Join(append(bypass, lose...), "; "),
			"netsplit serve refuses this switch until they are gone: packets would go round its rules", everything...)
	case len(lose) > 0:
		p.add(model.CheckWarn, "rules of others", found+": "+strings.Join(lose, "; "),
			"packets that they drop look like a partition that netsplit did not make", model.AbilityCut, model.AbilityProof)
	default:
		p.add(model.CheckOK, "rules of others", found+", none in the way; they are left alone", "")
	}
}

func (p *patient) meters(ctx context.Context) {
	const means = "a cut by hand uses drop rules alone, which on Open vSwitch take effect some milliseconds late; it is proved all the same; for exact cuts use the gate, in campaigns"
	if p.Testbed.Cuts == model.CutByRules {
		p.add(model.CheckOK, "meters", "not used, as the testbed file says (cuts: rules)", "")
		return
	}
	f, refused := p.sw.MeterFeatures(ctx)
	own := 0
	for _, h := range p.Testbed.Hosts {
		if h.Datapath == p.sw.ID() {
			own++
		}
	}
	why := flowrules.WithoutMeters(p.Testbed.Cuts, f, refused, own, p.route().Far(p.Testbed))
	if why == nil {
		why = p.taken(ctx, f)
	}
	if why != nil {
		p.add(model.CheckWarn, "meters", "not used: "+reason(why), means, model.AbilityCut)
		return
	}
	p.add(model.CheckOK, "meters", fmt.Sprintf("%d, which can drop", f.MaxMeter), "")
}

// taken says which meter that would be used is somebody else's.
func (p *patient) taken(ctx context.Context, f of13.MeterFeatures) error {
	in := p.input()
	in.TopMeter, in.HardTimeout = flowrules.TopMeter(f), time.Second
	plan, err := flowrules.Compile(in)
	if err != nil {
		return nil // the testbed is wrong, which other checks tell
	}
	have, err := p.sw.Meters(ctx)
	if err != nil {
		return err
	}
	return flowrules.Taken(have, plan)
}

// groups are told for completeness: netsplit uses none.
func (p *patient) groups(ctx context.Context) {
	if _, err := p.sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartGroupFeatures)); err != nil {
		p.add(model.CheckOK, "groups", "none: "+reason(err)+"; netsplit uses none", "")
		return
	}
	p.add(model.CheckOK, "groups", "it has them; netsplit uses none", "")
}

// reason is a switch's own error without the message that it refused.
func reason(err error) string {
	var e *controller.SwitchError
	if errors.As(err, &e) {
		return "the " + e.Err.Error()
	}
	return err.Error()
}

// ms is a time as a person reads it.
func ms(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
