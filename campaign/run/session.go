package run

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/explorer/engine"
	"netsplit/inference"
	"netsplit/inference/state"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/testbed/agent"
)

// session puts all that happens in one run into one order. Each event enters
// through a method of session, which numbers it, hands it to the record and only
// then acts on it. One mutex is the order: whoever holds it is next.
type session struct {
	start   time.Time
	gate    gateway
	metrics Metrics
	rec     *rundir.Writer

	numbers atomic.Uint64 // the last number given to an event or to anything else that came

	transport string      // of the gate
	abort     func(error) // ends the run; nil: nothing does

	// holders asks who has a role now.
	holders func(role string) (model.Holders, error)
	damager damager

	mu       sync.Mutex // guards everything below
	last     uint64     // event of the log
	frames   uint64
	clock    clock // of the machine
	broken   error // a panic, after which the session reads and decides nothing; see guard
	holding  []waiting
	armed    bool // the workload has started
	ended    bool // the workload has ended
	pipe     reader
	table    *state.Table
	engine   *engine.Engine
	scn      model.Scenario
	withheld map[uint64][]model.Observation // by message: what its receiver learns when it passes
	faults   faultState
	nodes    nodeFaults
	disks    diskFaults
	gateCuts []*gateCut // of the scenario's steps, a script's among them, in the order in which they began
	recent   []letGo    // released within the last agent.Edge
	resets   []letGo    // sent to reset connections
	lately   lately

	faulty      bool // message faults act, or may
	gated       gated
	cutName     string       // of the script's cut that begins
	waits       *messageWait // of a script
	over        bool         // session has read all evidence
	messages    map[string]int
	ports       *portsRead
	delays      []time.Duration
	retransmits int
	incomplete  []string       // why the run cannot be judged
	unread      []string       // why the operations of workloads are not all known
	lifted      sync.WaitGroup // rules behind the gate that are being removed
}

// gateway is what a session asks of the switch.
type gateway interface {
	// Release sends a held frame on to its host.
	Release(frame []byte, to model.NodeID) error
	// Cut puts drop rules behind the gate and returns when the switch has processed them.
	// The gate drops already; these rules take over if the rules of the gate vanish. id
	// names them, even if they are not confirmed.
	Cut(p model.Partition) (id uint32, err error)
	// Heal takes those rules away again.
	Heal(id uint32) error
	// Receivers are the hosts for which the gate (held), or else the mirror port,
	// gets the broadcasts and multicasts of a host.
	Receivers(from model.NodeID, held bool) []model.NodeID
	// HostOf is the host that a hardware address belongs to; "" for a group.
	HostOf(mac [6]byte) model.NodeID
	// MAC is the hardware address of a host.
	MAC(host model.NodeID) (net.HardwareAddr, bool)
}

func (s *session) now() time.Duration { return time.Since(s.start) }

// when is a packet's time of arrival since the run started. The caller holds mu.
func (s *session) when(at time.Time) time.Duration {
	s.look()
	return min(s.clock.since(at), s.now())
}

// look notes whether somebody set the machine's clock. The caller holds mu.
func (s *session) look() {
	s.clock.look()
	if by := s.clock.news(); by != 0 {
		at := s.now()
		s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventNote,
			Note: fmt.Sprintf("the machine's clock was moved by %s; times here were not", by.Round(time.Millisecond))}))
	}
}

// event numbers, records and steps; the caller holds mu.
func (s *session) event(at time.Duration, e model.Event) []model.Decision {
	if s.broken != nil {
		return nil
	}
	s.last = s.Number()
	e.Num, e.At = s.last, at
	s.rec.Append(rundir.EventsFile, e)
	s.lately.event(e)
	ds := s.engine.Step(e)
	s.wind()
	return ds
}

// Number numbers something that comes now and is kept outside the event log. It takes no
// lock: a process may print while a packet is held until that process has ended.
func (s *session) Number() uint64 { return s.numbers.Add(1) }

// Mark records an event without payload: start, workload, stop.
func (s *session) Mark(kind model.EventKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard("entered "+string(kind), "", nil)
	at := s.now()
	switch kind {
	case model.EventWorkload:
		s.armed = true
	case model.EventStop:
		s.ended = true
	}
	s.carryOut(at, nil, s.event(at, model.Event{Kind: kind}))
}

// Note enters a remark.
func (s *session) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard("entered a note", "", nil)
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventNote, Note: fmt.Sprintf(format, args...)}))
}

// NodeDone records what a workload did to a server process.
func (s *session) NodeDone(a model.NodeAction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard("entered what became of a process", "", nil)
	s.nodeDone(s.now(), a)
}

func (s *session) Tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard("entered the passing of time", "", nil)
	s.look()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventTick}))
}

// Fail records why the run cannot be judged. After a panic it records nothing: the rest
// follows from the panic.
func (s *session) Fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	s.incomplete = append(s.incomplete, fmt.Sprintf(format, args...))
}

// Unread records why the operations of workloads are not all known.
func (s *session) Unread(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = append(s.unread, fmt.Sprintf(format, args...))
}

// whole says whether the run can still be judged.
func (s *session) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.incomplete) == 0 && s.broken == nil
}

// Probed enters the answer of a probe of a variable and returns how many
// values it showed.
func (s *session) Probed(variable string, source int, host model.NodeID, answer string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return 0
	}
	defer s.guard("read the answer of a probe of "+variable, host, []byte(answer))
	at := s.now()
	obs := s.pipe.Probe(variable, source, host, at, answer)
	s.observe(at, nil, obs)
	return len(obs)
}

func (s *session) observe(at time.Duration, held *heldFrame, obs []model.Observation) {
	for _, o := range obs { // a copy, because the step is reused
		s.table.Set(o)
		s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventObserve, Observation: &o}))
	}
}

// heldFrame is the packet that waits at the gate.
type heldFrame struct {
	num     uint64
	at      time.Duration
	data    []byte
	to      model.NodeID
	packet  model.Packet
	held    *model.HeldPacket // as the engine has it
	payload int               // bytes behind the header of TCP or UDP
	digest  uint64            // see agent.Digest; in runs with message faults
	decided bool
	comment string
	verdict model.Action
}

// Mirror enters a frame that the switch has forwarded already.
func (s *session) Mirror(at time.Time, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	defer s.guard("read a frame from the mirror", "", frame)
	t := s.when(at)
	for _, to := range s.receivers("", frame, false) {
		if to != "" && s.inForceOn(model.Link{Src: s.gate.HostOf([6]byte(frame[6:])), Dst: to}, frame) {
			continue
		}
		s.frames++
		f := model.Frame{Num: s.frames, At: t, To: to, Data: frame}
		step := s.step(f)
		s.ports.passed(&step.Packet, len(step.Packet.Payload), false)
		s.checkGated(t, &step.Packet)
		s.read(t, nil, step, "mirror")
		s.lately.messages(step.New, model.Pass)
		s.rec.Packet(f, comment("mirror", f, step))
	}
}

// Gate enters a frame held at the gate, decides, and releases it or not. It returns
// when the packet is decided. Nothing else may delay a packet.
func (s *session) Gate(host model.NodeID, at time.Time, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		s.passUnread(host, frame)
		return
	}
	defer s.guard("read and decided a frame at the gate", host, frame)
	s.holding = append(s.holding[:0], waiting{host: host, frame: frame})
	t := s.when(at)
	tos := s.receivers(host, frame, true)
	s.holding = s.holding[:0]
	for _, to := range tos {
		s.holding = append(s.holding, waiting{host, frame, to})
	}
	for _, to := range tos {
		s.hold(host, t, frame, to)
	}
}

// hold decides a held frame, or the copy of one for a receiver. The caller holds mu.
func (s *session) hold(host model.NodeID, t time.Duration, frame []byte, to model.NodeID) {
	s.frames++
	f := model.Frame{Num: s.frames, At: t, Host: host, To: to, Data: frame}
	step := s.step(f)
	// A frame without the IP address of a host goes by its hardware addresses: a
	// cut holds for every Ethernet type.
	if step.Packet.From == "" {
		step.Packet.From = host
	}
	if step.Packet.To == "" && len(frame) >= 6 {
		step.Packet.To = s.gate.HostOf([6]byte(frame))
	}
	pkt := &model.HeldPacket{Frame: s.frames, From: step.Packet.From, To: step.Packet.To, Bytes: len(frame), Again: slices.Clone(step.Again)}
	for i := range step.New {
		pkt.Messages = append(pkt.Messages, step.New[i].Num)
	}
	s.spare(pkt, frame)
	s.nodes.slipped(pkt.From, len(step.Packet.Payload))
	if s.faulty {
		pkt.Stream, pkt.Payload = s.pipe.StreamOf(&step.Packet), len(step.Packet.Payload)
	}
	held := &heldFrame{num: s.frames, at: t, data: frame, to: step.Packet.To, packet: step.Packet, payload: len(step.Packet.Payload), held: pkt, verdict: model.DropPacket}
	if s.faulty {
		held.digest = agent.Digest(frame)
	}
	s.withhold(step)
	s.read(t, held, step, "gate")

	if !s.cutting() {
		s.retransmits += len(step.Again)
	}
	decisions := s.event(t, model.Event{Kind: model.EventPacket, Packet: pkt})
	s.carryOut(t, held, decisions)
	s.lately.messages(step.New, held.verdict)

	if held.verdict == model.Pass {
		s.hear(t, pkt)
	}
	for i := range step.New {
		s.metrics.MessageSeen(step.New[i].Type, string(held.verdict))
	}
	s.rec.Packet(f, comment(held.comment, f, step))
	d := s.now() - t
	s.delays = append(s.delays, d)
	s.metrics.GateDelay(s.transport, d)
}

// withhold removes from a step the observations that only the receivers of its messages
// make. They learn them when the packet passes, and that is not decided yet: see hear.
func (s *session) withhold(step *inference.Result) {
	own := step.Observations[:0]
	for _, o := range step.Observations {
		i := slices.IndexFunc(step.New, func(m model.Message) bool { return m.Num == o.Message })
		if i < 0 || step.New[i].To != o.Var.Node || step.New[i].From == o.Var.Node {
			own = append(own, o)
			continue
		}
		if s.withheld == nil {
			s.withheld = map[uint64][]model.Observation{}
		}
		s.withheld[o.Message] = append(s.withheld[o.Message], o)
	}
	step.Observations = own
}

// hear records what the receiver learns from the messages of a packet that passed, including
// messages that it carries again.
func (s *session) hear(at time.Duration, p *model.HeldPacket) {
	for _, nums := range [][]uint64{p.Again, p.Messages} {
		for _, n := range nums {
			if obs := s.withheld[n]; obs != nil {
				delete(s.withheld, n)
				for i := range obs {
					obs[i].At = at
				}
				s.observe(at, nil, obs)
			}
		}
	}
}

// step reads a frame. It reads no messages after the end of the run, while the servers are
// being stopped, or from probe packets for the cuts and faults of a script.
func (s *session) step(f model.Frame) *inference.Result {
	if s.over || s.scn.Strategy == model.StrategyScripted && isProbe(&s.pipe.DecodeOnly(f).Packet) {
		return s.pipe.DecodeOnly(f)
	}
	return s.pipe.Read(f)
}

// flush enters the messages that were still incomplete when the run ended.
func (s *session) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	defer s.guard("ended what it had read in part", "", nil)
	at := s.now()
	s.read(at, nil, s.pipe.Flush(at), "end")
	s.over = true
}

func comment(verdict string, f model.Frame, step *inference.Result) string {
	c := verdict
	if f.To != "" {
		c += "; the copy for " + string(f.To)
	}
	for i := range step.New {
		c += "; m" + strconv.FormatUint(step.New[i].Num, 10) + " " + step.New[i].Type
	}
	for _, n := range step.Again {
		c += "; m" + strconv.FormatUint(n, 10) + " again"
	}
	for _, n := range step.Notes {
		c += "; " + n
	}
	return c
}

// read records what the pipeline found in a frame: first messages, then observations. The
// packet is decided after that.
func (s *session) read(at time.Duration, held *heldFrame, step *inference.Result, verdict string) {
	for i := range step.New {
		m := step.New[i]
		s.messages[m.Type]++
		if held != nil {
			s.askRoles(at, held, &m)
		}
		if held == nil {
			s.metrics.MessageSeen(m.Type, verdict)
		}
		s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventMessage, Message: &m}))
		s.tellWaits(&m)
	}
	s.observe(at, held, step.Observations)
}

// carryOut carries out decisions: a cut or heal first, then the packet. The caller
// holds mu.
func (s *session) carryOut(at time.Duration, held *heldFrame, ds []model.Decision) {
	var passed []*model.HeldPacket // kept packets that pass now
	var acted []model.NodeAction
	var ask []string
	for _, d := range ds {
		if s.lacks(d) {
			continue
		}
		if telling(d) {
			s.rec.Append(rundir.DecisionsFile, d)
		}
		if d.Heal {
			s.heal(d)
		}
		if d.Disk != "" {
			acted = append(acted, s.disk(d)...)
		} else if d.Verb != "" {
			acted = append(acted, s.node(d)...)
		}
		if d.Ask != "" {
			ask = append(ask, d.Ask)
		}
		if d.Cut {
			if d.Verb != "" {
				s.silence(d, held)
			}
			s.cut(at, d, held)
		}
		if d.Step > 0 {
			s.lately.changed(d, &s.engine.Scenario().Steps[d.Step-1])
		}
		switch {
		case d.Action == "":
		case held != nil && d.Frame == held.num && !held.decided:
			s.decide(held, d)
		default:
			if p := s.decideKept(d); p != nil {
				passed = append(passed, p)
			}
		}
	}
	// What receivers learn may bring more decisions, so the decisions so far come first.
	for _, p := range passed {
		s.hear(at, p)
	}
	s.enterActions(acted)
	for _, role := range ask {
		s.askRole(at, nil, role, "a step of the scenario was to begin")
	}
}

// decide carries out the decision on the packet at the gate.
func (s *session) decide(held *heldFrame, d model.Decision) {
	held.decided = true
	held.comment = string(d.Action) + ": " + d.Reason
	if d.Fault != 0 {
		held.comment += fmt.Sprintf(" (fault %d)", d.Fault)
	}
	if d.Class != nil {
		held.comment += " " + d.Class.String()
	}
	s.count(held, d)
	held.verdict = d.Action
	s.bookFault(held, d)
	switch d.Action {
	case model.Pass:
		s.release(held)
	case model.ResetConn:
		s.resetStream(held)
	}
	if d.Action == model.Hold || d.Keep {
		s.keep(held)
	}
	for i := range s.holding {
		if s.holding[i].frame != nil { // they are decided in this order
			s.holding[i].frame = nil
			break
		}
	}
}

func (s *session) release(held *heldFrame) {
	at := s.now()
	s.ports.passed(&held.packet, held.payload, true)
	s.faults.passes(held, at)
	s.keepReleased(held, at)
	if err := s.gate.Release(held.data, held.to); err != nil {
		s.incomplete = append(s.incomplete, fmt.Sprintf("a held packet could not be released: %v", err))
	}
}

// telling says whether a decision is recorded: all are, except plain passes while nothing is
// cut.
func telling(d model.Decision) bool { return d.Reason != model.ReasonOpen }

// violated lists the observed invariants that do not hold at this moment.
func (s *session) violated() []record.Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []record.Violation
	for _, inv := range s.scn.Observe {
		if st, known := s.table.State(&inv, s.now()); known && st.A != st.B && !s.table.Outdated(&inv) {
			out = append(out, record.Violation{Invariant: inv, State: st})
		}
	}
	return out
}

// values lists the last value of every variable, sorted.
func (s *session) values() []model.VarValue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Values()
}
