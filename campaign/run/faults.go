package run

import (
	"slices"
	"time"

	"netsplit/inference"
	"netsplit/model"
)

// faultState is what a session keeps for the message faults of its scenario.
type faultState struct {
	kept  map[uint64]*heldFrame // by frame: waits for a decision
	timer *time.Timer           // until the engine has something to do
	wake  time.Duration         // when the timer fires; 0: not set
	over  bool                  // the run has ended: nothing is recorded any more

	watched map[arrival]*watchedPacket // packets that were acted on
	frames  map[uint64]*watchedPacket  // the same by frame
	recent  [64]struct {               // the last packets that passed
		arrival
		at time.Duration
	}
	passed int // entered in recent

	acted chan struct{} // closed when a fault has acted; nil: nobody waits
}

// arrival is what a receiver sees of a packet.
type arrival struct {
	to     model.NodeID
	digest uint64
}

func (h *heldFrame) arrival() arrival { return arrival{h.held.To, h.digest} }

// watchedPacket is a packet that a fault acted on, together with all packets that its
// receiver cannot tell from it.
type watchedPacket struct {
	arrival
	since  time.Duration
	passes int             // how many of them passed since then
	blur   bool            // one of them was still on its way at since
	at     []time.Duration // when they arrived
	known  bool            // at is known
}

// tell wakes who waits for a fault to act.
func (f *faultState) tell() {
	if f.acted != nil {
		close(f.acted)
		f.acted = nil
	}
}

// onItsWay is how long after it passed the gate a packet may still arrive.
const onItsWay = 200 * time.Millisecond

// passes books a packet that is let through.
func (f *faultState) passes(held *heldFrame, now time.Duration) {
	if held.digest == 0 {
		return
	}
	if w := f.watched[held.arrival()]; w != nil {
		w.passes++
	}
	r := &f.recent[f.passed%len(f.recent)]
	r.arrival, r.at = held.arrival(), now
	f.passed++
}

// watch has the arrivals of a packet looked for at the end of the run.
func (f *faultState) watch(held *heldFrame, limit int) {
	if len(f.frames) >= limit || held.held.To == "" {
		return // no one host gets it
	}
	if f.watched == nil {
		f.watched, f.frames = map[arrival]*watchedPacket{}, map[uint64]*watchedPacket{}
	}
	w := f.watched[held.arrival()]
	if w == nil {
		w = &watchedPacket{arrival: held.arrival(), since: held.at}
		for _, r := range f.recent {
			w.blur = w.blur || r.arrival == w.arrival && r.at+onItsWay > held.at
		}
		f.watched[w.arrival] = w
	}
	f.frames[held.num] = w
}

// bookFault counts what a fault decided about a packet at the gate.
func (s *session) bookFault(held *heldFrame, d model.Decision) {
	if d.Fault == 0 {
		return
	}
	s.metrics.MessageFault(s.scn.Fault(d.Fault).Kind, d.Reason)
	s.faults.tell()
	switch d.Reason {
	case model.ReasonDelay, model.ReasonReorder, model.ReasonDuplicate, model.ReasonLose, model.ReasonReset:
		s.faults.watch(held, model.MaxHits*len(s.scn.Steps))
	}
}

// wind sets the timer to the engine's next moment. The caller holds mu.
func (s *session) wind() {
	if !s.faulty {
		return
	}
	f := &s.faults
	next, ok := s.engine.Next()
	switch {
	case !ok:
		if f.timer != nil {
			f.timer.Stop()
		}
		f.wake = 0
	case next == f.wake: // it runs
	default:
		f.wake = next
		in := max(0, next-s.now())
		if f.timer == nil {
			f.timer = time.AfterFunc(in, s.alarm)
		} else {
			f.timer.Reset(in)
		}
	}
}

// alarm enters the time for which the timer was set.
func (s *session) alarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.over {
		return
	}
	defer s.guard("carried out a message fault", "", nil)
	at := s.now()
	s.faults.wake = 0
	if next, ok := s.engine.Next(); !ok || next > at {
		s.wind() // another event was faster, or the timer fired early
		return
	}
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventTick}))
}

// keep puts a packet aside until a decision names it. It copies the bytes, because the
// caller reuses them.
func (s *session) keep(held *heldFrame) {
	if s.faults.kept == nil {
		s.faults.kept = map[uint64]*heldFrame{}
	}
	k := *held
	k.data = slices.Clone(held.data)
	k.packet.Payload = nil // was a view into them
	s.faults.kept[held.num] = &k
}

// decideKept does what was decided about a packet that was kept, and returns it
// if it has passed for the first time.
func (s *session) decideKept(d model.Decision) *model.HeldPacket {
	k := s.faults.kept[d.Frame]
	if k == nil {
		s.incomplete = append(s.incomplete, "a decision about a packet that is not held: please report it")
		return nil
	}
	if !d.Keep {
		delete(s.faults.kept, d.Frame)
	}
	if d.Reason == model.ReasonAcross {
		d.Action = model.DropPacket // a copy that is not sent counts as a packet that wanted to cross
		s.count(k, d)
	}
	if d.Fault != 0 {
		s.metrics.MessageFault(s.scn.Fault(d.Fault).Kind, d.Reason)
	}
	switch d.Action {
	case model.Pass:
		s.release(k)
		return k.held
	case model.Copy:
		s.release(k)
	}
	return nil
}

// close stops the message faults: from here on nothing acts and nothing is recorded.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.over = true
	if s.faults.timer != nil {
		s.faults.timer.Stop()
	}
}

// resetStream resets, at both ends, the connection of a packet that is lost for good. The
// pipeline has read the packet, but its receiver never gets it.
func (s *session) resetStream(held *heldFrame) {
	i := slices.IndexFunc(s.pipe.Connections(), func(c inference.Connection) bool {
		return c.A == held.packet.Src && c.B == held.packet.Dst || c.B == held.packet.Src && c.A == held.packet.Dst
	})
	if i < 0 {
		return // it has ended: no end waits for the packet
	}
	s.resetConn(s.pipe.Connections()[i], held, "")
}
