package check

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestLinearizableByHand compares the check with trying every order of every
// subset of what may have happened.
func TestLinearizableByHand(t *testing.T) {
	target := &model.Target{Checks: []model.CheckSpec{{Name: "linearizable", Class: model.Broken}}}
	seen := map[bool]int{}
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		r := Record{Target: target, Bounds: noBounds}
		values := []string{"", "1", "2"}
		var ops []handOp
		for p := range 1 + rng.IntN(5) {
			from := time.Duration(rng.IntN(12))
			o := handOp{f: []string{"write", "read", "read", "cas", "delete"}[rng.IntN(5)], from: from, to: from + 1 + time.Duration(rng.IntN(8)),
				old: values[rng.IntN(3)], new: values[1+rng.IntN(2)], typ: []model.OpType{model.OpOK, model.OpOK, model.OpInfo, model.OpFail}[rng.IntN(4)]}
			value, failed := o.new, ""
			switch o.f {
			case "read":
				o.new = values[rng.IntN(3)]
				value = o.new
			case "cas":
				value = o.old + ">" + o.new
				failed = mismatch
			}
			ops = append(ops, o)
			r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: model.OpInvoke, F: o.f, Key: "k", Value: value, Time: o.from * time.Second}},
				record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: o.typ, F: o.f, Key: "k", Value: value, Error: failed, Time: o.to * time.Second}})
		}
		want := anyOrder(ops, "")
		v := Judge(r)
		if v.Value == model.VerdictUnknown {
			continue
		}
		if got := len(v.Failures) == 0; got != want {
			t.Fatalf("seed %d: by hand %v, judged %+v\n%+v", seed, want, v, ops)
		}
		seen[want]++
	}
	if seen[true] < 500 || seen[false] < 500 {
		t.Errorf("too little was tried: %v", seen)
	}
}

// TestOldReadsAreNotLinearizable: what stale-read reports, linearizable does.
func TestOldReadsAreNotLinearizable(t *testing.T) {
	both := &model.Target{Checks: []model.CheckSpec{{Name: "linearizable", Class: model.Broken}, {Name: "stale-read", Class: model.Broken}}}
	old := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := Record{Target: both, Bounds: noBounds}
		written := []string{""}
		for p := range 8 {
			f, value := []string{"write", "write", "read", "read", "delete"}[rng.IntN(5)], ""
			switch f {
			case "write":
				value = fmt.Sprint("v", p)
				written = append(written, value)
			case "read":
				value = written[rng.IntN(len(written))]
			}
			from := time.Duration(p+rng.IntN(3)) * time.Second
			typ := []model.OpType{model.OpOK, model.OpOK, model.OpOK, model.OpInfo, model.OpFail}[rng.IntN(5)]
			r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: model.OpInvoke, F: f, Key: "k", Value: value, Time: from}},
				record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: typ, F: f, Key: "k", Value: value, Time: from + time.Duration(1+rng.IntN(3000))*time.Millisecond}})
		}
		by := map[string]bool{}
		for _, f := range Judge(r).Failures {
			by[f.Check] = true
		}
		if by["stale-read"] {
			old++
			if !by["linearizable"] {
				t.Fatalf("seed %d: a read is called old, and the history fits a register: %+v", seed, r.History)
			}
		}
	}
	if old < 100 {
		t.Errorf("only %d histories have old reads", old)
	}
}

type handOp struct {
	f, old, new string
	from, to    time.Duration
	typ         model.OpType
}

// anyOrder tries each operation that nothing left must come before.
func anyOrder(left []handOp, now string) bool {
	must := false
	for _, o := range left {
		must = must || o.typ == model.OpOK || o.f == "cas" && o.typ == model.OpFail
	}
	if !must {
		return true
	}
	for i, o := range left {
		rest := append(append([]handOp{}, left[:i]...), left[i+1:]...)
		gone := o.typ == model.OpFail && o.f != "cas" || o.f == "read" && o.typ != model.OpOK
		if o.typ == model.OpInfo || gone { // it may never have happened
			if anyOrder(rest, now) {
				return true
			}
			if gone {
				continue
			}
		}
		blocked := false
		for _, p := range rest {
			blocked = blocked || (p.typ == model.OpOK || p.f == "cas" && p.typ == model.OpFail) && p.to < o.from
		}
		if blocked {
			continue
		}
		next, ok := now, true
		switch {
		case o.f == "write":
			next = o.new
		case o.f == "delete":
			next = ""
		case o.f == "read":
			ok = now == o.new
		case o.typ == model.OpFail:
			ok = now != o.old
		case now == o.old:
			next = o.new
		default:
			ok = false
		}
		if ok && anyOrder(rest, next) {
			return true
		}
	}
	return false
}

// TestFirstMisfit: the operation named is the one whose answer breaks it, not
// one that a later answer explains, wherever the search looks first.
func TestFirstMisfit(t *testing.T) {
	for length := range 20 {
		r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: "linearizable", Class: model.Broken}}}, Bounds: noBounds}
		add := func(p int, f, value string, from, to int) {
			for i, at := range []int{from, to} {
				r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: []model.OpType{model.OpInvoke, model.OpOK}[i], F: f, Key: "k", Value: value, Node: "n1", Time: time.Duration(at) * time.Second}})
			}
		}
		add(0, "read", "0", 1, 9) // sees the write that begins after it
		add(1, "write", "0", 2, 3)
		for i := range length {
			add(2, "write", fmt.Sprint(i), 20+3*i, 21+3*i)
		}
		add(4, "write", "seen before it ends", 100, 300)
		add(5, "read", "seen before it ends", 101, 102)
		if v := Judge(r); v.Value != model.VerdictPass {
			t.Fatalf("a good history: %+v", v)
		}
		add(3, "read", "gone", 200, 201)
		add(6, "write", "late", 400, 401)
		v := Judge(r)
		if len(v.Failures) != 1 || v.Failures[0].Summary != `the operations on k fit no single register: the first that does not is read of "gone" through n1, 200.000 to 201.000 s` {
			t.Errorf("after %d writes: %+v", length, v)
		}
	}
}

// overlapping are writes of the keys that all overlap, and then a read of what
// nobody wrote: to say that they fit no order, the search tries all sets of them.
func overlapping(with map[string]string, writes map[string]int) Record {
	r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: "linearizable", Class: model.Broken, With: with}}}, Bounds: noBounds}
	p := 0
	add := func(key, f, value string, from, to int) {
		for i, at := range []int{from, to} {
			r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: []model.OpType{model.OpInvoke, model.OpOK}[i], F: f, Key: key, Value: value, Time: time.Duration(at) * time.Second}})
		}
		p++
	}
	for key, n := range writes {
		for i := range n {
			add(key, "write", fmt.Sprint(i), 1, 100)
		}
		add(key, "read", "nobody wrote it", 200, 201)
	}
	return r
}

// TestEachReasonIsKept: no key that could not be searched hides another.
func TestEachReasonIsKept(t *testing.T) {
	r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: "linearizable", Class: model.Broken, With: map[string]string{"most": "1"}}}}, Bounds: noBounds}
	p := 0
	add := func(key, f, value string, types ...model.OpType) {
		for i, typ := range types {
			r.History = append(r.History, record.Entry{Workload: "w", Operation: model.Operation{Process: p, Type: typ, F: f, Key: key, Value: value, Time: time.Duration(i+1) * time.Second}})
		}
		p++
	}
	for _, key := range []string{"a", "b"} {
		add(key, "write", "1", model.OpInvoke)
		add(key, "write", "2", model.OpInvoke)
		add(key, "read", "1", model.OpInvoke, model.OpOK)
	}
	if v := Judge(r); v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "2 writes of a have no answer") || !strings.Contains(v.Reason, "is not searched; nor are those of 1 more keys") {
		t.Errorf("%+v", v)
	}
}

// TestTheSearchEnds: what takes too many steps is neither a pass nor a failure,
// takes nothing from smaller keys, and is the same in every judgement.
func TestTheSearchEnds(t *testing.T) {
	small := map[string]string{"steps": "3000"}
	v := Judge(overlapping(small, map[string]int{"a": 40, "b": 3}))
	if v.Value != model.VerdictFail || len(v.Failures) != 1 || !strings.Contains(v.Failures[0].Summary, "the operations on b fit no single register") ||
		!strings.Contains(v.Reason, "not decided within 3000 steps: whether the operations on a fit a single register") {
		t.Errorf("%+v", v)
	}
	v = Judge(overlapping(small, map[string]int{"a": 40, "b": 41, "c": 42}))
	want := "check linearizable could not decide: not decided within 3000 steps: whether the operations on a and 2 more keys fit a single register"
	if v.Value != model.VerdictUnknown || v.Reason != want {
		t.Errorf("%+v", v)
	}
	for steps := 10; steps < 3000; steps += 10 { // wherever it ends, it says nothing wrong
		v := Judge(overlapping(map[string]string{"steps": fmt.Sprint(steps)}, map[string]int{"a": 5}))
		if v.Value != model.VerdictUnknown && v.Value != model.VerdictFail {
			t.Fatalf("%d steps: %+v", steps, v)
		}
	}
	if v := Judge(overlapping(map[string]string{"steps": "200000"}, map[string]int{"a": 40})); v.Value != model.VerdictUnknown {
		t.Errorf("%+v", v)
	}
}

// TestWritesAloneFitAnyOrder: without a read there is nothing to judge.
func TestWritesAloneFitAnyOrder(t *testing.T) {
	r := overlapping(nil, map[string]int{"a": 3})
	r.History = r.History[:6]
	if v := Judge(r); v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "nothing that an operation returned depends on a register's value") {
		t.Errorf("%+v", v)
	}
}
