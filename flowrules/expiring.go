package flowrules

import (
	"maps"
	"slices"

	"netsplit/controller/of13"
)

// Expiring are the rules with a hard timeout that a switch holds, by Key: what has
// to be sent again before they go. It follows what the switch is told, message by
// message, so that no rule is renewed that was removed, or before its turn.
type Expiring map[string]*of13.FlowMod

// Expiring is what of the plan expires and is held by a switch in this state.
func (p Plan) Expiring(have State) Expiring {
	held := map[string]of13.FlowStats{}
	for _, s := range have.Flows {
		held[KeyOf(s)] = s
	}
	e := Expiring{}
	for _, r := range p.Rules {
		if s, has := held[r.Key()]; has && r.HardTimeout != 0 && r.holds(s) {
			e[r.Key()] = r.Add()
		}
	}
	return e
}

// Follow has e follow the flow-mods among the messages, which are a Diff's.
func (e Expiring) Follow(ms []of13.Message) {
	for _, m := range ms {
		f, ok := m.(*of13.FlowMod)
		if !ok {
			continue
		}
		k := key(uint8(f.TableID), f.Priority, f.Match)
		switch {
		case f.Command == of13.FlowAdd && f.HardTimeout != 0:
			e[k] = f
		case f.Command == of13.FlowAdd, f.Command == of13.FlowDeleteStrict:
			delete(e, k)
		case f.Command == of13.FlowDelete:
			maps.DeleteFunc(e, func(_ string, o *of13.FlowMod) bool { return (o.Cookie^f.Cookie)&f.CookieMask == 0 })
		}
	}
}

// Keep forgets what the plan does not want as it is: it is left to expire.
func (e Expiring) Keep(p Plan) {
	wanted := map[string]Rule{}
	for _, r := range p.Rules {
		wanted[r.Key()] = r
	}
	maps.DeleteFunc(e, func(k string, f *of13.FlowMod) bool {
		r, ok := wanted[k]
		return !ok || uint64(r.Cookie) != f.Cookie || !of13.EqualInstructions(r.Do.Instructions(), f.Instructions)
	})
}

// Renew lists the flow-mods that restart the clocks, by key.
func (e Expiring) Renew() []of13.Message {
	var out []of13.Message
	for _, k := range slices.Sorted(maps.Keys(e)) {
		out = append(out, e[k])
	}
	return out
}
