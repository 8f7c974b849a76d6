package sketch

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/kballard/go-shellquote"
	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

// Options of a testbed file.
type Options struct {
	Name string // of the testbed
	// Exec is the command prefix of every host, with the template fields of
	// ExecVars: when they are filled in it is split into words as sh does, quotes and
	// backslashes included. "": DefaultExec, as a guess.
	Exec string
	// PortNames has ports written by name, where a name will do.
	PortNames bool
}

// DefaultExec is the guess at how a command is run on a host.
const DefaultExec = "ssh root@{{.IP}}"

// ExecVars is what Options.Exec can name.
type ExecVars struct {
	Name, IP, MAC  string
	PortName       string
	Datapath, Port string
}

// anyHost is filled in to see whether Options.Exec will do.
var anyHost = ExecVars{Name: "n1", IP: "192.0.2.1", MAC: "02:00:00:00:00:01", PortName: "n1", Datapath: "0000000000000001", Port: "1"}

// File is a testbed file.
type File struct {
	Testbed model.Testbed
	Text    []byte // with comments
	Decide  int    // remarks that a person must decide
}

// decide begins a remark that a person must decide.
const decide = "DECIDE: "

// writer gathers the file.
type writer struct {
	*Sketch
	o       Options
	exec    *template.Template
	tb      model.Testbed
	hosts   bytes.Buffer // entries and remarks, in the order of ports
	more    bytes.Buffer // the same for links
	decide  int
	names   map[string]int        // how many ports have a name
	holders map[netip.Addr]string // which port has an address
}

// File makes the testbed file of what is known now. It fails only for options that
// will not do, whatever was heard; whether there is any host is for the caller to see.
func (s *Sketch) File(o Options) (File, error) {
	guess := o.Exec == ""
	if guess {
		o.Exec = DefaultExec
	}
	t, err := template.New("exec").Option("missingkey=error").Parse(o.Exec)
	if err == nil {
		_, err = words(t, anyHost)
	}
	if err != nil {
		return File{}, fmt.Errorf("exec %q: want words as a shell reads them, with template fields: known are .Name, .IP, .MAC, .PortName, .Datapath and .Port: %w", o.Exec, err)
	}
	w := &writer{Sketch: s, o: o, exec: t, tb: model.Testbed{Name: o.Name}, names: map[string]int{}, holders: map[netip.Addr]string{}}
	at := make([]At, 0, len(s.ports))
	for a, p := range s.ports {
		at = append(at, a)
		w.names[clean(p.Name)]++
	}
	slices.SortFunc(at, comparePorts)
	for _, a := range at {
		w.port(a, s.ports[a])
	}
	w.links()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Learned from the switches: %d hosts, %d links.\n", len(w.tb.Hosts), len(w.tb.Links))
	out.WriteString("# Hosts are named after their ports.")
	if guess {
		out.WriteString(" exec, the command that runs another on the host, is a guess.")
	}
	out.WriteByte('\n')
	if w.decide > 0 {
		fmt.Fprintf(&out, "# %d comments begin with %q: somebody who knows the network must decide.\n", w.decide, strings.TrimSpace(decide))
	}
	name, err := yaml.Marshal(map[string]string{"name": o.Name})
	if err != nil {
		return File{}, err
	}
	out.Write(name)
	out.WriteString("hosts:\n")
	out.Write(w.hosts.Bytes())
	if w.more.Len() > 0 {
		if len(w.tb.Links) > 0 {
			out.WriteString("links:\n")
		}
		out.Write(w.more.Bytes())
	}
	return File{Testbed: w.tb, Text: out.Bytes(), Decide: w.decide}, nil
}

func (w *writer) remark(b *bytes.Buffer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, decide) {
		w.decide++
	}
	fmt.Fprintf(b, "  # %s\n", strings.ReplaceAll(text, "\n", " "))
}

// port writes what is at one port: a host, or why there is none.
func (w *writer) port(at At, p *port) {
	where := w.Where(at)
	if w.linked(at) {
		return
	}
	if p.neighbour != "" {
		w.remark(&w.hosts, decide+"%s: something other than a host is there: %s.", where, p.neighbour)
		return
	}
	macs := sortedMACs(p.observed)
	switch {
	case len(macs) == 0 && p.Up:
		w.remark(&w.hosts, "%s: no packets came. A host there must send something, such as a ping.", where)
		return
	case len(macs) == 0:
		return
	case len(macs) > 1:
		w.several(where, at, p, macs)
		return
	}
	m := macs[0]
	h := p.observed[m]
	var also []string // ports that are one host's as this one is
	for _, o := range w.portsOf(m) {
		if o != at && len(w.ports[o].observed) == 1 {
			also = append(also, w.Where(o))
		}
	}
	ip, why := choose(h)
	var doubts []string
	if len(also) > 0 {
		doubts = append(doubts, fmt.Sprintf("%s was also seen at %s: did the host move, or do both ports lead to it?", mac(m), strings.Join(also, " and ")))
	}
	if why != "" {
		doubts = append(doubts, why)
	}
	if other := w.holders[ip]; ip.IsValid() && other != "" {
		doubts = append(doubts, fmt.Sprintf("%s was also seen at %s, from another mac: two hosts with one address?", ip, other))
	}
	entry, err := w.entry(at, p, m, ip)
	if err != nil { // others' words may be right, and what was heard is not to be lost
		doubts = append(doubts, err.Error())
	}
	if len(doubts) > 0 {
		w.remark(&w.hosts, decide+"%s: %s", where, strings.Join(doubts, "; "))
		w.entryAs(entry, "  # ")
		return
	}
	w.holders[ip] = where
	w.notes(where, p, h, ip)
	w.tb.Hosts = append(w.tb.Hosts, entry)
	w.entryAs(entry, "  ")
}

// notes writes what else is known of a host that is taken.
func (w *writer) notes(where string, p *port, h *sender, ip netip.Addr) {
	w.remark(&w.hosts, "%s", where)
	if generic(p.Name) {
		w.remark(&w.hosts, decide+"the port's name does not say what the host is called.")
	}
	if !p.Up {
		w.remark(&w.hosts, decide+"the port is down now.")
	}
	if p.tagged {
		w.remark(&w.hosts, "It sends frames with a VLAN tag.")
	}
	rest := slices.DeleteFunc(slices.Clone(h.own), func(a netip.Addr) bool { return a == ip || a.IsLinkLocalUnicast() })
	if len(rest) > 0 {
		w.remark(&w.hosts, "It has %s, too.", join(rest))
	}
	passed := slices.DeleteFunc(slices.Clone(h.passed), func(a netip.Addr) bool { return a == ip || a.IsLinkLocalUnicast() })
	if h.router || len(passed) > 0 {
		of := ""
		if len(passed) > 0 {
			of = ", and sends packets of " + join(passed[:min(len(passed), 3)])
		}
		w.remark(&w.hosts, decide+"it may be a router%s.", of)
	}
}

func (w *writer) several(where string, at At, p *port, macs [][6]byte) {
	elsewhere := 0
	var observed []string
	for _, m := range macs {
		if len(w.portsOf(m)) > 1 {
			elsewhere++
		}
		if len(observed) < 4 {
			observed = append(observed, strings.TrimSpace(mac(m)+" "+join(slices.Concat(p.observed[m].own, p.observed[m].passed))))
		}
	}
	number := fmt.Sprint(len(macs))
	if p.many {
		number = "more than " + number
	}
	guess := "another switch or a router is behind it, or one host with several addresses"
	if elsewhere > 0 {
		guess = fmt.Sprintf("%d of them were also seen at other ports: it may lead to one of these switches through something that LLDP does not cross; then it belongs under links", elsewhere)
	}
	if len(macs) > len(observed) {
		observed = append(observed, "…")
	}
	w.remark(&w.hosts, decide+"%s: %s MAC addresses were seen (%s): %s.", where, number, strings.Join(observed, "; "), guess)
}

func (w *writer) portsOf(m [6]byte) []At {
	var out []At
	for at, p := range w.ports {
		if p.observed[m] != nil && !w.linked(at) {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, comparePorts)
	return out
}

// choose gives the address by which others are to reach a host, an IPv4 address
// as long as the rules want one, or says why there is none.
func choose(h *sender) (netip.Addr, string) {
	fits := func(a netip.Addr) bool { return a.Is4() && !a.IsLinkLocalUnicast() }
	if i := slices.IndexFunc(h.own, fits); i >= 0 {
		return h.own[i], ""
	}
	all := slices.DeleteFunc(slices.Clone(h.passed), func(a netip.Addr) bool { return !fits(a) })
	switch {
	case len(all) == 1:
		return all[0], ""
	case len(all) > 1:
		return netip.Addr{}, fmt.Sprintf("its packets have the addresses %s: a router?", join(all[:min(len(all), 4)]))
	case len(h.own)+len(h.passed) > 0:
		return netip.Addr{}, fmt.Sprintf("only %s was seen, but netsplit serve needs an IPv4 address by which others reach the host: have it ping by that", join(slices.Concat(h.own, h.passed)))
	}
	return netip.Addr{}, "it sends packets, but no address of it was seen: have it ping another host"
}

// portOf is how a port is written: by name if that is asked for and no other
// port of its switch has the name, else by number.
func (w *writer) portOf(at At) model.Port {
	name := ""
	if p := w.ports[at]; p != nil {
		name = p.Name
	}
	if !w.o.PortNames || (model.Port{Name: name}).Validate() != nil {
		return model.Port{Number: at.Port}
	}
	for o, p := range w.ports {
		if o != at && o.Datapath == at.Datapath && p.Name == name {
			return model.Port{Number: at.Port}
		}
	}
	return model.Port{Name: name}
}

func (w *writer) end(at At) model.SwitchPort {
	return model.SwitchPort{Datapath: at.Datapath, Port: w.portOf(at)}
}

func (w *writer) entry(at At, p *port, m [6]byte, ip netip.Addr) (model.TestbedHost, error) {
	h := model.TestbedHost{Name: model.NodeID(w.name(at, p)), Datapath: at.Datapath, Port: w.portOf(at), MAC: mac(m), IP: ip}
	v := ExecVars{Name: string(h.Name), MAC: h.MAC, PortName: p.Name, Datapath: at.Datapath.String(), Port: fmt.Sprint(at.Port)}
	if ip.IsValid() {
		v.IP = ip.String()
	}
	var err error
	if h.Exec, err = words(w.exec, v); err != nil {
		return h, fmt.Errorf("exec %q does not do here: %w", w.o.Exec, err)
	}
	return h, nil
}

func words(t *template.Template, v ExecVars) ([]string, error) {
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return nil, err
	}
	out, err := shellquote.Split(b.String())
	switch {
	case err != nil:
		return nil, err
	case len(out) == 0 || out[0] == "":
		return nil, errors.New("it gives no command")
	}
	return out, nil
}

func (w *writer) entryAs(h model.TestbedHost, before string) {
	text, err := yaml.Marshal([]model.TestbedHost{h})
	if err != nil {
		panic(err) // broken invariant: hosts are plain data
	}
	for line := range strings.Lines(string(text)) {
		w.hosts.WriteString(before + line)
	}
}

var unclean = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// clean is what a host's name can have of a port's.
func clean(name string) string { return strings.Trim(unclean.ReplaceAllString(name, "-"), "-.") }

var numbered = regexp.MustCompile(`(?i)^(eth|en[opsx]|em|p|port|swp|ge|xe|te|fa|gi|vnet|tap|veth|dpdk|vhost|ethernet|gigabitethernet|tengigabitethernet)?[-/.:]?\d[\d/.:a-z]*$`)

// generic says whether a port's name is one that machines give.
func generic(name string) bool { return clean(name) == "" || numbered.MatchString(name) }

func (w *writer) name(at At, p *port) string {
	base := clean(p.Name)
	switch {
	case base == "":
		return fmt.Sprintf("s%x-p%d", uint64(at.Datapath), at.Port)
	case w.names[base] > 1:
		return fmt.Sprintf("%s-s%x-p%d", base, uint64(at.Datapath), at.Port)
	}
	return base
}

func (w *writer) links() {
	ends := make([][2]At, 0, len(w.Sketch.links))
	for e := range w.Sketch.links {
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, b [2]At) int {
		if c := comparePorts(a[0], b[0]); c != 0 {
			return c
		}
		return comparePorts(a[1], b[1])
	})
	for _, e := range ends {
		a, b := w.Where(e[0]), w.Where(e[1])
		switch l := w.Sketch.links[e]; {
		case e[0].Datapath == e[1].Datapath:
			w.remark(&w.more, decide+"%s and %s of one switch are connected: a loop.", a, b)
			continue
		case len(w.linksAt(e[0])) > 1 || len(w.linksAt(e[1])) > 1:
			w.remark(&w.more, decide+"%s and %s see one another and other ports too: there is a hub, or a switch without OpenFlow, between them.", a, b)
			continue
		case !l.there || !l.back:
			w.remark(&w.more, decide+"%s and %s: seen in one direction only.", a, b)
		default:
			w.remark(&w.more, "%s - %s", a, b)
		}
		k := model.SwitchLink{A: w.end(e[0]), B: w.end(e[1])}
		w.tb.Links = append(w.tb.Links, k)
		text, err := yaml.Marshal([]model.SwitchLink{k})
		if err != nil {
			panic(err) // broken invariant: links are plain data
		}
		for line := range strings.Lines(string(text)) {
			w.more.WriteString("  " + line)
		}
	}
}

func sortedMACs(observed map[[6]byte]*sender) [][6]byte {
	out := make([][6]byte, 0, len(observed))
	for m := range observed {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b [6]byte) int { return bytes.Compare(a[:], b[:]) })
	return out
}
