package run

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"netsplit/internal/cutbook"
	"netsplit/model"
)

// Tally collects what a run says to its Metrics, for a daemon on another machine. It is safe
// for concurrent use.
type Tally struct {
	mu      sync.Mutex
	book    *cutbook.Book
	cuts    map[model.Shape]int
	counts  map[tallied]int
	packets map[fated]int
	gate    map[delayed]model.MetricDelays
	healed  []time.Duration
	lastCut time.Time
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
	return &Tally{book: cutbook.New(), cuts: map[model.Shape]int{}, counts: map[tallied]int{}, packets: map[fated]int{}, gate: map[delayed]model.MetricDelays{}}
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
	t.book.Know(links...)
}

// CutStarted implements Metrics.
func (t *Tally) CutStarted(shape model.Shape, links []model.Link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cuts[shape]++
	t.lastCut = time.Now()
	t.book.Start(shape, links, t.lastCut)
}

// CutEnded implements Metrics.
func (t *Tally) CutEnded(reason string, links []model.Link) {
	t.count(ofHeal, reason, "")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.End(links, time.Now())
}

// InForce is how many partitions of each shape are in force now.
func (t *Tally) InForce() map[model.Shape]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book.InForce()
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
	out := model.RunMetrics{Links: t.book.Links(), Cuts: maps.Clone(t.cuts), LastCut: t.lastCut, HealTimes: slices.Clone(t.healed)}
	for _, l := range out.Links {
		if cut := t.book.Cut(l, time.Now()); cut > 0 {
			out.CutTime = append(out.CutTime, model.MetricTime{Link: l, Time: cut})
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
