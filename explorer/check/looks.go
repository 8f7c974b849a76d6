package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// A check that says that data is missing asks the final reads. A system may
// still be merging then, also when its stable conditions hold: it may bring
// what is missing by itself. So the reads are made again when its repair has
// had its time (Timing.Repair), and the second look decides. What only the first
// one lacked is late.

// loss is how a check speaks of what final reads lack: of one, of several, what it
// was at the first look and is at the second.
type loss struct{ one, many, was, is string }

// lateSetting is the user's bound on what is late.
var lateSetting = setting{def: "", kind: "duration", help: "how long after heal missing data may appear without being a failure; empty: no limit"}

// lookedOnce ends the summary of a loss that nobody looked at a second time.
const lookedOnce = "; nobody looked a second time"

// Crossed says that a node sent a key to another one, between two looks at it.
type Crossed struct {
	Key string
	At  time.Duration
	model.Link
}

// Missing are the keys that the first final reads lack, by the checks of the
// target, sorted: why to look a second time.
func Missing(r *Record) []string {
	if r.Target == nil {
		return nil
	}
	var out []string
	for _, spec := range r.Target.Checks {
		if c, ok := lookup(spec.Name); ok && c.loss != nil {
			if s, problems := c.settings(spec); len(problems) == 0 {
				out = append(out, c.judge(r.at(1), s).missing...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// at is the record with the final reads of one look alone.
func (r *Record) at(look int) *Record {
	other := func(e record.Entry) bool { return e.Look != 0 && e.Look != look }
	if !slices.ContainsFunc(r.History, other) {
		return r
	}
	out := *r
	out.History = slices.DeleteFunc(slices.Clone(r.History), other)
	return &out
}

func (c checker) look(r *Record, s settings) (outcome, *model.Late) {
	o := c.judge(r.at(1), s)
	if c.loss == nil || len(o.missing) == 0 {
		return o, nil
	}
	if len(r.Looks) < 2 {
		for i := range o.failures {
			f := &o.failures[i]
			f.Summary += lookedOnce
			f.Detail = append(f.Detail, crossings(r, o.missing)...)
		}
		return o, nil
	}
	first, second := r.Looks[0], r.Looks[1]
	last := c.judge(r.at(2), s)
	if last.unknown != "" || len(second.Trouble) > 0 {
		last.failures = nil
		last.unknown = and(fmt.Sprintf("%s at %s s, and a second look at %s s did not tell", c.loss.count(len(o.missing), c.loss.was), seconds(first.To), seconds(second.From)),
			strings.Join(append(slices.Clone(second.Trouble), last.unknown), "; "))
		last.unknown = strings.TrimSuffix(last.unknown, "; ")
		return last, nil
	}
	for i := range last.failures {
		f := &last.failures[i]
		f.Detail = append(f.Detail, fmt.Sprintf("read at %s s and again at %s s", seconds(first.From), seconds(second.From)))
		f.Detail = append(f.Detail, crossings(r, last.missing)...)
	}
	came := slices.DeleteFunc(slices.Clone(o.missing), func(k string) bool { return slices.Contains(last.missing, k) })
	if len(came) == 0 {
		return last, nil
	}
	after, healed := "the workload ended", r.Recovery.HealedAt
	if r.Proof != nil {
		after = "heal"
	}
	late := &model.Late{Count: len(came), Missing: first.To, There: second.From,
		Summary: fmt.Sprintf("%s %s s after %s and %s by %s s after it: late, not lost", c.loss.count(len(came), c.loss.was), seconds(first.To-healed), after, c.loss.is, seconds(second.To-healed))}
	const show = 10
	late.Detail = []string{"late: " + strings.Join(came[:min(show, len(came))], ", ")}
	if n := len(came) - show; n > 0 {
		late.Detail[0] += fmt.Sprintf(" and %d more", n)
	}
	late.Detail = append(late.Detail, crossings(r, came)...)
	if s["late"] != "" && first.To-healed > s.duration("late") {
		last.failures = append(last.failures, model.Failure{Class: model.BrokenBound, Signature: "late beyond the stated bound: " + c.loss.many, Amount: len(came),
			Summary: late.Summary + fmt.Sprintf(" (beyond the stated bound: at most %s after heal)", s["late"]), Detail: late.Detail})
		return last, nil
	}
	return last, late
}

func (l *loss) count(n int, state string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s was %s", l.one, state)
	}
	return fmt.Sprintf("%d %s were %s", n, l.many, state)
}

func crossings(r *Record, keys []string) []string {
	n, seen := 0, map[string]bool{}
	var first *Crossed
	for i := range r.Crossed {
		x := &r.Crossed[i]
		if seen[x.Key] || !slices.Contains(keys, x.Key) {
			continue
		}
		n, seen[x.Key] = n+1, true
		if first == nil || x.At < first.At {
			first = x
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d crossed the switch between nodes after the first reads, the first of them %s from %s to %s at %.3f s", n, len(keys), first.Key, first.Src, first.Dst, first.At.Seconds())}
}
