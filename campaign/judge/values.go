package judge

import (
	"fmt"

	"netsplit/inference/classify"
	"netsplit/inference/stream"
)

const (
	jsonShare = 0.95 // of the bytes are in objects and arrays
	jsonLeast = 4    // of them, to tell by
)

// jsonPort is what reader json makes of the connections to a port.
type jsonPort struct {
	open            map[*stream.Conn]classify.Dissector
	conns, messages int
	inside, all     int // bytes: in messages; of everything
	types           map[string]bool
	words           classify.Vocabulary
}

func newJSONPort() *jsonPort {
	return &jsonPort{open: map[*stream.Conn]classify.Dissector{}, types: map[string]bool{}}
}

func (p *jsonPort) count(u classify.Unit) {
	p.all += u.Bytes
	if classify.JSONMessage(u.Type) {
		p.messages++
		p.inside += u.Bytes
		p.types[p.words.Type(&u)] = true
	}
}

func (p *jsonPort) add(e *stream.Event) {
	d := p.open[e.Conn]
	if d == nil && e.Kind == stream.Data {
		d = classify.NewJSON()
		p.open[e.Conn] = d
		p.conns++
	}
	if d == nil {
		return
	}
	switch e.Kind {
	case stream.Data:
		d.Data(e.Dir, e.Off, e.Bytes, p.count)
	case stream.Gap:
		d.Gap(e.Dir, e.Off, e.Len, p.count)
	case stream.Closed:
		d.Close(e.Dir, p.count)
		if !e.Conn.Live() {
			delete(p.open, e.Conn)
		}
	}
}

// why says what speaks for reader json, in words; "" if too little does: lines or
// heads of another protocol stand between the values.
func (p *jsonPort) why() string {
	if p.messages < jsonLeast || float64(p.inside) < jsonShare*float64(p.all) {
		return ""
	}
	return fmt.Sprintf("%d JSON values of %d connections cover %.1f %% of %d bytes; %d types",
		p.messages, p.conns, 100*float64(p.inside)/float64(p.all), p.all, len(p.types))
}
