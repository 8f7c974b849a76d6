package service

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/e2e/harness"
	"netsplit/model"
)

// other is a second controller of the same switch.
type other struct {
	*controller.Controller
	up chan of13.Role
}

func otherController(t *testing.T, role of13.Role) *other {
	t.Helper()
	o := &other{up: make(chan of13.Role, 10)}
	c, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0", Role: role, Handler: o})
	if err != nil {
		t.Fatal(err)
	}
	o.Controller = c
	t.Cleanup(func() { c.Close() })
	return o
}

func (o *other) SwitchUp(sw *controller.Switch)                         { o.up <- sw.Role() }
func (o *other) SwitchDown(*controller.Switch, error)                   {}
func (o *other) PacketIn(*controller.Switch, time.Time, *of13.PacketIn) {}
func (o *other) FlowRemoved(*controller.Switch, *of13.FlowRemoved)      {}
func (o *other) PortStatus(*controller.Switch, *of13.PortStatus)        {}
func (o *other) RoleChanged(*controller.Switch, of13.Role)              {}
func (o *other) Error(*controller.Switch, *controller.SwitchError)      {}

// join adds the controller to the bridge and waits for its role.
func (o *other) join(b *bench, want of13.Role) {
	b.t.Helper()
	b.controller("tcp:" + o.Addr().String())
	select {
	case role := <-o.up:
		if role != want {
			b.t.Fatalf("the other controller is %v, want %v", role, want)
		}
	case <-time.After(20 * time.Second):
		b.t.Fatal("the switch did not connect to the other controller within 20 s")
	}
}

// role waits until the daemon says that it has this role.
func (d *daemon) role(want string) {
	d.t.Helper()
	harness.Until(d.t, time.Minute, "its role is "+want, func() error {
		var sw wire.Switches
		d.Call("GET", "/v1/switches?brief=true", nil, &sw)
		if len(sw.Items) != 1 || sw.Items[0].Role != want || strings.Contains(sw.Items[0].Reason, "another controller") != (want == "slave") || len(sw.Items[0].Flows) > 0 {
			return fmt.Errorf("switches %+v", sw.Items)
		}
		return nil
	})
}

// TestTwoControllers: another controller of the same Open vSwitch shares it,
// then takes it over while we cut, and goes.
func TestTwoControllers(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	args := []string{"--testbed", b.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653"}
	d := serve(t, args...)
	b.connect(d.OpenFlow)
	d.Healthy()
	d.role("master")
	cut := wire.PartitionSpec{Name: "mine", Partition: wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b", "c"}}}}

	// One that shares changes nothing.
	otherController(t, of13.RoleEqual).join(b, of13.RoleEqual)
	d.partition(cut)
	b.expect("beside an equal one", func(from, to string) bool { return from != "a" && to != "a" })

	taker := otherController(t, of13.RoleMaster)
	taker.join(b, of13.RoleMaster)
	d.role("slave")
	var p wire.PartitionStatus
	harness.Until(t, time.Minute, "the partition failed", func() error {
		d.Call("GET", "/v1/partitions/mine", nil, &p)
		if p.State != "failed" || !strings.Contains(p.Reason, "another controller is master of the switch") {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	t.Logf("pings pass %v after", b.passing(hardTimeout+2*time.Second).Round(10*time.Millisecond))
	cut.Name = "refused"
	status, body, err := d.Try("POST", "/v1/partitions", cut)
	if err != nil || status != 503 || !strings.Contains(string(body), "another controller is master of the switch and this one a slave") {
		t.Errorf("a cut as slave: %d %s %v", status, body, err)
	}
	b.expect("as slave", everything)
	if said := d.Stderr(); !strings.Contains(said, "state=slave") {
		t.Errorf("no event of the demotion: %s", said)
	}

	// The taker goes; the next daemon asks with a greater generation.
	taker.Close()
	d.Kill()
	d = serve(t, args...)
	d.Healthy()
	d.role("master")
	cut.Name = "again"
	d.partition(cut)
	b.expect("master again", func(from, to string) bool { return from != "a" && to != "a" })
	d.Heal("again")
	d.Kill()

	// As equal it works beside a master, and stays equal.
	otherController(t, of13.RoleMaster).join(b, of13.RoleMaster)
	d = serve(t, append(args, "--role", "equal")...)
	d.Healthy()
	d.role("equal")
	cut.Name = "shared"
	d.partition(cut)
	b.expect("as equal beside a master", func(from, to string) bool { return from != "a" && to != "a" })
	d.Heal("shared")
	b.expect("healed as equal", everything)
}

// TestRunOfASlaveIsUnknown: another controller becomes master of a lab's
// switch while a run gates there.
func TestRunOfASlaveIsUnknown(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	d := serve(t, "--runs-dir", dir, "--openflow", "127.0.0.1:0")
	var c wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(gossip(t)), Strategy: "random", Clean: 1, Runs: 2, Seed: 3}, &c)
	var run string
	d.until(c.ID, 2*time.Minute, "a fault run is under way", func(c wire.Campaign) bool {
		for _, id := range c.Running {
			if c.Done > 0 {
				run = id
			}
		}
		return run != ""
	})
	// The run's taps are open soon; its bridge can be managed by a socket, as
	// by one more controller.
	harness.Until(t, time.Minute, "gate rules are installed", func() error {
		var sw wire.Switches
		d.Call("GET", "/v1/switches", nil, &sw)
		for _, s := range sw.Items {
			for _, f := range s.Flows {
				if f.Priority == 300 && f.Table == 1 { // see flowrules: a gated pair
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", sw.Items)
	})
	sockets, err := filepath.Glob("/run/netsplit/ovs/run/*.mgmt")
	if err != nil || len(sockets) == 0 {
		t.Fatalf("no bridge: %v", err)
	}
	for _, s := range sockets {
		takeOver(t, s)
	}
	d.until(c.ID, 3*time.Minute, "the campaign ended", ended)
	others := 0
	for _, r := range harness.Records(t, dir, c.ID) {
		v := r.Verdict
		if r.Run == run {
			if v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "another controller is master of the switch") {
				t.Errorf("the run that lost its switch: %+v", v)
			}
			continue
		}
		others++
		if v.Value == model.VerdictUnknown {
			t.Errorf("run %s suffered: %+v", r.Run, v)
		}
	}
	if others < 2 {
		t.Errorf("%d other runs: the next one is to ask for the role again", others)
	}
}

// takeOver makes a connection of its own the master of a bridge, and keeps it.
func takeOver(t *testing.T, socket string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	o := &other{up: make(chan of13.Role, 1)}
	c := controller.New(controller.Config{Handler: o})
	t.Cleanup(func() { c.Close() })
	go func() { _ = c.Serve(conn) }()
	select {
	case role := <-o.up:
		if role != of13.RoleMaster {
			t.Fatalf("%s: role %v", socket, role)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s does not answer", socket)
	}
}
