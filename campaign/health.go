package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// State is what the daemon is and does, for its metrics.
func (s *Service) State() model.ServiceState {
	st := model.ServiceState{Testbed: "lab", StoreBytes: -1, FreeBytes: -1, Health: s.Health(context.Background())}
	if tb := s.cfg.Testbed; tb != nil {
		st.Testbed = tb.Name
	}
	if n, err := s.store.Size(); err == nil {
		st.StoreBytes = n
	}
	if r, err := roomAt(s.cfg.RunsDir); err == nil {
		st.FreeBytes = r.bytes
	}
	if s.hub != nil {
		st.Runners, st.InForce = map[model.RunnerState]int{}, map[model.Shape]int{}
		for _, r := range s.hub.Runners() {
			st.Runners[r.State]++
			for shape, n := range r.InForce {
				st.InForce[shape] += n
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Map = s.mapCount
	for _, j := range s.jobs {
		switch j.c.State {
		case model.CampaignQueued:
			st.Queued++
		case model.CampaignRunning:
			st.Running++
			st.Runs += len(j.c.Running)
		}
	}
	return st
}

// Health says whether the daemon can do its work.
func (s *Service) Health(ctx context.Context) model.Health {
	h := model.Health{OK: true}
	add := func(name string, err error, detail string) {
		c := model.HealthCheck{Name: name, OK: err == nil, Detail: detail}
		if err != nil {
			c.Detail, h.OK = err.Error(), false
		}
		h.Checks = append(h.Checks, c)
	}
	size, err := s.store.Size()
	add("store", err, fmt.Sprintf("%d bytes", size))
	room, err := s.diskHealth()
	add("disk", err, strings.TrimSuffix(room, "; "))
	if s.hub != nil {
		add("cluster", s.hub.Away(), fmt.Sprintf("at %s, %s", s.hub.Address(), model.Count(len(s.hub.Runners()), "runner", "runners")))
	}
	switch {
	case s.ctrl == nil && s.outside == nil: // runners make the runs, or it only reads
		return h
	case s.ctrl == nil:
		add("hosts", s.outside.AgentGone(), fmt.Sprintf("%d drop packets themselves, by nftables", len(s.outside.Testbed.Hosts)))
		return h
	}
	add("controller", nil, "listening on "+s.ControllerAddr())
	switches := s.ctrl.Switches()
	err = nil
	if s.cfg.Testbed != nil {
		all := s.cfg.Testbed.Switches()
		down := len(slices.DeleteFunc(slices.Clone(all), func(id model.DatapathID) bool { return slices.Contains(switches, id) }))
		if down > 0 {
			err = fmt.Errorf("%d of %d switches of the testbed are not connected: point them at %s", down, len(all), s.ControllerAddr())
		}
	}
	if s.outside != nil {
		err = errors.Join(append([]error{err}, s.outside.Refused()...)...)
	}
	add("switch", err, fmt.Sprintf("%d connected", len(switches)))
	if s.outside != nil {
		add("hosts", s.outside.AgentGone(), fmt.Sprintf("%d, an agent on each", len(s.outside.Testbed.Hosts)))
	}
	return h
}
