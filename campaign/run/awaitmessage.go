package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// messageWait waits for a message of a match, roles left aside.
type messageWait struct {
	match model.MessageMatch
	came  []model.Message // not looked at yet: of each link the last, which is all that a role tells apart
	more  chan struct{}   // told when something came
}

// tellWaits hands a message to the script that waits for such a one. The caller holds mu.
func (s *session) tellWaits(m *model.Message) {
	w := s.waits
	if w == nil || !w.match.Selects(m.Type, m.From, m.To, func(string, model.NodeID) bool { return true }) {
		return
	}
	w.came = append(slices.DeleteFunc(w.came, func(o model.Message) bool { return o.From == m.From && o.To == m.To }), *m)
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// AwaitMessage waits until a message that matches crosses the switch, from now on, and
// returns it; ok is false if none has within the limit. Who has a role is asked when the
// message has come, once for all that have come by then.
func (l *Live) AwaitMessage(ctx context.Context, limit time.Duration, match model.MessageMatch) (m model.Message, ok bool, err error) {
	if err := l.ends(&match); err != nil {
		return m, false, err
	}
	if l.r.c.Testbed.TapName(&l.r.c.Scenario) == "none" {
		return m, false, errors.New("no message is read on this testbed: it takes one switch with a mirror port (mirrors in the testbed file)")
	}
	s, w := l.r.s, &messageWait{match: match, more: make(chan struct{}, 1)}
	l.setWait(w)
	defer l.setWait(nil)
	end := time.After(limit)
	for over := false; !over; {
		select {
		case <-w.more:
		case <-ctx.Done():
			return m, false, context.Cause(ctx)
		case <-end: // what came before it still counts
			over = true
		}
		s.mu.Lock()
		came := w.came
		w.came = nil
		s.mu.Unlock()
		if m, ok, err = s.first(match, came); ok || err != nil {
			return m, ok, err
		}
	}
	return m, false, nil
}

// first is the first of some messages that a match selects by who has its roles now.
func (s *session) first(match model.MessageMatch, of []model.Message) (m model.Message, ok bool, err error) {
	have := map[string][]model.NodeID{}
	has := func(role string, h model.NodeID) bool {
		if _, asked := have[role]; !asked {
			who, herr := s.holders(role)
			if herr != nil && !errors.Is(herr, model.ErrUnavailable) {
				err = herr
			}
			have[role] = who.Have
		}
		return slices.Contains(have[role], h)
	}
	for _, m = range of {
		if match.Selects(m.Type, m.From, m.To, has) {
			return m, true, nil
		}
		if err != nil {
			return m, false, fmt.Errorf("message %d (%s, %s to %s) came, and who has a role could not be told: %w", m.Num, m.Type, m.From, m.To, err)
		}
	}
	return model.Message{}, false, nil
}

func (l *Live) setWait(w *messageWait) {
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = w
}
