package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// Run is a finished simulated run: the record that a real one would leave.
type Run struct {
	Scenario  model.Scenario
	Log       []model.Event
	Decisions []model.Decision
	History   []model.Operation
	Engine    engine.Result
	Verdict   model.Verdict
}

// Result is what the search learns from the run.
func (r Run) Result() model.RunResult { return r.Engine.RunResult(r.Scenario.ID, r.Verdict) }

// world is the state of one run.
type world struct {
	o        Options
	nodes    map[model.NodeID]*node
	engine   *engine.Engine
	run      Run
	rnd      *rand.Rand // delays
	now      time.Duration
	queue    queue
	seq      int
	num      uint64 // events
	msgs     uint64
	frames   uint64
	start    time.Duration // of the workload
	answered bool          // the decommission is done or failed
}

// warmup is the time for which the nodes gossip before the workload starts.
const warmup = time.Second

// Execute runs the scenario once on a new system. The gate stands between all
// nodes: each message is logged with what it reveals, then its packet is
// decided.
func Execute(o Options, s model.Scenario) Run {
	o = o.withDefaults()
	o.Leave += warmup // from here on: since the run started
	w := &world{o: o, nodes: map[model.NodeID]*node{}, engine: engine.New(s), rnd: rand.New(rand.NewPCG(s.Seed, 0)), start: warmup}
	w.run.Scenario = s
	for _, id := range o.Nodes {
		n := newNode(id, o, s.Seed)
		w.nodes[id] = n
		w.every(time.Duration(w.rnd.Int64N(int64(o.Interval))), func() time.Duration {
			for _, g := range n.tick(w.now) {
				w.send(g)
			}
			return o.Interval*9/10 + time.Duration(w.rnd.Int64N(int64(o.Interval/5)))
		})
	}
	stop := w.start + o.Workload
	w.at(0, func() { w.event(model.Event{Kind: model.EventStart}) })
	w.every(o.Interval, func() time.Duration { w.event(model.Event{Kind: model.EventTick}); return o.Interval })
	w.at(w.start, func() { w.event(model.Event{Kind: model.EventWorkload}) })
	w.at(o.Leave, w.decommission)
	w.every(o.Leave+2*o.Interval, func() time.Duration {
		if w.now < stop {
			w.readAll("status")
		}
		return 2 * o.Interval
	})
	w.at(stop, func() { w.event(model.Event{Kind: model.EventStop}) })
	end := stop + o.Recover
	w.at(end, func() { w.readAll("final-status") })
	for len(w.queue) > 0 && w.queue[0].at <= end {
		it := heap.Pop(&w.queue).(item)
		w.now = it.at
		it.do()
	}
	w.run.Engine = w.engine.Result()
	w.run.Verdict = judge(w.run.History)
	return w.run
}

func (w *world) event(ev model.Event) []model.Decision {
	w.num++
	ev.Num, ev.At = w.num, w.now
	w.run.Log = append(w.run.Log, ev)
	ds := w.engine.Step(ev)
	w.run.Decisions = append(w.run.Decisions, ds...)
	return ds
}

// send takes a gossip to the gate, which passes it on or not.
func (w *world) send(g gossip) {
	w.at(w.now+w.delay(), func() {
		w.msgs++
		w.frames++
		text := g.text(w.now, w.o)
		m := &model.Message{Num: w.msgs, Frame: w.frames, At: w.now, From: g.from, To: g.to, FromPort: 7000, ToPort: 7000,
			Stream: fmt.Sprintf("udp %s:7000>%s:7000", g.from, g.to), Bytes: len(text), Type: "text " + g.verb,
			Fields: []model.Field{{Name: "text", Value: text}}}
		w.event(model.Event{Kind: model.EventMessage, Message: m})
		for _, about := range w.o.Nodes {
			w.event(model.Event{Kind: model.EventObserve, Observation: &model.Observation{At: w.now, Kind: statusKind, Message: m.Num,
				Var: statusOf(about, g.from), Value: view(g.from, g.digest, about, w.now, w.o)}})
		}
		p := &model.HeldPacket{Frame: m.Frame, From: g.from, To: g.to, Bytes: len(text) + 42, Messages: []uint64{m.Num}}
		for _, d := range w.event(model.Event{Kind: model.EventPacket, Packet: p}) {
			if d.Action == model.Pass {
				w.at(w.now+w.delay(), func() {
					for _, answer := range w.nodes[g.to].receive(w.now, g) {
						w.send(answer)
					}
				})
			}
		}
	})
}

func (w *world) delay() time.Duration {
	return 100*time.Microsecond + time.Duration(w.rnd.Int64N(int64(400*time.Microsecond)))
}

const statusKind = "node-status"

func statusOf(about, at model.NodeID) model.VarRef {
	return model.VarRef{Name: "status", About: string(about), Node: at}
}

// decommission tells the first node to leave and waits until it is done.
func (w *world) decommission() {
	n := w.nodes[w.o.Nodes[0]]
	w.record(model.OpInvoke, "decommission", n.id, string(n.id), "")
	for _, g := range n.leave(w.now) {
		w.send(g)
	}
	w.every(w.now+w.o.Interval, func() time.Duration {
		if !w.answered {
			switch {
			case n.gone:
				w.answered = true
				w.record(model.OpOK, "decommission", n.id, string(n.id), "")
			case n.failed != "":
				w.answered = true
				w.record(model.OpFail, "decommission", n.id, string(n.id), n.failed)
			}
		}
		return w.o.Interval
	})
}

func (w *world) readAll(f string) {
	for _, id := range w.o.Nodes[1:] {
		var v string
		for _, of := range w.o.Nodes {
			if s := view(id, w.nodes[id].table, of, w.now, w.o); s != model.Absent {
				v += string(of) + "=" + s + " "
			}
		}
		w.record(model.OpInvoke, f, id, "", "")
		w.record(model.OpOK, f, id, v, "")
	}
}

func (w *world) record(t model.OpType, f string, n model.NodeID, value, err string) {
	w.run.History = append(w.run.History, model.Operation{Type: t, F: f, Node: n, Value: value, Time: w.now, Error: err})
}

// item is something that happens at a moment; seq keeps the order of those of
// one moment.
type item struct {
	at  time.Duration
	seq int
	do  func()
}

type queue []item

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	old := *q
	it := old[len(old)-1]
	*q = old[:len(old)-1]
	return it
}

func (w *world) at(t time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, item{at: t, seq: w.seq, do: do})
}

// every does something at t and again after each time it returns.
func (w *world) every(t time.Duration, do func() time.Duration) {
	w.at(t, func() { w.every(w.now+do(), do) })
}
