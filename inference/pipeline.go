package inference

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"netsplit/inference/classify"
	"netsplit/inference/packet"
	"netsplit/inference/state"
	"netsplit/inference/stream"
	"netsplit/model"
)

// Config says what the pipeline reads.
type Config struct {
	// Hosts own the addresses; frames of other addresses are read too, their
	// hosts stay "".
	Hosts []model.TestbedHost
	// Nodes are the hosts that run server processes.
	Nodes []model.NodeID
	// Protocols name the dissector per port; other ports get the fallback.
	Protocols []model.Protocol
	// Variables are read out of messages and probe answers.
	Variables []model.Variable
}

// Result is what one frame brought. It is valid until the next call of Read,
// DecodeOnly or Flush; messages that are kept longer are copied by the caller (their Fields
// are not reused).
type Result struct {
	Packet model.Packet
	// New are the messages whose type this packet made certain or which it
	// completed, in the order of recognition, with their numbers set.
	New []model.Message
	// Again are the numbers of the messages of which this packet carries bytes
	// once more, ascending.
	Again []uint64
	// Observations are what the new messages revealed, in their order.
	Observations []model.Observation
	// Notes say what was wrong: malformed packets, gaps, copies that differ.
	Notes []string
}

// Pipeline reads frames. It is not safe for concurrent use.
type Pipeline struct {
	hosts    map[netip.Addr]model.NodeID
	tcp, udp map[uint16]model.Protocol
	readers  map[uint16]func(dir int, payload []byte) classify.Unit // of udp; 0 is of all other ports
	decoder  *packet.Decoder
	table    *stream.Table
	words    map[port]*classify.Vocabulary // of each declared port, and of all others
	extract  *state.Extractor

	step    Result
	number  uint64              // of the last message
	before  uint64              // number as it was before the current frame
	frame   uint64              // of the current frame
	copy    bool                // the current frame is one receiver's copy
	at      time.Duration       // of the current frame
	current *conn               // whose dissector runs
	emit    func(classify.Unit) // p.unit, bound once
}

// New checks the configuration and returns an empty pipeline. An error names
// the protocol or variable that is wrong.
func New(cfg Config) (*Pipeline, error) {
	p := &Pipeline{
		hosts: map[netip.Addr]model.NodeID{},
		tcp:   map[uint16]model.Protocol{},
		udp:   map[uint16]model.Protocol{},
		words: map[port]*classify.Vocabulary{},

		readers: map[uint16]func(int, []byte) classify.Unit{0: classify.Datagrams(model.Protocol{})},
	}
	for _, h := range cfg.Hosts {
		p.hosts[h.IP] = h.Name
	}
	for _, pr := range cfg.Protocols {
		ports := p.tcp
		switch pr.Transport {
		case "tcp":
		case "udp":
			ports = p.udp
		default:
			return nil, fmt.Errorf("inference: protocol on port %d: transport %q: use tcp or udp", pr.Port, pr.Transport)
		}
		if _, err := classify.New(pr); err != nil {
			return nil, fmt.Errorf("inference: %w", err)
		}
		if _, twice := ports[pr.Port]; twice {
			return nil, fmt.Errorf("inference: %s port %d is declared twice: keep one", pr.Transport, pr.Port)
		}
		ports[pr.Port] = pr
		if pr.Transport == "udp" {
			p.readers[pr.Port] = classify.Datagrams(pr)
		}
	}
	var err error
	if p.extract, err = state.NewExtractor(cfg.Hosts, cfg.Nodes, cfg.Variables); err != nil {
		return nil, fmt.Errorf("inference: %w", err)
	}
	p.table = stream.NewTable(func(port uint16) bool { _, ok := p.tcp[port]; return ok })
	p.decoder = packet.NewDecoder(p.hostOf)
	p.emit = p.unit
	return p, nil
}

func (p *Pipeline) hostOf(a netip.Addr) (model.NodeID, bool) {
	h, ok := p.hosts[a]
	return h, ok
}

// Read reads one frame. f.Data is not kept.
func (p *Pipeline) Read(f model.Frame) *Result {
	p.begin(f.Num, f.At)
	s := &p.step
	p.decode(f)
	if s.Packet.Note != "" {
		p.note("frame %d: %s", f.Num, s.Packet.Note)
	}
	if f.Host != "" && s.Packet.From != f.Host && s.Packet.Src.IsValid() {
		p.note("frame %d: came from %s with the source address %s of %q", f.Num, f.Host, s.Packet.Src.Addr(), s.Packet.From)
	}
	switch s.Packet.Proto {
	case model.ProtoTCP:
		p.events(p.table.Step(&s.Packet))
		p.tagged(&s.Packet)
	case model.ProtoUDP:
		p.datagram(&s.Packet)
	case model.ProtoARP:
		p.arp(&s.Packet)
	}
	return p.end()
}

// DecodeOnly decodes the addresses of a frame and reads no message from it. Use it after
// Flush: Read would take the rest of a connection for a new one.
func (p *Pipeline) DecodeOnly(f model.Frame) *Result {
	p.begin(f.Num, f.At)
	p.decode(f)
	return p.end()
}

func (p *Pipeline) decode(f model.Frame) {
	p.step.Packet, p.copy = p.decoder.Decode(f), f.To != ""
	if p.copy {
		p.step.Packet.To = f.To
	}
}

// Flush ends all connections, as at the end of a run or a capture, and returns
// the messages that were incomplete until then, as they stand. The pipeline is
// empty afterwards; numbers go on.
func (p *Pipeline) Flush(at time.Duration) *Result {
	p.begin(p.frame, at)
	p.step.Packet = model.Packet{}
	p.events(p.table.Flush())
	return p.end()
}

// Probe turns the answer of a variable's probe into observations; see
// state.Extractor.
func (p *Pipeline) Probe(variable string, source int, host model.NodeID, at time.Duration, answer string) []model.Observation {
	return p.extract.Probe(variable, source, host, at, answer)
}

func (p *Pipeline) begin(frame uint64, at time.Duration) {
	p.frame, p.at, p.before = frame, at, p.number
	s := &p.step
	s.New, s.Again, s.Observations, s.Notes = s.New[:0], s.Again[:0], s.Observations[:0], s.Notes[:0]
}

func (p *Pipeline) end() *Result {
	s := &p.step
	slices.Sort(s.Again)
	s.Again = slices.Compact(s.Again)
	// Bytes that waited and came again with those before them are part of a
	// message that is new only now.
	s.Again = slices.DeleteFunc(s.Again, func(n uint64) bool { return n > p.before })
	return s
}

func (p *Pipeline) note(format string, args ...any) {
	p.step.Notes = append(p.step.Notes, fmt.Sprintf(format, args...))
}

// message numbers a message, records it and reads it for variables.
func (p *Pipeline) message(m model.Message) uint64 {
	p.number++
	m.Num, m.Frame, m.At = p.number, p.frame, p.at
	for i, f := range m.Fields { // JSON keeps valid UTF-8 only
		if !utf8.ValidString(f.Name) || !utf8.ValidString(f.Value) {
			m.Fields[i] = model.Field{Name: strings.ToValidUTF8(f.Name, "\uFFFD"), Value: strings.ToValidUTF8(f.Value, "\uFFFD")}
		}
	}
	s := &p.step
	s.New = append(s.New, m)
	s.Observations = append(s.Observations, p.extract.Message(&s.New[len(s.New)-1])...)
	return m.Num
}

// port names a protocol; 0 stands for all that are not declared.
type port struct {
	transport string
	number    uint16
}

// vocabulary holds the types of the protocol on a port.
func (p *Pipeline) vocabulary(transport string, number uint16, declared bool) *classify.Vocabulary {
	if !declared {
		number = 0
	}
	k := port{transport, number}
	if p.words[k] == nil {
		p.words[k] = &classify.Vocabulary{}
	}
	return p.words[k]
}

// datagram reads a UDP packet: one datagram, one message. The protocol is that
// of the port it goes to, else of the port it comes from.
func (p *Pipeline) datagram(pk *model.Packet) {
	dir, read := 0, p.readers[pk.Dst.Port()]
	pr, ok := p.udp[pk.Dst.Port()]
	if !ok {
		dir, read = 1, p.readers[pk.Src.Port()]
		if pr, ok = p.udp[pk.Src.Port()]; !ok {
			dir, read = 0, p.readers[0]
			pr = model.Protocol{Port: pk.Dst.Port(), Transport: "udp", Dissector: classify.NameFallback}
		}
	}
	if pk.Fragment {
		p.note("frame %d: datagram is fragmented: typed by its first fragment", p.frame)
	}
	u := read(dir, pk.Payload)
	if pk.Fragment || pk.Note != "" { // a part of it is missing
		u.Fields = append(u.Fields, model.Field{Name: "incomplete", Value: "true"})
	}
	u.Type = p.vocabulary("udp", pr.Port, ok).Type(&u)
	p.message(model.Message{
		From: pk.From, To: pk.To, FromPort: pk.Src.Port(), ToPort: pk.Dst.Port(),
		Stream: p.stream("udp", pk.Src.String(), pk.Dst.String()),
		Bytes:  u.Bytes, Type: u.Type, Fields: u.Fields,
	})
}

// stream names the direction of packets without a connection. The name of a multicast copy
// includes its receiver.
func (p *Pipeline) stream(proto, src, dst string) string {
	s := proto + " " + src + ">" + dst
	if p.copy {
		s += " to " + string(p.step.Packet.To)
	}
	return s
}

// arp reads an ARP request; each is a new message.
func (p *Pipeline) arp(pk *model.Packet) {
	if pk.ARPOp != 1 {
		return
	}
	p.message(model.Message{
		From: pk.From, To: pk.To, Type: "arp who-has",
		Stream: p.stream("arp", pk.Src.Addr().String(), pk.Dst.Addr().String()),
	})
}

// synType names the port that is asked for. Undeclared ports may be ephemeral: they share
// the type "tcp syn" where there are too many.
func (p *Pipeline) synType(number uint16) string {
	u := classify.Unit{Type: "tcp syn :" + strconv.Itoa(int(number))}
	if _, declared := p.tcp[number]; !declared {
		u.Broad = "tcp syn"
	}
	return p.vocabulary("syn", 0, true).Type(&u)
}
