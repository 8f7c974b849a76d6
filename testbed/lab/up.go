package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// undoLimit bounds the cleaning up after a failed or interrupted Up.
const undoLimit = 60 * time.Second

// Up makes a lab. It first removes what dead owners left. If it fails, or ctx
// ends, nothing of the lab remains.
func (m *Manager) Up(ctx context.Context, spec Spec) (*Lab, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := needs(); err != nil {
		return nil, err
	}
	var owner process
	if spec.Owner != 0 {
		var err error
		if owner, err = findProcess(spec.Owner); err != nil {
			return nil, fmt.Errorf("lab %s: its owner does not run: %w", spec.Name, err)
		}
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	labs, leftover := m.collect(ctx)
	if old := labs[spec.Name]; labs == nil || old != nil && old.Phase != phaseUp {
		return nil, leftover
	} else if old != nil {
		return nil, fmt.Errorf("lab %s is up already%s; take it down first (netsplit lab down %s) or use another name", spec.Name, old.ownedBy(), spec.Name)
	}
	s, err := m.plan(spec, owner, labs)
	if err != nil {
		return nil, errors.Join(err, m.stopIfUnused(ctx, labs))
	}
	if leftover != nil { // of other labs: no reason not to make this one
		s.Warnings = append(s.Warnings, leftover.Error())
	}
	if err = m.build(ctx, s, spec.Ports); err == nil {
		s.Phase = phaseUp
		err = m.save(s)
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		err = fmt.Errorf("lab %s: %w", s.Name, err)
		if uerr := m.remove(undo, s); uerr != nil {
			err = errors.Join(err, fmt.Errorf("lab %s: parts of it could not be removed: %w", s.Name, uerr))
		}
		return nil, errors.Join(err, m.stopIfUnused(undo, labs))
	}
	return &Lab{m: m, st: *s}, nil
}

func (s *state) ownedBy() string {
	if s.Owner.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" and belongs to process %d", s.Owner.PID)
}

// plan names everything the lab will consist of. All names are free.
func (m *Manager) plan(spec Spec, owner process, labs map[string]*state) (*state, error) {
	s := &state{
		Name: spec.Name, Phase: phaseCreating, Owner: owner, Created: time.Now().UTC(), Controller: spec.Controller,
		Datapath: datapathOf(spec.Name),
	}
	used := map[int]bool{}
	for _, o := range labs {
		used[o.Index] = true
		if o.Datapath == s.Datapath {
			return nil, fmt.Errorf("lab %s would have the datapath id of lab %s (%s); use another name", s.Name, o.Name, s.Datapath)
		}
	}
	for used[s.Index] {
		s.Index++
	}
	if s.Index >= maxLabs {
		return nil, fmt.Errorf("lab %s: all %d lab subnets are in use; take a lab down", s.Name, maxLabs)
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("lab %s: cannot list links: %w", s.Name, err)
	}
	taken := func(id string) bool {
		for _, l := range links {
			if isOurLink(l.Attrs().Name, id) {
				return true
			}
		}
		for _, o := range labs {
			if o.ID == id {
				return true
			}
		}
		return false
	}
	for salt := 0; ; salt++ {
		if s.ID = labID(s.Name, salt); !taken(s.ID) {
			break
		}
	}
	s.Bridge, s.MirrorSwitch, s.MirrorReader = bridgeName(s.ID), mirrorSwitchName(s.ID), mirrorReaderName(s.ID)
	if !spec.NoGate {
		s.GateSwitch, s.GateReader = gateSwitchName(s.ID), gateReaderName(s.ID)
	}
	for i, h := range spec.Hosts {
		port := i + 1
		ns := netnsName(s.Name, string(h))
		if _, err := os.Lstat(netnsPath(ns)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lab %s: a network namespace %s exists that is not this lab's; use another lab name, or delete it (ip netns del %s)", s.Name, ns, ns)
		}
		s.Hosts = append(s.Hosts, hostState{
			Name: h, Netns: ns, Link: portName(s.ID, port), Port: uint32(port), MAC: hostMAC(s.Index, port), IP: addrOf(s.Index, port).String(),
		})
	}
	return s, nil
}

// build makes what the state names. The state is on disk before anything else.
func (m *Manager) build(ctx context.Context, s *state, ports []uint16) error {
	s.OVSRunDir, s.OwnOVS = m.ownOVS().runDir, true // until known better
	if err := m.save(s); err != nil {
		return err
	}
	var o *ovs
	err := m.withRmem(s, func() (err error) { // a switch that is started again opens its ports
		o, err = m.useOVS(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.OVSRunDir, s.OwnOVS = o.runDir, o.own
	if err := m.save(s); err != nil {
		return err
	}
	if err := m.bridgeFree(ctx, o, s); err != nil {
		return err
	}
	for _, h := range s.Hosts {
		if err := m.addHost(ctx, s, h); err != nil {
			return err
		}
		if err := reservePorts(ctx, h, ports); err != nil {
			return err
		}
	}
	if err := m.addTap(ctx, s, s.MirrorSwitch, s.MirrorReader, hostMTU); err != nil {
		return fmt.Errorf("mirror port: %w", err)
	}
	if s.GateSwitch != "" {
		if err := m.addTap(ctx, s, s.GateSwitch, s.GateReader, gateMTU); err != nil {
			return fmt.Errorf("gate port: %w", err)
		}
	}
	return m.withRmem(s, func() error { return m.addBridge(ctx, o, s) })
}

// bridgeFree refuses a bridge name or datapath id that somebody else uses on
// the same switch.
func (m *Manager) bridgeFree(ctx context.Context, o *ovs, s *state) error {
	rows, err := o.table(ctx, "bridge", []string{"name", "datapath_id"})
	if err != nil {
		return o.explain(err)
	}
	for _, row := range rows {
		if row[0] == s.Bridge || strings.EqualFold(row[1], s.Datapath.String()) {
			bridge := s.Bridge
			s.Bridge = "" // not ours: the undo must not delete it
			return fmt.Errorf("bridge %s (datapath %s) is in the way of %s and is not ours to remove; delete it or use another lab name", row[0], row[1], bridge)
		}
	}
	return nil
}
