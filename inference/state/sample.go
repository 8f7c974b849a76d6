package state

import (
	"slices"
	"time"

	"netsplit/model"
)

// Defaults of a Sampler.
const (
	DefaultWait = 2 * time.Second
	DefaultOpen = 8192
)

// Sampler pairs the values of both ends of each message between two nodes
// (CoFI §3.4.1 and §3.4.2).
//
// Before-send is the moment at which the message arrived: the sender's values
// that are fresh then, and those that the message itself reveals. After-handle
// is, for each variable of the receiver, the first value observed after the
// message was delivered (and Settle passed). The pair is closed when each of
// the receiver's variables known at delivery was observed again, or after
// Wait; then the variables that were not observed again count with the value
// that is fresh at that moment, if any. What the message says of its receiver
// (source with of: receiver) counts as observed after it. A pair without
// values at either end is dropped.
//
// Every message of the events is taken as delivered, so only runs without a
// partition may be sampled. Transport events (no bytes of payload) are not
// handled by the receiver and are no program points.
type Sampler struct {
	// Wait is how long after a message observations of its receiver are
	// awaited.
	Wait time.Duration
	// Settle is the time the receiver is given to handle the message: its
	// observations up to and including Settle after it are not yet evidence.
	Settle time.Duration
	// Open bounds the messages that wait; beyond it the oldest is closed.
	Open int

	run   string
	nodes map[model.NodeID]bool
	table *Table
	open  []*pair // by message, oldest first
	now   time.Duration
}

type pair struct {
	at     time.Duration
	msg    uint64
	point  model.ProgramPoint
	before map[model.VarRef]model.VarValue
	after  map[model.VarRef]model.VarValue
	await  map[model.VarRef]bool // receiver's variables to be observed again
}

// NewSampler returns a sampler for one run, whose id is copied into the
// samples. Only messages between two of the nodes are sampled.
func NewSampler(run string, nodes []model.NodeID, vars []model.Variable) *Sampler {
	s := &Sampler{Wait: DefaultWait, Open: DefaultOpen, run: run, nodes: map[model.NodeID]bool{}, table: NewTable(vars)}
	for _, n := range nodes {
		s.nodes[n] = true
	}
	return s
}

// Step takes the next event of the run and returns the samples it completes,
// in the order of their messages. Events must come in the order of the log.
func (s *Sampler) Step(e model.Event) []model.Sample {
	var out []model.Sample
	s.now = max(s.now, e.At)
	late := 0
	for late < len(s.open) && s.open[late].at+s.Wait < e.At {
		late++
	}
	out = s.close(out, late, e.At)
	switch e.Kind {
	case model.EventMessage:
		if m := e.Message; m != nil && m.Bytes > 0 && m.From != m.To && s.nodes[m.From] && s.nodes[m.To] {
			if len(s.open) >= s.Open {
				out = s.close(out, 1, e.At)
			}
			s.openPair(m, e.At)
		}
	case model.EventObserve:
		if o := e.Observation; o != nil && s.nodes[o.Var.Node] {
			s.table.Set(*o)
			out = append(out, s.observe(o)...)
		}
	}
	return out
}

// Flush closes what still waits, at the end of the run: the time of the last
// event.
func (s *Sampler) Flush() []model.Sample {
	return s.close(nil, len(s.open), s.now)
}

func (s *Sampler) openPair(m *model.Message, at time.Duration) {
	p := &pair{at: at, msg: m.Num, point: model.ProgramPoint{From: m.From, To: m.To, Type: m.Type},
		before: map[model.VarRef]model.VarValue{}, after: map[model.VarRef]model.VarValue{}, await: map[model.VarRef]bool{}}
	for _, v := range s.table.Fresh(m.From, at) {
		p.before[v.Var] = v
	}
	for _, v := range s.table.Fresh(m.To, at) {
		p.await[v.Var] = true
	}
	s.open = append(s.open, p)
}

// observe gives an observation to the pairs that wait for it.
func (s *Sampler) observe(o *model.Observation) []model.Sample {
	v := model.VarValue{Var: o.Var, Kind: o.Kind, Value: o.Value}
	var out []model.Sample
	keep := s.open[:0]
	for _, p := range s.open {
		own := o.Message != 0 && o.Message == p.msg
		switch {
		case o.Var.Node == p.point.From && own:
			p.before[o.Var] = v
		case o.Var.Node == p.point.To && (own || o.At > p.at+s.Settle || o.At == p.at && s.Settle == 0 && o.Message > p.msg):
			if _, has := p.after[o.Var]; !has {
				p.after[o.Var] = v
				delete(p.await, o.Var)
			}
		}
		if len(p.await) == 0 && len(p.after) > 0 && !own {
			if x, ok := s.sample(p); ok {
				out = append(out, x)
			}
			continue
		}
		keep = append(keep, p)
	}
	clear(s.open[len(keep):])
	s.open = keep
	return out
}

// close ends the n oldest pairs with what is fresh now.
func (s *Sampler) close(out []model.Sample, n int, now time.Duration) []model.Sample {
	for _, p := range s.open[:n] {
		for _, v := range s.table.Fresh(p.point.To, now) {
			if _, has := p.after[v.Var]; !has {
				p.after[v.Var] = v
			}
		}
		if x, ok := s.sample(p); ok {
			out = append(out, x)
		}
	}
	s.open = slices.Delete(s.open, 0, n)
	return out
}

func (s *Sampler) sample(p *pair) (model.Sample, bool) {
	if len(p.before) == 0 || len(p.after) == 0 {
		return model.Sample{}, false
	}
	x := model.Sample{Run: s.run, Message: p.msg, Point: p.point}
	for _, vs := range []map[model.VarRef]model.VarValue{p.before, p.after} {
		for _, v := range vs {
			x.Values = append(x.Values, v)
		}
	}
	sortValues(x.Values)
	return x, true
}
