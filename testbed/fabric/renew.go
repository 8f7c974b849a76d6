package fabric

import (
	"context"
	"sync"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
)

// alive are the rules of a switch that expire unless they are renewed. Its lock is
// never held while waiting for the switch: however long that takes to answer about
// its flow table, Config.Timeout and more, what cuts there stays in force.
type alive struct {
	life time.Duration // of the rules

	mu    sync.Mutex
	on    *controller.Switch // the session that holds them; nil: none does
	rules flowrules.Expiring
	// until is when the first of them may expire unless they are renewed: their life
	// after the last renewal, or their installation, that the switch has confirmed
	// was sent. Zero: there are none, or nobody knows how old they are.
	until  time.Time
	lapsed bool // it was told that until has passed
}

// hold says that a session holds these rules, and no others that expire.
func (a *alive) hold(sw *controller.Switch, rules flowrules.Expiring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on != sw {
		a.until = time.Time{}
	}
	a.on, a.rules = sw, rules
}

// sending follows what the switch is told; it is called before that is sent, so that
// nothing is renewed behind its removal.
func (a *alive) sending(ms []of13.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on == nil {
		return
	}
	none := len(a.rules) == 0
	a.rules.Follow(ms)
	if none {
		a.until = time.Time{}
		if len(a.rules) > 0 {
			a.until, a.lapsed = time.Now().Add(a.life), false
		}
	}
}

// keep leaves what the plan does not want to expire, where the switch may not have
// been told to remove it.
func (a *alive) keep(p flowrules.Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules.Keep(p)
}

// renew restarts the clocks of the rules, if sw is the session that holds them and
// there are some, and says when.
func (a *alive) renew(sw *controller.Switch) (at time.Time, some bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on != sw || len(a.rules) == 0 {
		return at, false
	}
	at = time.Now()
	return at, sw.Send(a.rules.Renew()...) == nil // a failure ends the session
}

func (a *alive) renewed(sw *controller.Switch, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until := at.Add(a.life); a.on == sw && len(a.rules) > 0 && until.After(a.until) {
		a.until, a.lapsed = until, false
	}
}

// end is when the first of the rules may expire unless they are renewed, where there
// are some; zero: nobody knows.
func (a *alive) end() (until time.Time, some bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until, len(a.rules) > 0
}

func (a *alive) lapse() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lapsed || len(a.rules) == 0 || a.until.IsZero() || time.Now().Before(a.until) {
		return false
	}
	a.lapsed = true
	return true
}

// renewing renews until the fabric is closed. It does not wait for the switch to
// confirm.
func (m *member) renewing() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(m.f.cfg.renewEvery)
	defer tick.Stop()
	asking := make(chan struct{}, 1) // at most one confirmation is waited for
	for {
		select {
		case <-m.f.stop:
			return
		case <-tick.C:
		}
		sw, err := m.command()
		if err != nil {
			continue
		}
		if at, some := m.alive.renew(sw); some {
			select {
			case asking <- struct{}{}:
				m.f.work.Go(func() {
					defer func() { <-asking }()
					m.confirm(ctx, sw, at)
				})
			default:
			}
		}
		if cb := m.f.cfg.Events.Lapsed; cb != nil && m.alive.lapse() {
			cb(m.id)
		}
	}
}

func (m *member) confirm(ctx context.Context, sw *controller.Switch, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, m.f.cfg.HardTimeout)
	defer cancel()
	if sw.Barrier(ctx) == nil {
		m.alive.renewed(sw, at)
	}
}

// renewNow renews rules of which nobody knows how old they are.
func (m *member) renewNow(ctx context.Context, sw *controller.Switch) error {
	at, some := m.alive.renew(sw)
	if !some {
		return nil
	}
	err := sw.Barrier(ctx)
	if err == nil {
		m.alive.renewed(sw, at)
	}
	return err
}
