package state

import (
	"slices"
	"time"

	"netsplit/model"
)

// Defaults of a Sampler.
const (
	DefaultWait   = 2 * time.Second
	DefaultSettle = 500 * time.Millisecond
	DefaultOpen   = 8192
)

// historyLength bounds the observations kept of one variable; the oldest go.
const historyLength = 1024

// Sampler pairs the values of both ends of each message between two nodes
// (CoFI §3.4.1 and §3.4.2).
//
// Before-send is the moment at which the message arrived: the sender's values
// that are fresh then, and those that the message itself reveals. After-handle
// is, for each variable of the receiver, the first value observed after the
// message was delivered, at most Wait later; a variable not observed in that
// time counts with its latest value, if that is still fresh at the end of it.
// What the message says of its receiver (source with of: receiver) counts as
// observed after it. A message without values at either end gives no sample.
//
// CoFI stops the processes at these two points; from outside it is only seen
// now and then what a node holds, and the values of two ends that change at
// the same moment cannot be distinguished from two that disagree. So a variable
// is left out of a sample if it was seen to change within Settle before or
// after the message: what is mined is what both ends agree on once they have
// had that time. With a negative Settle every sample counts.
//
// Between two sights of different values the change may have been at any time, so all
// the time between them counts as unsettled. But where the later one is of a source that
// tells every change (Observation.Lasts), the change was at that sight: the variable is
// settled from Settle after it until Settle before the next one.
//
// Every message of the events is taken as delivered, so only runs without a
// partition may be sampled. Transport events (no bytes of payload) are not
// handled by the receiver and are no program points.
type Sampler struct {
	Wait   time.Duration
	Settle time.Duration
	Open   int // messages that may wait; beyond it the oldest is closed early

	run   string
	nodes map[model.NodeID]bool
	ages  *Table
	seen  map[model.NodeID]*nodeHistory
	open  []pair // oldest first
	now   time.Duration
	steps uint64
}

// pair is a message whose receiver is still being watched.
type pair struct {
	at    time.Duration
	step  uint64
	msg   uint64
	point model.ProgramPoint
}

type nodeHistory struct {
	refs []model.VarRef // sorted
	vars map[model.VarRef][]sight
}

// sight is one observation in the history of its variable.
type sight struct {
	model.Observation
	step    uint64
	changed bool          // differs from the observation before it
	ends    time.Duration // of one that lasts: when its node's server was stopped or started; 0: not
}

// NewSampler returns a sampler for one run, whose id is copied into the
// samples. Only messages between two of the nodes are sampled.
func NewSampler(run string, nodes []model.NodeID, vars []model.Variable) *Sampler {
	s := &Sampler{Wait: DefaultWait, Settle: DefaultSettle, Open: DefaultOpen, run: run,
		nodes: map[model.NodeID]bool{}, ages: NewTable(vars), seen: map[model.NodeID]*nodeHistory{}}
	for _, n := range nodes {
		s.nodes[n] = true
		s.seen[n] = &nodeHistory{vars: map[model.VarRef][]sight{}}
	}
	return s
}

// Step takes the next event of the run and returns the samples that are
// complete by then, in the order of their messages. Events must come in the
// order of the log.
func (s *Sampler) Step(e model.Event) []model.Sample {
	s.steps++
	s.now = max(s.now, e.At)
	n := 0
	for n < len(s.open) && s.open[n].at+max(s.Wait, s.Settle) < s.now {
		n++
	}
	out := s.close(n)
	switch e.Kind {
	case model.EventMessage:
		m := e.Message
		if m == nil || m.Bytes == 0 || m.From == m.To || !s.nodes[m.From] || !s.nodes[m.To] {
			break
		}
		if len(s.open) >= max(1, s.Open) {
			out = append(out, s.close(1)...)
		}
		s.open = append(s.open, pair{at: e.At, step: s.steps, msg: m.Num,
			point: model.ProgramPoint{From: m.From, To: m.To, Type: m.Type}})
	case model.EventNode:
		if e.Node != nil && e.Node.EndsMemory() {
			s.restarted(e.Node.Host)
		}
	case model.EventObserve:
		if o := e.Observation; o != nil && s.nodes[o.Var.Node] {
			s.observe(*o)
		}
	}
	return out
}

// Flush closes what still waits, at the end of the run: the time of the last
// event.
func (s *Sampler) Flush() []model.Sample { return s.close(len(s.open)) }

// restarted: what a node's server knew lasts no longer.
func (s *Sampler) restarted(node model.NodeID) {
	if h := s.seen[node]; h != nil {
		for _, past := range h.vars {
			if n := len(past); n > 0 && past[n-1].Lasts && past[n-1].ends == 0 {
				past[n-1].ends = s.now
			}
		}
	}
}

func (s *Sampler) observe(o model.Observation) {
	h := s.seen[o.Var.Node]
	past := h.vars[o.Var]
	if past == nil {
		if len(h.refs) >= tableVars {
			return
		}
		i, _ := slices.BinarySearchFunc(h.refs, o.Var, model.VarRef.Compare)
		h.refs = slices.Insert(h.refs, i, o.Var)
	}
	x := sight{Observation: o, step: s.steps}
	if n := len(past); n > 0 {
		x.changed = past[n-1].Value != o.Value
	}
	// What is older than the oldest open message can reach back goes, but
	// for the last such observation.
	old := s.now
	if len(s.open) > 0 {
		old = s.open[0].at
	}
	k := 0
	for k+1 < len(past) && past[k+1].At < old-max(0, s.Settle) {
		k++
	}
	k = max(k, len(past)+1-historyLength)
	h.vars[o.Var] = append(slices.Delete(past, 0, k), x)
}

func (s *Sampler) close(n int) []model.Sample {
	var out []model.Sample
	for _, p := range s.open[:n] {
		before := s.values(p, p.point.From, s.beforeSend)
		if len(before) == 0 {
			continue
		}
		after := s.values(p, p.point.To, s.afterHandle)
		if len(after) == 0 {
			continue
		}
		x := model.Sample{Run: s.run, Message: p.msg, Point: p.point, Values: append(before, after...)}
		sortValues(x.Values)
		out = append(out, x)
	}
	s.open = slices.Delete(s.open, 0, n)
	return out
}

func (s *Sampler) values(p pair, node model.NodeID, pick func(pair, []sight) int) []model.VarValue {
	h := s.seen[node]
	var out []model.VarValue
	for _, ref := range h.refs {
		past := h.vars[ref]
		if i := pick(p, past); i >= 0 && s.settled(p, past) {
			out = append(out, model.VarValue{Var: ref, Kind: past[i].Kind, Value: past[i].Value})
		}
	}
	return out
}

func (s *Sampler) beforeSend(p pair, past []sight) int {
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].step < p.step || past[i].Message != 0 && past[i].Message == p.msg {
			if s.fresh(past[i], p.at) {
				return i
			}
			break
		}
	}
	return -1
}

// afterHandle is the first sight behind the message and not later than Wait,
// or else the latest before it if it is still fresh then.
func (s *Sampler) afterHandle(p pair, past []sight) int {
	i, _ := slices.BinarySearchFunc(past, p.step, func(x sight, step uint64) int {
		if x.step <= step {
			return -1
		}
		return 1
	})
	end := min(s.now, p.at+s.Wait)
	if i < len(past) && past[i].At <= end && !(past[i].Lasts && past[i].At > p.at+max(0, s.Settle)) {
		return i // a change that is told later than that was no part of handling the message
	}
	if i--; i >= 0 && s.fresh(past[i], end) {
		return i
	}
	return -1
}

func (s *Sampler) fresh(x sight, at time.Duration) bool {
	if x.ends > 0 && at >= x.ends {
		x.Lasts = false
	}
	return s.ages.fresh(x.Observation, at)
}

// settled reports whether the variable cannot have changed within Settle of
// the message: a change happened after the sight before it and not after the
// sight that shows it.
func (s *Sampler) settled(p pair, past []sight) bool {
	for i, x := range past {
		if !x.changed || s.Settle < 0 {
			continue
		}
		since := x.At
		if !x.Lasts && i > 0 {
			since = past[i-1].At
		}
		if x.At+s.Settle >= p.at && (since-s.Settle <= p.at || !x.Lasts && i == 0) {
			return false
		}
	}
	return true
}
