package report

import (
	"encoding/json"
	"fmt"
	"time"
)

// viewData is what the script draws from. Items are columns, not objects, and
// text is stored once, so that ten thousand messages stay under 400 KB.
type viewData struct {
	Hosts   []string    `json:"hosts"`
	Servers []int       `json:"servers"`
	Groups  []int       `json:"groups"` // per host, -1: on no side of the cut
	Pairs   [][3]int    `json:"pairs"`  // sender, receiver, type
	Types   []string    `json:"types"`
	Text    []string    `json:"text"` // fields
	Dt      []int64     `json:"dt"`   // µs since the item before
	Pair    []int       `json:"pair"`
	Bytes   []int       `json:"bytes"`
	Detail  []int       `json:"detail"` // index into Text; 0: none
	First   uint64      `json:"first"`  // number of the first message; they count up
	Odd     [][3]uint64 `json:"odd"`    // item, flags, number: what breaks the count or has flags
	Cut     []int64     `json:"cut"`    // from, to, reached; µs; empty: none
	Marks   []mark      `json:"marks"`
	Lanes   []viewLane  `json:"lanes"`
	Left    int         `json:"left"` // items whose fields were left out
	Centre  int64       `json:"centre"`
}

type mark struct {
	At   int64  `json:"at"`
	Name string `json:"name"`
}

// viewLane is a host's variable: values with their start, and broken windows.
type viewLane struct {
	Host   int        `json:"host"`
	Name   string     `json:"name"`
	At     []int64    `json:"at"`
	Value  []string   `json:"value"`
	Broken [][2]int64 `json:"broken"`
}

// Flags of an item.
const (
	flagDropped = 1 << iota
	flagAgain
	flagTrigger
	flagHeal
	flagNoMessage
	flagFault
	flagKept
	flagOnward
)

// textBudget bounds the bytes of message fields that go along.
const textBudget = 260 << 10

func newViewData(t *timeline) viewData {
	v := viewData{Text: []string{""}, Cut: []int64{}, Odd: [][3]uint64{}, Marks: []mark{}, Lanes: []viewLane{},
		Hosts: []string{}, Servers: []int{}, Groups: []int{}, Pairs: [][3]int{}, Types: []string{}, Dt: []int64{}, Pair: []int{}, Bytes: []int{}}
	host := map[string]int{}
	for i, h := range t.hosts {
		host[string(h)] = i
		v.Hosts = append(v.Hosts, clean(string(h)))
		v.Servers = append(v.Servers, b2i(t.nodes[h]))
		v.Groups = append(v.Groups, t.group[h])
	}
	types, pairs := map[string]int{}, map[[3]int]int{}
	last, next := int64(0), uint64(0)
	for i, it := range t.items {
		ty, ok := types[it.typ]
		if !ok {
			ty = len(v.Types)
			types[it.typ] = ty
			v.Types = append(v.Types, it.typ)
		}
		key := [3]int{hostIndex(host, string(it.from)), hostIndex(host, string(it.to)), ty}
		p, ok := pairs[key]
		if !ok {
			p = len(v.Pairs)
			pairs[key] = p
			v.Pairs = append(v.Pairs, key)
		}
		us := it.at.Microseconds()
		v.Dt = append(v.Dt, us-last)
		last = us
		v.Pair = append(v.Pair, p)
		v.Bytes = append(v.Bytes, it.bytes)
		flags := uint64(b2i(it.dropped)*flagDropped | b2i(it.again)*flagAgain | b2i(it.trigger)*flagTrigger | b2i(it.heal)*flagHeal | b2i(it.num == 0)*flagNoMessage |
			b2i(it.fault != 0)*flagFault | b2i(it.part == toGate)*flagKept | b2i(it.part == onward)*flagOnward)
		if i == 0 {
			v.First, next = it.num, it.num
		}
		if flags != 0 || it.num != next {
			v.Odd = append(v.Odd, [3]uint64{uint64(i), flags, it.num})
		}
		if it.num != 0 && !it.again {
			next = it.num + 1
		}
	}
	v.addText(t)
	v.Centre = t.centre().Microseconds()
	if t.cut != nil {
		from, to := t.cutWindow()
		v.Cut = []int64{from.Microseconds(), to.Microseconds(), t.passed.Microseconds()}
	}
	for _, m := range []struct {
		at   time.Duration
		name string
	}{{t.work, "workload starts"}, {t.stop, "workload ends"}} {
		if m.at > 0 {
			v.Marks = append(v.Marks, mark{m.at.Microseconds(), m.name})
		}
	}
	for i, h := range t.hosts {
		tr := t.laneOf(h)
		if tr == nil {
			continue
		}
		l := viewLane{Host: i, Name: clean(tr.ref.String()), At: []int64{}, Value: []string{}, Broken: [][2]int64{}}
		for _, c := range tr.changes {
			l.At = append(l.At, c.at.Microseconds())
			l.Value = append(l.Value, clean(c.value))
		}
		for _, w := range t.disagreements(tr.ref) {
			l.Broken = append(l.Broken, [2]int64{w.from.Microseconds(), w.to.Microseconds()})
		}
		v.Lanes = append(v.Lanes, l)
	}
	return v
}

func hostIndex(m map[string]int, h string) int {
	if i, ok := m[h]; ok {
		return i
	}
	return -1
}

// addText gives items their fields, those near the cut first, while the
// budget lasts.
func (v *viewData) addText(t *timeline) {
	n := len(t.items)
	v.Detail = make([]int, n)
	b, _ := json.Marshal([]any{v.Dt, v.Pair, v.Bytes, v.Odd}) // integers always encode
	left := textBudget - len(b) - 2*n
	mid := 0
	from, _ := t.cutWindow()
	for mid < n && t.items[mid].at < from {
		mid++
	}
	seen := map[string]int{"": 0}
	add := func(i int) {
		s := shorten(t.items[i].detail, 200)
		k, ok := seen[s]
		if !ok {
			left -= 6
			j, _ := json.Marshal(s) // a string always encodes
			if left-len(j) < 0 {
				v.Left++
				return
			}
			left -= len(j)
			k = len(v.Text)
			seen[s] = k
			v.Text = append(v.Text, s)
		}
		v.Detail[i] = k
	}
	for d := 0; mid-1-d >= 0 || mid+d < n; d++ {
		if mid+d < n {
			add(mid + d)
		}
		if mid-1-d >= 0 {
			add(mid - 1 - d)
		}
	}
}

// canvasSummary is the Canvas view in words.
func canvasSummary(t *timeline) string {
	dropped := 0
	for _, it := range t.items {
		dropped += b2i(it.dropped)
	}
	s := fmt.Sprintf("All %s between %s over %s", plural(len(t.items), "message", "messages"), list(t.hosts), span(t.end))
	if t.cut != nil {
		from, to := t.cutWindow()
		s += fmt.Sprintf("; cut from %s to %s; %d dropped", at(from), at(to), dropped)
	}
	return s + ". The same messages are in the table below."
}
