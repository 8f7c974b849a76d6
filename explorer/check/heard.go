package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"netsplit/model"
)

// Heard counts the messages of a type that came from one host to another while the workload
// ran. Port is the one on which one of the two listens.
type Heard struct {
	Type     string
	From, To model.NodeID
	Port     uint16
	Count    int
}

// maxHeard types are named in place of one that never came.
const maxHeard = 6

// neverCame says what came in place of the messages that are meant, if none of their type
// did from and to those hosts; "" if one came, or nobody knows. Roles are not looked at.
func neverCame(heard []Heard, m *model.MessageMatch) string {
	has := func(string, model.NodeID) bool { return true }
	var same, link []Heard
	for _, h := range heard {
		switch {
		case m.Selects(h.Type, h.From, h.To, has):
			return ""
		case model.MatchType(m.Type, h.Type):
			same = append(same, h)
		case (m.From == "" || m.From == h.From) && (m.To == "" || m.To == h.To):
			link = append(link, h)
		}
	}
	if len(heard) == 0 {
		return ""
	}
	on := ""
	if from := cmp.Or(m.FromRole, string(m.From)); from != "" {
		on += " from " + from
	}
	if to := cmp.Or(m.ToRole, string(m.To)); to != "" {
		on += " to " + to
	}
	s := fmt.Sprintf("no message of type %q came%s; ", m.Type, on)
	switch {
	case len(same) > 0:
		return s + "it came " + counted(same, func(h Heard) string { return fmt.Sprintf("from %s to %s", h.From, h.To) }, m.Type)
	case len(link) > 0:
		return s + counted(link, func(h Heard) string { return fmt.Sprintf("on port %d came", h.Port) }, m.Type)
	}
	return s + "nothing came" + on
}

// counted lists what was heard, by place: the place with most first, and there what is spelt
// most like the wanted type, then the most frequent.
func counted(heard []Heard, place func(Heard) string, wanted string) string {
	sum := map[string]map[string]int{}
	all := map[string]int{}
	for _, h := range heard {
		p := place(h)
		if sum[p] == nil {
			sum[p] = map[string]int{}
		}
		sum[p][h.Type] += h.Count
		all[p] += h.Count
	}
	var out []string
	n := 0
	for _, p := range slices.SortedFunc(slices.Values(sortedKeys(all)), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b)) }) {
		var types []string
		for _, typ := range slices.SortedFunc(slices.Values(sortedKeys(sum[p])), func(a, b string) int {
			return cmp.Or(cmp.Compare(common(wanted, b), common(wanted, a)), cmp.Compare(sum[p][b], sum[p][a]), strings.Compare(a, b))
		}) {
			if n++; n <= maxHeard {
				types = append(types, fmt.Sprintf("%s (%d)", typ, sum[p][typ]))
			}
		}
		if types != nil {
			out = append(out, p+" "+strings.Join(types, ", "))
		}
	}
	s := strings.Join(out, ", ")
	if n > maxHeard {
		s += fmt.Sprintf(", and %d types more", n-maxHeard)
	}
	return s
}

// common is the length of the longest word that both have.
func common(a, b string) int {
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	n := 0
	for _, w := range words(a) {
		if slices.Contains(words(b), w) {
			n = max(n, len(w))
		}
	}
	return n
}
