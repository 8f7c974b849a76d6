package flowrules

import (
	"fmt"
	"slices"

	"netsplit/controller/of13"
)

// Step is a group of messages that may be carried out in any order, whether a
// barrier is to follow, and whether the next step is to be sent right behind it.
type Step struct {
	Name    string // of the stage in Order
	Mods    []of13.Message
	Barrier bool
	Urgent  bool
}

// Delta is what turns a dump into a plan.
type Delta struct {
	Steps []Step // in the order of Order; empty if the switch holds the plan
	// How many of our rules and meters are not there, are there but differ, are
	// there but not wanted.
	Missing, Changed, Stale int
	// Conflicts are rules of others in tables we use. No step touches them.
	Conflicts []Conflict
}

// Empty reports that nothing has to be done.
func (d Delta) Empty() bool { return len(d.Steps) == 0 }

// Conflict is a rule of somebody else in a table of ours.
type Conflict struct {
	Flow of13.FlowStats
	// Defeats lists the rules of the plan that lose packets to it: it matches
	// some of theirs and does not rank below them. Sorted as the plan.
	Defeats []Rule
	// InPlace says that it has the very match and priority of the first of
	// Defeats, which therefore is not installed.
	InPlace bool
}

// String says what the conflict is and what can be done.
func (c Conflict) String() string {
	if Cookie(c.Flow.Cookie).left() {
		return fmt.Sprintf("rule that netsplit left for a testbed of another name (cookie %#x) in table %d; serve the testbed by that name, or remove all that netsplit left: %s",
			c.Flow.Cookie, c.Flow.TableID, removeLeft)
	}
	s := fmt.Sprintf("rule of somebody else (cookie %#x) in table %d: priority=%d %s", c.Flow.Cookie, c.Flow.TableID, c.Flow.Priority, c.Flow.Match)
	switch {
	case c.InPlace:
		s += fmt.Sprintf("; it stands in the place of \"%s\"", c.Defeats[0])
	case len(c.Defeats) > 0:
		s += fmt.Sprintf("; it defeats %d of our rules, first \"%s\"", len(c.Defeats), c.Defeats[0])
	default:
		s += "; it defeats none of our rules"
	}
	return s + "; remove it (ovs-ofctl --strict del-flows) or keep its owner off this switch"
}

// Diff compares a dump of all tables and meters with a plan. It removes rules that have a
// cookie of the plan's lab but are not in the plan: those of one partition by one message
// for each kind. It never touches rules and meters of others. It reports such rules if they
// are in a table of the plan. For meters of others with a number of the plan see Taken.
func Diff(have State, want Plan) Delta {
	var d Delta
	meters := d.meters(have, want)
	held := make(map[string]of13.FlowStats, len(have.Flows))
	used := map[uint8]bool{}
	wanted := make(map[string]bool, len(want.Rules))
	stays := map[Cookie]bool{}
	admitted := map[uint64]bool{} // ports
	for _, r := range want.Rules {
		used[r.Table] = true
		wanted[r.Key()] = true
		stays[r.Cookie] = true
		if r.Kind == KindAdmit {
			admitted[uint64(r.Match.InPort)] = true
		}
	}
	removals := map[Kind][]of13.Message{}
	gone := map[Cookie]bool{} // cookies whose rules all go by one message
	for _, s := range sorted(have.Flows) {
		k := KeyOf(s)
		held[k] = s
		switch c := Cookie(s.Cookie); {
		case c>>56 == Tag && c.Kind() == KindTrial:
		case !c.Ours(want.Lab):
			if used[uint8(s.TableID)] {
				d.Conflicts = append(d.Conflicts, conflict(s, wanted[k], want))
			}
		case !wanted[k]:
			d.Stale++
			if gone[c] {
				continue
			}
			m := remove(s)
			if c.Partition() != 0 && !stays[c] {
				m, gone[c] = removeAll(c, MaskAll), true
			}
			kind := known(c.Kind())
			if in, _ := s.Match.Get(of13.ClassBasic, of13.FieldInPort); kind == KindFresh && !admitted[in.Uint()] {
				kind = KindAdmit // to shut a port out, both have to go
			}
			removals[kind] = append(removals[kind], m)
		}
	}
	adds := map[Kind][]of13.Message{}
	for _, r := range want.Rules {
		s, has := held[r.Key()]
		switch {
		case !has:
			d.Missing++
		case !Cookie(s.Cookie).Ours(want.Lab):
			continue // a conflict in place
		case r.holds(s):
			continue
		default:
			d.Changed++
		}
		adds[r.Kind] = append(adds[r.Kind], r.Add())
	}
	for _, st := range Order {
		from := adds
		if st.Delete {
			from = removals
		}
		mods := meters[st.Meters]
		for _, k := range st.Kinds {
			mods = append(mods, from[k]...)
		}
		if len(mods) > 0 {
			d.Steps = append(d.Steps, Step{Name: st.Name, Mods: mods, Barrier: st.Barrier, Urgent: st.Urgent})
		}
	}
	return d
}

// known maps kinds of other versions of this program to one that Order has.
func known(k Kind) Kind {
	if _, ok := kindNames[k]; ok {
		return k
	}
	return KindDefault
}

// holds reports whether the dumped rule, which has r's key, is r.
func (r Rule) holds(s of13.FlowStats) bool {
	w := r.Stats()
	return s.Cookie == w.Cookie && s.HardTimeout == w.HardTimeout && s.IdleTimeout == 0 &&
		s.Flags == w.Flags && of13.EqualInstructions(s.Instructions, w.Instructions)
}

// conflict is what a rule of somebody else does to ours. inPlace: it has the key of one of
// ours.
func conflict(s of13.FlowStats, inPlace bool, want Plan) Conflict {
	c := Conflict{Flow: s, InPlace: inPlace}
	k := ""
	if inPlace {
		k = KeyOf(s)
	}
	for _, r := range want.Rules {
		if inPlace && r.Key() == k {
			c.Defeats = slices.Insert(c.Defeats, 0, r)
			continue
		}
		if r.Table == uint8(s.TableID) && s.Priority >= r.Priority && overlap(s.Match, r.Match.OXMs()) {
			c.Defeats = append(c.Defeats, r)
		}
	}
	return c
}

// overlap reports whether some packet may fit both matches: no field that both
// have contradicts.
func overlap(a, b of13.Match) bool {
	for _, x := range a.Normalize() {
		y, ok := b.Get(x.Class, x.Field)
		if !ok || len(x.Value) != len(y.Value) || x.Experimenter != y.Experimenter {
			continue
		}
		for i := range x.Value {
			if (x.Value[i]^y.Value[i])&mask(x, i)&mask(y, i) != 0 {
				return false
			}
		}
	}
	return true
}

func mask(o of13.OXM, i int) byte {
	if !o.HasMask || i >= len(o.Mask) {
		return 0xff
	}
	return o.Mask[i]
}

// sorted orders a dump by key, so that the result does not depend on the order
// in which a switch reports.
func sorted(have []of13.FlowStats) []of13.FlowStats {
	type keyed struct {
		key string
		s   of13.FlowStats
	}
	ks := make([]keyed, len(have))
	for i, s := range have {
		ks[i] = keyed{KeyOf(s), s}
	}
	slices.SortStableFunc(ks, func(a, b keyed) int {
		if a.s.TableID != b.s.TableID {
			return int(a.s.TableID) - int(b.s.TableID)
		}
		if a.s.Priority != b.s.Priority {
			return int(b.s.Priority) - int(a.s.Priority)
		}
		if a.key < b.key {
			return -1
		}
		if a.key > b.key {
			return 1
		}
		return 0
	})
	out := make([]of13.FlowStats, len(ks))
	for i, k := range ks {
		out[i] = k.s
	}
	return out
}

// Alike says whether two plans do the same to every packet: they differ at most in
// the rules by which a switch looks at packets anew.
func Alike(a, b Plan) bool {
	rest := func(p Plan) Plan {
		p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return r.Kind == KindFresh })
		return p
	}
	return len(Diff(rest(a).State(), rest(b)).Steps) == 0
}
