package api

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"netsplit/model"
)

// Metrics whose value is worked out when they are scraped.
var (
	descCut = prometheus.NewDesc("netsplit_link_cut_seconds_total",
		"Time for which this directed link was cut, a current cut included; its rate is the share of time cut.", []string{"src", "dst"}, nil)
	descPackets = prometheus.NewDesc("netsplit_link_packets_total",
		"Packets that wanted to cross this directed link while it was cut, that were dropped, and that leaked.", []string{"src", "dst", "fate"}, nil)
	descLastCut  = prometheus.NewDesc("netsplit_last_cut_timestamp_seconds", "Unix time of the start of the last cut; absent before the first.", nil, nil)
	descActive   = prometheus.NewDesc("netsplit_partitions_active", "Partitions in force now, by shape; of runners, when they were heard of last, some seconds ago. A scrape misses short ones: use netsplit_link_cut_seconds_total.", []string{"shape"}, nil)
	descOldest   = prometheus.NewDesc("netsplit_oldest_partition_seconds", "For how long the oldest partition in force has been so, runners' left out; 0: there is none.", nil, nil)
	descMessages = prometheus.NewDesc("netsplit_messages_total", "Messages by type and verdict; rare types are counted as other.", []string{"type", "verdict"}, nil)
	descFinding  = prometheus.NewDesc("netsplit_finding_info", "Always 1; one series for each of the last 500 findings.", []string{"finding", "check", "target"}, nil)
	descSwitch   = prometheus.NewDesc("netsplit_switch_connected", "1 if the switch has a session, 0 if not.", []string{"dpid"}, nil)
	descStore    = prometheus.NewDesc("netsplit_store_bytes", "Size of the store.", nil, nil)
	descFree     = prometheus.NewDesc("netsplit_free_bytes", "Room on the disk of the records of runs.", nil, nil)
	descHealth   = prometheus.NewDesc("netsplit_health", "1 if a part of the daemon can do its work, 0 if not; /healthz says why.", []string{"check"}, nil)
	descTestbed  = prometheus.NewDesc("netsplit_testbed_info", "Always 1; the label is the daemon's testbed, lab where campaigns make their own.", []string{"testbed"}, nil)
	descCampaign = prometheus.NewDesc("netsplit_campaigns", "Campaigns that wait (queued) or work (running).", []string{"state"}, nil)
	descRuns     = prometheus.NewDesc("netsplit_runs_active", "Runs under way.", nil, nil)
	descRunners  = prometheus.NewDesc("netsplit_runners", "Runners that have joined, by what they do: idle, preparing, ready (they make runs) or unfit; absent where the daemon makes the runs itself.", []string{"state"}, nil)
	descMap      = prometheus.NewDesc("netsplit_partition_map_cells", "Cells of the partition map of the campaign whose run ended last (replays not counted): never met by a fault, met, or met in a run that broke a promise.", []string{"state"}, nil)
)

// liveCollector works out the values of Metrics at each scrape.
type liveCollector struct{ m *Metrics }

// Describe lists the metrics.
func (liveCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCut, descPackets, descLastCut, descActive, descOldest, descMessages, descFinding, descSwitch, descStore, descFree, descHealth, descTestbed, descCampaign, descRuns, descRunners, descMap} {
		ch <- d
	}
}

// Collect sends their values now.
func (c liveCollector) Collect(ch chan<- prometheus.Metric) {
	for _, metric := range c.values() {
		ch <- metric
	}
}

func (c liveCollector) values() []prometheus.Metric {
	m := c.m
	m.mu.Lock()
	ask := m.state
	m.mu.Unlock()
	var state *model.ServiceState
	if ask != nil { // without mu: it may take locks under which metrics are told something
		st := ask()
		state = &st
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []prometheus.Metric
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...))
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	now := m.now()
	for _, l := range m.cuts.Links() {
		src, dst := clean(string(l.Src)), clean(string(l.Dst))
		counter(descCut, m.cuts.Cut(l, now).Seconds(), src, dst)
		for _, f := range model.Fates() {
			counter(descPackets, float64(m.fates[l][f]), src, dst, string(f))
		}
	}
	if !m.lastCut.IsZero() {
		gauge(descLastCut, float64(m.lastCut.UnixNano())/1e9)
	}
	inForce := m.cuts.InForce()
	for _, s := range model.Shapes() {
		n := inForce[s]
		if state != nil {
			n += state.InForce[s]
		}
		gauge(descActive, float64(n), string(s))
	}
	gauge(descOldest, m.cuts.Oldest(now).Seconds())
	m.messages.each(func(messageType, verdict string, n uint64) { counter(descMessages, float64(n), messageType, verdict) })
	for id, f := range m.findings {
		gauge(descFinding, 1, clean(id), clean(f.Failure.Check), clean(f.Target))
	}
	for dpid, up := range m.switches {
		gauge(descSwitch, oneIf(up), dpid.String())
	}
	if state == nil {
		return out
	}
	known := func(n int64) float64 {
		if n < 0 {
			return math.NaN()
		}
		return float64(n)
	}
	gauge(descStore, known(state.StoreBytes))
	gauge(descFree, known(state.FreeBytes))
	for _, check := range state.Health.Checks {
		gauge(descHealth, oneIf(check.OK), clean(check.Name))
	}
	gauge(descTestbed, 1, clean(state.Testbed))
	gauge(descCampaign, float64(state.Queued), "queued")
	gauge(descCampaign, float64(state.Running), "running")
	gauge(descRuns, float64(state.Runs))
	if state.Runners != nil {
		for _, is := range []model.RunnerState{model.RunnerIdle, model.RunnerPreparing, model.RunnerReady, model.RunnerUnfit} {
			gauge(descRunners, float64(state.Runners[is]), string(is))
		}
	}
	for word, n := range map[string]int{"never": state.Map.Never, "met": state.Map.Met, "failed": state.Map.Failed} {
		gauge(descMap, float64(n), word)
	}
	return out
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
