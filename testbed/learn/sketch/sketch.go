package sketch

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"netsplit/model"
)

// maxPort is the largest number of a port that has a place in the network
// (OpenFlow 1.3 §7.2.1, OFPP_MAX); greater ones stand for something else.
const maxPort = 0xffffff00

// maxObserved bounds how many senders are remembered at one port: more than one is
// already not one host.
const maxObserved = 64

// Port is a port as its switch describes it (OpenFlow 1.3 §7.2.1).
type Port struct {
	Number uint32
	Name   string
	MAC    [6]byte // of the switch's end
	Up     bool
}

// At is one port of one switch.
type At struct {
	Datapath model.DatapathID
	Port     uint32
}

// Sketch is what is known of a network. The zero value is not usable: see New.
type Sketch struct {
	mark  string
	ports map[At]*port
	links map[[2]At]*link // by both ends, the lesser first
}

type port struct {
	Port
	observed  map[[6]byte]*sender
	neighbour string // somebody else's LLDP; "" for none
	many      bool   // more than maxHeard senders
	tagged    bool   // something came with a VLAN tag
}

type sender struct {
	own    []netip.Addr // told by ARP or ND, in the order heard
	passed []netip.Addr // sources of its IP packets beside
	router bool
}

// link is two ports of which one sends to the other: there, from the lesser to
// the greater, and back.
type link struct{ there, back bool }

func (p *port) addressed() bool {
	for _, h := range p.observed {
		if len(h.own)+len(h.passed) > 0 {
			return true
		}
	}
	return false
}

// New begins a sketch. mark makes its LLDP frames its own: a word without
// blanks.
func New(mark string) *Sketch {
	return &Sketch{mark: mark, ports: map[At]*port{}, links: map[[2]At]*link{}}
}

// Ports takes the list of a switch's ports. What was heard at ports that it
// still has stays.
func (s *Sketch) Ports(id model.DatapathID, list []Port) {
	have := map[uint32]bool{}
	for _, p := range list {
		have[p.Number] = true
		s.PortIs(id, p)
	}
	for at := range s.ports {
		if at.Datapath == id && !have[at.Port] {
			s.PortGone(at)
		}
	}
}

// PortIs takes the description of one port.
func (s *Sketch) PortIs(id model.DatapathID, p Port) {
	if p.Number == 0 || p.Number > maxPort {
		return
	}
	s.at(At{Datapath: id, Port: p.Number}).Port = p
}

// PortGone forgets a port and all that was heard there.
func (s *Sketch) PortGone(at At) {
	delete(s.ports, at)
	maps.DeleteFunc(s.links, func(ends [2]At, _ *link) bool { return ends[0] == at || ends[1] == at })
}

func (s *Sketch) at(at At) *port {
	p := s.ports[at]
	if p == nil {
		p = &port{Port: Port{Number: at.Port}, observed: map[[6]byte]*sender{}}
		s.ports[at] = p
	}
	return p
}

// Observe takes a frame that came in at a port, and says what is new, as a line
// for people; "" if nothing is.
func (s *Sketch) Observe(at At, b []byte) string {
	f, ok := parse(b)
	if !ok || at.Port == 0 || at.Port > maxPort {
		return ""
	}
	p := s.at(at)
	if f.typ == typeLLDP {
		return s.neighbour(at, p, f)
	}
	if f.src == Source {
		return ""
	}
	p.tagged = p.tagged || f.vlan
	h := p.observed[f.src]
	if h == nil {
		if len(p.observed) >= maxObserved {
			p.many = true
			return ""
		}
		h = &sender{}
		p.observed[f.src] = h
	}
	news := len(h.own)+len(h.passed) == 0
	h.router = h.router || f.router
	for _, a := range f.own {
		if !slices.Contains(h.own, a) && len(h.own) < maxObserved {
			h.own, news = append(h.own, a), true
			h.passed = slices.DeleteFunc(h.passed, func(o netip.Addr) bool { return o == a })
		}
	}
	if a := f.passed; a.IsValid() && !slices.Contains(h.own, a) && !slices.Contains(h.passed, a) && len(h.passed) < maxObserved {
		h.passed, news = append(h.passed, a), true
	}
	if !news || len(h.own)+len(h.passed) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s has %s", s.Where(at), mac(f.src), join(slices.Concat(h.own, h.passed)))
}

func (s *Sketch) neighbour(at At, p *port, f frame) string {
	from, other := s.lldp(f.src, f.body)
	if other != "" {
		if p.neighbour != "" {
			return ""
		}
		p.neighbour = other
		return fmt.Sprintf("%s: %s", s.Where(at), other)
	}
	ends := [2]At{from, at}
	there := true
	if comparePorts(from, at) > 0 {
		ends, there = [2]At{at, from}, false
	}
	l := s.links[ends]
	fresh := l == nil
	if fresh {
		l = &link{}
		s.links[ends] = l
	}
	l.there, l.back = l.there || there, l.back || !there
	if !fresh {
		return ""
	}
	return fmt.Sprintf("link: %s - %s", s.Where(ends[0]), s.Where(ends[1]))
}

// Where names a port for people.
func (s *Sketch) Where(at At) string {
	if p := s.ports[at]; p != nil && p.Name != "" {
		return fmt.Sprintf("port %d (%s) of %s", at.Port, printable([]byte(p.Name)), at.Datapath)
	}
	return fmt.Sprintf("port %d of %s", at.Port, at.Datapath)
}

// Silent lists the ports of a switch that are up and where no address was heard
// yet, nor another switch.
func (s *Sketch) Silent(id model.DatapathID) []uint32 {
	var out []uint32
	for at, p := range s.ports {
		if at.Datapath == id && p.Up && !p.addressed() && p.neighbour == "" && !s.linked(at) {
			out = append(out, at.Port)
		}
	}
	slices.Sort(out)
	return out
}

// PortsUp lists the ports of a switch that are up.
func (s *Sketch) PortsUp(id model.DatapathID) []uint32 {
	var out []uint32
	for at, p := range s.ports {
		if at.Datapath == id && p.Up {
			out = append(out, at.Port)
		}
	}
	slices.Sort(out)
	return out
}

func (s *Sketch) linked(at At) bool { return len(s.linksAt(at)) > 0 }

// linksAt lists the far ends of a port's links, sorted.
func (s *Sketch) linksAt(at At) []At {
	var out []At
	for ends := range s.links {
		switch at {
		case ends[0]:
			out = append(out, ends[1])
		case ends[1]:
			out = append(out, ends[0])
		}
	}
	slices.SortFunc(out, comparePorts)
	return out
}

// Loop says whether frames could go round by way of a switch, as far as links
// are known.
func (s *Sketch) Loop(id model.DatapathID) bool {
	// The switches that hang together with it have as many links as a tree has,
	// one less than there are switches, or there is a way round.
	with := map[model.DatapathID]bool{id: true}
	for grown := true; grown; {
		grown = false
		for ends := range s.links {
			a, b := ends[0].Datapath, ends[1].Datapath
			if with[a] != with[b] {
				with[a], with[b], grown = true, true, true
			}
		}
	}
	links := 0
	for ends := range s.links {
		if with[ends[0].Datapath] {
			links++
		}
	}
	return links >= len(with)
}

// Counts says how much was found: ports that are up, senders with an address,
// links.
func (s *Sketch) Counts() (up, hosts, links int) {
	for at, p := range s.ports {
		if p.Up {
			up++
		}
		for _, h := range p.observed {
			if len(h.own)+len(h.passed) > 0 && !s.linked(at) {
				hosts++
			}
		}
	}
	return up, hosts, len(s.links)
}

func comparePorts(a, b At) int {
	return cmp.Or(cmp.Compare(a.Datapath, b.Datapath), cmp.Compare(a.Port, b.Port))
}

func join(list []netip.Addr) string {
	text := ""
	for i, a := range list {
		if i > 0 {
			text += ", "
		}
		text += a.String()
	}
	return text
}
