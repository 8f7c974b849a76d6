package ofswitch

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// neighbour is a second controller of the switch, which counts what it gets.
type neighbour struct {
	up      chan *controller.Switch
	packets atomic.Int64
}

func (n *neighbour) SwitchUp(sw *controller.Switch)                         { n.up <- sw }
func (n *neighbour) SwitchDown(*controller.Switch, error)                   {}
func (n *neighbour) PacketIn(*controller.Switch, time.Time, *of13.PacketIn) { n.packets.Add(1) }
func (n *neighbour) FlowRemoved(*controller.Switch, *of13.FlowRemoved)      {}
func (n *neighbour) PortStatus(*controller.Switch, *of13.PortStatus)        {}
func (n *neighbour) RoleChanged(*controller.Switch, of13.Role)              {}
func (n *neighbour) Error(*controller.Switch, *controller.SwitchError)      {}

// neighbour adds a controller of that role beside those the bridge has.
func (b *bench) neighbour(role of13.Role) (*neighbour, *controller.Switch) {
	b.tb.Helper()
	n := &neighbour{up: make(chan *controller.Switch, 10)}
	c := b.listen(controller.Config{Role: role, Handler: n})
	b.vsctl("--", "--id=@c", "create", "controller", `target="tcp:`+c.Addr().String()+`"`, "connection_mode=out-of-band",
		"--", "add", "bridge", bridge, "controller", "@c")
	select {
	case sw := <-n.up:
		return n, sw
	case <-time.After(20 * time.Second):
		b.tb.Fatal("the switch did not connect to a second controller within 20 s")
		panic("unreachable")
	}
}

// TestNeighboursAtTheGate: what the gate holds by packet-in goes to every controller that is
// no slave, whoever is master.
func TestNeighboursAtTheGate(t *testing.T) {
	b := newBench(t, 2)
	b.kinds = []string{"udp"}
	f, c := b.start(fabric.Config{Gate: model.GateByPacketIn})
	if role := c.Switch(b.dpid).Role(); role != of13.RoleMaster {
		t.Fatalf("role %v", role)
	}
	equal, _ := b.neighbour(of13.RoleEqual)
	slave, sw := b.neighbour(of13.RoleEqual)
	got, err := sw.Request(within(t), &of13.RoleRequest{RoleState: of13.RoleState{Role: of13.RoleSlave, GenerationID: 1 << 20}})
	if err != nil || got[0].(*of13.RoleReply).Role != of13.RoleSlave {
		t.Fatalf("%v, %v", got, err)
	}
	if err := f.SetTaps(within(t), allPairs(b.testbed.Names()), nil); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("nobody releases", func(model.NodeID, model.NodeID) bool { return false })
	held := f.Counts().Held
	if n := equal.packets.Load(); held == 0 || n < int64(held) {
		t.Errorf("we got %d packets, an equal neighbour %d", held, n)
	}
	if n := slave.packets.Load(); n != 0 {
		t.Errorf("a slave got %d packets", n)
	}
}

// TestDemotedWhileGating: another controller becomes master while every packet
// is held. It is noticed, the gate expires, and the role brings it back.
func TestDemotedWhileGating(t *testing.T) {
	b := newBench(t, 4)
	b.kinds = []string{"tcp", "udp", "icmp"}
	demoted := make(chan error, 10)
	f, c := b.start(fabric.Config{Events: fabric.Events{Demoted: func(_ model.DatapathID, err error) { demoted <- err }}})
	nothing := func(model.NodeID, model.NodeID) bool { return false }
	gate := func() {
		t.Helper()
		if err := f.SetTaps(within(t), allPairs(b.testbed.Names()), nil); err != nil {
			t.Fatal(err)
		}
	}
	gate()
	b.settled()
	b.expect("held", nothing)
	b.neighbour(of13.RoleMaster)
	began := time.Now()
	select {
	case err := <-demoted:
		if !errors.Is(err, fabric.ErrSlave) {
			t.Error(err)
		}
		t.Logf("noticed after %v", time.Since(began).Round(time.Millisecond))
	case <-time.After(30 * time.Second):
		t.Fatal("not noticed within 30 s")
	}
	if err := f.Cut(within(t), 1, shapes[0].p); !errors.Is(err, fabric.ErrSlave) {
		t.Errorf("cut as slave: %v", err)
	}
	b.opens(began, 5*time.Second+3*time.Second) // a slave for so long, and its gate holds no more
	t.Logf("all traffic passes after %v", time.Since(began).Round(time.Millisecond))

	if err := f.Claim(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	if role := c.Switch(b.dpid).Role(); role != of13.RoleMaster {
		t.Errorf("role %v after it was asked for again", role)
	}
	b.settled()
	b.expect("held again", nothing)
}
