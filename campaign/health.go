package campaign

import (
	"context"
	"errors"
	"fmt"

	"netsplit/model"
)

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
	if s.ctrl == nil {
		add("hosts", s.outside.AgentGone(), fmt.Sprintf("%d drop packets themselves, by nftables", len(s.outside.Testbed.Hosts)))
		return h
	}
	add("controller", nil, "listening on "+s.ControllerAddr())
	switches, err := s.Switches(ctx)
	down := 0
	for _, sw := range switches {
		if !sw.Connected {
			down++
		}
	}
	if err == nil && s.cfg.Testbed != nil && down > 0 {
		err = fmt.Errorf("%d of %d switches of the testbed are not connected: point them at %s", down, len(switches), s.ControllerAddr())
	}
	if s.outside != nil {
		err = errors.Join(append([]error{err}, s.outside.Refused()...)...)
	}
	add("switch", err, fmt.Sprintf("%d connected", len(switches)-down))
	if s.outside != nil {
		add("hosts", s.outside.AgentGone(), fmt.Sprintf("%d, an agent on each", len(s.outside.Testbed.Hosts)))
	}
	return h
}
