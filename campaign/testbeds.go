package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed"
	"netsplit/testbed/lab"
)

func (s *Service) takeOutside(ctx context.Context) (err error) {
	c := s.testbedConfig(s.cfg.Gate)
	c.Testbed = *s.cfg.Testbed
	if s.outside, err = testbed.Open(ctx, c); err != nil {
		return err
	}
	s.addTestbed(s.outside)
	if l := labOf(ctx, &c.Testbed); l != nil {
		s.tune(ctx, l)
	}
	return nil
}

// labOf is the lab on this machine that a testbed is (netsplit lab up); nil: none.
func labOf(ctx context.Context, t *model.Testbed) *lab.Lab {
	l, err := lab.Default().Open(ctx, t.Name)
	if err != nil || !slices.Equal(t.Switches(), []model.DatapathID{l.Datapath()}) {
		return nil
	}
	return l
}

// tune has a lab's switch come back soon after an outage of this daemon, once it is
// connected, which Open vSwitch shows in its database up to 5 s late.
func (s *Service) tune(ctx context.Context, l *lab.Lab) {
	s.done.Go(func() {
		tctx, cancel := context.WithTimeout(ctx, switchLimit)
		defer cancel()
		if err := l.TuneController(tctx); err != nil && ctx.Err() == nil {
			s.log.Warn("after an outage the lab's switch may be seconds late", "lab", l.Name(), "err", err)
		}
	})
}

// testbedConfig is what testbeds have in common.
func (s *Service) testbedConfig(gate model.Gate) testbed.Config {
	return testbed.Config{Gate: gate, Controller: s.ctrl, Binary: s.cfg.Binary, Log: s.log,
		Events: testbed.Events{SwitchChanged: s.switchChanged, Lapsed: s.lapsed, Unhindered: s.unhindered,
			Demoted: s.demoted, Refused: s.refused, HostPort: s.hostPort, OtherPort: s.otherPort, Agent: s.agentEnded, Lost: s.hand.LoseHost,
			Tampered: s.tampered, Drained: s.drained}}
}

func (s *Service) addTestbed(b *testbed.Testbed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.testbeds = append(s.testbeds, b)
}

func (s *Service) removeTestbed(b *testbed.Testbed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.testbeds = slices.DeleteFunc(s.testbeds, func(o *testbed.Testbed) bool { return o == b })
}

func (s *Service) forgetSwitches(tb *model.Testbed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range tb.Switches() {
		delete(s.switches, id)
		s.metrics.SwitchGone(id)
	}
}

func (s *Service) switchChanged(id model.DatapathID, up bool) {
	s.metrics.SwitchConnected(id, up)
	s.mu.Lock()
	s.switches[id] = time.Now()
	s.mu.Unlock()
	state := "disconnected"
	if up {
		state = "connected"
	}
	s.tell("switch", id.String(), state, "switch "+id.String()+" is "+state)
	if up {
		s.hand.Reverify("switch " + id.String() + " is back")
		s.hand.HealAgain()
		return
	}
	s.hand.Recheck()
}

// lapsed has the manual partitions looked at: what is cut on a switch may have
// expired.
func (s *Service) lapsed(model.DatapathID) { s.hand.Recheck() }

// unhindered has heals tried again that rules of somebody else kept from their proof.
func (s *Service) unhindered(model.DatapathID) { s.hand.HealAgain() }

// tampered books that somebody changed our rules on a switch, which were put
// right, or has put others before them, which stay.
func (s *Service) tampered(id model.DatapathID, what string) {
	text := fmt.Sprintf("somebody changed the rules of switch %s: %s", id, what)
	s.tell("switch", id.String(), "tampered", text)
	s.hand.Reverify(text)
}

// drained has the newest manual partition on the switch given up: there is no room
// for all of them. It does not wait.
func (s *Service) drained(id model.DatapathID, why error) {
	s.tell("switch", id.String(), "losing-rules", why.Error())
	s.hand.LoseNewest(id, why)
}

// demoted books that another controller became master of a switch: partitions
// by hand are in force there no more, since their rules are not renewed. It must
// not wait.
func (s *Service) demoted(id model.DatapathID, err error) {
	s.tell("switch", id.String(), "slave", err.Error())
	s.hand.LoseSwitch(id, err)
}

// agentEnded tells that the agent of a host has ended, or that there is one again
// (nil). What switches cut stays cut; what the host cut itself went with the agent,
// which is distinguished.
func (s *Service) agentEnded(host model.NodeID, err error) {
	if err != nil {
		s.log.Warn("an agent has ended; it is started again", "host", host, "err", err)
		s.tell("host", string(host), "no-agent", fmt.Sprintf("nothing can be counted or proved there: %v", err))
		return
	}
	s.tell("host", string(host), "agent", fmt.Sprintf("host %s has an agent again", host))
	s.hand.HealAgain()
}

// refused books that a switch is connected and left alone: manual partitions are
// in force there no more.
func (s *Service) refused(id model.DatapathID, err error) {
	s.tell("switch", id.String(), "refused", err.Error())
	s.hand.LoseSwitch(id, err)
}

func (s *Service) hostPort(host model.NodeID, err error) {
	if err != nil {
		s.log.Warn("a host is on no port", "host", host, "err", err)
		s.tell("host", string(host), "no-port", fmt.Sprintf("host %s: %v", host, err))
		return
	}
	text := fmt.Sprintf("the port of host %s is as expected again", host)
	s.tell("host", string(host), "port", text)
	s.hand.HealAgain()
	if s.cfg.Testbed == nil { // a lab's
		return
	}
	if h, _ := s.cfg.Testbed.Host(host); h.Port.Name != "" { // it may have another number, and other rules
		s.hand.Reverify(text)
	}
}

// otherPort tells that the port of a link, a gate or a mirror went (err says how)
// or is back.
func (s *Service) otherPort(id model.DatapathID, port model.Port, err error) {
	if err != nil {
		s.tell("switch", id.String(), "no-port", fmt.Sprintf("switch %s, port %s of the testbed: %v", id, port.Name, err))
		return
	}
	text := fmt.Sprintf("switch %s has port %s of the testbed again", id, port.Name)
	s.tell("switch", id.String(), "port", text)
	s.hand.Reverify(text)
	s.hand.HealAgain()
}

// switchLimit is how long a lab's switch may take to connect.
const switchLimit = 15 * time.Second

// label gives the hosts of a lab the labels of the target.
func label(lab *model.Testbed, t *model.Target) {
	for i, h := range lab.Hosts {
		lab.Hosts[i].Labels = t.Labels[h.Name]
	}
}

func (s *Service) makeLab(ctx context.Context, name string, t *model.Target, gate model.Gate) (*testbed.Testbed, error) {
	hosts := append(append([]model.NodeID{}, t.Nodes...), t.Clients...)
	l, err := lab.Up(ctx, lab.Spec{Name: name, Hosts: hosts, Controller: "tcp:" + s.ControllerAddr(), Ports: sut.Ports(t), Owner: os.Getpid()})
	if err != nil {
		return nil, err
	}
	c := s.testbedConfig(gate)
	c.Testbed, c.Lab = l.Testbed(), l
	label(&c.Testbed, t)
	b, err := testbed.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	wctx, cancel := context.WithTimeout(ctx, switchLimit)
	defer cancel()
	if err := b.Ready(wctx); err != nil {
		err = errors.Join(fmt.Errorf("the lab's switch did not connect within %v: %w", switchLimit, err), b.Close())
		s.forgetSwitches(&b.Testbed)
		return nil, err
	}
	s.tune(ctx, l)
	return b, nil
}
