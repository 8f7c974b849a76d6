package inference

import (
	"fmt"
	"testing"

	"netsplit/internal/resegment"
	"netsplit/model"
)

// capture is a recorded capture with the ports its servers listen on.
type capture struct {
	path  string
	ports []uint16
}

var captures = []capture{
	{"testdata/redis-sentinel-replication.pcap", []uint16{6381, 6382, 6383, 26381, 26382, 26383}},
	{"testdata/redis-cluster-resp.pcap", []uint16{7001, 7002, 7003, 7004, 7005, 7006}},
}

func (c capture) frames(t testing.TB) []model.Frame {
	t.Helper()
	frames, err := resegment.Read(c.path)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// pipeline reads the capture's ports with the named dissector.
func (c capture) pipeline(t testing.TB, dissector string) *Pipeline {
	t.Helper()
	var cfg Config
	for _, port := range c.ports {
		cfg.Protocols = append(cfg.Protocols, model.Protocol{Port: port, Transport: "tcp", Dissector: dissector})
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// read steps all frames and returns the messages, those of Flush included.
func read(p *Pipeline, frames []model.Frame) (all []model.Message) {
	for _, f := range frames {
		all = append(all, p.Read(f).New...)
	}
	return append(all, p.Flush(0).New...)
}

// describe is what must not depend on how a stream was cut.
func describe(m model.Message) string {
	return fmt.Sprintf("@%d+%d %s %v", m.Offset, m.Bytes, m.Type, m.Fields)
}

// byStream lists the descriptions of each stream's messages in order.
func byStream(all []model.Message) map[string][]string {
	out := map[string][]string{}
	for _, m := range all {
		out[m.Stream] = append(out[m.Stream], describe(m))
	}
	return out
}
