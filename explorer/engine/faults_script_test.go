package engine_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/explorer/engine"
	"netsplit/model"
)

var (
	faultRE = regexp.MustCompile(`^(\w+) (\S+) (\w+|\*)>(\w+|\*)(.*)$`)
	whileRE = regexp.MustCompile(`^while=(\w+)(?:\{(.*),(.*)\})?$`)
)

// fault reads "delay A n2>n3 for=500ms after=1s nth=2 every=1 times=3 while=I{LEFT,NORMAL}",
// and likewise duplicate (copies, gap), reorder (behind, limit) and lose (again,
// message).
func (s *script) fault(t *testing.T, d *datadriven.TestData, line string) model.MessageFault {
	m := faultRE.FindStringSubmatch(line)
	if m == nil {
		d.Fatalf(t, "fault %q: want KIND TYPE from>to and settings", line)
	}
	node := func(s string) model.NodeID { return model.NodeID(strings.TrimPrefix(s, "*")) }
	f := model.MessageFault{Kind: model.FaultKind(m[1]), Match: model.MessageMatch{Type: m[2], From: node(m[3]), To: node(m[4])}}
	for _, o := range strings.Fields(m[5]) {
		k, v, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(v)
		at, _ := time.ParseDuration(v)
		switch k {
		case "for":
			f.For = at
		case "gap":
			f.Gap = at
		case "limit":
			f.Limit = at
		case "after":
			f.After = at
		case "nth":
			f.Nth = n
		case "every":
			f.Every = n
		case "times":
			f.Times = n
		case "copies":
			f.Copies = n
		case "behind":
			f.Behind = n
		case "again":
			f.Again = n
		case "message":
			f.Lose = model.LoseMessage
		case "while":
			w := whileRE.FindStringSubmatch(o)
			f.While = &model.FaultCondition{Invariant: s.Invariants[w[1]]}
			if w[2] != "" {
				f.While.State = &model.State{A: w[2], B: w[3]}
			}
		default:
			d.Fatalf(t, "fault %q: unknown setting %q", line, o)
		}
	}
	if err := f.Validate(s.Hosts()); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return f
}

// change is a step of a scripted test that the engine is told.
func (s *script) change(t *testing.T, d *datadriven.TestData, at time.Duration, verb, what string) model.Event {
	name, rest, _ := strings.Cut(what, " ")
	switch verb {
	case "begin":
		f := s.fault(t, d, what)
		ev := s.event(model.EventFault, at)
		ev.Fault = &model.FaultChange{Begin: &f}
		return ev
	case "end":
		n, err := strconv.Atoi(what)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		ev := s.event(model.EventFault, at)
		ev.Fault = &model.FaultChange{End: n}
		return ev
	}
	ev := s.event(model.EventRuleCut, at)
	ev.RuleCut = &model.RuleCut{Name: name}
	if verb == "cut" {
		ev.RuleCut.Partition = &model.Partition{}
		for _, k := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
			n, _ := strconv.ParseUint(k, 10, 64)
			ev.RuleCut.Kept = append(ev.RuleCut.Kept, n)
		}
	}
	return ev
}

// faultLines prints what message faults did.
func faultLines(r engine.Result) string {
	var b strings.Builder
	for _, p := range r.Faults {
		fmt.Fprintf(&b, "fault %d: met %d, acted on %d", p.Fault, p.Met, p.Acted)
		for _, n := range []struct {
			name string
			n    int
		}{{"taken", p.Taken}, {"lost", p.Lost}, {"returned", p.Returned}, {"copies", p.Copies}, {"resets", p.Resets}, {"late", p.Late},
			{"early", p.Early}, {"cut", p.Cut}, {"in order", p.InOrder}} {
			if n.n != 0 {
				fmt.Fprintf(&b, ", %s %d", n.name, n.n)
			}
		}
		b.WriteString("\n")
		for _, h := range p.Hits {
			fmt.Fprintf(&b, "  m%d in p%d at %s", h.Message, h.Frame, h.At)
			if len(h.With) > 0 {
				fmt.Fprintf(&b, " with %v", h.With)
			}
			switch {
			case h.Passed > 0:
				fmt.Fprintf(&b, ", passed at %s (%s)", h.Passed, h.Why)
			case h.Why != "":
				fmt.Fprintf(&b, ", never passed (%s)", h.Why)
			}
			if h.Behind > 0 {
				fmt.Fprintf(&b, ", behind %d", h.Behind)
			}
			if len(h.Copies) > 0 {
				fmt.Fprintf(&b, ", copies %v", h.Copies)
			}
			if h.Returned > 0 {
				fmt.Fprintf(&b, ", returned %d, lost again %d", h.Returned, h.LostAgain)
			}
			if h.Through > 0 {
				fmt.Fprintf(&b, ", through at %s", h.Through)
			}
			if h.Reset {
				fmt.Fprintf(&b, ", reset, %d after it", h.After)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
