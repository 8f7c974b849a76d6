package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// clockError is how well a host's clock is to be known: of what arrives within twice
// that of a cut or a heal it is not known whether it leaked.
const clockError = 5 * time.Millisecond

// hosts looks at all hosts at once, by an agent on each.
func (x *exam) hosts(ctx context.Context) []model.DiagnosisCheck {
	found := make([][]model.DiagnosisCheck, len(x.Testbed.Hosts))
	var wg sync.WaitGroup
	for i, h := range x.Testbed.Hosts {
		wg.Go(func() { found[i] = x.host(ctx, h) })
	}
	wg.Wait()
	return slices.Concat(found...)
}

func (x *exam) host(ctx context.Context, h model.TestbedHost) (out []model.DiagnosisCheck) {
	add := func(level model.CheckLevel, name, found, means string, affects ...model.Ability) {
		if level == model.CheckOK {
			means = ""
		}
		out = append(out, model.DiagnosisCheck{About: "host " + string(h.Name), Name: name, Level: level, Found: found, Means: means, Affects: affects})
	}
	const lost = "nobody counts what arrives there, so no cut is proved and every run is unknown: "
	began := time.Now()
	a, err := agent.Start(ctx, h, x.Binary)
	if err != nil {
		add(model.CheckFail, "agent", err.Error(), lost+"see that its exec prefix runs commands there without asking for a password, as root", model.AbilityProof)
		return out
	}
	defer a.Close()
	add(model.CheckOK, "agent", fmt.Sprintf("answers after %s", ms(time.Since(began))), "")
	o, err := a.Clock(ctx)
	switch {
	case err != nil:
		add(model.CheckFail, "clock", err.Error(), lost+"it does not tell its time", model.AbilityProof)
	case o.Within == 0 && o.Ahead == 0:
		add(model.CheckOK, "clock", fmt.Sprintf("this machine's, as far as a round trip of %s tells", ms(o.RoundTrip)), "")
	case o.Within > clockError:
		add(model.CheckWarn, "clock", fmt.Sprintf("%s from ours, known to within %s only", ms(o.Ahead), ms(o.Within)),
			fmt.Sprintf("if packets arrive within %s of a cut or a heal, it is unknown whether they leaked, and the run is unknown: bring the host nearer (its exec prefix answers slowly)", ms(2*o.Within)), model.AbilityProof)
	default:
		add(model.CheckOK, "clock", fmt.Sprintf("%s from ours, known to within %s: corrected", ms(o.Ahead), ms(o.Within)), "")
	}
	links, err := a.Links(ctx)
	if err != nil {
		add(model.CheckFail, "counting", err.Error(), lost+"let the agent open packet sockets (root, or CAP_NET_RAW)", model.AbilityProof)
	} else {
		add(model.CheckOK, "counting", "packets can be captured", "")
	}
	x.links(h, links, add)
	return out
}

func (x *exam) links(h model.TestbedHost, links []agent.Link, add func(model.CheckLevel, string, string, string, ...model.Ability)) {
	i := slices.IndexFunc(links, func(l agent.Link) bool { return sameMAC(l.MAC, h.MAC) })
	if i < 0 {
		var all []string
		for _, l := range links {
			all = append(all, fmt.Sprintf("%s %s", l.Name, l.MAC))
		}
		add(model.CheckFail, "interface", fmt.Sprintf("none has mac %s; there are %s", h.MAC, strings.Join(all, ", ")), "its packets are not recognised: correct the testbed file", everything...)
		return
	}
	l := links[i]
	has := slices.ContainsFunc(l.Addrs, func(a string) bool {
		p, err := netip.ParsePrefix(a)
		return err == nil && p.Addr().Unmap() == h.IP.Unmap()
	})
	found := fmt.Sprintf("%s, MTU %d, %s", l.Name, l.MTU, strings.Join(l.Addrs, " "))
	switch {
	case !l.Up:
		add(model.CheckFail, "interface", l.Name+" is down", "the host reaches nobody", everything...)
	case !has:
		add(model.CheckFail, "interface", fmt.Sprintf("%s does not have %s", found, h.IP), "other hosts do not reach it by that address: correct the testbed file", everything...)
	case l.MTU > 1500:
		add(model.CheckWarn, "interface", found, fmt.Sprintf("frames of that size are held only if the gate port and its far end have an MTU of %d", l.MTU+4), model.AbilityPort)
	default:
		add(model.CheckOK, "interface", found, "")
	}
	if l.Up && has {
		x.wayOut(h, l, links, add)
	}
}

// wayOut looks whether the packets by which cuts are proved leave for the other hosts
// by the host's own interface: as the agent finds it, the other is on its network.
func (x *exam) wayOut(h model.TestbedHost, own agent.Link, links []agent.Link, add func(model.CheckLevel, string, string, string, ...model.Ability)) {
	to := func(l agent.Link, ip netip.Addr) bool {
		return slices.ContainsFunc(l.Addrs, func(a string) bool {
			p, err := netip.ParsePrefix(a)
			return err == nil && p.Contains(ip)
		})
	}
	var astray, routed []string
	for _, o := range x.Testbed.Hosts {
		if o.Name == h.Name || to(own, o.IP) {
			continue
		}
		if i := slices.IndexFunc(links, func(l agent.Link) bool { return to(l, o.IP) }); i >= 0 {
			astray = append(astray, fmt.Sprintf("%s (%s) by %s", o.Name, o.IP, links[i].Name))
		} else {
			routed = append(routed, fmt.Sprintf("%s (%s)", o.Name, o.IP))
		}
	}
	const mend = ": give it an address there with a prefix that has the other hosts in it"
	if len(astray) > 0 {
		add(model.CheckFail, "way to others", fmt.Sprintf("%s is not on the network of all; it reaches %s", own.Name, strings.Join(astray, ", ")), "what it sends there does not leave by "+own.Name+", so that no cut is proved"+mend, model.AbilityProof)
	}
	if len(routed) > 0 {
		add(model.CheckWarn, "way to others", "no interface is on the network of "+strings.Join(routed, ", "), "it reaches those through a router at best, and ARP does not pass: cuts may not be proved"+mend, model.AbilityProof)
	}
}
