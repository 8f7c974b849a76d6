package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsplit/model"
)

// Status is what can be seen of a lab.
type Status struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Phase is "up", or "creating" or "removing" while that lasts or after it
	// was interrupted.
	Phase string `json:"phase"`
	// Owner is the process the lab belongs to; 0: it stays until Down.
	Owner      int              `json:"owner,omitempty"`
	OwnerAlive bool             `json:"owner_alive,omitempty"`
	Bridge     string           `json:"bridge"`
	Datapath   model.DatapathID `json:"datapath"`
	OVSRunDir  string           `json:"ovs_run_dir"`
	OwnOVS     bool             `json:"own_ovs"`
	Controller string           `json:"controller,omitempty"`
	// Connected says whether the switch is connected to its controller.
	Connected bool         `json:"connected"`
	Hosts     []HostStatus `json:"hosts"`
	Warnings  []string     `json:"warnings,omitempty"`
	// Problem says what is wrong with the lab; "" if nothing is.
	Problem string `json:"problem,omitempty"`
}

// HostStatus is what can be seen of a host.
type HostStatus struct {
	Name      model.NodeID `json:"name"`
	Netns     string       `json:"netns"`
	IP        string       `json:"ip"`
	Port      uint32       `json:"port"`
	Processes int          `json:"processes"`
}

// List shows all labs by name.
func (m *Manager) List(ctx context.Context) ([]Status, error) {
	labs, _, err := m.loadAll()
	if err != nil {
		return nil, err
	}
	out := make([]Status, 0, len(labs))
	for _, name := range sortedNames(labs) {
		out = append(out, m.status(ctx, labs[name]))
	}
	return out, nil
}

// Show shows one lab.
func (m *Manager) Show(ctx context.Context, name string) (Status, error) {
	s, err := m.load(name)
	if err != nil {
		return Status{}, err
	}
	return m.status(ctx, s), nil
}

func (m *Manager) status(ctx context.Context, s *state) Status {
	st := Status{
		Name: s.Name, Created: s.Created, Phase: string(s.Phase), Owner: s.Owner.PID, Bridge: s.Bridge, Datapath: s.Datapath,
		OVSRunDir: s.OVSRunDir, OwnOVS: s.OwnOVS, Controller: s.Controller, Warnings: s.Warnings,
	}
	st.OwnerAlive = s.Owner.PID != 0 && s.Owner.alive()
	for _, h := range s.Hosts {
		hs := HostStatus{Name: h.Name, Netns: h.Netns, IP: h.IP, Port: h.Port}
		if link, ok := netnsLink(netnsPath(h.Netns)); ok {
			hs.Processes = len(pidsInNetns(map[string]bool{link: true}))
		} else {
			st.Problem = fmt.Sprintf("namespace %s is gone", h.Netns)
		}
		st.Hosts = append(st.Hosts, hs)
	}
	o := &ovs{runDir: s.OVSRunDir, own: s.OwnOVS}
	switch rows, err := o.table(ctx, "bridge", []string{"name"}, s.Bridge); {
	case err != nil:
		st.Problem = "its bridge cannot be read: " + err.Error()
	case len(rows) == 1 && s.Controller != "":
		if rows, err := o.table(ctx, "controller", []string{"is_connected"}, s.Bridge); err == nil && len(rows) == 1 {
			st.Connected = rows[0][0] == "true"
		}
	}
	if st.Owner != 0 && !st.OwnerAlive {
		st.Problem = "its owner is dead; the next up or down removes it"
	}
	return st
}

// Open returns a lab that is up, made by this or another process.
func (m *Manager) Open(_ context.Context, name string) (*Lab, error) {
	s, err := m.load(name)
	if err != nil {
		return nil, err
	}
	if s.Phase != phaseUp {
		return nil, fmt.Errorf("lab %s is not up but %s; wait, or take it down (netsplit lab down %s)", name, s.Phase, name)
	}
	return &Lab{m: m, st: *s}, nil
}

// Down removes the lab.
func (l *Lab) Down(ctx context.Context) error { return l.m.Down(ctx, l.st.Name) }

// RestartSwitch starts those daemons of the Open vSwitch that do not run, if
// it is the one that netsplit started. The lab's bridge comes back with the
// same datapath id and ports, without rules.
func (l *Lab) RestartSwitch(ctx context.Context) error {
	if !l.st.OwnOVS {
		return fmt.Errorf("lab %s is on the Open vSwitch at %s, which is not ours to restart", l.st.Name, l.st.OVSRunDir)
	}
	unlock, err := l.m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := l.m.load(l.st.Name); err != nil {
		return err
	}
	return l.m.withRmem(&l.st, func() error { return l.m.startOVS(ctx, l.m.ownOVS()) })
}

// SetController makes the bridge dial another OpenFlow target, or none ("").
func (l *Lab) SetController(ctx context.Context, target string) error {
	if target != "" {
		if err := checkController(target); err != nil {
			return fmt.Errorf("lab %s: %w", l.st.Name, err)
		}
	}
	unlock, err := l.m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.m.load(l.st.Name)
	if err != nil {
		return err
	}
	s.Controller = target
	o := &ovs{runDir: s.OVSRunDir, own: s.OwnOVS}
	args := []string{"del-controller", s.Bridge}
	if target != "" {
		args = controllerArgs(s)
	}
	if _, err := o.vsctl(ctx, args...); err != nil {
		return fmt.Errorf("lab %s: %w", s.Name, o.explain(err))
	}
	l.st = *s
	return l.m.save(s)
}

// TuneController waits until the switch is connected to its controller, then
// bounds its reconnect back-off to 1 s. Open vSwitch takes that setting over
// only when it changes while the connection is up: set together with the
// controller it has no effect, and a switch comes back seconds late.
func (l *Lab) TuneController(ctx context.Context) error {
	if l.st.Controller == "" {
		return fmt.Errorf("lab %s has no controller; set one first (SetController)", l.st.Name)
	}
	o := &ovs{runDir: l.st.OVSRunDir, own: l.st.OwnOVS}
	late := func() error {
		return fmt.Errorf("lab %s: its switch did not connect to %s; is a controller listening there? %w", l.st.Name, l.st.Controller, ctx.Err())
	}
	for {
		rows, err := o.table(ctx, "controller", []string{"is_connected", "max_backoff"}, l.st.Bridge)
		if ctx.Err() != nil {
			return late()
		}
		if err != nil {
			return fmt.Errorf("lab %s: %w", l.st.Name, err)
		}
		if len(rows) == 1 && rows[0][0] == "true" {
			if strings.TrimSpace(rows[0][1]) == "1000" { // it must change to be taken over
				if _, err := o.vsctl(ctx, "set", "controller", l.st.Bridge, "max_backoff=2000"); err != nil {
					return fmt.Errorf("lab %s: %w", l.st.Name, err)
				}
			}
			if _, err := o.vsctl(ctx, "set", "controller", l.st.Bridge, "max_backoff=1000"); err != nil {
				return fmt.Errorf("lab %s: %w", l.st.Name, err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return late()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
