package report

import (
	"encoding/json"
	"sort"
)

// viewData is what the script lists. Items are columns, not objects, and
// text is stored once, so that ten thousand messages stay under 400 KB.
type viewData struct {
	Hosts  []string    `json:"hosts"`
	Pairs  [][3]int    `json:"pairs"` // sender, receiver, type
	Types  []string    `json:"types"`
	Text   []string    `json:"text"` // fields
	Dt     []int64     `json:"dt"`   // µs since the item before
	Pair   []int       `json:"pair"`
	Bytes  []int       `json:"bytes"`
	Detail []int       `json:"detail"` // index into Text; 0: none
	First  uint64      `json:"first"`  // number of the first message; they count up
	Odd    [][3]uint64 `json:"odd"`    // item, flags, number: what breaks the count or has flags
	Cut    bool        `json:"cut"`
	Start  int         `json:"start"` // item to show first: at the cut

	left int // items whose fields were left out
}

// Flags of an item.
const (
	flagDropped = 1 << iota
	flagAgain
	flagTrigger
	flagHeal
	flagFault
	flagKept
	flagOnward
)

// textBudget bounds the bytes of message fields that go along.
const textBudget = 260 << 10

func newViewData(t *timeline) viewData {
	v := viewData{Text: []string{""}, Odd: [][3]uint64{}, Hosts: []string{}, Pairs: [][3]int{}, Types: []string{}, Dt: []int64{}, Pair: []int{}, Bytes: []int{}, Cut: t.cut != nil}
	host := map[string]int{}
	for i, h := range t.hosts {
		host[string(h)] = i
		v.Hosts = append(v.Hosts, clean(string(h)))
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
		flags := uint64(b2i(it.dropped)*flagDropped | b2i(it.again)*flagAgain | b2i(it.trigger)*flagTrigger | b2i(it.heal)*flagHeal |
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
	start := t.centre()
	if t.cut != nil {
		start = t.cut.At
	}
	v.Start = sort.Search(len(t.items), func(i int) bool { return t.items[i].at >= start })
	v.addText(t)
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
	mid := v.Start
	seen := map[string]int{"": 0}
	add := func(i int) {
		s := shorten(t.items[i].detail, 200)
		k, ok := seen[s]
		if !ok {
			left -= 6
			j, _ := json.Marshal(s) // a string always encodes
			if left-len(j) < 0 {
				v.left++
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
