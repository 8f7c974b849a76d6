package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Measures of the static picture, px.
const (
	picWidth  = 1160.0
	picLeft   = 96.0 // room for times
	picHead   = 64.0
	rowHeight = 23.0
	slant     = 7.0 // how far an arrow falls: it says "later", not how much
	laneHalf  = 4.0
	labelSize = 11.5
)

// picture is the static space-time picture: one row per message, so that no
// label meets another; times are written at the rows.
type picture struct {
	t           *timeline
	rows        []row
	y           []float64 // of each row
	idle        []time.Duration
	height      float64
	zero        time.Duration
	title, note string
}

func newPicture(t *timeline) *picture {
	p := &picture{t: t, rows: t.rows()}
	shown := 0
	for _, r := range p.rows {
		if r.kind == rowItem {
			shown += r.count
		}
	}
	if t.cut != nil {
		p.zero = t.cut.At
		p.title = "The messages around the cut"
		p.note = fmt.Sprintf("%d of %d messages. Times count from the cut. The shaded band stands between the hosts that are cut from each other; a message that was dropped ends in a cross at its edge.", shown, len(t.items))
	} else {
		p.zero = t.centre()
		p.title = "The messages around the start of the workload"
		switch {
		case t.faulty != nil:
			p.title = "The messages around those that faults acted on"
		case t.acted > 0:
			p.title = "The messages around the first crash, pause or disk fault"
		case p.zero > t.work:
			p.title = "The messages around the first change"
		}
		p.note = fmt.Sprintf("%d of %d messages. Nothing was cut. Times count from %s.", shown, len(t.items), at(p.zero))
	}
	if t.faulty != nil {
		p.note += " Faults are marked: a held message stops at a square and continues from another; a lost message ends in a cross."
	}
	if t.focus < 0 && t.focusVar.Name != "" {
		p.note += " The lane of each host shows " + clean(t.focusVar.Name) + "."
	}
	if t.focus >= 0 {
		inv := t.invariants[t.focus]
		name := inv.A.Name
		if inv.B.Name != name {
			name += " and " + inv.B.Name
		}
		p.note += " The lane of each host shows " + clean(name) + " and is red while an invariant over it does not hold."
	}
	p.note += t.nodeNote()
	if t.left > 0 {
		p.note += fmt.Sprintf(" %s that sent and received nothing have no column.", model.Count(t.left, "host", "hosts"))
	}
	p.place()
	return p
}

// place gives each row its height: idle time gets a marked break.
func (p *picture) place() {
	var gaps []float64
	for i := 1; i < len(p.rows); i++ {
		gaps = append(gaps, float64(p.rows[i].at-p.rows[i-1].at))
	}
	limit := float64(20 * time.Millisecond)
	if len(gaps) > 0 {
		s := slices.Clone(gaps)
		slices.Sort(s)
		limit = max(limit, 10*s[len(s)/2])
	}
	y := picHead + 26
	for i, r := range p.rows {
		idle := time.Duration(0)
		if i > 0 {
			gap := gaps[i-1]
			if gap >= limit && r.kind != rowBreak && p.rows[i-1].kind != rowBreak {
				idle = time.Duration(gap)
				y += rowHeight
			} else if gap > 1e6 {
				y += min(9, 3*math.Log10(gap/1e6)+2)
			}
		}
		p.idle = append(p.idle, idle)
		p.y = append(p.y, y)
		y += rowHeight
		switch {
		case r.kind == rowCut:
			y += 6
		case r.kind == rowItem && r.item.heal:
			y += 16
		}
	}
	p.height = y + picHead + 8
}

func (p *picture) x(h model.NodeID) float64 {
	i := slices.Index(p.t.hosts, h)
	if i < 0 {
		return picLeft
	}
	return p.column(i)
}

func (p *picture) column(i int) float64 {
	n := len(p.t.hosts)
	step := (picWidth - picLeft - 20) / float64(max(1, n))
	return picLeft + step*(float64(i)+0.5)
}

// band is a gap between two groups of hosts of the partition.
type band struct {
	left, right float64
	group       int // the group on its left
}

func (p *picture) bands() []band {
	var out []band
	for i := 0; i+1 < len(p.t.hosts); i++ {
		a, b := p.t.group[p.t.hosts[i]], p.t.group[p.t.hosts[i+1]]
		if a >= 0 && b >= 0 && a != b {
			x1, x2 := p.column(i), p.column(i+1)
			in := min(70, (x2-x1)*0.3)
			out = append(out, band{x1 + in, x2 - in, a})
		}
	}
	return out
}

// stop is where a message from one host to another meets the cut: the near
// edge of the band next to the sender's side.
func (p *picture) stop(from, to model.NodeID) (float64, bool) {
	x1, x2 := p.x(from), p.x(to)
	bands := p.bands()
	if x1 < x2 {
		for _, b := range bands {
			if b.left >= x1 && b.left <= x2 {
				return b.left, true
			}
		}
	} else {
		for _, b := range slices.Backward(bands) {
			if b.right <= x1 && b.right >= x2 {
				return b.right, true
			}
		}
	}
	return (x1 + x2) / 2, false
}

func (p *picture) svg() template.HTML {
	d := &drawing{}
	top, bottom := picHead, p.height-picHead+10
	cutY, healY := p.cutEdges(bottom)

	if p.t.cut != nil {
		for _, b := range p.bands() {
			d.open("g", "class", "cut-band")
			d.title(fmt.Sprintf("cut: %s", linksWords(p.t.links)))
			d.rect("band", b.left, cutY, b.right-b.left, healY-cutY)
			d.line("band-edge", b.left, cutY, b.left, healY)
			d.line("band-edge", b.right, cutY, b.right, healY)
			d.close("g")
		}
	}
	for i, h := range p.t.hosts {
		p.lane(d, h, p.column(i), top, bottom)
		p.drawDown(d, h, p.column(i), top, bottom)
	}
	for i := range p.rows {
		p.drawRow(d, i)
	}
	for i, h := range p.t.hosts {
		p.head(d, h, p.column(i), 12)
		p.head(d, h, p.column(i), bottom+4)
	}
	return d.done(picWidth, p.height, p.summary(), "picture")
}

// cutEdges are the heights between which the band is drawn.
func (p *picture) cutEdges(bottom float64) (from, to float64) {
	to = bottom
	for i, r := range p.rows {
		switch {
		case r.kind == rowCut:
			from = p.y[i] + 8
		case r.kind == rowHeal:
			to = p.y[i] - 12
		case r.kind == rowItem && r.item.heal:
			to = p.y[i] + 18
		}
	}
	return from, to
}

func linksWords(links map[model.Link]bool) string {
	var ls []model.Link
	for l := range links {
		ls = append(ls, l)
	}
	slices.SortFunc(ls, model.Link.Compare)
	var s []string
	for _, l := range ls {
		s = append(s, l.String())
	}
	return list(s)
}

// lane is a host's line: its variable's value in time, red where an invariant
// over it is broken.
func (p *picture) lane(d *drawing, h model.NodeID, x, top, bottom float64) {
	tr := p.t.laneOf(h)
	if tr == nil || len(p.rows) == 0 {
		d.line("life", x, top, x, bottom)
		return
	}
	d.open("g", "class", "lane-host")
	d.title(tr.ref.String())
	d.rect("lane", x-laneHalf, top, 2*laneHalf, bottom-top)
	for _, w := range p.t.disagreements(tr.ref) {
		y1, y2 := p.yAt(w.from, top, bottom), p.yAt(w.to, top, bottom)
		if y2 > y1 {
			d.rect("lane bad", x-laneHalf, y1, 2*laneHalf, y2-y1)
		}
	}
	d.close("g")
}

// yAt is the height of a moment.
func (p *picture) yAt(at time.Duration, top, bottom float64) float64 {
	for i, r := range p.rows {
		if r.kind == rowBreak {
			continue
		}
		if at <= r.at {
			if at < r.at && i == 0 {
				return top
			}
			if at < r.at {
				return p.y[i] - rowHeight/2
			}
			return p.y[i]
		}
	}
	return bottom
}

func (p *picture) head(d *drawing, h model.NodeID, x, y float64) {
	w := min(150, (picWidth-picLeft-20)/float64(max(1, len(p.t.hosts)))-10)
	class := "head"
	if !p.t.nodes[h] {
		class = "head client"
	}
	d.tag("rect", "class", class, "x", x-w/2, "y", y, "width", w, "height", 40, "rx", 6)
	d.text("head-name", x, y+17, fit(string(h), w-8, 13.5))
	sub := "client"
	if p.t.nodes[h] {
		sub = "server"
	}
	if tr := p.t.laneOf(h); tr != nil && len(p.rows) > 0 {
		moment := p.rows[0].at - 1
		if y > picHead {
			moment = p.rows[len(p.rows)-1].at
		}
		if v := tr.valueAt(moment); v != "" {
			sub = tr.ref.Name + " = " + v
			if tr.ref.About != "" {
				sub = tr.ref.Name + "[" + tr.ref.About + "] = " + v
			}
		}
	}
	d.text("head-sub", x, y+32, fit(sub, w-8, 10.5))
}

func (p *picture) drawRow(d *drawing, i int) {
	r, y := &p.rows[i], p.y[i]
	right := picWidth - 8
	if p.idle[i] > 0 {
		p.zigzag(d, y-rowHeight*0.9, "idle "+span(p.idle[i]))
	}
	if r.kind == rowBreak {
		p.zigzag(d, y, r.words)
		return
	}
	when := p.offset(r.at)
	if r.kind == rowCut {
		when = "0 = " + at(r.at)
	}
	d.text("when", picLeft-16, y+4, when)
	d.line("grid", picLeft-10, y, picLeft-4, y)
	switch r.kind {
	case rowCut:
		d.line("rule", picLeft, y+8, right, y+8)
		p.notice(d, y, "cut-text", "cut: "+sides2(p.t))
	case rowInForce:
		p.notice(d, y, "quiet", "in force: nothing passes any more")
	case rowHeal:
		d.line("rule", picLeft, y-12, right, y-12)
		p.notice(d, y, "heal-text", "heal: "+r.healWords(p.t))
	case rowChange:
		p.drawChange(d, r, y)
	case rowNode:
		p.drawNode(d, r, y)
	case rowItem:
		p.drawItem(d, r, y)
	}
}

func (r *row) healWords(t *timeline) string {
	switch t.heal.Reason {
	case model.ReasonMaxCut:
		return "the longest time allowed for a cut was over"
	case model.ReasonStop:
		return "the workload had ended"
	case model.ReasonTime:
		return "the moment drawn from the seed"
	}
	return t.heal.Reason
}

func sides2(t *timeline) string {
	groups := make([][]model.NodeID, t.groups)
	for _, h := range t.hosts {
		if g := t.group[h]; g >= 0 && g < t.groups {
			groups[g] = append(groups[g], h)
		}
	}
	var s []string
	for _, g := range groups {
		s = append(s, joinHosts(g))
	}
	if t.oneWay && len(s) == 2 {
		return s[1] + " → " + s[0] + " (the other way is open)"
	}
	return strings.Join(s, " | ")
}

func joinHosts(hs []model.NodeID) string {
	var s []string
	for _, h := range hs {
		s = append(s, string(h))
	}
	return strings.Join(s, " ")
}

// notice writes words from the first lane on, in a row of their own.
func (p *picture) notice(d *drawing, y float64, class, words string) {
	x := p.column(0) + 14
	d.text("remark "+class, x, y+4, fit(words, picWidth-x-10, labelSize))
}

func (p *picture) zigzag(d *drawing, y float64, words string) {
	for i := range p.t.hosts {
		x := p.column(i)
		d.rect("ground", x-8, y-7, 16, 14)
		d.tag("path", "class", "zig", "d", fmt.Sprintf("M%s %sl6 3l-12 4l12 4l-6 3", num(x), num(y-7)))
	}
	d.text("when quiet", picLeft-16, y+4, "⋮")
	x := p.column(0) + 14
	d.text("remark quiet", x, y+4, fit(words, max(160, (picWidth-picLeft)/float64(max(1, len(p.t.hosts)))-26), 10.5))
}

// offset is a row's time from the picture's zero.
func (p *picture) offset(t time.Duration) string {
	if t == p.zero {
		return "0"
	}
	s := span(t - p.zero)
	if t > p.zero {
		return "+" + s
	}
	return s
}

// drawChange marks a new value at its host's lane.
func (p *picture) drawChange(d *drawing, r *row, y float64) {
	x := p.x(r.track.ref.Node)
	class := "diamond"
	for _, w := range p.t.disagreements(r.track.ref) {
		if r.at >= w.from && r.at < w.to {
			class = "diamond bad"
		}
	}
	d.open("g", "class", "change")
	how := "probe"
	for _, c := range r.track.changes {
		if c.event == r.event && c.message != 0 {
			how = fmt.Sprintf("message %d", c.message)
		}
	}
	d.title(fmt.Sprintf("%s: %s becomes %s at %s (%s)", r.track.ref, r.before, r.after, at(r.at), how))
	d.tag("path", "class", class, "d", fmt.Sprintf("M%s %sl7 7l-7 7l-7 -7z", num(x), num(y-7)))
	label := fmt.Sprintf("%s: %s → %s", strings.TrimSuffix(r.track.ref.String(), "@"+string(r.track.ref.Node)), r.before, r.after)
	trigger := p.t.cut != nil && p.t.cut.Event == r.event
	if trigger && p.t.find(func(i *item) bool { return i.trigger }) == nil {
		label = "① " + label
	}
	room := picWidth - 8 - (x + 14)
	cls, tx := "value", x+14
	if width(label, labelSize) > room {
		cls, tx, room = "value end", x-14, x-14-picLeft
	}
	if trigger {
		cls += " strong"
	}
	d.text(cls, tx, y+4, fit(label, room, labelSize))
	d.close("g")
}

// summary is the picture in a sentence, for those who do not see it.
func (p *picture) summary() string {
	dropped := 0
	for _, it := range p.t.items {
		dropped += b2i(it.dropped)
	}
	s := fmt.Sprintf("Space-time picture: columns %s; %s", joinHosts(p.t.hosts), model.Count(len(p.rows), "row", "rows"))
	if p.t.cut != nil {
		from, to := p.t.cutWindow()
		s += fmt.Sprintf("; the cut %s from %s to %s, %s dropped", sides2(p.t), at(from), at(to), model.Count(dropped, "message or packet", "messages or packets"))
	}
	return s
}
