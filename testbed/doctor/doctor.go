package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// Config of an examination.
type Config struct {
	Testbed    model.Testbed
	Controller *controller.Controller
	Binary     string        // the netsplit program, for agents
	Wait       time.Duration // for switches to connect
	// Refused lists the connections that did not become a session, and why; may
	// be nil.
	Refused func() []string
	// TLS: switches connect by TLS.
	TLS bool
	// InUse: a daemon drives the testbed meanwhile, whose gate ports are left
	// alone.
	InUse bool
	// Busy says what must not be disturbed now, "" for nothing; nil: nothing. What
	// loads switches is left out then.
	Busy func() string
	// Limit is how long a switch may take to answer; default 5 s.
	Limit time.Duration
}

type exam struct {
	Config
	d model.Diagnosis
}

// Examine looks at all of the testbed. It takes a few seconds for each switch.
func Examine(ctx context.Context, c Config) model.Diagnosis {
	x := newExam(c)
	// Hosts first, side by side: an agent on each is what takes longest.
	var hosts []model.DiagnosisCheck
	var work sync.WaitGroup
	work.Go(func() { hosts = x.hosts(ctx) })
	x.ways()
	x.switches(ctx)
	work.Wait()
	x.d.Checks = append(x.d.Checks, hosts...)
	x.conclude()
	return x.d
}

func newExam(c Config) *exam {
	if c.Limit == 0 {
		c.Limit = 5 * time.Second
	}
	if c.Busy == nil {
		c.Busy = func() string { return "" }
	}
	return &exam{Config: c, d: model.Diagnosis{Testbed: c.Testbed.Name}}
}

func (x *exam) ways() {
	hosts := map[model.DatapathID][]string{}
	var ids []model.DatapathID
	for _, h := range x.Testbed.Hosts {
		if hosts[h.Datapath] == nil {
			ids = append(ids, h.Datapath)
		}
		hosts[h.Datapath] = append(hosts[h.Datapath], string(h.Name))
	}
	if len(ids) < 2 {
		return
	}
	c := model.DiagnosisCheck{About: "testbed", Name: "links", Level: model.CheckOK, Found: fmt.Sprintf("they connect all %d switches with hosts", len(ids))}
	routes, err := flowrules.Routes(x.Testbed.Links)
	for _, id := range ids[1:] {
		if _, is := routes[ids[0]].Via[id]; !is && err == nil {
			err = fmt.Errorf("none leads from switch %s (%s) to switch %s (%s)", ids[0], strings.Join(hosts[ids[0]], ", "), id, strings.Join(hosts[id], ", "))
		}
	}
	if err != nil {
		c.Level, c.Found, c.Affects = model.CheckWarn, err.Error(), []model.Ability{model.AbilityCut, model.AbilityProof}
		c.Means = "netsplit knows no path between their hosts, so no cut between them can be proved: name the ports that join the switches under links"
	}
	x.d.Checks = append(x.d.Checks, c)
}

func (x *exam) switches(ctx context.Context) {
	ids := x.Testbed.Switches()
	up := x.connected(ctx, ids)
	for _, id := range ids {
		if sw := up[id]; sw != nil {
			(&patient{exam: x, Testbed: x.Testbed, sw: sw, about: "switch " + id.String()}).examine(ctx)
		}
	}
}

func (x *exam) conclude() {
	absent := map[model.Ability]string{}
	if len(x.Testbed.Gates) == 0 {
		absent[model.AbilityPort] = "the testbed file names no gate port under gates"
	}
	if len(x.Testbed.Mirrors) == 0 {
		absent[model.AbilityMirror] = "the testbed file names no mirror port under mirrors: clean runs use the gate"
	}
	Conclude(&x.d, absent)
}

var everything = []model.Ability{model.AbilityCut, model.AbilityProof, model.AbilityPacketIn, model.AbilityPort, model.AbilityMirror, model.AbilityOnly, model.AbilityOpening}

func (x *exam) connected(ctx context.Context, ids []model.DatapathID) map[model.DatapathID]*controller.Switch {
	ctx, cancel := context.WithTimeout(ctx, x.Wait)
	defer cancel()
	up := map[model.DatapathID]*controller.Switch{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(up) < len(ids) && ctx.Err() == nil {
		for _, id := range ids {
			if sw := x.Controller.Switch(id); sw != nil {
				up[id] = sw
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for _, id := range ids {
		c := model.DiagnosisCheck{About: "switch " + id.String(), Name: "session", Level: model.CheckOK}
		if sw := up[id]; sw != nil {
			c.Found = fmt.Sprintf("OpenFlow 1.3 with %s, as %s", sw.Addr(), strings.ToLower(sw.Role().String()))
			if sw.Role() == of13.RoleSlave {
				c.Level, c.Affects = model.CheckFail, everything
				c.Means = "another controller is its master, so netsplit can change nothing: stop it, or make it share the switch as equal"
			}
		} else {
			c.Level, c.Affects = model.CheckFail, everything
			scheme := "tcp"
			if x.TLS {
				scheme = "ssl"
			}
			c.Found = fmt.Sprintf("did not connect to %s:%s within %v", scheme, address(x.Controller), x.Wait)
			c.Means = fmt.Sprintf("nothing works there: set its controller to this address (ovs-vsctl set-controller BR %s:%s) and allow OpenFlow 1.3", scheme, address(x.Controller))
			if x.TLS {
				c.Means += "; give it a key and certificates (ovs-vsctl set-ssl)"
			}
			if x.Refused != nil {
				if r := x.Refused(); len(r) > 0 {
					c.Found += "; refused were: " + strings.Join(r, "; ")
				}
			}
		}
		x.d.Checks = append(x.d.Checks, c)
	}
	return up
}

// address is where switches connect to.
func address(c *controller.Controller) string {
	if a := c.Addr(); a != nil {
		return a.String()
	}
	return "ADDRESS:PORT"
}
