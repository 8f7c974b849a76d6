package explorer_test

import (
	"testing"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// BenchmarkEngine steps the engine through the events of a recorded run, about a quarter
// of which are held packets.
func BenchmarkEngine(b *testing.B) {
	var s model.Scenario
	readJSON(b, "run.scenario.json", &s)
	events := readLines[model.Event](b, "run.events.jsonl")
	packets := 0
	for i := range events {
		if events[i].Kind == model.EventPacket {
			packets++
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		e := engine.New(s)
		for i := range events {
			e.Step(events[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/packet")
}
