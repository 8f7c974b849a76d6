package run

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"netsplit/model"
)

// Tally collects what a run says to its Metrics, for a daemon on another machine. It is safe
// for concurrent use.
type Tally struct {
	mu      sync.Mutex
	links   map[model.Link]*cutLink
	cuts    map[model.Shape]int
	counts  map[tallied]int
	packets map[fated]int
	gate    map[delayed]model.MetricDelays
	healed  []time.Duration
	lastCut time.Time
}

type cutLink struct {
	active int
	since  time.Time
	cut    time.Duration
}

type tallied struct{ what, name, of string }

type fated struct {
	link model.Link
	fate model.Fate
}

type delayed struct {
	transport string
	size      int // power of two
}

// What tallied counts.
const (
	ofHeal    = "heal"
	ofMessage = "message"
	ofFault   = "fault"
)

// NewTally has counted nothing.
func NewTally() *Tally {
	return &Tally{links: map[model.Link]*cutLink{}, cuts: map[model.Shape]int{}, counts: map[tallied]int{}, packets: map[fated]int{}, gate: map[delayed]model.MetricDelays{}}
}

// link is what is counted of a link. The caller holds mu.
func (t *Tally) link(l model.Link) *cutLink {
	if t.links[l] == nil {
		t.links[l] = &cutLink{}
	}
	return t.links[l]
}

func (t *Tally) count(what, name, of string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[tallied{what, name, of}]++
}

// KnownLinks implements Metrics.
func (t *Tally) KnownLinks(links []model.Link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range links {
		t.link(l)
	}
}

// CutStarted implements Metrics.
func (t *Tally) CutStarted(shape model.Shape, links []model.Link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cuts[shape]++
	t.lastCut = time.Now()
	for _, l := range links {
		c := t.link(l)
		if c.active++; c.active == 1 {
			c.since = t.lastCut
		}
	}
}

// CutEnded implements Metrics.
func (t *Tally) CutEnded(reason string, links []model.Link) {
	t.count(ofHeal, reason, "")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range links {
		c := t.link(l)
		if c.active == 0 { // it was not started
			continue
		}
		if c.active--; c.active == 0 {
			c.cut += time.Since(c.since)
		}
	}
}

// PacketFate implements Metrics.
func (t *Tally) PacketFate(link model.Link, fate model.Fate, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.packets[fated{link, fate}] += n
}

// MessageSeen implements Metrics.
func (t *Tally) MessageSeen(messageType, verdict string) { t.count(ofMessage, messageType, verdict) }

// MessageFault implements Metrics.
func (t *Tally) MessageFault(kind model.FaultKind, reason string) {
	t.count(ofFault, string(kind), reason)
}

// GateDelay implements Metrics.
func (t *Tally) GateDelay(transport string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := delayed{transport, bits.Len64(uint64(max(d, 0)))}
	s := t.gate[k]
	t.gate[k] = model.MetricDelays{Name: transport, N: s.N + 1, Sum: s.Sum + d}
}

// HealTime implements Metrics.
func (t *Tally) HealTime(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.healed = append(t.healed, d)
}

// Sum is what was counted, in an order that does not depend on time.
func (t *Tally) Sum() model.RunMetrics {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := model.RunMetrics{Links: slices.SortedFunc(maps.Keys(t.links), model.Link.Compare), Cuts: maps.Clone(t.cuts), LastCut: t.lastCut, HealTimes: slices.Clone(t.healed)}
	for _, l := range out.Links {
		if c := t.links[l]; c.cut > 0 {
			out.CutTime = append(out.CutTime, model.MetricTime{Link: l, Time: c.cut})
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.counts), func(a, b tallied) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.of, b.of)) }) {
		to := map[string]*[]model.MetricCount{ofHeal: &out.Heals, ofMessage: &out.Messages, ofFault: &out.Faults}[k.what]
		*to = append(*to, model.MetricCount{Name: k.name, Of: k.of, N: t.counts[k]})
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.packets), func(a, b fated) int { return cmp.Or(a.link.Compare(b.link), cmp.Compare(a.fate, b.fate)) }) {
		out.Packets = append(out.Packets, model.MetricPackets{Link: k.link, Fate: k.fate, N: t.packets[k]})
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.gate), func(a, b delayed) int {
		return cmp.Or(cmp.Compare(a.transport, b.transport), cmp.Compare(a.size, b.size))
	}) {
		out.Gate = append(out.Gate, t.gate[k])
	}
	return out
}
