package switchtest

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

// Config of a model switch.
type Config struct {
	Datapath model.DatapathID
	Ports    []uint32
	Names    map[uint32]string // of ports; a port need not have one
	Limit    int               // rules per table; 0: no limit
	Now      func() time.Time  // default time.Now
	PartSize int               // rules per part of a multipart reply; default 2
	Only10   bool              // speaks OpenFlow 1.0 only, like Open vSwitch so set
	Mute     bool              // answers nothing after the handshake, not even echo
	NoRoles  bool              // has no controller roles
	Meters   uint32            // the greatest number of a meter; 0: it has none
	Tables   uint8             // how many it has; default 254
	// Refuse says which messages are refused, and how; nil for the others.
	Refuse func(of13.Message) *of13.Error
	// Ignore says which messages are neither carried out nor answered.
	Ignore func(of13.Message) bool
	// Delay says how long the answers to a message take; what it asks for is done
	// at once. Nothing else waits for them.
	Delay func(of13.Message) time.Duration
}

// Output is one frame that leaves the switch.
type Output struct {
	Port   uint32 // of13.PortController: to the controller
	Frame  []byte
	InPort uint32
	Cookie uint64 // of the rule; only with PortController
	Table  uint8  // of the rule; only with PortController
}

// Switch is a model switch.
type Switch struct {
	cfg Config

	mu    sync.Mutex // guards the fields below
	flows []*entry
	sent  []Output // by packet-outs
	queue [][]byte // to the controller
	wake  chan struct{}
	xid   uint32
	seen  []of13.Message // everything the controller sent
	role  of13.Role
	// generation is that of the last master; all ones before the first, as
	// Open vSwitch has it.
	generation uint64
	drops      map[uint32]uint64
	undefined  []string           // see Undefined
	meters     []of13.MeterConfig // by number
}

// New makes a switch with empty tables.
func New(cfg Config) *Switch {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.PartSize == 0 {
		cfg.PartSize = 2
	}
	if cfg.Tables == 0 {
		cfg.Tables = 254
	}
	cfg.Ports, cfg.Names = slices.Clone(cfg.Ports), maps.Clone(cfg.Names)
	return &Switch{cfg: cfg, wake: make(chan struct{}, 1), role: of13.RoleEqual, generation: ^uint64(0)}
}

// Do carries out a message and returns the answers to it, without a
// connection.
func (s *Switch) Do(m of13.Message) []of13.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do(m)
}

// Inject lets a frame come in on a port and returns where it leaves. What goes
// to the controller is also sent there if one is connected.
func (s *Switch) Inject(port uint32, frame []byte) []Output {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.expire())
	out := s.walk(&packet{frame: frame, inPort: of13.PortNo(port)})
	s.toController(out)
	return out
}

func (s *Switch) toController(out []Output) {
	for _, o := range out {
		if o.Port != uint32(of13.PortController) {
			continue
		}
		in := &of13.PacketIn{BufferID: of13.NoBuffer, TotalLen: uint16(len(o.Frame)), Reason: of13.ReasonAction,
			TableID: of13.TableID(o.Table), Cookie: o.Cookie, Data: o.Frame}
		if in.SetMatch(of13.Match{of13.InPort(of13.PortNo(o.InPort))}) == nil {
			s.push(in, 0)
		}
	}
}

// Undefined tells, and forgets, where it mattered which of several rules of one
// priority took a packet: that is "explicitly undefined" (5.3), and a real switch
// may choose another one than this.
func (s *Switch) Undefined() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.undefined
	s.undefined = nil
	return out
}

// Flows lists the rules that have not expired, in order of installation.
func (s *Switch) Flows() []of13.FlowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.expire())
	out := make([]of13.FlowStats, len(s.flows))
	for i, e := range s.flows {
		out[i] = e.FlowStats
	}
	return out
}

// Sent returns, and forgets, what packet-outs sent.
func (s *Switch) Sent() []Output {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

// Drop counts frames that a port could not send.
func (s *Switch) Drop(port uint32, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops == nil {
		s.drops = map[uint32]uint64{}
	}
	s.drops[port] += n
}

// Received lists the messages that came from the controller.
func (s *Switch) Received() []of13.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Push sends a message to the controller, if one is connected.
func (s *Switch) Push(m of13.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(m, 0)
}

// AddPort gives the switch a port, as when a cable's other end is found, and tells
// the controller (OpenFlow 1.3 §7.4.3).
func (s *Switch) AddPort(no uint32, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Names == nil {
		s.cfg.Names = map[uint32]string{}
	}
	s.cfg.Ports = append(s.cfg.Ports, no)
	s.cfg.Names[no] = name
	s.push(&of13.PortStatus{Reason: of13.PortAdded, Port: of13.Port{No: of13.PortNo(no), Name: name}}, 0)
}

// RemovePort takes a port away and tells the controller. Rules that name it stay.
func (s *Switch) RemovePort(no uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Ports = slices.DeleteFunc(s.cfg.Ports, func(p uint32) bool { return p == no })
	s.push(&of13.PortStatus{Reason: of13.PortDeleted, Port: of13.Port{No: of13.PortNo(no), Name: s.cfg.Names[no]}}, 0)
}

// Reset empties the tables and forgets the meters, as a restart does.
func (s *Switch) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows, s.meters = nil, nil
}

func (s *Switch) tell(removed []*of13.FlowRemoved) {
	for _, r := range removed {
		s.push(r, 0)
	}
}

// push queues a message to the controller; s.mu is held. A slave is told of
// ports only (7.3.10).
func (s *Switch) push(m of13.Message, xid uint32) {
	if t := m.MsgType(); s.role == of13.RoleSlave && (t == of13.TypePacketIn || t == of13.TypeFlowRemoved) {
		return
	}
	if xid == 0 {
		s.xid++
		xid = 0x8000_0000 | s.xid
	}
	b, err := of13.Append(nil, m, xid)
	if err != nil {
		panic(err) // a test asked for a message that cannot be
	}
	s.queue = append(s.queue, b)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// do carries out one message; s.mu is held.
func (s *Switch) do(m of13.Message) []of13.Message {
	s.tell(s.expire())
	if s.cfg.Ignore != nil && s.cfg.Ignore(m) {
		return nil
	}
	if s.cfg.Refuse != nil {
		if e := s.cfg.Refuse(m); e != nil {
			return []of13.Message{e}
		}
	}
	if s.role == of13.RoleSlave && changes(m) {
		return []of13.Message{&of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestIsSlave}}
	}
	switch m := m.(type) {
	case *of13.EchoRequest:
		return []of13.Message{&of13.EchoReply{Data: m.Data}}
	case *of13.FeaturesRequest:
		return []of13.Message{&of13.FeaturesReply{DatapathID: uint64(s.cfg.Datapath), Tables: s.cfg.Tables,
			Capabilities: of13.CapFlowStats | of13.CapPortStats}}
	case *of13.BarrierRequest:
		return []of13.Message{&of13.BarrierReply{}}
	case *of13.RoleRequest:
		return []of13.Message{s.takeRole(m)}
	case *of13.FlowMod:
		e, removed := s.flowMod(m)
		s.tell(removed)
		if e != nil {
			return []of13.Message{e}
		}
	case *of13.MeterMod:
		if e := s.meterMod(m); e != nil {
			return []of13.Message{e}
		}
	case *of13.PacketOut:
		out := s.apply(&packet{frame: m.Data, inPort: m.InPort}, m.Actions, nil)
		s.toController(out)
		s.sent = append(s.sent, out...)
	case *of13.MultipartRequest:
		return s.multipart(m)
	}
	return nil
}

func (s *Switch) multipart(m *of13.MultipartRequest) []of13.Message {
	reply := func(body of13.MultipartBody) *of13.MultipartReply {
		return &of13.MultipartReply{Type: m.Type, Body: body}
	}
	switch body := m.Body.(type) {
	case *of13.FlowStatsRequest:
		var parts []of13.Message
		var part of13.FlowStatsReply
		var sum of13.AggregateReply
		for _, e := range s.flows {
			if (body.TableID != of13.TableAll && body.TableID != e.TableID) ||
				(e.Cookie^body.Cookie)&body.CookieMask != 0 || !covers(body.Match, e.Match) {
				continue
			}
			if m.Type == of13.MultipartAggregate {
				sum.Flows++
				sum.Packets += e.Packets
				sum.Bytes += e.Bytes
				continue
			}
			if len(part) == s.cfg.PartSize {
				r := reply(part)
				r.Flags = of13.MultipartMore
				parts, part = append(parts, r), nil
			}
			part = append(part, e.FlowStats)
		}
		if m.Type == of13.MultipartAggregate {
			return []of13.Message{reply(&sum)}
		}
		return append(parts, reply(part))
	}
	if body := s.meterReply(m); body != nil {
		return []of13.Message{reply(body)}
	}
	switch m.Type {
	case of13.MultipartDesc:
		return []of13.Message{reply(&of13.DescReply{Manufacturer: "netsplit", Hardware: "model", Software: "switchtest"})}
	case of13.MultipartPortDesc:
		var ports of13.PortDescReply
		for _, p := range s.cfg.Ports {
			ports = append(ports, of13.Port{No: of13.PortNo(p), Name: s.cfg.Names[p]})
		}
		return []of13.Message{reply(ports)}
	case of13.MultipartPortStats:
		stats := of13.PortStatsReply{}
		for _, p := range s.cfg.Ports {
			stats = append(stats, of13.PortStats{Port: of13.PortNo(p), TxDropped: s.drops[p], TxErrors: ^uint64(0)}) // all ones: not counted
		}
		return []of13.Message{reply(stats)}
	}
	return []of13.Message{&of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBadMultipart}}
}

// Serve speaks OpenFlow over conn until it ends. A second Serve on the same
// switch is a reconnect; one at a time.
func (s *Switch) Serve(conn net.Conn) error {
	defer conn.Close()
	s.mu.Lock()
	s.queue, s.role = nil, of13.RoleEqual
	s.push(s.hello(), 1)
	s.mu.Unlock()
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		s.write(conn, done)
	}()
	err := s.read(conn)
	close(done)
	writer.Wait()
	return err
}

func (s *Switch) hello() *of13.Hello {
	if s.cfg.Only10 {
		return &of13.Hello{Version: 1}
	}
	return of13.NewHello(of13.Version)
}

func (s *Switch) read(conn net.Conn) error {
	in := bufio.NewReader(conn)
	var buf []byte
	greeted := false
	for {
		b, err := of13.ReadFrame(in, buf)
		if err != nil {
			return err
		}
		buf = b
		m, xid, err := of13.Parse(b)
		s.mu.Lock()
		var pe *of13.ParseError
		switch {
		case errors.As(err, &pe):
			s.push(pe.Reply(b), xid)
		case s.cfg.Only10:
			s.push(&of13.Error{Type: of13.ErrTypeHelloFailed, Data: []byte("We support version 0x01, you support version 0x04, no common versions.")}, xid)
			s.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			return errors.New("no common version")
		case s.cfg.Mute && greeted:
		default:
			s.seen = append(s.seen, m)
			for _, a := range s.do(m) {
				if e, ok := a.(*of13.Error); ok {
					e.Data = slices.Clone(b)
				}
				s.answer(m, a, xid)
			}
			r, is := m.(*of13.RoleRequest)
			greeted = greeted || is && r.Role != of13.RoleNoChange
		}
		s.mu.Unlock()
	}
}

// answer queues an answer to m, or has it queued later; s.mu is held.
func (s *Switch) answer(m, a of13.Message, xid uint32) {
	var d time.Duration
	if s.cfg.Delay != nil {
		d = s.cfg.Delay(m)
	}
	if d <= 0 {
		s.push(a, xid)
		return
	}
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.push(a, xid)
	})
}

// write sends what is queued until done; the end of the connection ends it
// too.
func (s *Switch) write(conn net.Conn, done chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-s.wake:
		}
		s.mu.Lock()
		q := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, b := range q {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
}
