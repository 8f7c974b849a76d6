package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Measures of the pictures over the whole run, px.
const (
	runWidth  = 1160.0
	runLeft   = 190.0
	runRight  = 16.0
	maxTracks = 40
)

type laneRow struct{ Var, Kind, Course string }

// longest is the longest time that a scale is drawn for: what is later a workload
// has told wrongly.
const longest = 1 << 60 * time.Nanosecond

// axis maps the time of the whole run to x.
type axis struct{ end time.Duration }

func (a axis) x(t time.Duration) float64 {
	if a.end <= 0 {
		return runLeft
	}
	t = min(max(t, 0), a.end)
	return runLeft + (runWidth-runLeft-runRight)*float64(t)/float64(a.end)
}

// ticks draws the scale: a line every 1, 2 or 5 times a power of ten.
func (a axis) ticks(d *drawing, top, bottom float64) {
	a.end = min(a.end, longest)
	step := time.Millisecond
	for i := 0; a.end/step > 12; i++ {
		step = step * []time.Duration{2, 5, 2}[i%3] / []time.Duration{1, 2, 1}[i%3]
	}
	for t := time.Duration(0); t <= a.end; t += step {
		x := a.x(t)
		d.line("grid", x, top, x, bottom)
		if x < runWidth-runRight-12 {
			label := fmt.Sprintf("%g s", t.Seconds())
			if a.end < time.Second {
				label = fmt.Sprintf("%g ms", float64(t.Microseconds())/1000)
			}
			d.text("tick", x, bottom+14, label)
		}
	}
}

// marks shades the cut and names it and the workload at the top. A cut too
// short to see keeps a line.
func (t *timeline) marks(d *drawing, a axis, top, bottom float64) {
	if t.work > 0 {
		d.line("mark", a.x(t.work), top, a.x(t.work), bottom)
	}
	if t.stop > 0 {
		d.line("mark", a.x(t.stop), top, a.x(t.stop), bottom)
	}
	if t.cut != nil {
		from, to := t.cutWindow()
		d.open("g", "class", "cut-mark")
		d.title(fmt.Sprintf("cut from %s to %s", at(from), at(to)))
		x1, x2 := a.x(from), a.x(to)
		d.rect("band strong", x1, top, max(2, x2-x1), bottom-top)
		d.close("g")
	}
	t.markNames(d, a, top)
}

// markNames writes the names of the marks side by side, never over another.
func (t *timeline) markNames(d *drawing, a axis, top float64) {
	type name struct {
		x    float64
		text string
	}
	var ns []name
	if t.work > 0 {
		ns = append(ns, name{a.x(t.work), "workload starts"})
	}
	if t.cut != nil {
		from, to := t.cutWindow()
		ns = append(ns, name{a.x(from), "cut, " + span(to-from)})
	}
	if t.stop > 0 {
		ns = append(ns, name{a.x(t.stop), "workload ends"})
	}
	slices.SortStableFunc(ns, func(p, q name) int { return int(p.x - q.x) })
	free := 0.0
	for _, n := range ns {
		w := width(n.text, 11) + 8
		x := max(n.x-3, free)
		if x+w > runWidth-4 {
			x = runWidth - 4 - w
			if x < free {
				continue
			}
		}
		d.text("mark-name", x+3, top-6, n.text)
		free = x + w + 4
	}
}

func lanes(in *Input, t *timeline) (template.HTML, string, []laneRow) {
	used := map[model.VarRef]bool{}
	for _, inv := range t.invariants {
		used[inv.A], used[inv.B] = true, true
	}
	var show []*track
	for i := range t.tracks {
		if len(used) == 0 || used[t.tracks[i].ref] {
			show = append(show, &t.tracks[i])
		}
	}
	slices.SortStableFunc(show, func(a, b *track) int {
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c
		}
		return a.ref.Compare(b.ref)
	})
	if len(show) == 0 {
		return "", "No variable was observed.", nil
	}
	note := "Each bar is the last value seen. A red line under it: an invariant over it does not hold."
	if len(show) > maxTracks {
		note += fmt.Sprintf(" The first %d of %d variables.", maxTracks, len(show))
		show = show[:maxTracks]
	}
	var rows []laneRow
	a := axis{t.end}
	d := &drawing{}
	top := 26.0
	y := top + 4
	kind := ""
	type pos struct {
		y float64
		t *track
	}
	var places []pos
	for _, tr := range show {
		if tr.kind != kind {
			if kind != "" {
				y += 8
			}
			kind = tr.kind
		}
		places = append(places, pos{y, tr})
		y += 24
	}
	bottom := y + 2
	a.ticks(d, top, bottom)
	colours := map[string]map[string]int{} // kind, value: order of appearance
	for _, p := range places {
		for _, c := range p.t.changes {
			m := colours[p.t.kind]
			if m == nil {
				m = map[string]int{}
				colours[p.t.kind] = m
			}
			if _, ok := m[c.value]; !ok {
				m[c.value] = len(m)
			}
		}
	}
	for _, p := range places {
		d.text("lane-name end", runLeft-10, p.y+13, fit(p.t.ref.String(), runLeft-16, 11.5))
		var course []string
		for i, c := range p.t.changes {
			to := t.end
			if i+1 < len(p.t.changes) {
				to = p.t.changes[i+1].at
			}
			x1, x2 := a.x(c.at), a.x(to)
			d.open("g", "class", "segment")
			d.title(fmt.Sprintf("%s = %s from %s to %s", p.t.ref, c.value, at(c.at), at(to)))
			class := fmt.Sprintf("seg v%d", colours[p.t.kind][c.value]%6)
			if c.value == model.Absent {
				class = "seg absent"
			}
			d.rect(class, x1, p.y, max(1.5, x2-x1-1), 17)
			d.close("g")
			if i < 40 {
				course = append(course, fmt.Sprintf("%s from %s", c.value, at(c.at)))
			}
		}
		if n := len(p.t.changes) - 40; n > 0 {
			course = append(course, fmt.Sprintf("… and %d more values", n))
		}
		rows = append(rows, laneRow{clean(p.t.ref.String()), clean(p.t.kind), clean(strings.Join(course, ", then "))})
		for _, w := range t.disagreements(p.t.ref) {
			x1, x2 := a.x(w.from), a.x(w.to)
			d.rect("broken-line", x1, p.y+18, max(2, x2-x1), 3)
		}
	}
	t.marks(d, a, top, bottom)
	for _, p := range places { // text last, over the marks
		for i, c := range p.t.changes {
			to := t.end
			if i+1 < len(p.t.changes) {
				to = p.t.changes[i+1].at
			}
			x1, x2 := a.x(c.at), a.x(to)
			if s := fit(c.value, x2-x1-10, 11); s != "" || width(c.value, 11) < x2-x1-10 {
				if s == "" {
					s = c.value
				}
				x := x1 + 5
				for _, m := range []time.Duration{t.work, t.stop} { // not under a mark
					if mx := a.x(m); m > 0 && mx > x-3 && mx < x+width(s, 11)+3 && mx+5+width(s, 11) < x2 {
						x = mx + 5
					}
				}
				d.text("seg-text", x, p.y+12.5, s)
			}
		}
	}
	title := fmt.Sprintf("Values of %s over %s", model.Count(len(places), "variable", "variables"), span(t.end))
	return d.done(runWidth, bottom+22, title, "wide"), note, rows
}
