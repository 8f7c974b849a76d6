package report

import (
	"fmt"
	"time"

	"netsplit/model"
)

// action is something that a step or a workload did to a server.
type action struct {
	event uint64
	at    time.Duration
	model.NodeAction
}

// nodeSigns are how the picture marks actions, and its words for them.
var nodeSigns = map[model.NodeVerb]struct{ sign, words string }{
	model.NodeKill:   {"✕", "crash of "},
	model.NodePause:  {"‖", "pause of "},
	model.NodeStop:   {"■", "stop of "},
	model.NodeStart:  {"▶", "start of "},
	model.NodeResume: {"▶", "resumed: "},
}

// down are the times in which a server of the host was crashed, stopped or paused.
func (t *timeline) down(h model.NodeID) []window {
	var out []window
	open := map[string]int{} // by process
	for _, a := range t.actions {
		if a.Host != h {
			continue
		}
		i, is := open[a.Process]
		switch a.Verb {
		case model.NodeKill, model.NodePause, model.NodeStop:
			if !is {
				open[a.Process] = len(out)
				out = append(out, window{a.at, t.end})
			}
		case model.NodeStart, model.NodeResume:
			if is {
				out[i].to = a.at
				delete(open, a.Process)
			}
		}
	}
	return out
}

// nodeNote is the legend of the marks; "" where there is none.
func (t *timeline) nodeNote() string {
	if len(t.actions) == 0 {
		return ""
	}
	return " A server that crashes is marked ✕ at its host, ‖ if it is paused, ■ if it is stopped, and ▶ where it starts or goes on; in between its lane is dashed."
}

// drawDown dashes the lane of a host while a server of it is down.
func (p *picture) drawDown(d *drawing, h model.NodeID, x, top, bottom float64) {
	for _, w := range p.t.down(h) {
		y1, y2 := p.yAt(w.from, top, bottom), p.yAt(w.to, top, bottom)
		if w.to == p.t.end { // for good
			y2 = bottom
		}
		if y2 <= y1 {
			continue
		}
		d.open("g", "class", "down-host")
		d.title(fmt.Sprintf("%s has a server down from %s to %s", h, at(w.from), at(w.to)))
		d.rect("ground", x-laneHalf-1, y1, 2*laneHalf+2, y2-y1)
		d.line("down", x, y1, x, y2)
		d.close("g")
	}
}

// drawNode marks an action at its host.
func (p *picture) drawNode(d *drawing, r *row, y float64) {
	a := r.node
	mark, ok := nodeSigns[a.Verb]
	if !ok {
		mark.sign, mark.words = "•", string(a.Verb)+" of "
	}
	x := p.x(a.Host)
	class := "node-mark"
	if a.Verb == model.NodeStart || a.Verb == model.NodeResume {
		class += " back"
	}
	d.open("g", "class", "node-action")
	d.title(fmt.Sprintf("%s%s on %s at %s", mark.words, a.Process, a.Host, at(a.at)))
	d.tag("circle", "class", class, "cx", x, "cy", y, "r", 8)
	d.text(class, x, y+4, mark.sign)
	label := mark.words + a.Process
	room := picWidth - 8 - (x + 14)
	cls, tx := "value strong", x+14
	if width(label, labelSize) > room {
		cls, tx, room = "value strong end", x-14, x-14-picLeft
	}
	d.text(cls, tx, y+4, fit(label, room, labelSize))
	d.close("g")
}
