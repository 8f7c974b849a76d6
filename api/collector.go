package api

import (
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"netsplit/model"
)

// Metrics whose value is worked out when they are scraped.
var (
	descCut = prometheus.NewDesc("netsplit_link_cut_seconds_total",
		"Time for which this directed link was cut, a current cut included; its rate is the share of time cut.", []string{"src", "dst"}, nil)
	descPackets = prometheus.NewDesc("netsplit_link_packets_total",
		"Packets that wanted to cross this directed link while it was cut, that were dropped, and that leaked.", []string{"src", "dst", "fate"}, nil)
	descLastCut  = prometheus.NewDesc("netsplit_last_cut_timestamp_seconds", "When the last cut began, since 1970; absent before the first.", nil, nil)
	descActive   = prometheus.NewDesc("netsplit_partitions_active", "Partitions in force now, by shape. A scrape misses short ones: use netsplit_link_cut_seconds_total.", []string{"shape"}, nil)
	descMessages = prometheus.NewDesc("netsplit_messages_total", "Messages by type and verdict; rare types are counted as other.", []string{"type", "verdict"}, nil)
	descFinding  = prometheus.NewDesc("netsplit_finding_info", "Always 1; one series per finding.", []string{"finding", "check", "target"}, nil)
	descSwitch   = prometheus.NewDesc("netsplit_switch_connected", "1 if the switch has a session, 0 if not.", []string{"dpid"}, nil)
	descStore    = prometheus.NewDesc("netsplit_store_bytes", "Size of the store.", nil, nil)
)

// liveCollector works out the values of Metrics at each scrape.
type liveCollector struct{ m *Metrics }

// Describe lists the metrics.
func (liveCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCut, descPackets, descLastCut, descActive, descMessages, descFinding, descSwitch, descStore} {
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
	defer m.mu.Unlock()
	var out []prometheus.Metric
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...))
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	now := m.now()
	for _, l := range slices.SortedFunc(maps.Keys(m.links), model.Link.Compare) {
		k := m.links[l]
		cut := k.cut
		if k.active > 0 {
			cut += now.Sub(k.since)
		}
		src, dst := clean(string(l.Src)), clean(string(l.Dst))
		counter(descCut, cut.Seconds(), src, dst)
		for _, f := range model.Fates() {
			counter(descPackets, float64(k.fate[f]), src, dst, string(f))
		}
	}
	if !m.lastCut.IsZero() {
		gauge(descLastCut, float64(m.lastCut.UnixNano())/1e9)
	}
	for s, n := range m.shapes {
		gauge(descActive, float64(n), clean(string(s)))
	}
	m.messages.each(func(messageType, verdict string, n uint64) { counter(descMessages, float64(n), messageType, verdict) })
	for id, f := range m.findings {
		gauge(descFinding, 1, clean(id), clean(f.Failure.Check), clean(f.Target))
	}
	for dpid, up := range m.switches {
		v := 0.0
		if up {
			v = 1
		}
		gauge(descSwitch, v, dpid.String())
	}
	if m.size != nil {
		n, err := m.size()
		v := float64(n)
		if err != nil {
			v = math.NaN()
		}
		gauge(descStore, v)
	}
	return out
}
