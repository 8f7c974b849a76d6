package fabric

import (
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
	mu    sync.Mutex
	on    *controller.Switch // the session that holds them; nil: none does
	rules flowrules.Expiring
}

// hold says that a session holds these rules, and no others that expire.
func (a *alive) hold(sw *controller.Switch, rules flowrules.Expiring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on, a.rules = sw, rules
}

// told follows what the switch is told; it is called before that is sent, so that
// nothing is renewed behind its removal.
func (a *alive) told(ms []of13.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on != nil {
		a.rules.Told(ms)
	}
}

// keep leaves what the plan does not want to expire, where the switch may not have
// been told to remove it.
func (a *alive) keep(p flowrules.Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules.Keep(p)
}

// renew restarts the clocks of the rules, if sw is the session that holds them.
func (a *alive) renew(sw *controller.Switch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on == sw {
		_ = sw.Send(a.rules.Renew()...) // a failure ends the session
	}
}

// renewing renews until the fabric is closed.
func (m *member) renewing() {
	tick := time.NewTicker(m.f.cfg.RenewEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.f.stop:
			return
		case <-tick.C:
		}
		if sw, err := m.command(); err == nil {
			m.alive.renew(sw)
		}
	}
}
