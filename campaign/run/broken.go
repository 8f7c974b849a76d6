package run

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"netsplit/inference"
	"netsplit/model"
	"netsplit/record/rundir"
)

// reader makes messages and observations of frames; an inference.Pipeline.
type reader interface {
	Read(f model.Frame) *inference.Result
	DecodeOnly(f model.Frame) *inference.Result
	Flush(at time.Duration) *inference.Result
	Probe(variable string, source int, host model.NodeID, at time.Duration, answer string) []model.Observation
	StreamOf(p *model.Packet) string
	Connections() []inference.Connection
}

// guard is deferred by everything that reads, or decides, for a run, with mu held: a
// panic there ends the run and not the daemon. What was read last is host's frame; nil:
// none was. From then on nothing is read, numbered or decided, and whatever comes to
// the gate passes, so that the network is whole.
func (s *session) guard(doing string, host model.NodeID, frame []byte) {
	p := recover()
	if p == nil {
		return
	}
	stack := debug.Stack()
	if s.broken == nil {
		s.broken = s.keepPanic(doing, host, frame, p, stack)
		if s.abort != nil {
			s.abort(s.broken)
		}
	}
	defer func() {
		if p := recover(); p != nil { // the way out is broken, too
			s.incomplete = append(s.incomplete, fmt.Sprintf("held packets could not be released: %v", p))
		}
	}()
	s.open()
}

// keepPanic keeps what it takes to find the cause of a panic, and names the file.
func (s *session) keepPanic(doing string, host model.NodeID, frame []byte, p any, stack []byte) error {
	why := fmt.Sprintf("netsplit itself failed while it %s: %v", doing, p)
	text := fmt.Sprintf("%s\nafter %v\n", why, s.now())
	if frame != nil {
		text += fmt.Sprintf("a frame of %d bytes", len(frame))
		if host != "" {
			text += " from host " + string(host)
		}
		text += ", as text2pcap reads it:\n" + hex.Dump(frame)
	}
	file := filepath.Join(s.rec.Dir, rundir.PanicFile)
	if err := os.WriteFile(file, append([]byte(text+"\n"), stack...), 0o600); err != nil {
		return fmt.Errorf("%s; where it failed could not be kept (%w):\n%s", why, err, stack)
	}
	return fmt.Errorf("%s; please report it, with %s of the run's record, which has the frame and the stack", why, rundir.PanicFile)
}

// open lets go all that the session still holds: the packet that was being decided,
// where that was not done, and those that faults kept. The caller holds mu.
func (s *session) open() {
	for _, c := range s.gateCuts {
		if c.on {
			s.heal(model.Decision{Heal: true, Step: c.step, Reason: model.ReasonBroken})
		}
	}
	for _, h := range s.holding {
		switch {
		case h.frame == nil: // decided
		case h.to == "":
			s.passUnread(h.host, h.frame)
		default:
			s.pass(h.frame, h.to)
		}
	}
	s.holding = nil
	for n, k := range s.faults.kept {
		s.pass(k.data, k.to)
		delete(s.faults.kept, n)
	}
	if s.faults.over = true; s.faults.timer != nil {
		s.faults.timer.Stop()
	}
}

// waiting is a frame at the gate that was not decided yet, the host that it is from, and
// the one that it is for; "": the one or all that its address says.
type waiting struct {
	host  model.NodeID
	frame []byte
	to    model.NodeID
}

// pass sends a frame on without reading it. The caller holds mu.
func (s *session) pass(frame []byte, to model.NodeID) {
	if err := s.gate.Release(frame, to); err != nil {
		s.incomplete = append(s.incomplete, fmt.Sprintf("a packet could not be passed on: %v", err))
	}
}

// passUnread sends a frame on to all that it is for, once the session is broken. The
// caller holds mu.
func (s *session) passUnread(host model.NodeID, frame []byte) {
	if len(frame) < 12 || frame[0]&1 == 0 {
		s.pass(frame, "")
		return
	}
	for _, to := range s.gate.Receivers(host, true) {
		s.pass(frame, to)
	}
}

// isBroken is why nothing is read any more; nil: it is.
func (s *session) isBroken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
