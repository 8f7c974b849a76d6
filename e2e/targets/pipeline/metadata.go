package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// file is a block in the name space. Until it is complete its writer holds a lease
// on it.
type file struct {
	held
	nodes    []string // chosen for its chain
	complete bool
	since    time.Time // it is complete
}

type lease struct {
	block string
	until time.Time
}

// image is what the name node remembers after a crash. Blocks that are being
// written are not in it: their writers begin again.
type image struct {
	Stamp int64  `json:"stamp"` // the last one given out
	Files []held `json:"files"`
}

// copying is an order to copy a replica that may still be under way.
type copying struct {
	replica        replica
	source, target string
	until          time.Time
}

const (
	replicas = 3 // of a block
	least    = 2 // with which it may be completed
)

// limits are the settings of a name node.
type limits struct {
	dead    time.Duration // without a heartbeat, a data node is dead
	lease   time.Duration // without a request, a writer is dead
	delay   time.Duration // from a block's completion to the first order to copy it: dead data nodes are then known
	copying time.Duration // after which an order to copy is given to another
	quiet   time.Duration // after a start, without orders to copy: data nodes report first
}

// metadata is what the name node knows. It has no clock: its methods take the time.
type metadata struct {
	limits
	bug  string
	save func(image) error

	stamp   int64
	files   map[string]*file
	leases  []lease
	unsaved bool // the image lacks something

	started time.Time
	heard   map[string]time.Time // live data nodes
	holders map[held][]string    // who has a replica, in the order of their reports
	copies  []copying
	tries   map[string]int // orders to copy, by block: each has another source and target
}

func newMetadata(l limits, bug string, im image, save func(image) error, now time.Time) *metadata {
	m := &metadata{limits: l, bug: bug, save: save, stamp: im.Stamp, files: map[string]*file{}, started: now,
		heard: map[string]time.Time{}, holders: map[held][]string{}, tries: map[string]int{}}
	for _, h := range im.Files {
		m.files[h.Replica.block] = &file{held: h, complete: true}
	}
	return m
}

// store saves what must survive a crash.
func (m *metadata) store() error {
	im := image{Stamp: m.stamp, Files: m.list()}
	if err := m.save(im); err != nil {
		return fmt.Errorf("disk %w", err)
	}
	m.unsaved = false
	return nil
}

// list is the complete blocks, by name.
func (m *metadata) list() []held {
	out := []held{}
	for _, f := range m.files {
		if f.complete {
			out = append(out, f.held)
		}
	}
	slices.SortFunc(out, func(a, b held) int { return cmp.Compare(a.Replica.block, b.Replica.block) })
	return out
}

// nextStamp gives out a stamp, which is never given out again.
func (m *metadata) nextStamp() (int64, error) {
	m.stamp++
	if err := m.store(); err != nil {
		return 0, err
	}
	return m.stamp, nil
}

// lastLease is the index of the newest lease on a block that is being written.
func (m *metadata) lastLease(block string) int {
	i := len(m.leases) - 1
	for m.leases[i].block != block {
		i--
	}
	return i
}

func (m *metadata) renew(block string, now time.Time) {
	m.leases[m.lastLease(block)].until = now.Add(m.lease)
}

func (m *metadata) endLease(block string) {
	i := m.lastLease(block)
	m.leases = slices.Delete(m.leases, i, i+1)
}

// allocate chooses the chain of a block. A writer that had no answer and asks again
// gets the same one.
func (m *metadata) allocate(block string, exclude []string, now time.Time) (*file, error) {
	f, again := m.files[block]
	if again && f.complete {
		return nil, errors.New("exists")
	}
	failed := again && slices.ContainsFunc(f.nodes, func(n string) bool { return slices.Contains(exclude, n) })
	if again && !failed && m.bug != secondLease {
		m.renew(block, now)
		return f, nil
	}
	nodes := m.choose(exclude)
	if len(nodes) < least {
		return nil, fmt.Errorf("few data nodes: %d of %d", len(nodes), least)
	}
	stamp, err := m.nextStamp()
	if err != nil {
		return nil, err
	}
	if again && m.bug != secondLease {
		m.endLease(block)
	}
	f = &file{held: held{Replica: replica{block, stamp}}, nodes: nodes}
	m.files[block] = f
	m.leases = append(m.leases, lease{block, now.Add(m.lease)})
	return f, nil
}

// choose picks the data nodes with the fewest replicas.
func (m *metadata) choose(exclude []string) []string {
	load := map[string]int{}
	for _, nodes := range m.holders {
		for _, n := range nodes {
			load[n]++
		}
	}
	nodes := slices.SortedFunc(maps.Keys(m.heard), func(a, b string) int {
		return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(a, b))
	})
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return slices.Contains(exclude, n) })
	return nodes[:min(len(nodes), replicas)]
}

// abandon ends a write that came to nothing.
func (m *metadata) abandon(r replica) {
	if f := m.files[r.block]; f != nil && !f.complete && f.Replica == r {
		m.endLease(r.block)
		delete(m.files, r.block)
	}
}

// bump gives a block that is being written a new stamp, so that replicas of data
// nodes that no longer take part are stale.
func (m *metadata) bump(r replica, now time.Time) (replica, error) {
	f := m.files[r.block]
	if f == nil || f.complete {
		return r, errors.New("unknown block")
	}
	stamp, err := m.nextStamp()
	if err != nil {
		return r, err
	}
	f.Replica.stamp = stamp
	m.renew(r.block, now)
	return f.Replica, nil
}

// complete ends a write. It may be asked again.
func (m *metadata) complete(h held, now time.Time) error {
	f := m.files[h.Replica.block]
	switch {
	case f == nil || f.Replica != h.Replica:
		return errors.New("unknown block")
	case f.complete:
		return nil
	case len(m.holders[h]) < least:
		m.renew(h.Replica.block, now)
		return fmt.Errorf("few replicas: %d of %d", len(m.holders[h]), least)
	}
	f.Length, f.complete, f.since = h.Length, true, now
	if m.bug == earlyAnswer {
		m.unsaved = true
	} else if err := m.store(); err != nil {
		f.Length, f.complete = 0, false
		return err
	}
	m.endLease(h.Replica.block)
	return nil
}

// received notes that a data node has a whole replica. One that is not registered
// will say so again when it registers.
func (m *metadata) received(node string, h held) {
	if _, live := m.heard[node]; !live {
		return
	}
	m.copies = slices.DeleteFunc(m.copies, func(c copying) bool { return c.replica == h.Replica && c.target == node })
	if !slices.Contains(m.holders[h], node) {
		m.holders[h] = append(m.holders[h], node)
	}
}

// bad notes that a data node no longer has a replica.
func (m *metadata) bad(node string, h held) {
	m.copies = slices.DeleteFunc(m.copies, func(c copying) bool { return c.replica == h.Replica && c.source == node })
	m.unhold(node, h)
}

func (m *metadata) unhold(node string, h held) {
	m.holders[h] = slices.DeleteFunc(m.holders[h], func(n string) bool { return n == node })
	if len(m.holders[h]) == 0 {
		delete(m.holders, h)
	}
}

// register takes in a data node that has these replicas and no others.
func (m *metadata) register(node string, has []held, now time.Time) {
	m.forgetNode(node)
	m.heard[node] = now
	for _, h := range has {
		m.received(node, h)
	}
}

func (m *metadata) forgetNode(node string) {
	delete(m.heard, node)
	for h := range m.holders {
		m.unhold(node, h)
	}
	m.copies = slices.DeleteFunc(m.copies, func(c copying) bool { return c.source == node || c.target == node })
}

// tick forgets data nodes and writers that fell silent.
func (m *metadata) tick(now time.Time) error {
	for n, at := range m.heard {
		if now.Sub(at) > m.dead {
			m.forgetNode(n)
		}
	}
	for _, l := range m.leases {
		if now.After(l.until) {
			delete(m.files, l.block)
		}
	}
	m.leases = slices.DeleteFunc(m.leases, func(l lease) bool { return now.After(l.until) })
	m.copies = slices.DeleteFunc(m.copies, func(c copying) bool { return now.After(c.until) })
	if m.unsaved {
		return m.store()
	}
	return nil
}

// heartbeat is what a data node that reports is told to do.
func (m *metadata) heartbeat(node string, now time.Time) message {
	if _, ok := m.heard[node]; !ok {
		return message{Type: "register-order"}
	}
	m.heard[node] = now
	for _, h := range m.sortedHolders() {
		nodes := m.holders[h]
		if !slices.Contains(nodes, node) {
			continue
		}
		f := m.files[h.Replica.block]
		switch {
		case f != nil && !f.complete:
		case f == nil || f.held != h || len(nodes) > replicas && nodes[len(nodes)-1] == node:
			m.unhold(node, h) // also if it never hears of this: then it has one too many
			return message{Type: "drop-order", Replica: h.Replica}
		default:
			if target := m.copyFrom(node, h, now); target != "" {
				return message{Type: "copy-order", Replica: h.Replica, Target: target}
			}
		}
	}
	return message{Type: "heartbeat-ok"}
}

// copyFrom says where a data node shall copy its replica to: if there are too few,
// it is this node's turn, and all data nodes have had the time to report; else "".
func (m *metadata) copyFrom(node string, h held, now time.Time) string {
	nodes := m.holders[h]
	under := func(c copying) bool { return c.replica == h.Replica }
	since := m.files[h.Replica.block].since
	if now.Sub(m.started) < m.quiet || now.Sub(since) < m.delay || len(nodes) >= replicas || slices.ContainsFunc(m.copies, under) || nodes[m.tries[h.Replica.block]%len(nodes)] != node {
		return ""
	}
	targets := m.choose(nodes)
	if len(targets) == 0 {
		return ""
	}
	target := targets[m.tries[h.Replica.block]%len(targets)]
	m.tries[h.Replica.block]++
	if m.bug == countedCopy {
		m.received(target, h)
	} else {
		m.copies = append(m.copies, copying{h.Replica, node, target, now.Add(m.copying)})
	}
	return target
}

func (m *metadata) sortedHolders() []held {
	return slices.SortedFunc(maps.Keys(m.holders), func(a, b held) int {
		return cmp.Or(cmp.Compare(a.Replica.block, b.Replica.block), cmp.Compare(a.Replica.stamp, b.Replica.stamp), cmp.Compare(a.Length, b.Length))
	})
}

func (m *metadata) status() *status {
	s := &status{Live: len(m.heard), Open: len(m.leases)}
	for h, nodes := range m.holders {
		if f := m.files[h.Replica.block]; f == nil || f.complete && f.held != h {
			s.Extra += len(nodes)
		}
	}
	for _, f := range m.files {
		if f.complete {
			n := len(m.holders[f.held])
			s.Files++
			s.Under += max(0, replicas-n)
			s.Extra += max(0, n-replicas)
		}
	}
	return s
}
