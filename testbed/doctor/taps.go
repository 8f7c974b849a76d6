package doctor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/inference/tap"
	"netsplit/model"
)

// crossing is how long a frame may take through a port and back.
const crossing = 5 * time.Second

// isTrial says whether a frame is the numbered one of ours.
func isTrial(b []byte, n uint32) bool {
	return len(b) >= 18 && bytes.Equal(b[6:12], nobody[:]) && binary.BigEndian.Uint16(b[12:]) == etherTypeTrial && binary.BigEndian.Uint32(b[14:]) == n
}

// gatePort sends a full frame out of the far end of the gate port, which a rule
// has turned back.
func (p *patient) gatePort(ctx context.Context) {
	for _, g := range p.Testbed.Gates {
		if g.Datapath != p.sw.ID() {
			continue
		}
		const name = "gate port"
		fail := func(found string) {
			p.add(model.CheckFail, name, found, "the gate port cannot be used: fix it, or gate by packet-in", model.AbilityPort)
		}
		if g.Port.Number == 0 {
			fail("its port is unknown: see ports")
			continue
		}
		if p.InUse {
			p.add(model.CheckOK, name, "in use by the daemon: not tried", "")
			continue
		}
		rule := harmless(flowrules.Rule{Table: flowrules.TableAdmit, Priority: 65000, Match: flowrules.Match{InPort: g.Port.Number, VLAN: flowrules.GateFence},
			Do: flowrules.Do{Output: []uint32{uint32(of13.PortInPort)}}}, flowrules.LabID(p.Testbed.Name))
		if err := p.try(ctx, []flowrules.Rule{rule}); err != nil {
			fail(err.Error())
			continue
		}
		took, err := round(ctx, g)
		p.clean()
		if err != nil {
			fail(err.Error())
			continue
		}
		p.add(model.CheckOK, name, fmt.Sprintf("a full frame with a tag went out of %s and came back in %s", g.Interface, ms(took)), "")
		p.merging(g.Interface, g.Netns, "the switch takes no frame longer than its MTU, and what was merged is lost on its way back", model.AbilityPort)
	}
}

func round(ctx context.Context, g model.GatePort) (time.Duration, error) {
	port, err := tap.OpenPort(g.Interface, g.Netns)
	if err != nil {
		return 0, err
	}
	defer port.Close()
	ctx, cancel := context.WithTimeout(ctx, crossing)
	defer cancel()
	const n = 1
	var took time.Duration
	began := time.Now()
	if err := port.Write(flowrules.GateFence, frame(n, 1514)); err != nil {
		return 0, err
	}
	whole := false
	err = port.Read(ctx, func(_ time.Time, vid uint16, b []byte) {
		if vid == flowrules.GateFence && isTrial(b, n) {
			took, whole = time.Since(began), len(b) == 1514
			cancel()
		}
	})
	switch {
	case took == 0 && err != nil && ctx.Err() == nil:
		return 0, err
	case took == 0:
		return 0, fmt.Errorf("a full frame with a tag was sent out of %s and did not come back within %v: is it cabled to port %v, with an MTU of 1504 or more at both ends?", g.Interface, crossing, g.Port)
	case !whole:
		return 0, fmt.Errorf("a frame sent out of %s came back changed", g.Interface)
	}
	return took, nil
}

func (p *patient) mirrorPort(ctx context.Context) {
	for _, m := range p.Testbed.Mirrors {
		if m.Datapath != p.sw.ID() {
			continue
		}
		const name = "mirror port"
		fail := func(found string) {
			p.add(model.CheckFail, name, found, "clean runs use the gate, which delays: fix the mirror port", model.AbilityMirror)
		}
		if m.Port.Number == 0 {
			fail("its port is unknown: see ports")
			continue
		}
		r, err := tap.Open(m.Interface, m.Netns)
		if err != nil {
			fail(err.Error())
			continue
		}
		rctx, cancel := context.WithTimeout(ctx, crossing)
		const n = 2
		came := false
		if err = p.sw.PacketOut(of13.PortController, frame(n, 1514), of13.PortNo(m.Port.Number)); err == nil {
			err = r.Read(rctx, func(_ time.Time, b []byte) {
				if isTrial(b, n) {
					came = true
					cancel()
				}
			})
		}
		broken := err != nil && rctx.Err() == nil
		cancel()
		_ = r.Close()
		if !came && broken {
			fail(err.Error())
			continue
		}
		if !came {
			fail(fmt.Sprintf("a full frame sent out of port %v did not come to %s within %v", m.Port, m.Interface, crossing))
			continue
		}
		p.add(model.CheckOK, name, fmt.Sprintf("a full frame sent out of it came to %s", m.Interface), "")
		p.merging(m.Interface, m.Netns, "several packets come as one, at one time", model.AbilityMirror)
	}
}

func (p *patient) merging(iface, netns, means string, a model.Ability) {
	const name = "offloads"
	switch on, err := tap.Merging(iface, netns); {
	case err != nil:
		p.add(model.CheckWarn, name, err.Error(), "if it merges frames, "+means, a)
	case len(on) > 0:
		p.add(model.CheckWarn, name, fmt.Sprintf("%s merges frames that it receives (%s)", iface, strings.Join(on, ", ")),
			fmt.Sprintf("%s: ethtool -K %s %s off", means, iface, strings.Join(on, " off ")), a)
	default:
		p.add(model.CheckOK, name, iface+" merges no frames", "")
	}
}

// sameMAC compares Ethernet addresses however they are written.
func sameMAC(a, b string) bool {
	x, err := net.ParseMAC(a)
	y, err2 := net.ParseMAC(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
