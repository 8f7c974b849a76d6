package sequence

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// AtMessages lists the kinds of AllKinds that need no disk gate.
func AtMessages() []FaultAt {
	return slices.DeleteFunc(AllKinds(), FaultAt.Disk)
}

// AtDisks lists those that need one.
func AtDisks() []FaultAt {
	return slices.DeleteFunc(AllKinds(), func(k FaultAt) bool { return !k.Disk() })
}

// Disk says whether a run needs a disk gate for it.
func (k FaultAt) Disk() bool {
	return k.Side == model.SideFile || k.Kind == model.PointPowerCut || k.Kind == model.PointPowerCutAll || k.Kind == model.PointShiftPowerCut
}

// Placed is a fault at a point. Node and peer are those of the recorded run that played the
// faults before it, even if they are no identity keys.
type Placed struct {
	model.PointFault
	// Turn is model.SeenPoint.Turn: which message the trigger counts to.
	Turn int
}

// Play says how faults become steps.
type Play struct {
	// Keys are the identity of points. If node or peer is not among them, a step takes that of
	// the message, or the operation on a file, that comes.
	Keys []model.PointKey
	// Isolating is what cuts nodes off, together.
	Isolating func(...model.NodeID) model.Partition
	// MaxCut ends a cut, and starts a crashed node again, at the latest; 0: only the end
	// of the workload does.
	MaxCut time.Duration
	// Files says that runs record what nodes do to files: they have points there.
	Files bool
	Around
}

// Steps are what plays a sequence: each fault once the one before it has begun.
func (p Play) Steps(faults []Placed) (out []model.Step) {
	for _, f := range faults {
		when := model.Trigger{}
		if len(out) > 0 {
			when.Follows = model.FollowsBegin
		}
		match, roles := f.Message(p.Keys), p.ends(&f)
		for _, st := range p.one(f, when, match) {
			for _, r := range roles {
				if names(&st.Do, r) {
					st.Do.Roles = append(st.Do.Roles, string(r))
				}
			}
			out = append(out, st)
		}
	}
	return out
}

// ends puts roles in place of the node and the peer of a fault's point that are no keys, and
// lists them. A shift has the nodes of the earlier run: a sender and a receiver are known only as
// a step begins at their message, and the shift's later steps begin at none.
func (p Play) ends(f *Placed) (roles []model.NodeID) {
	if isShift(f.Kind) {
		return nil
	}
	node, peer := model.NodeID(model.RoleSender), model.NodeID(model.RoleReceiver)
	switch f.Side {
	case model.SideReceive:
		node, peer = peer, node
	case model.SideFile:
		node = model.RoleFileHost
	}
	if !slices.Contains(p.Keys, model.KeyNode) {
		f.Node, roles = node, append(roles, node)
	}
	if f.Side != model.SideFile && !slices.Contains(p.Keys, model.KeyPeer) {
		f.Peer, roles = peer, append(roles, peer)
	}
	return roles
}

// names says whether a fault names a host.
func names(do *model.Fault, h model.NodeID) bool {
	return do.Isolate == h || do.Node != nil && do.Node.Host == h || do.Disk != nil && do.Disk.Host == h ||
		do.Cut != nil && slices.Contains(slices.Concat(do.Cut.Groups...), h)
}

// one is the steps of a fault, given when it may begin and its message.
func (p Play) one(f Placed, when model.Trigger, match model.MessageMatch) (out []model.Step) {
	switch {
	case ofAll(f.Kind):
		return p.all(f, when, match)
	case isShift(f.Kind):
		return p.shift(f, when, match)
	}
	if st, ok := p.disk(f, when, match); ok {
		return []model.Step{st}
	}
	if st, ok := p.prior(f, when, match); ok {
		return []model.Step{st}
	}
	if loses(f.PointFault) {
		out = append(out, model.Step{When: when, Do: model.Fault{Message: &model.MessageFault{
			Kind: model.FaultLose, Lose: model.LoseMessage, Match: match, Nth: f.Turn}}})
		when = model.Trigger{Follows: model.FollowsBegin}
	} else {
		p.at(f, match, &when)
	}
	switch f.Kind {
	case model.PointCrash:
		out = append(out, model.Step{When: when, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: f.Node}}, Max: p.MaxCut})
	case model.PointPause:
		out = append(out, model.Step{When: when, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodePause, Host: f.Node}}, Max: p.MaxCut})
	case model.PointIsolate:
		cut := p.Isolating(f.Node)
		out = append(out, model.Step{When: when, Do: model.Fault{Cut: &cut, Isolate: f.Node}, Max: p.MaxCut})
	}
	return out
}

// diskFaults are the kinds of disk faults that faults at points are played as.
var diskFaults = map[model.PointFaultKind]model.DiskFaultKind{
	model.PointDiskError: model.DiskEIO, model.PointDiskFailure: model.DiskGone, model.PointCorrupt: model.DiskCorrupt, model.PointTorn: model.DiskTorn,
	model.PointPowerCut: model.DiskPowerCut,
}

// disk is the step of a fault at an operation on a file, or of a power cut, as the step before
// has begun; false: the fault is neither.
func (p Play) disk(f Placed, when model.Trigger, match model.MessageMatch) (model.Step, bool) {
	st := model.Step{When: when, Max: p.MaxCut}
	if f.Side != model.SideFile && f.Kind != model.PointPowerCut {
		return st, false
	}
	p.at(f, match, &st.When)
	if f.Kind == model.PointCrash {
		st.Do.Node = &model.NodeFault{Verb: model.NodeKill, Host: f.Node}
		return st, true
	}
	st.Do.Disk = &model.DiskFault{Kind: diskFaults[f.Kind], Host: f.Node}
	if f.Kind == model.PointCorrupt || f.Kind == model.PointTorn {
		st.Do.Disk.Path = st.When.File.Path
	}
	return st, true
}

// at has a trigger come at the point of a fault.
func (p Play) at(f Placed, match model.MessageMatch, when *model.Trigger) {
	if f.Side == model.SideFile {
		t := model.FileAt(f.Type, f.Triggers(p.Keys).Node, f.Turn)
		when.File = &t
		return
	}
	when.Message = &model.MessageTrigger{Match: match, Nth: f.Turn, Side: model.SideSend}
}

// all is the steps of a fault of all nodes, which begin at once.
func (p Play) all(f Placed, when model.Trigger, match model.MessageMatch) (out []model.Step) {
	p.at(f, match, &when)
	for _, n := range p.Nodes {
		st := model.Step{When: when, Max: p.MaxCut, Do: model.Fault{IfRunning: true}}
		if f.Kind == model.PointPowerCutAll {
			st.Do.Disk = &model.DiskFault{Kind: model.DiskPowerCut, Host: n}
		} else {
			st.Do.Node = &model.NodeFault{Verb: model.NodeKill, Host: n}
		}
		out, when = append(out, st), model.Trigger{Follows: model.FollowsBegin}
	}
	return out
}

// ofAll says that a fault is of all nodes at once.
func ofAll(k model.PointFaultKind) bool {
	return k == model.PointCrashAll || k == model.PointPowerCutAll
}

// loses says that the fault's message does not arrive though no cut drops it: a sender
// that dies before it sends has sent nothing.
func loses(f model.PointFault) bool {
	return f.Kind == model.PointLose || f.Kind == model.PointCrash && f.Side == model.SideSend && f.Place == model.PlaceBefore
}

// lasts returns, for each fault, the place among Steps, from 1, of its last step, given how many
// nodes there are.
func lasts(faults []model.PointFault, nodes int) []int {
	out, n := make([]int, len(faults)), 0
	for i, f := range faults {
		switch {
		case ofAll(f.Kind):
			n += nodes
		case isShift(f.Kind):
			n += shiftSteps
		case loses(f) && f.Kind != model.PointLose:
			n += 2
		default:
			n++
		}
		out[i] = n
	}
	return out
}

// firsts returns the place of the first step of each fault, which waits for its message.
func firsts(faults []model.PointFault, nodes int) []int {
	out, n := make([]int, len(faults)), 0
	for i, last := range lasts(faults, nodes) {
		out[i], n = n+1, last
	}
	return out
}

// Occurred returns how many faults, from the first on, began at their own points. results say how
// the steps of Steps went, met is what Played says of the points. It stops at the first fault
// that did not; other is the point at which that began instead, nil if it did not begin.
func Occurred(faults []model.PointFault, results []model.StepResult, met []model.Point, o Options) (n int, other *model.Point) {
	done := map[int]bool{}
	for _, r := range results {
		done[r.Step] = r.By != ""
	}
	for i, last := range lasts(faults, len(o.Nodes)) {
		switch {
		case !done[last] || i >= len(met):
			return i, nil
		case met[i].Identity(o.Identity()) != faults[i].Identity(o.Identity()):
			return i, &met[i]
		}
	}
	return len(faults), nil
}

// moment is the event and the message at which a step began, before the packet was decided.
type moment struct {
	event, message uint64
	receive        bool // its fault is at the delivery of the message
}

// began are the moments of the steps that did, by place.
func began(decisions []model.Decision) map[int]moment {
	out := map[int]moment{}
	for _, d := range decisions {
		n := d.Fault
		if d.Step > 0 && !d.Heal && d.Ask == "" {
			n = d.Step
		}
		if _, ok := out[n]; n > 0 && !ok {
			out[n] = moment{event: d.Event, message: d.Message}
		}
	}
	return out
}

// FiredSteps are the events of a run of Steps at which its faults occurred, in order.
func FiredSteps(faults []model.PointFault, decisions []model.Decision, o Options) []uint64 {
	by := began(decisions)
	var out []uint64
	for _, n := range lasts(faults, len(o.Nodes)) {
		m, ok := by[n]
		if !ok {
			break
		}
		out = append(out, m.event)
	}
	return out
}

// Played is the profile of a recorded run of Steps, and the points at which its faults
// occurred, in their order, up to the first that did not. The point of a fault is the one
// that its message was met at, whether the sequence asked for it or for another: a trigger
// counts messages and does not look at what came before them.
func Played(events []model.Event, decisions []model.Decision, faults []model.PointFault, o Options) (model.Profile, []model.Point) {
	by := began(decisions)
	var moments []moment
	for i, n := range firsts(faults, len(o.Nodes)) {
		m, ok := by[n]
		if !ok {
			break
		}
		m.receive = faults[i].Side == model.SideReceive
		moments = append(moments, m)
	}
	return read(events, decisions, FiredSteps(faults, decisions, o), moments, o)
}

// Recorded is the condensed profile of a recorded run of any scenario. Its Step is the place
// in the scenario of the step that had begun last; 0: none had.
func Recorded(events []model.Event, decisions []model.Decision, o Options) model.Profile {
	by := began(decisions)
	order := slices.SortedFunc(maps.Keys(by), func(a, b int) int { return cmp.Or(cmp.Compare(by[a].event, by[b].event), cmp.Compare(a, b)) })
	fired := make([]uint64, len(order))
	for i, n := range order {
		fired[i] = by[n].event
	}
	p := Condense(FromEvents(events, decisions, fired, o), o)
	for i, s := range p.Points {
		if s.Step > 0 {
			p.Points[i].Step = order[s.Step-1]
		}
	}
	return p
}

// Condense leaves of a profile what a search needs: each point once after each step.
func Condense(p model.Profile, o Options) model.Profile {
	type seen struct {
		id   string
		step int
	}
	var out model.Profile
	once := map[seen]bool{}
	for _, s := range p.Points {
		at := seen{s.Identity(o.Identity()), s.Step}
		if !once[at] {
			once[at] = true
			out.Points = append(out.Points, s)
		}
	}
	return out
}
