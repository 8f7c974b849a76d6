package judge

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"netsplit/inference/classify"
	"netsplit/inference/framing"
	"netsplit/inference/packet"
	"netsplit/inference/pcap"
	"netsplit/inference/stream"
	"netsplit/internal/regular"
	"netsplit/model"
	"netsplit/record/rundir"
)

// undeclaredMost is how many ports are looked at that the target file does not
// name: their connections are read by fallback, too. Ports that systems draw are
// many, and nobody describes them.
const undeclaredMost = 16

// framings suggests what could be written under frames or lines, or reader json,
// for the ports whose connections are read by fallback, or as plain lines, from
// the packets of the run. A record without packets shows nothing.
func (x *Examination) framings(dir string, f *runFiles) error {
	in, err := regular.Open(dir, rundir.PacketsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	ports, err := fallbackPorts(in, f)
	if err != nil {
		return fmt.Errorf("%s: %w", rundir.PacketsFile, err)
	}
	readers := map[uint16]string{}
	for _, p := range f.target.Protocols {
		if p.Transport == "tcp" {
			readers[p.Port] = p.Dissector
		}
	}
	var others []string // ports that are not declared, without a suggestion
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		s, json := ports[n].framing.Suggest(), ports[n].json.why()
		reader := readers[n]
		switch {
		case s.Lines != nil && reader != "":
			x.fact("protocol %s on tcp port %d: some lines are followed by as many bytes as they say; if this is what its documentation says, write\n    dissector: %s\n    lines:\n      - %s\n  %s",
				reader, n, classify.NameText, strings.Join(framing.Lines(s.Lines), "\n      - "), s.Why)
		case s.Lines != nil:
			x.fact("tcp port %d is not among the protocols; if this is what its documentation says, add\n  - port: %d\n    transport: tcp\n    dissector: %s\n    lines:\n      - %s\n  %s",
				n, n, classify.NameText, strings.Join(framing.Lines(s.Lines), "\n      - "), s.Why)
		case json != "" && reader != "":
			x.fact("protocol %s on tcp port %d: the bytes are JSON; reader %s takes each value for a message; write\n    dissector: %s\n  %s",
				reader, n, classify.NameJSON, classify.NameJSON, json)
		case json != "":
			x.fact("tcp port %d is not among the protocols; the bytes are JSON: add\n  - {port: %d, transport: tcp, dissector: %s}\n  %s", n, n, classify.NameJSON, json)
		case reader == classify.NameText:
		case s.Framing != nil && reader != "":
			x.fact("protocol fallback on tcp port %d: reader %s could read it; if this is what its documentation says, write\n    dissector: %s\n    frames: %s\n  %s",
				n, classify.NameFrames, classify.NameFrames, framing.Line(s.Framing), s.Why)
		case s.Framing != nil:
			x.fact("tcp port %d is not among the protocols; if this is what its documentation says, add\n  - port: %d\n    transport: tcp\n    dissector: %s\n    frames: %s\n  %s",
				n, n, classify.NameFrames, framing.Line(s.Framing), s.Why)
		case reader != "":
			x.fact("protocol fallback on tcp port %d: no suggestion for reader %s: %s", n, classify.NameFrames, s.Why)
		case s.Why != framing.WhyFew:
			others = append(others, fmt.Sprintf("%d (%s)", n, s.Why))
		}
	}
	if len(others) > 0 {
		x.fact("hosts used tcp ports that are not among the protocols and are read by fallback: %s", strings.Join(others, ", "))
	}
	return nil
}

// observed is what was said on a port.
type observed struct {
	framing framing.Port
	json    *jsonPort
}

func fallbackPorts(in io.Reader, f *runFiles) (map[uint16]*observed, error) {
	hosts := map[string]model.NodeID{}
	for _, h := range f.testbed.Hosts {
		hosts[h.IP.String()] = h.Name
	}
	readers := map[uint16]string{}
	described := map[uint16]bool{}
	for _, p := range f.target.Protocols {
		if p.Transport == "tcp" {
			readers[p.Port] = p.Dissector
			described[p.Port] = p.Dissector != classify.NameFallback && (p.Dissector != classify.NameText || len(p.Lines) > 0)
		}
	}
	rd, err := pcap.NewReader(in)
	if err != nil {
		return nil, err
	}
	ports := map[uint16]*observed{}
	undeclared := 0
	take := func(events []stream.Event) {
		for i := range events {
			e := &events[i]
			to := e.Conn.Addr[1]
			_, declared := readers[to.Port()]
			if described[to.Port()] || hosts[to.Addr().String()] == "" || hosts[e.Conn.Addr[0].Addr().String()] == "" {
				continue
			}
			p := ports[to.Port()]
			if p == nil {
				if !declared {
					if undeclared++; undeclared > undeclaredMost {
						continue
					}
				}
				p = &observed{json: newJSONPort()}
				ports[to.Port()] = p
			}
			p.framing.Add(e)
			p.json.add(e)
		}
	}
	decoder := packet.NewDecoder(nil)
	table := stream.NewTable(func(port uint16) bool { return readers[port] != "" })
	for {
		frame, err := rd.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, pcap.ErrTruncated) {
			break
		}
		if err != nil {
			return nil, err
		}
		p := decoder.Decode(frame)
		take(table.Step(&p))
	}
	take(table.Flush())
	return ports, nil
}
