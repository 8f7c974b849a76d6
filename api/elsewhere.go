package api

import (
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Bounds of what one run on another machine adds: more of it is not believed.
const (
	maxCount   = 1 << 30
	maxDelays  = 1 << 20
	maxTime    = 24 * time.Hour
	maxEntries = 10_000
)

// RunElsewhere adds what a run on another machine did. Names that netsplit does not know are
// left out: nobody else makes series here.
func (m *Metrics) RunElsewhere(t model.RunMetrics) {
	for shape, n := range t.Cuts {
		if slices.Contains(model.Shapes(), shape) && counts(n) {
			m.cutsTotal.WithLabelValues(string(shape)).Add(float64(n))
		}
	}
	for _, h := range first(t.Heals) {
		if slices.Contains(model.HealReasons(), h.Name) && counts(h.N) {
			m.heals.WithLabelValues(h.Name).Add(float64(h.N))
		}
	}
	for _, f := range first(t.Faults) {
		if slices.Contains(model.FaultKinds(), model.FaultKind(f.Name)) && slices.Contains(model.FaultReasons(model.FaultKind(f.Name)), f.Of) && counts(f.N) {
			m.faults.WithLabelValues(f.Name, f.Of).Add(float64(f.N))
		}
	}
	left := maxDelays
	for _, g := range first(t.Gate) {
		if g.N < 1 || g.N > left || g.Sum < 0 || g.Sum > maxTime || !isGates(g.Name) {
			continue
		}
		left -= g.N
		mean := (g.Sum / time.Duration(g.N)).Seconds()
		for range g.N {
			m.gate.WithLabelValues(g.Name).Observe(mean)
		}
	}
	for _, d := range first(t.HealTimes) {
		if d >= 0 && d < maxTime {
			m.heal.Observe(d.Seconds())
		}
	}
	if t.LastCut.Before(m.now()) {
		m.LastCut(t.LastCut)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cuts.Know(first(t.Links)...)
	for _, c := range first(t.CutTime) {
		if c.Time > 0 && c.Time < maxTime {
			m.cuts.Add(c.Link, c.Time)
		}
	}
	for _, p := range first(t.Packets) {
		if slices.Contains(model.Fates(), p.Fate) && counts(p.N) {
			m.fate(p.Link, p.Fate, uint64(p.N))
		}
	}
	for _, s := range first(t.Messages) {
		if isVerdict(s.Of) && counts(s.N) {
			m.messages.add(clean(s.Name), s.Of, uint64(s.N))
		}
	}
}

func counts(n int) bool { return n > 0 && n <= maxCount }

func first[T any](all []T) []T { return all[:min(len(all), maxEntries)] }

// isGates says whether a name is a transport of the gate, or several joined by commas.
func isGates(name string) bool {
	for _, g := range strings.Split(name, ",") {
		if g != string(model.GateByPort) && g != string(model.GateByPacketIn) {
			return false
		}
	}
	return len(name) < 40
}

// isVerdict says whether it is what may become of a message: netsplit saw a copy, or decided.
func isVerdict(v string) bool {
	return v == "mirror" || slices.Contains([]model.Action{model.Pass, model.DropPacket, model.Hold, model.ResetConn}, model.Action(v))
}
