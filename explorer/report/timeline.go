package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/model"
)

// item is one thing that wanted to travel from host to host: a message, a
// message carried once more, or a packet without a message that was dropped.
type item struct {
	event    uint64
	num      uint64 // of the message; 0: none
	at       time.Duration
	from, to model.NodeID
	typ      string
	detail   string // fields on one line
	brief    string // the field that tells it from others of its type
	bytes    int
	again    bool // a retransmission
	dropped  bool
	trigger  bool // the cut was decided on it
	heal     bool // the heal was decided on it

	// Of a message fault: its place in the scenario, 0 for none; which message it
	// was in order of time; whether the picture marks it, how, and what of its way
	// the item is.
	fault, number int
	marked        bool
	mark          string
	part          part
}

// change is a new value of a variable.
type change struct {
	event   uint64
	at      time.Duration
	value   string
	probe   string
	message uint64
}

// track is the course of one variable, without repeats of a value.
type track struct {
	ref     model.VarRef
	kind    string
	changes []change
	last    time.Duration // last observation
}

// window is a stretch of time.
type window struct{ from, to time.Duration }

// timeline is the run as the pictures need it.
type timeline struct {
	items   []item // in order of arrival
	hosts   []model.NodeID
	left    int // hosts without a column: they sent and received nothing
	nodes   map[model.NodeID]bool
	actions []action             // what was done to servers
	acted   time.Duration        // when the first step that crashes, pauses or fails a disk began; 0: none did
	group   map[model.NodeID]int // of the partition; -1: in none
	groups  int
	oneWay  bool // simplex: only what the second group sends to the first is cut

	cut, heal  *model.Decision // nil: none
	step       model.Step      // that cut
	cuts       int             // of the run; the first is cut
	inForce    time.Duration   // 0: unknown
	passed     time.Duration   // when the healing message reached its receiver; 0: unknown
	links      map[model.Link]bool
	trigger    *model.Observation // that decided the cut; nil: none did
	work, stop time.Duration      // of the workload; stop 0: unknown
	end        time.Duration
	tracks     []track // sorted by variable
	invariants []model.Invariant
	violations [][]window   // per invariant
	focus      int          // index of the invariant the picture follows; -1: none
	focusVar   model.VarRef // the variable it follows where there is no invariant
	faulty     *window      // of the message faults that are marked; nil: none
}

// cutOf is the step that a decision to cut puts in force.
func cutOf(s *model.RunSummary, d *model.Decision) model.Step {
	if i := d.Step - 1; i >= 0 && i < len(s.Scenario.Steps) {
		return s.Scenario.Steps[i]
	}
	return s.Scenario.Cut() // of an earlier version, or a script's
}

func newTimeline(in *Input) *timeline {
	t := &timeline{links: map[model.Link]bool{}, nodes: map[model.NodeID]bool{}, invariants: in.Invariants}
	for _, r := range in.Summary.Result.Steps {
		if r.Step < 1 || r.Step > len(in.Summary.Scenario.Steps) { // the events are torn, or it is false
			continue
		}
		if st := &in.Summary.Scenario.Steps[r.Step-1]; (st.Do.Node != nil || st.Do.Disk != nil) && r.By != "" && (t.acted == 0 || r.Began < t.acted) {
			t.acted = r.Began
		}
	}
	for _, n := range in.Nodes {
		t.nodes[n] = true
	}
	fates := map[uint64]model.Action{}
	for i := range in.Decisions {
		d := &in.Decisions[i]
		if old, known := fates[d.Frame]; d.Frame != 0 && (!known || old == model.Hold) {
			fates[d.Frame] = d.Action // what comes later is about copies of it
		}
		t.cuts += b2i(d.Cut)
		if d.Cut && t.cut == nil {
			t.cut, t.step = d, cutOf(&in.Summary, d)
		}
		if d.Heal && t.heal == nil && t.cut != nil && d.Step == t.cut.Step {
			t.heal = d
		}
	}
	if p := in.Summary.Proof; p != nil && t.cut != nil {
		t.inForce = p.InForceAt
		if t.heal != nil {
			t.passed = p.HealedAt
		}
	}
	if t.cut != nil {
		partition := t.step.Partition()
		for _, l := range partition.Links() {
			t.links[l] = true
		}
	}
	t.read(in, fates)
	if t.cut == nil || t.heal == nil {
		t.passed = 0
	}
	t.columns(in)
	t.watch(in.Events, in.MaxAge)
	if t.focus = t.chooseFocus(in.Summary.Scenario.Waits()); t.focus < 0 {
		t.focusVar, _ = t.firstChange()
	}
	return t
}

// read collects items and variables from the event log.
func (t *timeline) read(in *Input, fates map[uint64]model.Action) {
	events := in.Events
	byNum := map[uint64]int{}
	tracks := map[model.VarRef]*track{}
	for i := range events {
		e := &events[i]
		t.end = max(t.end, e.At)
		switch e.Kind {
		case model.EventWorkload:
			t.work = e.At
		case model.EventStop:
			t.stop = e.At
		case model.EventNode:
			if e.Node != nil {
				t.actions = append(t.actions, action{e.Num, e.At, *e.Node})
			}
		case model.EventInForce:
			if t.inForce == 0 {
				t.inForce = e.At
			}
		case model.EventMessage:
			if m := e.Message; m != nil {
				byNum[m.Num] = len(t.items)
				t.items = append(t.items, item{event: e.Num, num: m.Num, at: e.At, from: m.From, to: m.To, typ: clean(m.Type), bytes: m.Bytes, detail: detail(m), brief: brief(m)})
			}
		case model.EventObserve:
			if o := e.Observation; o != nil {
				tr := tracks[o.Var]
				if tr == nil {
					tr = &track{ref: o.Var, kind: o.Kind}
					tracks[o.Var] = tr
				}
				tr.last = e.At
				if n := len(tr.changes); n == 0 || tr.changes[n-1].value != o.Value {
					tr.changes = append(tr.changes, change{e.Num, e.At, o.Value, o.Probe, o.Message})
				}
				if t.cut != nil && t.cut.Event == e.Num {
					t.trigger = o
				}
			}
		case model.EventPacket:
			if p := e.Packet; p != nil {
				fate := fates[p.Frame]
				t.packet(e, p, fate == model.DropPacket || fate == model.ResetConn, byNum)
			}
		}
	}
	for _, tr := range tracks {
		t.tracks = append(t.tracks, *tr)
	}
	slices.SortFunc(t.tracks, func(a, b track) int { return a.ref.Compare(b.ref) })
	mark := func(num uint64, set func(*item)) {
		if i, ok := byNum[num]; ok && num != 0 {
			set(&t.items[i])
		}
	}
	if t.cut != nil {
		mark(t.cut.Message, func(i *item) { i.trigger = true })
		if t.trigger != nil {
			mark(t.trigger.Message, func(i *item) { i.trigger = true })
		}
	}
	if t.heal != nil {
		mark(t.heal.Message, func(i *item) { i.heal = true })
	}
	t.markFaults(in.Summary.Faults, byNum)
}

// packet gives the messages of a packet their fate, and adds what only the
// packet shows: messages carried again, and packets without a message that
// were dropped.
func (t *timeline) packet(e *model.Event, p *model.HeldPacket, dropped bool, byNum map[uint64]int) {
	for _, n := range p.Messages {
		if i, ok := byNum[n]; ok {
			t.items[i].dropped = dropped
		}
	}
	for _, n := range p.Again {
		it := item{event: e.Num, at: e.At, from: p.From, to: p.To, typ: "retransmission", bytes: p.Bytes, again: true, dropped: dropped}
		if i, ok := byNum[n]; ok {
			it.typ, it.detail, it.brief = t.items[i].typ, t.items[i].detail, t.items[i].brief
			it.num = n
		}
		t.items = append(t.items, it)
	}
	if dropped && len(p.Messages) == 0 && len(p.Again) == 0 {
		t.items = append(t.items, item{event: e.Num, at: e.At, from: p.From, to: p.To, typ: "packet without message", bytes: p.Bytes, dropped: true})
	}
}

// maxColumns is how many hosts have a column although they sent and received nothing.
const maxColumns = 50

// columns orders the hosts so that the sides of the cut stand next to each
// other; hosts on no side stand outside, by the side they talk to most while
// the cut holds, so that few arrows that are not cut pass over the band.
func (t *timeline) columns(in *Input) {
	all := slices.Clone(in.Hosts)
	for _, it := range t.items {
		for _, h := range []model.NodeID{it.from, it.to} {
			if h != "" && !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	if len(all) > maxColumns {
		took := map[model.NodeID]bool{}
		for _, it := range t.items {
			took[it.from], took[it.to] = true, true
		}
		for _, a := range t.actions {
			took[a.Host] = true
		}
		if t.cut != nil {
			took[t.step.Do.Isolate] = true
		}
		n := len(all)
		all = slices.DeleteFunc(all, func(h model.NodeID) bool { return !took[h] })
		t.left = n - len(all)
	}
	t.group = map[model.NodeID]int{}
	for _, h := range all {
		t.group[h] = -1
	}
	if t.cut == nil {
		t.hosts = all
		return
	}
	partition := t.step.Partition()
	groups := slices.Clone(partition.Groups)
	t.groups = len(groups)
	t.oneWay = partition.Shape == model.Simplex
	iso := t.step.Do.Isolate
	if !t.oneWay {
		slices.SortStableFunc(groups, func(a, b []model.NodeID) int {
			return model.FalseFirst(slices.Contains(b, iso), slices.Contains(a, iso))
		})
	}
	for i, g := range groups {
		for _, h := range g {
			t.group[h] = i
		}
	}
	from, to := t.cutWindow()
	side := map[model.NodeID]int{}
	for _, it := range t.items {
		if it.at < from || it.at > to {
			continue
		}
		for _, p := range [][2]model.NodeID{{it.from, it.to}, {it.to, it.from}} {
			if t.group[p[0]] < 0 && t.group[p[1]] >= 0 {
				if t.group[p[1]] == 0 {
					side[p[0]]--
				} else {
					side[p[0]]++
				}
			}
		}
	}
	place := func(h model.NodeID) int {
		if g := t.group[h]; g >= 0 {
			return g
		}
		if side[h] < 0 {
			return -1
		}
		return t.groups
	}
	slices.SortStableFunc(all, func(a, b model.NodeID) int { return cmp.Compare(place(a), place(b)) })
	t.hosts = all
}

func (t *timeline) cutWindow() (from, to time.Duration) {
	if t.cut == nil {
		return 0, 0
	}
	from, to = t.cut.At, t.end
	if t.heal != nil {
		to = t.heal.At
	}
	return from, to
}

// watch finds when each invariant's two values differed, by the last values
// seen, as long as neither is out of date.
func (t *timeline) watch(events []model.Event, maxAge map[string]time.Duration) {
	t.violations = make([][]window, len(t.invariants))
	type seen struct {
		value string
		until time.Duration // when it is out of date
	}
	last := map[model.VarRef]seen{}
	open := make([]bool, len(t.invariants))
	uses := map[model.VarRef][]int{}
	for i, inv := range t.invariants {
		uses[inv.A] = append(uses[inv.A], i)
		uses[inv.B] = append(uses[inv.B], i)
	}
	// age ends a violation whose values were out of date before now.
	age := func(k int, now time.Duration) {
		until := min(last[t.invariants[k].A].until, last[t.invariants[k].B].until)
		if open[k] && until < now {
			t.violations[k][len(t.violations[k])-1].to, open[k] = until, false
		}
	}
	for i := range events {
		o := events[i].Observation
		if events[i].Kind != model.EventObserve || o == nil {
			continue
		}
		at := events[i].At
		for _, k := range uses[o.Var] {
			age(k, at)
		}
		until := time.Duration(math.MaxInt64)
		if m := maxAge[o.Var.Name]; m > 0 && !o.Lasts {
			until = at + m
		}
		last[o.Var] = seen{o.Value, until}
		for _, k := range uses[o.Var] {
			a, oka := last[t.invariants[k].A]
			b, okb := last[t.invariants[k].B]
			bad := oka && okb && a.value != b.value && min(a.until, b.until) >= at
			switch n := len(t.violations[k]); {
			case bad && !open[k]:
				t.violations[k] = append(t.violations[k], window{at, t.end})
			case !bad && open[k]:
				t.violations[k][n-1].to = at
			}
			open[k] = bad
		}
	}
	for k := range t.invariants {
		age(k, t.end)
	}
}

// chooseFocus picks the invariant whose variables the picture follows: the
// scenario's; else the one that broke first from the cut (or the workload)
// on; else the first.
func (t *timeline) chooseFocus(waits *model.Step) int {
	if waits != nil {
		want := &waits.When.State.Invariant
		for i := range t.invariants {
			if t.invariants[i].ID == want.ID {
				return i
			}
		}
		t.invariants = append(slices.Clone(t.invariants), *want)
		t.violations = append(t.violations, nil)
		return len(t.invariants) - 1
	}
	from := t.work
	if t.cut != nil {
		from = t.cut.At
	}
	best, first := -1, time.Duration(0)
	for i, ws := range t.violations {
		for _, w := range ws {
			if w.to >= from && (best < 0 || w.from < first) {
				best, first = i, w.from
			}
		}
	}
	if best < 0 && len(t.invariants) > 0 {
		best = 0
	}
	return best
}

// firstChange is the first new value of a variable during the workload.
func (t *timeline) firstChange() (ref model.VarRef, when time.Duration) {
	when = -1
	for _, tr := range t.tracks {
		for i, c := range tr.changes {
			if i > 0 && c.at >= t.work && (when < 0 || c.at < when) {
				ref, when = tr.ref, c.at
			}
		}
	}
	return ref, when
}

// laneOf is the variable shown beside a host: of the focus invariant, or the
// same variable on this host.
func (t *timeline) laneOf(h model.NodeID) *track {
	if t.focus < 0 {
		ref := t.focusVar
		ref.Node = h
		return t.track(ref)
	}
	inv := t.invariants[t.focus]
	for _, ref := range []model.VarRef{inv.A, inv.B} {
		if ref.Node == h {
			return t.track(ref)
		}
	}
	for _, ref := range []model.VarRef{inv.A, inv.B} {
		ref.Node = h
		if tr := t.track(ref); tr != nil {
			return tr
		}
	}
	return nil
}

func (t *timeline) track(ref model.VarRef) *track {
	i, ok := slices.BinarySearchFunc(t.tracks, ref, func(tr track, r model.VarRef) int { return tr.ref.Compare(r) })
	if !ok {
		return nil
	}
	return &t.tracks[i]
}

// disagreements lists when any invariant over the variable was broken.
func (t *timeline) disagreements(ref model.VarRef) []window {
	var all []window
	for i, inv := range t.invariants {
		if inv.A == ref || inv.B == ref {
			all = append(all, t.violations[i]...)
		}
	}
	slices.SortFunc(all, func(a, b window) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var out []window
	for _, w := range all {
		if n := len(out); n > 0 && w.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, w.to)
		} else {
			out = append(out, w)
		}
	}
	return out
}

// valueAt is the variable's value at a moment; "" before the first.
func (tr *track) valueAt(at time.Duration) string {
	v := ""
	for _, c := range tr.changes {
		if c.at > at {
			break
		}
		v = c.value
	}
	return v
}

func detail(m *model.Message) string {
	var b strings.Builder
	for i, f := range m.Fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.Name + "=" + f.Value)
		if b.Len() > 400 {
			break
		}
	}
	return clean(b.String())
}

// brief is the first field that says something the type does not, without the
// words the type has said. A number has the name of its field with it, unless
// that is a place (arg1): alone it says nothing.
func brief(m *model.Message) string {
	low := strings.ToLower(m.Type)
	said := low[strings.LastIndexByte(low, ' ')+1:]
	for _, f := range m.Fields {
		v := strings.TrimSpace(f.Value)
		if first, rest, ok := strings.Cut(v, " "); ok && strings.ToLower(first) == said {
			v = strings.TrimSpace(rest)
		}
		_, err := strconv.ParseUint(v, 10, 64)
		switch place := strings.TrimRight(f.Name, "0123456789") != f.Name; {
		case v == "":
		case err == nil && !place:
			return f.Name + "=" + v
		case !strings.Contains(low, strings.ToLower(v)):
			return shorten(clean(v), 80)
		}
	}
	return ""
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
