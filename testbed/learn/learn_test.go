package learn

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
	"netsplit/model"
	"netsplit/testbed/learn/sketch"
)

// class is a learner with model switches, numbered from 1.
type class struct {
	t        *testing.T
	l        *Learner
	end      context.CancelFunc
	switches map[model.DatapathID]*switchtest.Switch

	mu   sync.Mutex
	said []string
}

func teach(t *testing.T, cfg Config, models ...switchtest.Config) *class {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &class{t: t, end: cancel, switches: map[model.DatapathID]*switchtest.Switch{}}
	cfg.Mark, cfg.Beat = "mark", 50*time.Millisecond
	cfg.Say = func(s string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, s)
	}
	c.l = New(ctx, cfg)
	ctrl := controller.New(controller.Config{Handler: c.l, Role: of13.RoleEqual})
	t.Cleanup(func() { cancel(); ctrl.Close() })
	for i, m := range models {
		m.Datapath = model.DatapathID(i + 1)
		sw := switchtest.New(m)
		c.switches[m.Datapath] = sw
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		go func() { _ = sw.Serve(theirs) }()
		go func() { _ = ctrl.Serve(ours) }()
	}
	return c
}

func (c *class) until(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.t.Fatalf("never: %s; said %q", what, c.said)
		}
	}
}

func (c *class) reported(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(strings.Join(c.said, "\n"), text)
}

// rules counts rules of ours on a switch, by cookie.
func (c *class) rules(id model.DatapathID, cookie uint64) int {
	n := 0
	for _, f := range c.switches[id].Flows() {
		if f.Cookie == cookie {
			n++
		}
	}
	return n
}

// carry brings what a switch sends out of a port to another's, and fails if
// that is not LLDP.
func (c *class) carry(wires map[[2]uint32][2]uint32) {
	c.t.Helper()
	for id, sw := range c.switches {
		for _, o := range sw.Sent() {
			if typ := binary.BigEndian.Uint16(o.Frame[12:]); typ != typeLLDP {
				c.t.Errorf("switch %d was told to send a frame of type %#x", id, typ)
			}
			if to, is := wires[[2]uint32{uint32(id), o.Port}]; is {
				c.switches[model.DatapathID(to[0])].Inject(to[1], o.Frame)
			}
		}
	}
}

func arpFrom(mac byte, ip string) []byte {
	b := make([]byte, 60)
	copy(b, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00"+string(mac)+"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00"+string(mac))
	copy(b[28:], net.ParseIP(ip).To4())
	return b
}

var wires = map[[2]uint32][2]uint32{{1, 3}: {2, 3}, {2, 3}: {1, 3}}

// TestLearner: two switches and a link; hosts are heard; rules of others stay
// as they are; at the end nothing of ours is left but the rule that forwards,
// which expires.
func TestLearner(t *testing.T) {
	c := teach(t, Config{}, switchtest.Config{Ports: []uint32{1, 2, 3}}, switchtest.Config{Ports: []uint32{1, 2, 3}})
	theirs := of13.NewFlowMod(of13.FlowAdd)
	theirs.Cookie, theirs.Instructions = 7, []of13.Instruction{of13.Apply(of13.Output{Port: of13.PortNormal})}
	c.switches[1].Do(theirs)
	c.until("rules", func() bool { return c.rules(1, copies) > 1 && c.rules(2, forward) == 1 })
	c.until("the link", func() bool {
		c.carry(wires)
		return c.reported("link: port 3 of 0000000000000001 - port 3 of 0000000000000002")
	})
	c.switches[1].Inject(1, arpFrom(1, "10.0.0.1"))
	c.switches[2].Inject(1, arpFrom(2, "10.0.0.2"))
	c.until("hosts", func() bool {
		return c.reported("02:00:00:00:00:01 has 10.0.0.1") && c.reported("02:00:00:00:00:02 has 10.0.0.2")
	})
	c.end()
	r := c.l.Wait()
	f, err := r.File(sketch.Options{Name: "x"})
	if err != nil || len(f.Testbed.Hosts) != 2 || len(f.Testbed.Links) != 1 || len(r.Switches) != 2 {
		t.Errorf("%v %v\n%s", err, r.Switches, f.Text)
	}
	if c.rules(1, copies)+c.rules(2, copies)+c.rules(1, forward) != 0 || c.rules(1, 7) != 1 {
		t.Errorf("left: %v", c.switches[1].Flows())
	}
	for _, f := range c.switches[2].Flows() {
		if f.Cookie != forward || f.HardTimeout != forwardLife {
			t.Errorf("left: %v", f)
		}
	}
}

// TestOddSwitches: garbage, ports that go, one sender at two ports, a way
// round, refusals, and switches that do not answer.
func TestOddSwitches(t *testing.T) {
	three := switchtest.Config{Ports: []uint32{1, 2, 3}}
	t.Run("garbage and a port that goes", func(t *testing.T) {
		c := teach(t, Config{}, three)
		sw := c.switches[1]
		c.until("rules", func() bool { return c.rules(1, forward) == 1 })
		bad := make([]byte, 60)
		copy(bad, "\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x07\x88\xcc\xff\xff\xff")
		sw.Inject(1, bad)
		sw.Inject(2, arpFrom(1, "10.0.0.1"))
		sw.Inject(3, arpFrom(1, "10.0.0.1"))
		sw.Inject(3, make([]byte, 14))
		c.until("heard", func() bool { return c.reported("speaks LLDP badly") && c.reported("port 3 of 0000000000000001: 02:00") })
		c.l.mu.Lock()
		f, err := c.l.sketch.File(sketch.Options{Name: "x"})
		c.l.mu.Unlock()
		if err != nil || len(f.Testbed.Hosts) != 0 || f.Decide != 3 {
			t.Errorf("%v: one sender at two ports:\n%s", err, f.Text)
		}
		sw.Push(&of13.PortStatus{Reason: of13.PortDeleted, Port: of13.Port{No: 3}})
		c.until("gone", func() bool { return c.reported("port 3 of 0000000000000001 is gone") })
		c.end()
		if f, err = c.l.Wait().File(sketch.Options{Name: "x"}); err != nil || len(f.Testbed.Hosts) != 1 || f.Testbed.Hosts[0].Port.Number != 2 {
			t.Errorf("%v\n%s", err, f.Text)
		}
	})
	t.Run("a way round", func(t *testing.T) {
		c := teach(t, Config{}, three, three)
		round := map[[2]uint32][2]uint32{{1, 3}: {2, 3}, {2, 3}: {1, 3}, {1, 2}: {2, 2}, {2, 2}: {1, 2}}
		c.until("the way round is told", func() bool {
			c.carry(round)
			return c.reported("switch 0000000000000001 has no rules, and there is a way round") && c.reported("switch 0000000000000002 has no rules, and there is a way round")
		})
		c.until("nobody forwards", func() bool { return c.rules(1, forward)+c.rules(2, forward) == 0 })
		c.end()
		c.l.Wait()
		if n := c.rules(1, forward) + c.rules(2, forward); n != 0 {
			t.Errorf("%d forward at the end", n)
		}
	})
	t.Run("no forwarding of its own", func(t *testing.T) {
		no := three
		no.Refuse = func(m of13.Message) *of13.Error {
			if f, is := m.(*of13.FlowMod); is && strings.Contains(fmt.Sprint(f.Instructions), "NORMAL") {
				return &of13.Error{Type: of13.ErrTypeBadAction, Code: of13.BadActionBadOutPort}
			}
			return nil
		}
		c := teach(t, Config{}, no)
		c.until("it is said", func() bool { return c.reported("netsplit will see less there") })
	})
	t.Run("told not to forward", func(t *testing.T) {
		c := teach(t, Config{NoForward: true}, three)
		c.until("rules", func() bool { return c.rules(1, copies) > 1 })
		c.switches[1].Inject(1, arpFrom(1, "10.0.0.1"))
		c.until("heard", func() bool { return c.reported("has 10.0.0.1") })
		c.end()
		c.l.Wait()
		if n := len(c.switches[1].Flows()); n != 0 {
			t.Errorf("%d rules left", n)
		}
	})
	t.Run("a sample where nothing was heard", func(t *testing.T) {
		c := teach(t, Config{For: time.Nanosecond}, three)
		ip := func(f of13.FlowStats) bool { return strings.Contains(f.Match.String(), "in_port=1") }
		sampled := func() bool {
			for _, f := range c.switches[1].Flows() {
				if ip(f) {
					return true
				}
			}
			return false
		}
		c.until("port 1 is sampled", sampled)
		b := make([]byte, 60)
		copy(b, "\x02\x00\x00\x00\x00\x09\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x20")
		copy(b[26:], net.ParseIP("10.0.0.1").To4())
		c.switches[1].Inject(1, b)
		c.until("heard", func() bool { return c.reported("has 10.0.0.1") })
		c.until("port 1 is sampled no more", func() bool { return !sampled() })
	})
	t.Run("no answers", func(t *testing.T) {
		mute := three
		mute.Refuse = func(m of13.Message) *of13.Error {
			if _, is := m.(*of13.MultipartRequest); is {
				return &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBadMultipart}
			}
			return nil
		}
		c := teach(t, Config{}, mute)
		c.until("it is said", func() bool { return c.reported("does not tell its ports") && c.reported("does not list its rules") })
		c.end()
		c.l.Wait()
	})
}

// TestRulesOfOthersAreFollowed: they are read in every beat, and ours, which do the same,
// are changed when they are; they are renewed less often.
func TestRulesOfOthersAreFollowed(t *testing.T) {
	c := teach(t, Config{}, switchtest.Config{Ports: []uint32{1, 2, 3}})
	theirs := of13.NewFlowMod(of13.FlowAdd)
	theirs.Cookie, theirs.Priority, theirs.Instructions = 7, 10, []of13.Instruction{of13.Apply(of13.Output{Port: 2})}
	c.switches[1].Do(theirs)
	c.until("rules", func() bool { return c.rules(1, copies) > 1 && c.rules(1, forward) == 0 })
	sends := func(port string) func() bool {
		return func() bool {
			for _, f := range c.switches[1].Flows() {
				if text := fmt.Sprint(f.Instructions); f.Cookie == copies && f.Priority == 11 && strings.Contains(text, "output:"+port) {
					return true
				}
			}
			return false
		}
	}
	c.until("a copy of what goes to 2", sends("2"))
	time.Sleep(loopLook) // the look behind it
	from := len(c.switches[1].Received())
	time.Sleep(20 * 50 * time.Millisecond) // beats
	looks, renewals, probes, most, before := 0, 0, 0, 0, of13.TypeHello
	for _, m := range c.switches[1].Received()[from:] {
		switch m.MsgType() {
		case of13.TypeMultipartRequest:
			looks++
			most, probes = max(most, probes), 0
		case of13.TypePacketOut:
			probes++
		case of13.TypeFlowMod:
			if before != of13.TypeFlowMod {
				renewals++
			}
		}
		before = m.MsgType()
	}
	if looks < 2 || most > 3 {
		t.Errorf("%d looks, %d LLDP frames out of 3 ports between two of them: want a look in every beat", looks, most)
	}
	if 2*renewals > looks+2 {
		t.Errorf("%d renewals in %d looks", renewals, looks)
	}
	theirs.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: 3})}
	c.switches[1].Do(theirs)
	// The rules are replaced one after the other.
	c.until("copies of what goes to 3, and to 3 only", func() bool { return sends("3")() && !sends("2")() })
}
