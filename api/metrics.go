package api

import (
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"netsplit/internal/cutbook"
	"netsplit/model"
)

// maxFindings bounds the series of netsplit_finding_info.
const maxFindings = 500

// Metrics counts what happens. Its methods are the hooks that the campaign
// loop calls; each is safe for several goroutines and takes microseconds.
//
// A cut may be shorter than a scrape interval, so counters count cuts. The gauges show only
// what is in force at a scrape.
type Metrics struct {
	registry *prometheus.Registry
	now      func() time.Time

	mu       sync.Mutex
	cuts     *cutbook.Book
	fates    map[model.Link]map[model.Fate]uint64
	findings map[string]model.Finding
	shown    []string // ids of findings, the one shown longest first
	messages *topTypes
	state    func() model.ServiceState
	lastCut  time.Time
	switches map[model.DatapathID]bool

	cutsTotal *prometheus.CounterVec
	heals     *prometheus.CounterVec
	faults    *prometheus.CounterVec
	runs      *prometheus.CounterVec
	found     *prometheus.CounterVec
	gate      *prometheus.HistogramVec
	heal      prometheus.Histogram
	requests  *prometheus.CounterVec
	answers   *prometheus.HistogramVec
}

// NewMetrics returns metrics with a registry of their own. now nil is
// time.Now.
func NewMetrics(version string, now func() time.Time) *Metrics {
	if now == nil {
		now = time.Now
	}
	// Classic buckets only: with native ones on, Prometheus 2.4x stores no _bucket
	// series at all.
	delay := prometheus.ExponentialBuckets(50e-6, 2, 13) // to 205 ms
	heal := prometheus.ExponentialBuckets(500e-6, 2, 17) // to 33 s
	m := &Metrics{
		registry: prometheus.NewRegistry(), now: now,
		cuts: cutbook.New(), fates: map[model.Link]map[model.Fate]uint64{},
		findings: map[string]model.Finding{}, messages: newTopTypes(maxTypes), switches: map[model.DatapathID]bool{},
		cutsTotal: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_cuts_total", Help: "Partitions put in force, by shape."}, []string{"shape"}),
		heals:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_heals_total", Help: "Partitions healed, by reason."}, []string{"reason"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_message_fault_packets_total",
			Help: "Decisions of message faults about packets, by kind and reason."}, []string{"kind", "reason"}),
		runs:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_runs_total", Help: "Runs finished, by target, strategy and verdict."}, []string{"target", "strategy", "verdict"}),
		found: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_findings_total", Help: "Findings, by target and class: broken, broken-bound or documented."}, []string{"target", "class"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "netsplit_api_requests_total",
			Help: "Requests that were answered, by route, method and status; route is other if no route matched or the request was refused first."}, []string{"route", "method", "code"}),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "netsplit_api_request_seconds",
			Help: "Time to answer requests, without event streams.", Buckets: prometheus.ExponentialBuckets(250e-6, 2, 16)}, nil), // to 8 s
		gate: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "netsplit_gate_delay_seconds",
			Help: "How long the gate held packets before it released them.", Buckets: delay}, []string{"transport"}),
		heal: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "netsplit_heal_seconds",
			Help: "Time from the decision to heal to the first packet across.", Buckets: heal}),
	}
	for _, s := range model.Shapes() {
		m.cutsTotal.WithLabelValues(string(s))
	}
	for _, k := range model.FaultKinds() {
		for _, r := range model.FaultReasons(k) {
			m.faults.WithLabelValues(string(k), r)
		}
	}
	for _, g := range []model.Gate{model.GateByPort, model.GateByPacketIn} {
		m.gate.WithLabelValues(string(g))
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "netsplit_build_info", Help: "Always 1; the labels say what runs."}, []string{"version", "goversion"})
	build.WithLabelValues(clean(version), runtime.Version()).Set(1)
	m.registry.MustRegister(m.cutsTotal, m.heals, m.faults, m.runs, m.found, m.gate, m.heal, m.requests, m.answers, build, liveCollector{m},
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(liveHeap)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// liveHeap is go_gc_heap_live_bytes: what is in use, without what is garbage. By it
// one sees in an hour whether a daemon grows.
var liveHeap = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true})
}

// clean makes a label value of what may come from a target: valid UTF-8 and
// not too long.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:117], "") + "..."
	}
	return s
}

// fate adds packets of a link; m.mu is held.
func (m *Metrics) fate(l model.Link, f model.Fate, n uint64) {
	m.cuts.Know(l)
	if m.fates[l] == nil {
		m.fates[l] = map[model.Fate]uint64{}
	}
	m.fates[l][f] += n
}

// KnownLinks makes all series of the links, at 0: "leaked 0" is then a value
// and not a gap.
func (m *Metrics) KnownLinks(links []model.Link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cuts.Know(links...)
}

// CutStarted says that a partition which cuts these directed links is in
// force from now on.
func (m *Metrics) CutStarted(shape model.Shape, links []model.Link) {
	m.cutsTotal.WithLabelValues(string(shape)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastCut = m.now()
	m.cuts.Start(shape, links, m.lastCut)
}

// CutEnded says that a partition that was started with the same links has
// ended now, and why. One that was not started is only counted as a heal.
func (m *Metrics) CutEnded(reason string, links []model.Link) {
	m.heals.WithLabelValues(clean(reason)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cuts.End(links, m.now())
}

// PacketFate counts n packets of a cut link: fate is wanted, dropped or
// leaked; others are ignored.
func (m *Metrics) PacketFate(link model.Link, fate model.Fate, n int) {
	if n < 0 || !slices.Contains(model.Fates(), fate) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate(link, fate, uint64(n))
}

// MessageSeen counts a message. Since a target chooses its types, only the
// most frequent have a series of their own; the rest is "other".
func (m *Metrics) MessageSeen(messageType, verdict string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages.add(clean(messageType), clean(verdict), 1)
}

// MessageFault counts what a message fault decided about a packet.
func (m *Metrics) MessageFault(kind model.FaultKind, reason string) {
	m.faults.WithLabelValues(string(kind), clean(reason)).Inc()
}

// GateDelay records how long one packet was held that passed, by the transport
// of the run's gate: port, packet-in, or both joined by a comma if switches differ.
func (m *Metrics) GateDelay(transport string, d time.Duration) {
	m.gate.WithLabelValues(clean(transport)).Observe(d.Seconds())
}

// HealTime records the time from the decision to heal to the first packet
// across.
func (m *Metrics) HealTime(d time.Duration) { m.heal.Observe(d.Seconds()) }

// KnownTarget makes the series of runs of a target under a strategy, at 0, so
// that the first run of each verdict is seen as an increase.
func (m *Metrics) KnownTarget(target string, strategy model.Strategy) {
	for _, v := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictUnknown, model.VerdictVacuous} {
		m.runs.WithLabelValues(clean(target), string(strategy), string(v))
	}
	for _, c := range []model.FailureClass{model.Broken, model.BrokenBound, model.Documented} {
		m.found.WithLabelValues(clean(target), string(c))
	}
}

// RunDone counts a finished run.
func (m *Metrics) RunDone(target string, strategy model.Strategy, verdict model.VerdictValue) {
	m.runs.WithLabelValues(clean(target), string(strategy), string(verdict)).Inc()
}

// RunsDone counts runs that finished before this process began.
func (m *Metrics) RunsDone(target string, strategy model.Strategy, verdict model.VerdictValue, n int) {
	m.KnownTarget(target, strategy)
	m.runs.WithLabelValues(clean(target), string(strategy), string(verdict)).Add(float64(n))
}

// LastCut says when the last cut began before this process did.
func (m *Metrics) LastCut(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.After(m.lastCut) {
		m.lastCut = at
	}
}

// Finding shows a finding, in place of the one shown longest where there are many; the
// same id again adds nothing.
func (m *Metrics) Finding(f model.Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.findings[f.ID]; !known {
		m.shown = append(m.shown, f.ID)
		m.found.WithLabelValues(clean(f.Target), string(f.Class)).Inc()
	}
	m.findings[f.ID] = f
	if len(m.shown) > maxFindings {
		delete(m.findings, m.shown[0])
		m.shown = m.shown[1:]
	}
}

// FoundBefore counts a finding that is not shown any more.
func (m *Metrics) FoundBefore(target string, class model.FailureClass) {
	m.found.WithLabelValues(clean(target), string(class)).Inc()
}

// SwitchKnown shows a switch of the testbed as not connected until it has a session.
func (m *Metrics) SwitchKnown(dpid model.DatapathID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.switches[dpid]; !known {
		m.switches[dpid] = false
	}
}

// SwitchConnected says whether a switch has a session. A switch that was never known appears
// once it has had one.
func (m *Metrics) SwitchConnected(dpid model.DatapathID, connected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.switches[dpid]; known || connected {
		m.switches[dpid] = connected
	}
}

// SwitchGone forgets a switch: its lab is there no more.
func (m *Metrics) SwitchGone(dpid model.DatapathID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.switches, dpid)
}

// State asks for the state of the daemon at each scrape.
func (m *Metrics) State(state func() model.ServiceState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = state
}
