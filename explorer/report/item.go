package report

import (
	"fmt"
	"math"
	"strings"
)

// drawItem draws one message: arrow, or arrow to the edge of the cut and a
// cross.
func (p *picture) drawItem(d *drawing, r *row, y float64) {
	it := r.item
	x1, x2 := p.x(it.from), p.x(it.to)
	dir := 1.0
	if x2 < x1 {
		dir = -1
	}
	class := "arrow"
	switch {
	case it.dropped:
		class = "arrow dropped"
	case it.heal:
		class = "arrow heal"
	case it.trigger:
		class = "arrow trigger"
	case it.marked:
		class = "arrow fault"
	case r.count > 1:
		class = "arrow many"
	}
	d.open("g", "class", "msg")
	d.title(itemWords(r))
	sx, ex := x1+dir*(laneHalf+1), x2-dir*(laneHalf+2)
	switch {
	case x1 == x2:
		d.tag("circle", "class", class, "cx", x1, "cy", y, "r", 5)
	case it.dropped:
		ex, _ = p.stop(it.from, it.to)
		ex -= dir * 6
		d.line("halo", sx, y, ex, y+slant*0.6)
		d.line(class, sx, y, ex, y+slant*0.6)
		cx, cy := ex, y+slant*0.6
		d.tag("path", "class", "cross", "d", fmt.Sprintf("M%s %sl9 9m0 -9l-9 9", num(cx-4.5), num(cy-4.5)))
	case it.part != whole:
		mid := (x1 + x2) / 2
		if it.part == toGate {
			d.line("halo", sx, y, mid, y+slant/2)
			d.line(class, sx, y, mid, y+slant/2)
		} else {
			d.line("halo", mid, y+slant/2, ex, y+slant)
			d.line(class, mid, y+slant/2, ex-dir*5, y+slant)
			d.head("tip fault", ex, y+slant, dir)
		}
		d.rect("kept", mid-4, y+slant/2-4, 8, 8)
	case it.heal:
		mid, _ := p.stop(it.from, it.to)
		d.line("halo", sx, y, mid, y+3)
		d.line(class, sx, y, mid, y+3)
		d.line("held", mid, y+3, mid, y+19)
		d.line("halo", mid, y+19, ex, y+24)
		d.line(class, mid, y+19, ex-dir*5, y+24)
		d.head("tip heal", ex, y+24, dir)
		if p.t.passed > it.at {
			d.text(anchor("remark quiet", -dir), mid+dir*7, y+14, "held "+span(p.t.passed-it.at))
		}
	default:
		d.line("halo", sx, y, ex, y+slant)
		d.line(class, sx, y, ex-dir*5, y+slant)
		tip := "tip"
		switch {
		case it.trigger:
			tip = "tip trigger"
		case it.marked:
			tip = "tip fault"
		}
		d.head(tip, ex, y+slant, dir)
	}
	p.label(d, r, x1, ex, y)
	d.close("g")
}

// anchor gives text that ends where an arrow comes from.
func anchor(class string, dir float64) string {
	if dir > 0 {
		return class + " end"
	}
	return class
}

func (d *drawing) head(class string, x, y, dir float64) {
	d.tag("path", "class", class, "d", fmt.Sprintf("M%s %sl%s -4.5v9z", num(x), num(y), num(-dir*9)))
}

// label writes the type above the arrow: the row is its own, so it meets no
// other label. The dissector's name is left out.
func (p *picture) label(d *drawing, r *row, x1, x2, y float64) {
	it := r.item
	name := it.typ
	if first, rest, ok := strings.Cut(name, " "); ok && (first == "resp" || first == "text") {
		name = rest
	}
	switch {
	case it.heal:
		name = "② " + name
	case it.trigger:
		name = "① " + name
	}
	if it.again && it.part == whole {
		name += " (again)"
	}
	if it.marked && it.mark != "" {
		name = it.mark + ": " + name
	}
	if it.num == 0 && !it.again {
		name = fmt.Sprintf("packet, %d bytes", it.bytes)
	}
	step := (picWidth - picLeft - 20) / float64(max(1, len(p.t.hosts)))
	room, more := max(step-26, 130), ""
	if it.heal || it.trigger || it.marked {
		room *= 0.92 // bold
	}
	if r.count > 1 {
		if more = fmt.Sprintf("  ×%d", r.count); r.until > r.at {
			more += " in " + span(r.until-r.at)
		}
	}
	name = fit(name, room-width(more, labelSize), labelSize)
	if r.count == 1 && it.brief != "" {
		more = fitEnd("  "+it.brief, room-width(name, labelSize), labelSize)
	}
	name += more
	w := width(name, labelSize)
	// In the gap next to the sender, clear of the lanes; a message that ends at
	// the cut right there has its label on the sender's other side.
	dir := 1.0
	if x2 < x1 {
		dir = -1
	}
	mid := x1 + dir*step/2
	if it.dropped && math.Abs(x2-x1) < step {
		mid = x1 - dir*(w/2+12)
		if mid-w/2 < picLeft || mid+w/2 > picWidth-10 {
			mid = x1 + dir*(w/2+12)
		}
	}
	mid = min(max(mid, picLeft+w/2), picWidth-10-w/2)
	class := "label"
	switch {
	case it.dropped:
		class = "label dropped"
	case it.heal || it.trigger || it.marked:
		class = "label strong"
	}
	d.text(class, mid, y-2.5, name)
}

func itemWords(r *row) string {
	it := r.item
	s := fmt.Sprintf("%s, %s to %s at %s, %d bytes", it.typ, it.from, it.to, at(it.at), it.bytes)
	if it.num != 0 {
		s = fmt.Sprintf("message %d: ", it.num) + s
	}
	if it.dropped {
		s += ", dropped"
	}
	if it.fault != 0 {
		s += fmt.Sprintf(", message fault %d: %s", it.fault, it.mark)
	}
	if r.count > 1 {
		s += fmt.Sprintf("; %d of them until %s", r.count, at(r.until))
	}
	if it.detail != "" {
		s += "\n" + it.detail
	}
	return s
}
