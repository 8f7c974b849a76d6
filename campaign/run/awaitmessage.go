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
	came  chan model.Message
}

// tellWaits hands a message to the script that waits for such a one. The caller holds mu.
func (s *session) tellWaits(m *model.Message) {
	w := s.waits
	if w == nil || !w.match.Selects(m.Type, m.From, m.To, func(string, model.NodeID) bool { return true }) {
		return
	}
	select {
	case w.came <- *m:
	default: // it is looking at others
	}
}

// AwaitMessage waits until a message that matches crosses the switch, from now on, and
// returns it; ok is false if none has within the limit. Who has a role is asked when the
// message has come.
func (l *Live) AwaitMessage(ctx context.Context, limit time.Duration, match model.MessageMatch) (m model.Message, ok bool, err error) {
	if err := l.ends(&match); err != nil {
		return m, false, err
	}
	if l.r.c.Testbed.TapName(&l.r.c.Scenario) == "none" {
		return m, false, errors.New("no message is read on this testbed: it takes one switch with a mirror port (mirrors in the testbed file)")
	}
	w := &messageWait{match, make(chan model.Message, 100)}
	l.setWait(w)
	defer l.setWait(nil)
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	for {
		select {
		case m = <-w.came:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return m, false, nil
			}
			return m, false, context.Cause(ctx)
		}
		if match.Selects(m.Type, m.From, m.To, func(role string, h model.NodeID) bool {
			who, herr := l.r.s.holders(role)
			if herr != nil && !errors.Is(herr, model.ErrUnavailable) {
				err = herr
			}
			return slices.Contains(who.Have, h)
		}) {
			return m, true, nil
		}
		if err != nil {
			return m, false, fmt.Errorf("message %d (%s, %s to %s) came, and who has a role could not be told: %w", m.Num, m.Type, m.From, m.To, err)
		}
	}
}

func (l *Live) setWait(w *messageWait) {
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = w
}
