package api_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/model"
)

// TestARunElsewhereCountsAsOneHere, and what a runner made up makes no series.
func TestARunElsewhereCountsAsOneHere(t *testing.T) {
	m := api.NewMetrics("v1", func() time.Time { return t0 })
	ab := model.Link{Src: "a", Dst: "b"}
	r := model.RunMetrics{Links: links("a", "b", "b", "a", "a", "x"), Cuts: map[model.Shape]int{model.Complete: 2}, Heals: []model.MetricCount{{Name: model.ReasonTime, N: 2}},
		CutTime: []model.MetricTime{{Link: ab, Time: 3 * time.Second}}, LastCut: t0.Add(-time.Minute), Packets: []model.MetricPackets{{Link: ab, Fate: model.FateWanted, N: 5}, {Link: ab, Fate: model.FateDropped, N: 5}},
		Messages: []model.MetricCount{{Name: "ping", Of: "pass", N: 4}, {Name: "ping", Of: "mirror", N: 1}}, Faults: []model.MetricCount{{Name: "delay", Of: model.ReasonDue, N: 2}},
		Gate: []model.MetricDelays{{Name: "port", N: 2, Sum: 300 * time.Microsecond}, {Name: "port,packet-in", N: 1, Sum: time.Millisecond}}, HealTimes: []time.Duration{time.Millisecond}}
	m.RunElsewhere(r.Within([]model.NodeID{"a", "b"}))
	want := map[string]string{
		`netsplit_cuts_total{shape="complete"}`:                                               "2",
		`netsplit_heals_total{reason="time"}`:                                                 "2",
		`netsplit_link_cut_seconds_total{dst="b",src="a"}`:                                    "3",
		`netsplit_link_packets_total{dst="b",fate="wanted",src="a"}`:                          "5",
		`netsplit_link_packets_total{dst="b",fate="dropped",src="a"}`:                         "5",
		`netsplit_link_packets_total{dst="b",fate="leaked",src="a"}`:                          "0",
		`netsplit_link_packets_total{dst="x",fate="leaked",src="a"}`:                          "", // no host of the target
		`netsplit_messages_total{type="ping",verdict="pass"}`:                                 "4",
		`netsplit_messages_total{type="ping",verdict="mirror"}`:                               "1",
		`netsplit_message_fault_packets_total{kind="delay",reason="` + model.ReasonDue + `"}`: "2",
		`netsplit_gate_delay_seconds_count{transport="port"}`:                                 "2",
		`netsplit_gate_delay_seconds_sum{transport="port"}`:                                   "0.0003",
		`netsplit_gate_delay_seconds_count{transport="port,packet-in"}`:                       "1",
		`netsplit_heal_seconds_count`:                                                         "1",
	}
	check(t, m, want)
	before := scrape(t, m)
	if before[`netsplit_last_cut_timestamp_seconds`] == "" {
		t.Error("no last cut")
	}

	many := make([]model.MetricCount, 0, 20_000)
	for range cap(many) {
		many = append(many, model.MetricCount{Name: "made-up", Of: "x", N: 1})
	}
	m.RunElsewhere(model.RunMetrics{Cuts: map[model.Shape]int{"made-up": 1, model.Complete: -1}, Heals: many, Faults: append(many, model.MetricCount{Name: "made-up", Of: model.ReasonStop, N: 1}), Messages: many,
		LastCut: t0.Add(time.Hour), CutTime: []model.MetricTime{{Link: ab, Time: -time.Second}, {Link: ab, Time: 1e6 * time.Hour}},
		Packets: []model.MetricPackets{{Link: ab, Fate: "made-up", N: 1}, {Link: ab, Fate: model.FateLeaked, N: -1}},
		Gate:    []model.MetricDelays{{Name: "made-up", N: 1, Sum: 1}, {Name: "port", N: 1 << 40, Sum: 1}, {Name: "port", N: math.MaxInt, Sum: 1}, {Name: "port", N: math.MaxInt, Sum: 1}, {Name: "port", N: 0, Sum: 1}, {Name: "port", N: 1, Sum: -1}}, HealTimes: []time.Duration{-1}})
	if after := scrape(t, m); !maps.Equal(after, before) {
		t.Errorf("what was made up counts: %v, was %v", after, before)
	}
}
