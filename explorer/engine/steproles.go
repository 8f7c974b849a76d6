package engine

import (
	"cmp"
	"maps"
	"slices"

	"netsplit/model"
)

// stepRoles is what a step keeps of roles.
type stepRoles struct {
	open    []string // of its fault, that are asked for
	reason  string   // and why it is to begin once they are known
	message uint64
	moment  map[string][]model.NodeID // who has the roles of that message or file operation
	had     []model.NodeID            // who had the role of the trigger that is awaited, as it was armed
	known   bool                      // had is
}

// roleOf is a role of a host.
type roleOf struct {
	role string
	host model.NodeID
}

// role takes in who has a role, and begins the steps that waited for it.
func (e *Engine) role(ev model.Event, out []model.Decision) []model.Decision {
	name, had := ev.Role.Role, e.faults.roles[ev.Role.Role]
	for _, h := range ev.Role.Have {
		if !slices.Contains(had, h) {
			e.since[roleOf{name, h}] = e.events
		}
	}
	e.faults.roles[name], e.roleCheckedAt[name] = ev.Role.Have, e.now
	for _, x := range e.steps {
		if x.phase != phaseResolving {
			continue
		}
		if x.roles.open = slices.DeleteFunc(x.roles.open, func(r string) bool { return r == ev.Role.Role }); len(x.roles.open) == 0 {
			out = e.begin(ev, x, x.roles.reason, x.roles.message, out)
		}
	}
	return e.advance(ev, false, out)
}

// name puts hosts in place of the roles of a step that is to begin. wait says that it does
// not begin now: it is asked who has them, or nobody has.
func (e *Engine) name(ev model.Event, x *step, reason string, message uint64) (wait bool, ask []model.Decision) {
	if len(x.Do.Roles) == 0 {
		return false, nil
	}
	if x.phase != phaseResolving {
		x.roles.moment = e.moment(ev, x, message)
		for _, r := range x.Do.Asked() {
			if at, ok := e.roleCheckedAt[r]; !ok || at != e.now { // of a message's step, before the message
				x.roles.open = append(x.roles.open, r)
				ask = append(ask, model.Decision{Event: ev.Num, At: ev.At, Step: x.num, Ask: r, Reason: reason})
			}
		}
		if len(ask) > 0 {
			x.phase, x.roles.reason, x.roles.message = phaseResolving, reason, message
			return true, ask
		}
	}
	have := maps.Clone(x.roles.moment)
	for _, r := range x.Do.Asked() {
		have[r] = slices.SortedFunc(slices.Values(e.faults.roles[r]), func(a, b model.NodeID) int {
			if o := e.outOfAction(a); o != e.outOfAction(b) {
				if o {
					return 1
				}
				return -1
			}
			return cmp.Or(cmp.Compare(e.since[roleOf{r, b}], e.since[roleOf{r, a}]), cmp.Compare(a, b))
		})
	}
	do, who, err := x.Do.Resolve(have)
	if err != nil {
		x.phase, x.res.Lacked = phaseFailed, err.Error()
		return true, nil
	}
	x.res.Roles = who
	e.s.Steps = slices.Clone(e.s.Steps)
	e.s.Steps[x.num-1].Do = do
	x.play(e.s.Steps[x.num-1])
	if x.When.State != nil {
		e.mayCut[do.Isolate] = true
	}
	return false, nil
}

// moment is who has the roles of the message or the file operation at which a step begins.
func (e *Engine) moment(ev model.Event, x *step, message uint64) map[string][]model.NodeID {
	if x.When.File != nil && ev.File != nil {
		return map[string][]model.NodeID{model.RoleFileHost: {ev.File.Host}}
	}
	m, ok := e.awaited[message]
	if !ok && x.num > 1 && x.When.Follows == model.FollowsBegin {
		if f := e.steps[x.num-2].fault; f != nil && len(f.hits) > 0 {
			m.from, m.to, ok = f.hits[0].From, f.hits[0].To, true
		}
	}
	if !ok {
		return map[string][]model.NodeID{}
	}
	return map[string][]model.NodeID{model.RoleSender: {m.from}, model.RoleReceiver: {m.to}}
}

// outOfAction says whether a step in force isolates a host, or has stopped its servers.
func (e *Engine) outOfAction(h model.NodeID) bool {
	return slices.ContainsFunc(e.steps, func(x *step) bool {
		return x.phase == phaseActive && (x.Do.Isolate == h || x.Do.Node != nil && x.Do.Node.Host == h)
	})
}

// held says whether the moment of a role trigger that a step awaits has come.
func (e *Engine) held(x *step, t *model.RoleTrigger) bool {
	have, known := e.faults.roles[t.Name]
	if !known {
		return false
	}
	if !x.roles.known {
		x.roles.had, x.roles.known = have, true
	}
	return t.Come(have, x.roles.had)
}
