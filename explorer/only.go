package explorer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Past is what the run showed whose scenario is played in part. The zero value: nobody knows.
type Past struct {
	Start    time.Duration      // of the workload
	Steps    []model.StepResult // how its steps went
	Messages []Came             // while the workload ran, in order
}

// Came is a message that came to a gate or past it.
type Came struct {
	At       time.Duration
	Type     string
	From, To model.NodeID
}

// count is how many messages came that are meant, from the moment at which what follows the
// step at place armed (0: the start of the workload) may be armed, until the step at place of
// began, the message at which it did included.
func (p *Past) count(m model.MessageMatch, armed int, follows model.Follows, of int) (n int, ok bool) {
	from, known := p.Start, armed == 0
	until := time.Duration(-1)
	for _, r := range p.Steps {
		if r.Step == armed && r.By != "" {
			if from, known = r.Began, true; follows == model.FollowsEnd && r.EndedBy != "" {
				from = r.Ended
			}
		}
		if r.Step == of && r.By != "" {
			until = r.Began
		}
	}
	if !known || until < 0 || len(m.Roles()) > 0 {
		return 0, false
	}
	for _, c := range p.Messages {
		if c.At <= until && (c.At > from || armed == 0 && c.At == from) && m.Selects(c.Type, c.From, c.To, nil) {
			n++
		}
	}
	return n, true
}

// Only is a scenario with the steps at these places alone, in their order. A step that
// followed one that is left out begins when that one would have begun, or ended: a message
// that it counted from there on is counted from earlier on, with those that came in between
// in the run; until that moment the two are alike. The places of steps for which no trigger
// says that moment are returned as moved: they follow the step before it, or the start of
// the workload.
func Only(sc model.Scenario, places []int, past Past) (out model.Scenario, moved []int) {
	if len(places) == 0 {
		return WithoutFaults(sc), nil
	}
	out = sc
	out.Steps, out.Sequence = nil, nil
	if out.Strategy == model.StrategySequences {
		out.Strategy = model.StrategySteps
	}
	kept := 0
	begin, end := moment{exact: true}, moment{exact: true} // of the step before
	for i, st := range sc.Steps {
		at := moment{Trigger: st.When, exact: true}
		switch st.When.Follows {
		case model.FollowsBegin:
			at = begin.then(st.When, &past, kept)
		case model.FollowsEnd:
			at = end.then(st.When, &past, kept)
		}
		if !slices.Contains(places, i+1) {
			begin, end = at.acts(&st, &past, kept), at.ends(&st, &past, kept)
			begin.of = i + 1
			if st.Do.Message != nil { // it acts once
				end.of = i + 1
			}
			continue
		}
		if st.Do.Message != nil && at.Message != nil {
			st.Do.Message, at.exact = at.faults(*st.Do.Message, &past, kept)
			at.Message = nil
		}
		st.When = at.Trigger
		if len(out.Steps) == 0 {
			st.When.Follows = ""
		}
		out.Steps = append(out.Steps, st)
		if !at.exact {
			moved = append(moved, i+1)
		}
		kept = i + 1
		begin = moment{Trigger: model.Trigger{Follows: model.FollowsBegin}, exact: true}
		end = moment{Trigger: model.Trigger{Follows: model.FollowsEnd}, exact: true}
	}
	if out.Waits() == nil {
		out.Or = nil
	}
	out.Why = fmt.Sprintf("repeats %s with %d of its %d steps: %s", sc.ID, len(places), len(sc.Steps), strings.Trim(fmt.Sprint(places), "[]"))
	return out, moved
}

// moment is a trigger for the moment of a step that may be left out; exact says that it is
// that moment. of is the place of the step that began then, if one is left out; 0: nobody
// knows when it was in the run.
type moment struct {
	model.Trigger
	exact bool
	of    int
}

// then is the moment of own, which follows m. kept is the last step before that is played.
func (m moment) then(own model.Trigger, past *Past, kept int) moment {
	own.Follows = ""
	if own == (model.Trigger{}) {
		return m
	}
	out := moment{Trigger: own, exact: m.exact, of: m.of}
	out.Follows, out.At, out.After = m.Follows, max(m.At, own.At), m.After+own.After
	switch {
	case m.Trigger == model.Trigger{Follows: m.Follows, At: m.At, After: m.After}: // its times, and then own's
	case own == model.Trigger{Message: own.Message} && m.At == 0 && m.After == 0:
		n, ok := past.count(own.Message.Match, kept, m.Follows, m.of)
		if !ok {
			out.exact = false
			break
		}
		t := *own.Message
		t.Nth = max(t.Nth, 1) + n
		out.Message = &t
	default:
		out.exact = false
	}
	return out
}

// faults has a message fault that begins at the moment begin earlier and count from there on.
func (m moment) faults(f model.MessageFault, past *Past, kept int) (*model.MessageFault, bool) {
	n, ok := past.count(f.Match, kept, m.Follows, m.of)
	if !ok || m.At > 0 || m.After > 0 || m.State != nil || f.Every > 0 || f.While != nil || f.After > 0 {
		return &f, false
	}
	f.Nth = max(f.Nth, 1) + n
	return &f, m.exact
}

// acts is when the step begins for those that follow it: a message fault, once it acts.
func (m moment) acts(st *model.Step, past *Past, kept int) moment {
	f := st.Do.Message
	if f == nil {
		return m
	}
	out := m.then(model.Trigger{At: f.After, Message: &model.MessageTrigger{Match: f.Match, Nth: f.Nth}}, past, kept)
	out.exact = out.exact && f.While == nil
	return out
}

// ends is when the step ends for those that follow it.
func (m moment) ends(st *model.Step, past *Past, kept int) moment {
	out := m.acts(st, past, kept)
	out.of = 0
	f, u := st.Do.Message, &st.Until
	switch {
	case f != nil: // it acts once
		out.exact = out.exact && f.Every == 0 && f.Times <= 1
	case u.Timed() && u.At == 0:
		after := u.After
		if st.Max > 0 {
			after = min(after, st.Max)
		}
		out = out.then(model.Trigger{After: after}, past, kept)
	case *u == (model.Trigger{}) && st.Max > 0:
		out = out.then(model.Trigger{After: st.Max}, past, kept)
	default:
		out.exact = false
	}
	return out
}
