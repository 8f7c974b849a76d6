package framing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference/classify"
	"netsplit/model"
)

// stuff is what a line may count: bytes, lines, lines that count as well.
func stuff(rng *rand.Rand) string {
	switch rng.IntN(3) {
	case 0:
		return strings.Repeat("PUB a 5\r\nx\n", rng.IntN(4))
	case 1:
		return strings.Repeat("\x00\x01\n\xff", rng.IntN(50))
	}
	return strings.Repeat("{}", rng.IntN(900))
}

// lineProtocols are generated ones, of lines, with what is to be found of them.
var lineProtocols = []struct {
	name string
	say  func(rng *rand.Rand, dir int) string
	want []string
	why  string
}{
	{name: "the last word, in two directions", say: func(rng *rand.Rand, dir int) string {
		b, id, reply := stuff(rng), rng.IntN(50), ""
		if rng.IntN(2) == 0 {
			reply = fmt.Sprintf("_inbox.%d ", rng.IntN(99))
		}
		switch {
		case rng.IntN(5) == 0:
			return "PING\r\n"
		case dir == 0:
			return fmt.Sprintf("PUB news.%d %s%d\r\n%s\r\n", id, reply, len(b), b)
		case rng.IntN(3) == 0:
			return fmt.Sprintf("HMSG news %s12 %d\r\nhead: a=%d\r\n\r\n%s\r\n", reply, 13+len(b), id%10, b)
		}
		return fmt.Sprintf("MSG news.%d 7 %s%d\r\n%s\r\n", id, reply, len(b), b)
	}, want: []string{`{match: '^(?:HMSG|MSG|PUB)\s(?:.*\s)?(?P<length>\d+)$', plus: 2}`}},
	{name: "a word in the middle, none behind it or one", say: func(rng *rand.Rand, dir int) string {
		b, more := stuff(rng), ""
		if rng.IntN(2) == 0 {
			more = " noreply"
		}
		switch {
		case dir == 1 && rng.IntN(2) == 0:
			return "STORED\r\n"
		case dir == 1:
			return fmt.Sprintf("VALUE k%d %d %d\r\n%s\r\nEND\r\n", rng.IntN(9), rng.IntN(3), len(b), b)
		case rng.IntN(2) == 0:
			return fmt.Sprintf("get k%d\r\n", rng.IntN(9))
		}
		return fmt.Sprintf("set k%d %d 0 %d%s\r\n%s\r\n", rng.IntN(9), rng.IntN(3), len(b), more, b)
	}, want: []string{`{match: '^VALUE\s(?:.*\s)?(?P<length>\d+)$', plus: 2}`, `{match: '^set(?:\s+\S+){3}\s+(?P<length>\d+)(?:\s|$)', plus: 2}`}},
	{name: "without an end of line", say: func(rng *rand.Rand, _ int) string {
		b := strings.Repeat("\x02\xfe", rng.IntN(90))
		return fmt.Sprintf("DATA %d of it\n%s", len(b), b)
	}, want: []string{`{match: '^DATA\s+(?P<length>\d+)(?:\s|$)'}`}},
	{name: "numbers that count nothing", say: func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("VOTE for=%d %d\r\nTERM %d\r\n", rng.IntN(3), rng.IntN(99), rng.IntN(9))
	}, why: WhyText},
	{name: "requests with heads", say: func(rng *rand.Rand, dir int) string {
		b := strings.Repeat("x", rng.IntN(99))
		if dir == 1 {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		}
		return fmt.Sprintf("POST /a HTTP/1.1\r\nHost: me\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
	}, why: WhyText},
}

// TestLinesThatCount: what is suggested finds all messages, when reader text has
// it, whatever the segments and though some were lost.
func TestLinesThatCount(t *testing.T) {
	for _, c := range lineProtocols {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(12) {
				rng := rand.New(rand.NewPCG(seed, 1))
				k := &talk{rng: rng, conns: 3, turns: 120, say: func(dir, _, _ int) []byte {
					return several(rng, func() []byte { return []byte(c.say(rng, dir)) })
				}}
				switch seed % 4 {
				case 1:
					k.segment = 700
				case 2:
					k.lose = 0.01
				case 3:
					k.middle = true
				}
				s := k.port().Suggest()
				if diff := cmp.Diff(c.want, Lines(s.Lines)); diff != "" || c.want == nil && s.Why != c.why || s.Framing != nil {
					t.Fatalf("seed %d (-want +got):\n%s%s", seed, diff, s.Why)
				}
				if k.middle || k.lose > 0 || c.want == nil {
					continue
				}
				units := 0
				for _, sent := range k.sent {
					d, err := classify.New(model.Protocol{Port: 7, Transport: "tcp", Dissector: classify.NameText, Lines: s.Lines})
					if err != nil {
						t.Fatal(err)
					}
					for dir, b := range sent {
						d.Data(dir, 0, b, func(u classify.Unit) {
							units++
							if u.Type == model.TypeUnknown {
								t.Fatalf("seed %d: %d unknown bytes at %d", seed, u.Bytes, u.Offset)
							}
						})
					}
				}
				if units != s.Messages {
					t.Errorf("seed %d: the reader finds %d messages, %d were suggested", seed, units, s.Messages)
				}
			}
		})
	}
}
