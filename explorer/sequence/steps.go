package sequence

import (
	"time"

	"netsplit/model"
)

// Playable lists the kinds of AllKinds that a scenario can have: those at messages.
func Playable() []FaultAt {
	var out []FaultAt
	for _, k := range AllKinds() {
		if k.Side != model.SideFile {
			out = append(out, k)
		}
	}
	return out
}

// Placed is a fault and where its message is found in a run.
type Placed struct {
	model.PointFault
	// Turn is that of the point (model.SeenPoint), in a run of the faults before it.
	Turn int
}

// Play says how faults become steps.
type Play struct {
	// Isolating is what cuts a node off.
	Isolating func(model.NodeID) model.Partition
	// MaxCut ends a cut, and starts a crashed node again, at the latest; 0: only the end
	// of the workload does.
	MaxCut time.Duration
}

// Steps are what plays a sequence: each fault once the one before it has begun.
func (p Play) Steps(faults []Placed) []model.Step {
	var out []model.Step
	for _, f := range faults {
		when := model.Trigger{}
		if len(out) > 0 {
			when.Follows = model.FollowsBegin
		}
		from, to := f.Node, f.Peer
		if f.Side == model.SideReceive {
			from, to = f.Peer, f.Node
		}
		match := model.MessageMatch{Type: f.Type, From: from, To: to}
		if loses(f.PointFault) {
			out = append(out, model.Step{When: when, Do: model.Fault{Message: &model.MessageFault{
				Kind: model.FaultLose, Lose: model.LoseMessage, Match: match, Nth: f.Turn}}})
			when = model.Trigger{Follows: model.FollowsBegin}
		} else {
			when.Message = &model.MessageTrigger{Match: match, Nth: f.Turn, Side: model.SideSend}
		}
		switch f.Kind {
		case model.PointCrash:
			out = append(out, model.Step{When: when, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: f.Node}}, Max: p.MaxCut})
		case model.PointIsolate:
			cut := p.Isolating(f.Node)
			out = append(out, model.Step{When: when, Do: model.Fault{Cut: &cut, Isolate: f.Node}, Max: p.MaxCut})
		}
	}
	return out
}

// loses says that the fault's message does not arrive though no cut drops it: a sender
// that dies before it sends has sent nothing.
func loses(f model.PointFault) bool {
	return f.Kind == model.PointLose || f.Kind == model.PointCrash && f.Side == model.SideSend && f.Place == model.PlaceBefore
}

// lasts are the places among Steps, from 1, of the last step of each fault.
func lasts(faults []model.PointFault) []int {
	out, n := make([]int, len(faults)), 0
	for i, f := range faults {
		if n++; loses(f) && f.Kind != model.PointLose {
			n++
		}
		out[i] = n
	}
	return out
}

// Occurred counts the faults that did, in their order, by how the steps of Steps went.
func Occurred(faults []model.PointFault, results []model.StepResult) int {
	began := map[int]bool{}
	for _, r := range results {
		began[r.Step] = r.By != ""
	}
	for i, n := range lasts(faults) {
		if !began[n] {
			return i
		}
	}
	return len(faults)
}

// FiredSteps is Fired for a run of Steps: the events at which its faults occurred.
func FiredSteps(faults []model.PointFault, decisions []model.Decision) []uint64 {
	first := map[int]uint64{}
	for _, d := range decisions {
		n := d.Fault
		if d.Step > 0 && !d.Heal {
			n = d.Step
		}
		if n > 0 && first[n] == 0 {
			first[n] = d.Event
		}
	}
	var out []uint64
	for _, n := range lasts(faults) {
		if first[n] == 0 {
			break
		}
		out = append(out, first[n])
	}
	return out
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
