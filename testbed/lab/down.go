package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
)

// Down removes a lab: it kills everything that runs on its hosts, then deletes
// its bridge, links and namespaces. It also removes what dead owners left. The
// last Down ends the Open vSwitch that netsplit started. Where there is no
// such lab it returns an error that is ErrNoLab.
func (m *Manager) Down(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := needs(); err != nil {
		return err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, gone := m.load(name)
	if !errors.Is(gone, ErrNoLab) {
		gone = nil // also if damaged: what there is of it is removed by its marks
	}
	labs, err := m.collect(ctx)
	if labs == nil {
		return err
	}
	if s := labs[name]; s != nil {
		if s.Phase == phaseRemoving { // collect has just tried
			return errors.Join(err, m.stopIfUnused(ctx, labs))
		}
		if rerr := m.remove(ctx, s); rerr != nil {
			return errors.Join(fmt.Errorf("lab %s: %w; fix that and take it down again", name, rerr), err)
		}
		delete(labs, name)
	}
	return errors.Join(gone, err, m.stopIfUnused(ctx, labs))
}

// Collect removes what dead owners left and nothing else.
func (m *Manager) Collect(ctx context.Context) error {
	if err := needs(); err != nil {
		return err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	labs, err := m.collect(ctx)
	if labs == nil {
		return err
	}
	return errors.Join(err, m.stopIfUnused(ctx, labs))
}

// remove deletes what a lab consists of, then its state. Whatever is not there
// is fine. On an error the rest is removed all the same and the state stays,
// so that the next command tries again.
func (m *Manager) remove(ctx context.Context, s *state) error {
	s.Phase = phaseRemoving
	errs := []error{m.save(s)}
	// Processes first, all together: they are to die with the lab, not to see
	// it fall apart.
	hosts := map[string]bool{}
	for _, h := range s.Hosts {
		if link, ok := netnsLink(netnsPath(h.Netns)); ok {
			hosts[link] = true
		}
	}
	errs = append(errs, killInNetns(hosts))
	if s.Bridge != "" {
		errs = append(errs, m.removeBridgeOf(ctx, s), removeLink(s.Bridge))
	}
	for _, link := range s.ports() {
		errs = append(errs, removeLink(link))
	}
	for _, h := range s.Hosts {
		errs = append(errs, removeNetns(h.Netns))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(m.statePath(s.Name))
}

// removeBridgeOf deletes a lab's bridge. Where its Open vSwitch is dead there
// is none; a record that its database still holds carries our mark, so the
// first command after it runs again removes that.
func (m *Manager) removeBridgeOf(ctx context.Context, s *state) error {
	o := &ovs{runDir: s.OVSRunDir, own: s.OwnOVS}
	if !o.listens() {
		return nil
	}
	if err := o.removeBridge(ctx, s.Bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", s.Bridge, o.explain(err))
	}
	return nil
}

// collect removes the labs whose owner is dead or whose making or removal was
// interrupted, and everything that carries our mark without belonging to a
// lab. It returns the labs that remain, those that could not be removed among
// them; nil if it cannot even tell which there are. The lock is held.
func (m *Manager) collect(ctx context.Context) (map[string]*state, error) {
	errs := []error{m.restoreRmem()}
	labs, damaged, err := m.loadAll()
	if err != nil {
		return nil, err
	}
	for _, path := range damaged { // what it named is found by its marks
		errs = append(errs, os.Remove(path))
	}
	for _, name := range sortedNames(labs) {
		s := labs[name]
		if s.Phase == phaseUp && (s.Owner.PID == 0 || s.Owner.alive()) {
			continue
		}
		if err := m.remove(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("leftover lab %s: %w", name, err))
			continue
		}
		delete(labs, name)
	}
	errs = append(errs, m.collectMarked(ctx, labs))
	return labs, errors.Join(errs...)
}

// collectMarked removes bridges, links and namespaces that carry our mark and
// belong to no lab.
func (m *Manager) collectMarked(ctx context.Context, labs map[string]*state) error {
	var errs []error
	for _, o := range []*ovs{m.ownOVS(), m.systemOVS()} {
		if !o.answers(ctx) {
			continue
		}
		marks, err := o.bridges(ctx)
		errs = append(errs, err)
		for name, k := range marks {
			if m.rubbish(k, labs) {
				errs = append(errs, o.removeBridge(ctx, name))
			}
		}
	}
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), netnsPrefix) {
			continue
		}
		if k, ok := netnsMark(e.Name()); ok && m.rubbish(k, labs) {
			errs = append(errs, removeNetns(e.Name()))
		}
	}
	links, err := netlink.LinkList()
	errs = append(errs, err)
	for _, l := range links {
		if !strings.HasPrefix(l.Attrs().Name, linkPrefix) {
			continue
		}
		if k, ok := parseMark(l.Attrs().Alias); ok && m.rubbish(k, labs) {
			errs = append(errs, removeLink(l.Attrs().Name))
		}
	}
	return errors.Join(errs...)
}

// stopIfUnused ends our own Open vSwitch once no lab is on it.
func (m *Manager) stopIfUnused(ctx context.Context, labs map[string]*state) error {
	for _, s := range labs {
		if s.OwnOVS {
			return nil
		}
	}
	return m.stopOVS(ctx)
}
