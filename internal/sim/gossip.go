package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Options are the settings of the simulated system and its workload. The zero
// value of a field stands for the default named with it.
type Options struct {
	// Bug makes nodes forget the version of a node that left.
	Bug bool
	// Nodes are the members; the first is decommissioned. Default n1 n2 n3.
	Nodes []model.NodeID
	// Interval is the time between two gossips of a node: 50 ms.
	Interval time.Duration
	// Forget is the time from a LEFT to its being forgotten: 1 s.
	Forget time.Duration
	// Workload is the time the workload takes, Leave the moment in it at which
	// the first node is told to leave: 3 s and 600 ms.
	Workload time.Duration
	Leave    time.Duration
	// Recover is the time between the workload's end and the final reads: 1 s.
	Recover time.Duration
}

func (o Options) withDefaults() Options {
	if len(o.Nodes) == 0 {
		o.Nodes = []model.NodeID{"n1", "n2", "n3"}
	}
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{
		{&o.Interval, 50 * time.Millisecond}, {&o.Forget, time.Second}, {&o.Workload, 3 * time.Second},
		{&o.Leave, 600 * time.Millisecond}, {&o.Recover, time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.zero
		}
	}
	return o
}

// Statuses of a member.
const (
	normal = "NORMAL"
	left   = "LEFT"
)

// entry is what a node holds of a member: the status and the time at which the
// member took it on, which is its version.
type entry struct {
	status  string
	version time.Duration
}

// node is one member. Its methods take the time and return what it sends.
type node struct {
	id    model.NodeID
	o     Options
	table map[model.NodeID]entry
	rnd   *rand.Rand

	// A decommission: first every other member takes over its share of the
	// data, then the node says LEFT, and when a peer knows, it falls silent.
	waits     []model.NodeID // have not taken over yet
	since     time.Duration  // when it was told to leave
	failed    string         // why it did not leave
	leaving   bool           // said LEFT and gossips on until a peer knows
	gone      bool           // gossips no more
	confirmed bool
	rounds    int // gossips sent since it said LEFT
}

// gossip is a message: GOSSIP, answered by ACK, or HANDOVER, answered by TAKEN.
// Each carries all that the sender knows of the members.
type gossip struct {
	verb     string
	from, to model.NodeID
	digest   map[model.NodeID]entry
}

func newNode(id model.NodeID, o Options, seed uint64) *node {
	n := &node{id: id, o: o, table: map[model.NodeID]entry{}}
	n.rnd = rand.New(rand.NewPCG(seed, uint64(slices.Index(o.Nodes, id)+1)))
	n.table[id] = entry{normal, 1}
	return n
}

// expire forgets who left long enough ago. The version survives only in the
// repaired system.
func (n *node) expire(now time.Duration) {
	for id, e := range n.table {
		if id != n.id && n.o.Bug && expired(e, now, n.o) {
			delete(n.table, id)
		}
	}
}

func expired(e entry, now time.Duration, o Options) bool {
	return e.status == left && now >= e.version+o.Forget
}

// say is a message with the whole table.
func (n *node) say(verb string, to model.NodeID) gossip {
	g := gossip{verb: verb, from: n.id, to: to, digest: map[model.NodeID]entry{}}
	for id, e := range n.table {
		g.digest[id] = e
	}
	return g
}

// tick is one round: a gossip to one random other member that did not leave,
// and the handovers that were not answered.
func (n *node) tick(now time.Duration) []gossip {
	n.expire(now)
	if n.gone {
		return nil
	}
	var out []gossip
	if len(n.waits) > 0 && now-n.since > 10*n.o.Interval {
		n.failed = fmt.Sprintf("peer-down %s did not take over", n.waits[0])
		n.waits = nil
	}
	for _, p := range n.waits {
		out = append(out, n.say("HANDOVER", p))
	}
	if n.leaving {
		n.rounds++
		if n.confirmed && n.rounds > 3 {
			n.gone = true
			return nil
		}
	}
	var peers []model.NodeID
	for _, p := range n.o.Nodes { // also those it has not heard of yet
		if e, known := n.table[p]; p != n.id && (known && e.status == normal || !known && now < n.o.Leave) {
			peers = append(peers, p)
		}
	}
	if len(peers) > 0 {
		out = append(out, n.say("GOSSIP", peers[n.rnd.IntN(len(peers))]))
	}
	return out
}

// receive merges a message: of each member, the newer version wins, and what is
// unknown is believed. It returns the answer.
func (n *node) receive(now time.Duration, g gossip) []gossip {
	n.expire(now)
	if n.gone {
		return nil
	}
	if e, ok := g.digest[n.id]; n.leaving && (!ok || e.status == left) {
		n.confirmed = true
	}
	for id, e := range g.digest {
		if have, ok := n.table[id]; id != n.id && (!ok || e.version > have.version) {
			n.table[id] = e
		}
	}
	n.expire(now)
	switch g.verb {
	case "GOSSIP":
		return []gossip{n.say("ACK", g.from)}
	case "HANDOVER":
		return []gossip{n.say("TAKEN", g.from)}
	case "TAKEN":
		if i := slices.Index(n.waits, g.from); i >= 0 {
			n.waits = slices.Delete(n.waits, i, i+1)
			if len(n.waits) == 0 {
				n.leaving = true
				n.table[n.id] = entry{left, now}
			}
		}
	}
	return nil
}

// leave starts the decommission. As a real one, it needs every other member:
// it fails if one does not take over within ten intervals.
func (n *node) leave(now time.Duration) []gossip {
	n.since = now
	var out []gossip
	for _, p := range n.o.Nodes {
		if p != n.id {
			n.waits = append(n.waits, p)
			out = append(out, n.say("HANDOVER", p))
		}
	}
	return out
}

// view is the status that a node with this table reports of a member: Absent
// for one it does not know, or knows only by its tombstone.
func view(at model.NodeID, table map[model.NodeID]entry, of model.NodeID, now time.Duration, o Options) string {
	e, ok := table[of]
	if !ok || of != at && expired(e, now, o) {
		return model.Absent
	}
	return e.status
}

// text is the message as it would be on the wire: a tombstone shows as ~n1.
func (g gossip) text(now time.Duration, o Options) string {
	w := []string{g.verb, string(g.from)}
	for _, id := range o.Nodes {
		e, ok := g.digest[id]
		switch {
		case !ok:
		case id != g.from && expired(e, now, o):
			w = append(w, fmt.Sprintf("~%s:%d", id, e.version.Milliseconds()))
		default:
			w = append(w, fmt.Sprintf("%s=%s:%d", id, e.status, e.version.Milliseconds()))
		}
	}
	return strings.Join(w, " ")
}
