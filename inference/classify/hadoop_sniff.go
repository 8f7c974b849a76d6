package classify

import "bytes"

// sniffs tell dissectors whose protocol announces itself in the first bytes of
// the side that opened the connection. They are tried where a port is not
// declared: Hadoop's ApplicationMasters and tasks listen on ports nobody knows
// before.
var sniffs = []struct {
	prefix string
	fresh  func() Dissector
}{
	{"hrpc\x09", newHadoopRPC},
}

// sniffing is the fallback until the first bytes of a connection are known,
// then the dissector they ask for, or the fallback for good.
type sniffing struct {
	chosen Dissector
	held   []byte // first bytes of direction 0, as long as they may be a prefix
	start  uint64
}

func newSniffing() Dissector { return &sniffing{} }

func (s *sniffing) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if len(b) == 0 {
		return
	}
	if s.chosen != nil {
		s.chosen.Data(dir, off, b, emit)
		return
	}
	if dir != 0 {
		s.settle(newFallback(), emit)
		s.chosen.Data(dir, off, b, emit)
		return
	}
	if len(s.held) == 0 {
		s.start = off
	}
	s.held = append(s.held, b...)
	wait := false
	for _, f := range sniffs {
		if bytes.HasPrefix(s.held, []byte(f.prefix)) {
			s.settle(f.fresh(), emit)
			return
		}
		wait = wait || bytes.HasPrefix([]byte(f.prefix), s.held)
	}
	if !wait {
		s.settle(newFallback(), emit)
	}
}

// settle chooses a dissector and gives it what was held back.
func (s *sniffing) settle(d Dissector, emit func(Unit)) {
	s.chosen = d
	if len(s.held) > 0 {
		d.Data(0, s.start, s.held, emit)
		s.held = nil
	}
}

func (s *sniffing) Gap(dir int, off, n uint64, emit func(Unit)) {
	if s.chosen == nil {
		s.settle(newFallback(), emit)
	}
	s.chosen.Gap(dir, off, n, emit)
}

func (s *sniffing) Close(dir int, emit func(Unit)) {
	if s.chosen == nil {
		if dir != 0 {
			return // the other side can still speak
		}
		s.settle(newFallback(), emit)
	}
	s.chosen.Close(dir, emit)
}
