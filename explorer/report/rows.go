package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// How many rows of the static picture go to each part of the run.
const (
	rowsBefore = 13
	rowsDuring = 30
	rowsAfter  = 15
	rowsLater  = 4 // changes of value after those
)

type rowKind int

const (
	rowItem rowKind = iota
	rowChange
	rowNode // something was done to a server
	rowCut
	rowInForce
	rowHeal  // a heal without a message
	rowBreak // time not drawn
)

// row is one line of the static picture.
type row struct {
	kind  rowKind
	event uint64
	at    time.Duration
	item  *item
	count int           // items folded into this row
	until time.Duration // the last of them
	// changes of value seen by the event of this row
	track         *track
	before, after string
	words         string // of a break
	node          *action
}

type foldKey struct {
	from, to model.NodeID
	typ      string
	dropped  bool
}

func (r *row) key() foldKey {
	return foldKey{r.item.from, r.item.to, r.item.typ, r.item.dropped}
}

func (r *row) foldable() bool {
	return r.kind == rowItem && !r.item.trigger && !r.item.heal && !r.item.marked
}

// rows chooses what the static picture shows and in which order.
func (t *timeline) rows() []row {
	var all []row
	for i := range t.items {
		it := &t.items[i]
		all = append(all, row{kind: rowItem, event: it.event, at: it.at, item: it, count: 1, until: it.at})
	}
	for _, h := range t.hosts {
		tr := t.laneOf(h)
		if tr == nil {
			continue
		}
		for i, c := range tr.changes {
			if i == 0 {
				continue // shown in the head of the column
			}
			all = append(all, row{kind: rowChange, event: c.event, at: c.at, track: tr, before: tr.changes[i-1].value, after: c.value})
		}
	}
	for i := range t.actions {
		a := &t.actions[i]
		all = append(all, row{kind: rowNode, event: a.event, at: a.at, node: a})
	}
	from, to := t.cutWindow()
	if t.cut == nil {
		from = t.centre()
		to = from
		if t.faulty != nil {
			to = t.faulty.to
		}
	} else {
		all = append(all, row{kind: rowCut, event: t.cut.Event, at: t.cut.At})
		if t.inForce > t.cut.At && (t.heal == nil || t.inForce < t.heal.At) {
			all = append(all, row{kind: rowInForce, event: t.cut.Event, at: t.inForce})
		}
		if t.heal != nil && t.find(func(i *item) bool { return i.heal }) == nil {
			all = append(all, row{kind: rowHeal, event: t.heal.Event, at: t.heal.At})
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.event, b.event), cmp.Compare(a.kind, b.kind))
	})
	first := slices.IndexFunc(all, func(r row) bool { return r.at >= from && t.cut == nil || r.kind == rowCut })
	if first < 0 {
		first = len(all)
	}
	// What revealed the state stands before the cut, whatever its time says.
	last := len(all)
	for i := first; i < len(all); i++ {
		if all[i].kind == rowHeal || all[i].kind == rowItem && all[i].item.heal {
			last = i + 1
			break
		}
		if t.cut == nil && (t.faulty == nil || all[i].at > to) || t.cut != nil && t.heal == nil && all[i].at > to {
			last = i
			break
		}
	}
	if t.cut != nil && t.heal == nil {
		last = len(all)
	}
	during := " while cut"
	if t.cut == nil {
		during = ""
	}
	before, skipped := tail(all[:first], rowsBefore)
	out := slices.Clone(before)
	if skipped > 0 && len(out) > 0 {
		out = slices.Insert(out, 0, row{kind: rowBreak, at: out[0].at, words: model.Count(skipped, "earlier message", "earlier messages")})
	}
	out = append(out, foldTo(all[first:last], rowsDuring, during)...)
	return append(out, t.later(all[last:])...)
}

// centre is the moment shown where nothing was cut: the first message that a
// fault acted on, else the first crash or pause of a step, else the first broken invariant of the workload, else the first
// new value, else its start.
func (t *timeline) centre() time.Duration {
	if t.faulty != nil {
		return t.faulty.from
	}
	if t.acted > 0 {
		return t.acted
	}
	best := time.Duration(-1)
	for _, ws := range t.violations {
		for _, w := range ws {
			if w.from >= t.work && (best < 0 || w.from < best) {
				best = w.from
			}
		}
	}
	if best < 0 {
		_, best = t.firstChange()
	}
	return max(best, t.work)
}

// tail is the last n rows, consecutive repeats folded, and how many items are
// before them.
func tail(in []row, n int) ([]row, int) {
	var out []row
	i := len(in) - 1
	for ; i >= 0; i-- {
		r := in[i]
		if k := len(out) - 1; k >= 0 && r.foldable() && out[k].foldable() && r.key() == out[k].key() {
			out[k].item, out[k].at, out[k].event = r.item, r.at, r.event
			out[k].count++
			continue
		}
		if len(out) == n {
			break
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	skipped := 0
	for _, r := range in[:i+1] {
		skipped += b2i(r.kind == rowItem)
	}
	return out, skipped
}

// later is what follows the heal: the next rows one by one, then only changes
// of value, with what lies between them counted.
func (t *timeline) later(in []row) []row {
	var out []row
	i := 0
	for ; i < len(in) && len(out) < rowsAfter; i++ {
		r := in[i]
		if k := len(out) - 1; k >= 0 && r.foldable() && out[k].foldable() && r.key() == out[k].key() {
			out[k].count++
			out[k].until = r.at
			continue
		}
		out = append(out, r)
	}
	since := time.Duration(0)
	if i > 0 {
		since = in[i-1].at
	}
	passed, shown := 0, 0
	for ; i < len(in); i++ {
		r := in[i]
		if r.kind == rowItem {
			passed++
			continue
		}
		if shown == rowsLater {
			continue
		}
		if passed > 0 {
			out = append(out, row{kind: rowBreak, at: r.at, words: fmt.Sprintf("%s in %s", model.Count(passed, "message", "messages"), span(r.at-since))})
		}
		out = append(out, r)
		passed, since = 0, r.at
		shown++
	}
	if passed > 0 {
		out = append(out, row{kind: rowBreak, at: t.end, words: model.Count(passed, "later message", "later messages")})
	}
	return out
}

// foldTo brings rows down to n: first repeats of one type between the same
// two hosts are folded within each stretch between changes, then what is
// left over at the end of the longest stretches is counted only.
func foldTo(in []row, n int, during string) []row {
	out := fold(in, func(a, b int) bool { return b == a+1 })
	if len(out) > n {
		out = fold(in, func(int, int) bool { return true })
	}
	for len(out) > n {
		// Leave out the middle of what passed; of what was dropped only where
		// that alone is too much.
		crossed := 0
		for _, r := range out {
			crossed += b2i(r.foldable() && r.item.dropped)
		}
		var idx []int
		for i, r := range out {
			if r.foldable() && (!r.item.dropped || crossed > n*2/3) {
				idx = append(idx, i)
			}
		}
		over := len(out) - n + 1
		if len(idx) == 0 {
			break // nothing but marks and changes: all of them are shown
		}
		if over < len(idx) {
			mid := (len(idx) - over) / 2
			idx = idx[mid : mid+over]
		}
		count, first := 0, idx[0]
		at := out[first].at
		keep := out[:0:0]
		for i, r := range out {
			if _, hit := slices.BinarySearch(idx, i); hit {
				count += max(1, r.count)
				if i == first {
					keep = append(keep, row{kind: rowBreak, at: at})
				}
				continue
			}
			keep = append(keep, r)
		}
		for i := range keep {
			if keep[i].kind == rowBreak && keep[i].words == "" {
				keep[i].words = model.Count(count, "more message", "more messages") + during
			}
		}
		if len(keep) >= len(out) {
			break
		}
		out = keep
	}
	return out
}

// fold folds an item into an earlier row of its kind of the same stretch, if
// near(index of that row's last item, index of this) says so.
func fold(in []row, near func(a, b int) bool) []row {
	var out []row
	type place struct{ row, last int }
	open := map[foldKey]place{}
	for i, r := range in {
		if !r.foldable() {
			clear(open)
			out = append(out, r)
			continue
		}
		if p, ok := open[r.key()]; ok && near(p.last, i) {
			out[p.row].count++
			out[p.row].until = r.at
			open[r.key()] = place{p.row, i}
			continue
		}
		open[r.key()] = place{len(out), i}
		out = append(out, r)
	}
	return out
}
