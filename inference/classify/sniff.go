package classify

import "strings"

// A sniff tells a protocol by the first bytes of a connection, those of the side
// that speaks first. It is yes or no for good, or maybe: more bytes are needed.
type sniff struct {
	tell  func(dir int, b []byte) verdict
	fresh func() Dissector
}

type verdict int

const (
	no verdict = iota
	maybe
	yes
)

var (
	// sniffsAlways are tried whatever reader a port has: behind them is none that
	// the reader could read.
	sniffsAlways = []sniff{{tlsHello, newTLS}, {tlsMiddle, newTLS}}
	// sniffsElse are tried where a port has no reader: Hadoop's ApplicationMasters,
	// TaskTrackers and tasks listen on ports nobody knows before.
	sniffsElse = append([]sniff{
		{opening("hrpc\x09"), newHadoopRPC},
		{opening("hrpc\x03"), newHadoopWritable},
		{opening("hrpc\x04"), newHadoopWritable},
		{saying("SSH-"), func() Dissector { return &fallback{name: sshName} }},
	}, sniffsAlways...)
)

// opening tells a protocol by what the side that opened the connection says.
func opening(prefix string) func(int, []byte) verdict {
	tell := saying(prefix)
	return func(dir int, b []byte) verdict {
		if dir != 0 {
			return no
		}
		return tell(dir, b)
	}
}

// saying tells a protocol by what either side says first.
func saying(prefix string) func(int, []byte) verdict {
	return func(_ int, b []byte) verdict {
		n := min(len(b), len(prefix))
		switch {
		case !strings.HasPrefix(prefix, string(b[:n])):
			return no
		case n < len(prefix):
			return maybe
		}
		return yes
	}
}

// sniffing holds the first bytes of a connection back until they tell a protocol,
// or none, and is the dissector they ask for, or the other one, from then on.
type sniffing struct {
	chosen Dissector
	sniffs []sniff
	other  func() Dissector
	dir    int    // who spoke first
	held   []byte // what they said, as long as it may tell
	start  uint64
}

func newSniffing(sniffs []sniff, other func() Dissector) *sniffing {
	return &sniffing{sniffs: sniffs, other: other}
}

func (s *sniffing) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if s.chosen != nil {
		s.chosen.Data(dir, off, b, emit)
		return
	}
	if len(b) == 0 {
		return
	}
	if len(s.held) == 0 {
		s.dir, s.start = dir, off
	} else if dir != s.dir {
		s.settle(s.other, emit)
		s.chosen.Data(dir, off, b, emit)
		return
	}
	s.held = append(s.held, b...)
	wait := false
	for _, f := range s.sniffs {
		switch f.tell(dir, s.held) {
		case yes:
			s.settle(f.fresh, emit)
			return
		case maybe:
			wait = true
		}
	}
	if !wait {
		s.settle(s.other, emit)
	}
}

// settle chooses a dissector and gives it what was held back.
func (s *sniffing) settle(fresh func() Dissector, emit func(Unit)) {
	s.chosen = fresh()
	if len(s.held) > 0 {
		s.chosen.Data(s.dir, s.start, s.held, emit)
		s.held = nil
	}
}

func (s *sniffing) Gap(dir int, off, n uint64, emit func(Unit)) {
	if s.chosen == nil {
		s.settle(s.other, emit)
	}
	s.chosen.Gap(dir, off, n, emit)
}

func (s *sniffing) Close(dir int, emit func(Unit)) {
	if s.chosen == nil {
		if len(s.held) > 0 && dir != s.dir {
			return // who spoke can still go on
		}
		s.settle(s.other, emit)
	}
	s.chosen.Close(dir, emit)
}
