package check

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"

	"netsplit/model"
)

// linearizable reports keys whose operations are in no order that a single
// register could have seen.
func linearizable() checker {
	return checker{
		name:    "linearizable",
		history: true,
		help:    "a key whose reads and writes no single register could have answered, in any order (linearizability)",
		with: map[string]setting{
			"write":  {def: "write", help: "`f` of the operations that set `key` to `value`"},
			"read":   {def: "read", help: "`f` of the operations that read it; value \"\" means that there is none"},
			"delete": {def: "delete", help: "`f` of the operations that remove it"},
			"cas":    {def: "cas", help: "`f` of the operations that replace one value by another: `value` is `old>new` (`old` may be empty), error `Mismatch` says that it had another value"},
			"most":   {def: "12", kind: "count", help: "how many writes of a key may be without an answer; with more the key is undecided, because each doubles the work"},
			"steps":  {def: "5000000", kind: "count", min: 1, help: "how many steps the search may take for all keys together, the shortest first; keys that it does not reach are undecided. Undecided keys leave the run unknown"},
		},
		run: runLinearizable,
	}
}

// register is what one operation does to a register.
type register struct {
	kind     byte // 'w', 'r', 'c', 'm' (a cas that found another value)
	old, new string
	unknown  bool // whether it happened
}

// mismatch is the error of a cas that found another value.
const mismatch = "Mismatch"

// singleRegister is the model: one value, "" for none. An operation that
// nobody knows the outcome of returns never: it may as well come last.
func singleRegister(initial string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, _ any) (bool, any) {
			op, now := input.(register), state.(string)
			switch op.kind {
			case 'w':
				return true, op.new
			case 'c':
				if now != op.old {
					return op.unknown, now // it may have failed
				}
				return true, op.new
			case 'm':
				return now != op.old, now
			}
			return now == op.new, now
		},
	}
}

func runLinearizable(r *Record, s settings) outcome {
	var out outcome
	writes, reads, deletes, cas := s.list("write"), s.list("read"), s.list("delete"), s.list("cas")
	byKey := map[string][]porcupine.Operation{}
	open := map[string]int{}
	ours := map[string][]call{}
	observed := false // something that a value shows in
	for _, c := range calls(r) {
		op := register{kind: 'w', new: c.value, unknown: c.typ != model.OpOK}
		switch {
		case slices.Contains(writes, c.f):
		case slices.Contains(deletes, c.f):
			op.new = ""
		case slices.Contains(cas, c.f):
			old, next, ok := strings.Cut(c.value, ">")
			if !ok {
				out.unknown = cmp.Or(out.unknown, fmt.Sprintf("%s of %q: want the value old>new", c.f, c.value))
				continue
			}
			op.kind, op.old, op.new = 'c', old, next
			if c.typ == model.OpFail && errorWord(c.err) == mismatch {
				op.kind = 'm'
			}
		case slices.Contains(reads, c.f) && c.typ == model.OpOK:
			op.kind = 'r'
		default:
			continue
		}
		if c.typ == model.OpFail && op.kind != 'm' {
			continue
		}
		if c.unanswered() {
			c.done = never
			open[c.key]++
		}
		observed = observed || op.kind == 'r' || op.kind == 'm' || op.kind == 'c' && !op.unknown
		byKey[c.key] = append(byKey[c.key], porcupine.Operation{ClientId: len(byKey[c.key]), Input: op, Call: int64(c.invoked), Return: int64(c.done)})
		ours[c.key] = append(ours[c.key], c)
	}
	for key := range byKey { // what names no key may have been about any
		if key != "" {
			for i, o := range byKey[""] {
				if ours[""][i].unanswered() {
					byKey[key], ours[key] = append(byKey[key], o), append(ours[key], ours[""][i])
					open[key]++
				}
			}
		}
	}
	if len(byKey) == 0 {
		return outcome{idle: "the history has no operation on a register"}
	}
	if !observed {
		return outcome{idle: "nothing that an operation returned depends on a register's value", unknown: out.unknown}
	}
	by := map[string]*model.Failure{}
	left := search{steps: s.count("steps")}
	var undecided []string
	many := 0
	keys := sortedKeys(byKey)
	slices.SortStableFunc(keys, func(a, b string) int { return len(byKey[a]) - len(byKey[b]) })
	for _, key := range keys {
		if open[key] > s.count("most") {
			if many++; many == 1 {
				out.unknown = and(out.unknown, fmt.Sprintf("%d writes of %s have no answer, more than %s: its history is not searched", open[key], key, s["most"]))
			}
			continue
		}
		fits, decided := left.fits(byKey[key])
		if !decided {
			undecided = append(undecided, key)
		}
		if !decided || fits {
			continue
		}
		i, known := left.firstMisfit(byKey[key])
		if !known {
			note(by, "operations fit no order", fmt.Sprintf("the operations on %s fit no single register; which one is the first that does not was not found within %s steps", key, s["steps"]))
			continue
		}
		c := ours[key][i]
		sig := c.f + " fits no order of operations"
		end := fmt.Sprintf("to %.3f s", c.done.Seconds())
		if c.done == never {
			end = "s without an answer"
		}
		note(by, sig, fmt.Sprintf("the operations on %s fit no single register: the first that does not is %s of %q through %s, %.3f %s%s",
			key, c.f, shorten(c.value), nameOf(c.node), c.invoked.Seconds(), end, when(r, c.invoked)))
	}
	if many > 1 {
		out.unknown = and(out.unknown, fmt.Sprintf("nor are those of %d more keys", many-1))
	}
	if len(undecided) > 0 {
		slices.Sort(undecided)
		what := "the operations on " + undecided[0]
		if n := len(undecided) - 1; n > 0 {
			what += fmt.Sprintf(" and %d more keys", n)
		}
		out.unknown = and(out.unknown, fmt.Sprintf("not decided within %s steps: whether %s fit a single register", s["steps"], what))
	}
	out.failures = collect(by)
	return out
}

// search counts what the search for orders may still do. It counts steps, not
// time: a record has one verdict, on a busy machine too.
type search struct{ steps int }

// The search remembers each set of operations that it put in order, in about
// keptBytes and a bit for each operation of the key. Beyond maxBytes for a key
// it ends.
const (
	keptBytes = 200
	maxBytes  = 256 << 20
)

// fits says whether the operations are in an order that one register could have
// seen; decided is false if the search ended before it knew.
func (l *search) fits(ops []porcupine.Operation) (fits, decided bool) {
	m := singleRegister("")
	step, kept, ended := m.Step, 0, false
	entry := keptBytes + len(ops)/8
	m.Step = func(state, input, output any) (bool, any) {
		if ended = ended || l.steps <= 0 || kept > maxBytes; ended {
			return false, state // so that the search has nowhere to go
		}
		l.steps--
		ok, next := step(state, input, output)
		if ok {
			kept += entry
		}
		return ok, next
	}
	m.Equal = func(a, b any) bool { // asked of what it has: one set of operations, two values
		if a != b {
			return false
		}
		kept -= entry // known already
		return true
	}
	fits = porcupine.CheckOperations(m, ops)
	return fits, fits || !ended
}

// firstMisfit is the index of the operation with whose answer the history stops
// fitting any order: what a register saw up to a moment is a register's history
// too, so there is one such moment. Operations under way at it may have
// happened, or not. known is false if the search for it ended too early.
func (l *search) firstMisfit(ops []porcupine.Operation) (index int, known bool) {
	byEnd := make([]int, len(ops))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortStableFunc(byEnd, func(a, b int) int { return cmp.Compare(ops[a].Return, ops[b].Return) })
	known = true
	fits := func(n int) bool {
		end := ops[byEnd[n-1]].Return
		var seen []porcupine.Operation
		for rank, i := range byEnd {
			o := ops[i]
			if in := o.Input.(register); rank >= n && in.kind != 'm' && in.kind != 'r' && o.Call <= end {
				in.unknown = true
				o.Input, o.Return = in, int64(never)
			} else if rank >= n {
				continue
			}
			seen = append(seen, o)
		}
		fit, decided := l.fits(seen)
		known = known && decided
		return fit
	}
	n := sort.Search(len(ops), func(n int) bool { return n > 0 && !fits(n) })
	return byEnd[min(n, len(ops))-1], known
}
