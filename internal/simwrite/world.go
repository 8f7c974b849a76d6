package simwrite

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// Options of a run.
type Options struct {
	Bugs    []Bug
	Packets int // 0: one
	// Keys are the identity of points; nil: all.
	Keys []model.PointKey
	// Record keeps the events and decisions.
	Record bool
}

// Run is what a run left behind.
type Run struct {
	// Profile is as the run named its points when they came. Events and Decisions are
	// the record of its messages, Fired the events at which nodes crashed; file
	// operations are not in them.
	Profile   model.Profile
	Events    []model.Event
	Decisions []model.Decision
	Fired     []uint64
	Occurred  int
	// Broken are the rules that do not hold at the end.
	Broken []string
	// Hit are the bugs whose code decided something, in the order in which they did.
	Hit []Bug
}

// Failed says that a rule does not hold.
func (r *Run) Failed() bool { return len(r.Broken) > 0 }

const (
	client   model.NodeID = "c1"
	namenode model.NodeID = "nn"
	port                  = 9866
	beat                  = 50 * time.Millisecond
)

// racks of the datanodes.
var racks = map[model.NodeID]int{"d1": 1, "d2": 1, "d3": 2, "d4": 2, "d5": 2}

// Datanodes are the nodes that can crash.
func Datanodes() []model.NodeID { return []model.NodeID{"d1", "d2", "d3", "d4", "d5"} }

// PointOptions are those with which the runs name their points.
func PointOptions(keys []model.PointKey) sequence.Options {
	return sequence.Options{Nodes: Datanodes(), Ports: []uint16{port}, Keys: keys,
		Periodic: map[string]bool{"nn heartbeat": true, "nn heartbeat reply": true},
		Stages:   []model.PointStage{{Name: "setupStage", Begins: "nn allocate"}, {Name: "transferStage", Begins: "dn packet"}, {Name: "closeStage", Begins: "dn close"}}}
}

// replica is a block on a datanode.
type replica struct {
	packets   int
	stamp     int // generation
	finalized bool
	stuck     bool // in a recovery that was not finished
}

type world struct {
	o      Options
	rnd    *rand.Rand
	t      *sequence.Tracker
	keys   []model.PointKey
	faults []model.PointFault
	run    Run

	now, beaten time.Duration
	num, msg    uint64
	dead        map[model.NodeID]bool
	disk        map[model.NodeID]*replica
	// reported holds what the namenode has heard of replicas.
	reported map[model.NodeID]bool
	stamp    int
	// Of the namenode's copies: sources that died, copies that are only booked.
	sources, phantoms int
	gaveUp            bool
}

// Execute makes one run with these crashes, each before its point, one after the other.
func Execute(o Options, faults []model.PointFault, seed uint64) Run {
	o.Packets = max(o.Packets, 1)
	po := PointOptions(o.Keys)
	w := &world{o: o, rnd: rand.New(rand.NewPCG(seed, 7)), t: sequence.NewTracker(po), keys: po.Identity(), faults: faults,
		dead: map[model.NodeID]bool{}, disk: map[model.NodeID]*replica{}, reported: map[model.NodeID]bool{}, stamp: 1}
	w.event(model.Event{Kind: model.EventStart})
	w.event(model.Event{Kind: model.EventWorkload})
	wrote := w.write()
	w.event(model.Event{Kind: model.EventStop})
	w.stabilise()
	w.judge(wrote)
	return w.run
}

func (w *world) event(e model.Event) uint64 {
	w.num++
	e.Num, e.At = w.num, w.now
	if w.o.Record {
		w.run.Events = append(w.run.Events, e)
	}
	return w.num
}

// pass lets time go by, in which heartbeats are sent.
func (w *world) pass() {
	w.now += time.Millisecond + time.Duration(w.rnd.IntN(1000))*time.Microsecond
	for w.beaten+beat <= w.now {
		w.beaten += beat
		for _, d := range Datanodes() {
			if !w.dead[d] {
				w.wire(d, namenode, "nn heartbeat")
				w.wire(namenode, d, "nn heartbeat reply")
			}
		}
	}
}

// at is a point: true if the node goes on, false if it crashes there.
func (w *world) at(p model.Point, ok bool) bool {
	if !ok {
		return true
	}
	w.run.Profile.Points = append(w.run.Profile.Points, model.SeenPoint{Point: p, Step: w.run.Occurred, Event: w.num, At: w.now})
	if w.run.Occurred == len(w.faults) {
		return true
	}
	f := w.faults[w.run.Occurred]
	if f.Kind != model.PointCrash || f.Place != model.PlaceBefore || p.Type != f.Type || p.Identity(w.keys) != f.Identity(w.keys) {
		return true
	}
	w.run.Occurred++
	w.run.Fired = append(w.run.Fired, w.num)
	w.dead[p.Node] = true
	return false
}

// wire sends a message. False: it did not arrive.
func (w *world) wire(from, to model.NodeID, typ string) bool {
	w.msg++
	m := &model.Message{Num: w.msg, Frame: w.msg, At: w.now, From: from, To: to, FromPort: 40000, ToPort: port, Type: typ}
	w.event(model.Event{Kind: model.EventMessage, Message: m})
	arrives := w.at(w.t.Sends(m)) && !w.dead[to]
	n := w.event(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: m.Frame, From: from, To: to, Messages: []uint64{m.Num}}})
	if len(w.run.Fired) > 0 && w.run.Fired[len(w.run.Fired)-1] == n-1 {
		w.run.Fired[len(w.run.Fired)-1] = n // the crash is the answer to the packet
	}
	if !arrives {
		w.run.Decisions = append(w.run.Decisions, model.Decision{Event: n, Frame: m.Frame, Action: model.DropPacket})
		return false
	}
	w.at(w.t.Receives(m))
	return !w.dead[to]
}

// send is a message of the protocol.
func (w *world) send(from, to model.NodeID, typ string) bool {
	w.pass()
	return !w.dead[from] && w.wire(from, to, typ)
}

// file is an operation of a datanode on its disk. False: it was not done.
func (w *world) file(d model.NodeID, operation string) bool {
	w.pass()
	op, kind, _ := strings.Cut(operation, " ")
	return !w.dead[d] && w.at(w.t.Operates(&model.FileOperation{Host: d, Op: model.FileOp(op), Kind: kind}))
}

func (w *world) has(b Bug) bool { return slices.Contains(w.o.Bugs, b) }

func (w *world) hit(b Bug) {
	if !slices.Contains(w.run.Hit, b) {
		w.run.Hit = append(w.run.Hit, b)
	}
}

// together lists nodes in the order in which they happen to do something at once.
func (w *world) together(nodes []model.NodeID) []model.NodeID {
	out := slices.Clone(nodes)
	w.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// good says that a live node has the whole block.
func (w *world) good(d model.NodeID) bool {
	r := w.disk[d]
	return !w.dead[d] && r != nil && r.finalized && r.stamp == w.stamp && r.packets == w.o.Packets
}

func (w *world) judge(wrote error) {
	if wrote != nil {
		if w.couldGoOn() {
			w.run.Broken = append(w.run.Broken, "the write fails although a node is left that could go on")
		}
		return
	}
	n := 0
	for _, d := range Datanodes() {
		if w.good(d) {
			n++
		}
	}
	if n < 3 {
		w.run.Broken = append(w.run.Broken, "fewer than three replicas at the end")
	}
}
