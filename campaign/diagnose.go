package campaign

import (
	"context"
	"fmt"
	"time"

	"netsplit/model"
	"netsplit/testbed/doctor"
)

// connectWait is how long an examination waits for switches that are not
// connected: Open vSwitch tries again every 8 s at the latest, by default.
const connectWait = 10 * time.Second

// Diagnose examines the testbed that the daemon drives, by the sessions that it
// has. What would disturb a campaign or a manual partition is left out while
// there is one, and said to be.
func (s *Service) Diagnose(ctx context.Context) (model.Diagnosis, error) {
	tb := s.cfg.Testbed
	switch {
	case tb == nil:
		return model.Diagnosis{}, fmt.Errorf("%w: this daemon has no testbed, because each campaign makes its own labs: start it with --testbed FILE, or name the file: netsplit doctor --testbed FILE", model.ErrConflict)
	case s.ctrl == nil:
		return model.Diagnosis{}, fmt.Errorf("%w: testbed %s has no switch to examine (backend: %s): the daemon tested its hosts when it started; /healthz says whether they still work", model.ErrConflict, tb.Name, tb.Backend)
	}
	if !s.examining.TryLock() {
		return model.Diagnosis{}, fmt.Errorf("%w: the testbed is being examined already: ask again in a minute", model.ErrConflict)
	}
	defer s.examining.Unlock()
	d := doctor.Examine(ctx, doctor.Config{Testbed: *tb, Controller: s.ctrl, Binary: s.cfg.Binary, Wait: connectWait, TLS: s.cfg.TLS != nil, InUse: true, Busy: s.hand.Busy})
	if err := ctx.Err(); err != nil {
		return model.Diagnosis{}, fmt.Errorf("the examination was cut short: %w", context.Cause(ctx))
	}
	return d, nil
}
