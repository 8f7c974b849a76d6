package classify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// greeted is a protocol with a type and a length of four bytes that counts itself,
// whose connections begin with messages without a type: as many as the client
// has, one byte from the server.
func greeted() model.Protocol {
	return model.Protocol{Port: 7, Transport: "tcp", Dissector: NameFrames, Frames: &model.Framing{
		Length: &model.Place{At: 1, Size: 4, Plus: 1},
		Type:   []model.Place{{At: 0}},
		First: []model.First{
			{Name: "ask", Begins: "00 00 00 08 04 d2", Size: 8},
			{Name: "start", Begins: "00", Length: &model.Place{At: 0, Size: 4}},
			{Name: "no", Answer: true, Begins: "4e", Size: 1},
		},
	}}
}

// TestFramesAfterAnotherBeginning: what a connection begins with is not taken for
// the length of a message that never ends.
func TestFramesAfterAnotherBeginning(t *testing.T) {
	const ask, start = "\x00\x00\x00\x08\x04\xd2\x16\x2f", "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00"
	const query, ready = "Q\x00\x00\x00\x06x\x00", "Z\x00\x00\x00\x05I"
	for _, c := range []struct {
		name  string
		steps []step
		want  [2][]string
	}{
		{"all of them", []step{{b: []byte(ask)}, {dir: 1, b: []byte("N")}, {b: []byte(start)}, {dir: 1, b: []byte(ready)}, {b: []byte(query)}, {dir: 1, b: []byte(ready)}},
			[2][]string{{"frame ask 8", "frame start 13", "frame 0x51 7"}, {"frame no 1", "frame 0x5a 6", "frame 0x5a 6"}}},
		{"some", []step{{b: []byte(start + query)}, {dir: 1, b: []byte(ready)}},
			[2][]string{{"frame start 13", "frame 0x51 7"}, {"frame 0x5a 6"}}},
		{"at the beginning only", []step{{b: []byte(query)}, {dir: 1, b: []byte(ready + "N\x00\x00\x00\x04")}, {b: []byte("\x00\x00\x00\x00\x04" + query)}},
			[2][]string{{"frame 0x51 7", "frame 0x0 5", "frame 0x51 7"}, {"frame 0x5a 6", "frame 0x4e 5"}}},
		{"not behind a loss", []step{{gap: 40}, {b: []byte(query + query + query + "\x00\x00\x00\x00\x04")}},
			[2][]string{{"frame 0x51 7", "frame 0x51 7", "frame 0x51 7", "frame 0x0 5"}, nil}},
		{"cut off", []step{{b: []byte(ask[:3])}, {dir: 1, b: []byte(ready)}},
			[2][]string{{"unknown 3"}, {"frame 0x5a 6"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := rules(t, greeted(), c.steps, 1, 20)
			for dir := range us {
				if diff := cmp.Diff(c.want[dir], reported(us[dir])); diff != "" {
					t.Errorf("units of direction %d (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

func TestBeginningsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		first     model.First
		transport string
		want      string
	}{
		{model.First{Name: "a b", Begins: "00", Size: 1}, "tcp", "frames.first[0].name"},
		{model.First{Name: "a", Size: 1}, "tcp", "frames.first[0].begins"},
		{model.First{Name: "a", Begins: "PRI", Size: 24}, "tcp", "in hex"},
		{model.First{Name: "a", Begins: "00"}, "tcp", "want one of length and size"},
		{model.First{Name: "a", Begins: "00", Size: 1, Length: &model.Place{}}, "tcp", "want one of length and size"},
		{model.First{Name: "a", Begins: "00 01", Size: 1}, "tcp", "frames.first[0].size"},
		{model.First{Name: "a", Begins: "00", Length: &model.Place{Order: "middle"}}, "tcp", "frames.first[0].length: unknown order"},
		{model.First{Name: "a", Begins: "00", Size: 1}, "udp", "a datagram is one message"},
	} {
		p := greeted()
		p.Transport, p.Frames.First = c.transport, []model.First{c.first}
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v over %s: %v, want it to say %q", c.first, c.transport, err, c.want)
		}
	}
	p := greeted()
	p.Frames.First[0], p.Frames.First[1] = p.Frames.First[1], p.Frames.First[0]
	if _, err := New(p); err == nil || !strings.Contains(err.Error(), `frames.first[1]: a message that begins so matches "start" first`) {
		t.Errorf("a beginning behind one that is part of it: %v", err)
	}
}
