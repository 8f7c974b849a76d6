package sequence

import (
	"slices"
	"time"

	"netsplit/model"
)

// Options say what counts as a point, and what makes two of them one.
type Options struct {
	// Nodes are the hosts whose points count; nil: all hosts.
	Nodes []model.NodeID
	// Ports are those on which the target listens. The port of a point is the one of the
	// message's two ports that is listed, or else the lower one.
	Ports []uint16
	// Periodic holds the types of messages that have no points and do not count as After.
	Periodic map[string]bool
	// Timers are patterns of further such types (model.MatchType).
	Timers []string
	// LastFault is the time into the workload after which points are beyond the bound; 0: the
	// end of the workload.
	LastFault time.Duration
	// Keys are the identity of points; nil: all.
	Keys []model.PointKey
	// Stages are the parts of the target's protocol, if any are declared.
	Stages []model.PointStage
}

// Identity is the keys that make two points one.
func (o Options) Identity() []model.PointKey {
	if o.Keys == nil {
		return model.PointKeys()
	}
	return o.Keys
}

// Tracker names the points of a run as they come. A run that must act at a point and the
// reader of its record use it, so both give a point the same name.
type Tracker struct {
	o     Options
	keys  []model.PointKey
	after map[model.NodeID]string
	seen  map[string]int
	stage string
}

// NewTracker starts a run.
func NewTracker(o Options) *Tracker {
	return &Tracker{o: o, keys: o.Identity(), after: map[model.NodeID]string{}, seen: map[string]int{}}
}

// Sends is the point at which a message leaves its sender. False: it is none.
func (t *Tracker) Sends(m *model.Message) (model.Point, bool) {
	for _, s := range t.o.Stages {
		if model.MatchType(s.Begins, m.Type) {
			t.stage = s.Name
		}
	}
	if !t.counts(m) {
		return model.Point{}, false
	}
	return t.point(model.Point{Side: model.SideSend, Node: m.From, Peer: m.To, Type: m.Type, Port: t.port(m)})
}

// Receives is the point at which a message is delivered to its receiver. What the
// receiver does from now on is after it.
func (t *Tracker) Receives(m *model.Message) (model.Point, bool) {
	if !t.counts(m) {
		return model.Point{}, false
	}
	p, ok := t.point(model.Point{Side: model.SideReceive, Node: m.To, Peer: m.From, Type: m.Type, Port: t.port(m)})
	t.after[m.To] = m.Type
	return p, ok
}

// counts says whether a message has points. One that opens or closes a connection has none:
// a fault there does the same as a fault at the next message.
func (t *Tracker) counts(m *model.Message) bool {
	return !m.Transport() && t.countsType(m.Type)
}

func (t *Tracker) countsType(typ string) bool {
	return typ != "" && !t.o.Periodic[typ] && !slices.ContainsFunc(t.o.Timers, func(p string) bool { return model.MatchType(p, typ) })
}

// delivers is the point that the delivery of a message would have now; zero if it has none.
func (t *Tracker) delivers(m *model.Message) model.Point {
	if m == nil || !t.counts(m) {
		return model.Point{}
	}
	return t.next(model.Point{Side: model.SideReceive, Node: m.To, Peer: m.From, Type: m.Type, Port: t.port(m)})
}

// next completes a point with what place and number it would have now.
func (t *Tracker) next(p model.Point) model.Point {
	p, id, ok := t.place(p)
	if ok {
		p.Nth = min(t.seen[id]+1, model.PointMore)
	}
	return p
}

// Operates is the point at which a node does something to a file.
func (t *Tracker) Operates(o *model.FileOperation) (model.Point, bool) {
	p := operation(o)
	if !t.countsType(p.Type) {
		return model.Point{}, false
	}
	return t.point(p)
}

func operation(o *model.FileOperation) model.Point {
	return model.Point{Side: model.SideFile, Node: o.Host, Type: o.Point()}
}

func (t *Tracker) point(p model.Point) (model.Point, bool) {
	p, id, ok := t.place(p)
	if ok {
		t.seen[id] = min(t.seen[id]+1, model.PointMore)
		p.Nth = t.seen[id]
	}
	return p, ok
}

// place completes a point except for its number. Points with one id are numbered together.
func (t *Tracker) place(p model.Point) (_ model.Point, id string, ok bool) {
	if t.o.Nodes != nil && !slices.Contains(t.o.Nodes, p.Node) {
		return model.Point{}, "", false
	}
	p.After, p.Stage = t.after[p.Node], t.stage
	return p, p.Identity(t.keys), true
}

func (t *Tracker) port(m *model.Message) uint16 {
	switch {
	case slices.Contains(t.o.Ports, m.ToPort):
		return m.ToPort
	case slices.Contains(t.o.Ports, m.FromPort):
		return m.FromPort
	}
	return min(m.FromPort, m.ToPort)
}
