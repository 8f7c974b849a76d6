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
		help:    "a key whose reads and writes fit no single register, in any order that keeps what came before (linearizability)",
		with: map[string]setting{
			"write":  {def: "write", help: "f of the operations that set key to value"},
			"read":   {def: "read", help: "f of the operations that read it; the value \"\" means that there is none"},
			"delete": {def: "delete", help: "f of the operations that remove it"},
			"cas":    {def: "cas", help: "f of the operations that set key from one value to another, value \"old>new\" (old may be empty); error Mismatch: it had another value"},
			"most":   {def: "12", kind: "count", help: "how many writes of a key may be without an answer: each doubles the work, beyond it the key is left undecided"},
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
	for _, c := range calls(r) {
		op := register{kind: 'w', new: c.value, unknown: c.typ != model.OpOK}
		switch {
		case slices.Contains(writes, c.f):
		case slices.Contains(deletes, c.f):
			op.new = ""
		case slices.Contains(cas, c.f):
			old, next, ok := strings.Cut(c.value, ">")
			if !ok {
				out.unknown = fmt.Sprintf("%s of %q: want the value old>new", c.f, c.value)
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
		if c.typ == model.OpInfo || c.typ == model.OpInvoke {
			c.done = never
			open[c.key]++
		}
		byKey[c.key] = append(byKey[c.key], porcupine.Operation{ClientId: len(byKey[c.key]), Input: op, Call: int64(c.invoked), Return: int64(c.done)})
		ours[c.key] = append(ours[c.key], c)
	}
	if len(byKey) == 0 {
		return outcome{idle: "the history has no operation on a register"}
	}
	by := map[string]*model.Failure{}
	for _, key := range sortedKeys(byKey) {
		if open[key] > s.count("most") {
			out.unknown = fmt.Sprintf("%d writes of %s have no answer, more than %s: its history is not searched", open[key], key, s["most"])
			continue
		}
		if porcupine.CheckOperations(singleRegister(""), byKey[key]) {
			continue
		}
		c := ours[key][firstMisfit(byKey[key])]
		sig := fmt.Sprintf("%s fits no order of operations, %s", c.f, when(r, c.invoked))
		end := fmt.Sprintf("to %.3f s", c.done.Seconds())
		if c.done == never {
			end = "s without an answer"
		}
		note(by, sig, fmt.Sprintf("the operations on %s fit no single register: the first that does not is %s of %q through %s, %.3f %s",
			key, c.f, shorten(c.value), nameOf(c.node), c.invoked.Seconds(), end))
	}
	out.failures = collect(by)
	return out
}

// firstMisfit is the index of the operation with whose answer the history stops
// fitting any order: what a register saw up to a moment is a register's history
// too, so there is one such moment. Operations under way at it may have
// happened, or not.
func firstMisfit(ops []porcupine.Operation) int {
	byEnd := make([]int, len(ops))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortStableFunc(byEnd, func(a, b int) int { return cmp.Compare(ops[a].Return, ops[b].Return) })
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
		return porcupine.CheckOperations(singleRegister(""), seen)
	}
	n := sort.Search(len(ops), func(n int) bool { return n > 0 && !fits(n) })
	return byEnd[min(n, len(ops))-1]
}
