package classify

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// asking is a protocol whose requests have a kind and an id, and whose answers have
// the id, and say whether it went well.
func asking() model.Protocol {
	return model.Protocol{Port: 7, Transport: "tcp", Dissector: NameFrames, Frames: &model.Framing{
		Length:      &model.Place{At: 0, Size: 2, Plus: 2},
		Type:        []model.Place{{At: 2}},
		Correlation: &model.Correlation{Request: model.Place{At: 3, Size: 2}, Answer: model.Place{At: 2, Size: 2}},
	}}
}

func asks(kind byte, id uint16) string { return counting16([]byte{kind, byte(id >> 8), byte(id), 0}) }

func answers(id uint16, code byte) string { return counting16([]byte{byte(id >> 8), byte(id), code}) }

func counting16(b []byte) string {
	return string(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
}

// TestAnswersHaveTheTypeOfWhatTheyAnswer, in whatever order they come; one of which
// the request was not seen has none.
func TestAnswersHaveTheTypeOfWhatTheyAnswer(t *testing.T) {
	coded := asking()
	coded.Frames.Answer = &[]model.Place{{At: 4}}
	for _, c := range []struct {
		name  string
		of    model.Protocol
		steps []step
		want  []string // of direction 1
	}{
		{"out of order", asking(), []step{{b: []byte(asks(3, 1) + asks(9, 2))}, {dir: 1, b: []byte(answers(2, 0) + answers(1, 7))}},
			[]string{"frame answer 0x9 5", "frame answer 0x3 5"}},
		{"an id again", asking(), []step{{b: []byte(asks(3, 1))}, {dir: 1, b: []byte(answers(1, 0))}, {b: []byte(asks(4, 1))}, {dir: 1, b: []byte(answers(1, 0) + answers(1, 0))}},
			[]string{"frame answer 0x3 5", "frame answer 0x4 5", "frame answer 0x4 5"}},
		{"nobody asked", asking(), []step{{b: []byte(asks(3, 1))}, {dir: 1, b: []byte(answers(5, 0) + "\x00\x01\x05")}},
			[]string{"frame answer 5", "frame answer 3"}},
		{"with a type of its own", coded, []step{{b: []byte(asks(3, 1))}, {dir: 1, b: []byte(answers(1, 6) + answers(5, 6))}},
			[]string{"frame answer 0x3 0x6 5", "frame answer 0x6 5"}},
		{"behind a loss", asking(), []step{{b: []byte(strings.Repeat(asks(3, 1)+asks(9, 2), 3))}, {dir: 1, b: []byte(answers(1, 0))}, {dir: 1, gap: 9},
			{dir: 1, b: []byte("\xff\xff\xff" + answers(1, 0) + answers(1, 0) + answers(1, 0))}},
			[]string{"frame answer 0x3 5", "unknown 3", "frame answer 0x3 5", "frame answer 0x3 5", "frame answer 0x3 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reported(rules(t, c.of, c.steps, 1, 20)[1])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCorrelationsThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*model.Protocol){
		"frames.correlation: connections have it":  func(p *model.Protocol) { p.Transport, p.Frames.Length = "udp", nil },
		"frames.correlation.answer: as goes with":  func(p *model.Protocol) { p.Frames.Correlation.Answer.As = "hex" },
		"frames.correlation.request: a number has": func(p *model.Protocol) { p.Frames.Correlation.Request.Size = 9 },
	} {
		p := asking()
		change(&p)
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
