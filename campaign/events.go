package campaign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// maxEvents of the daemon's log are kept for readers that resume, and up to a tenth more.
const maxEvents = 10000

// tell enters a change, as one line, into the daemon's log and wakes its readers.
func (s *Service) tell(kind, id, state, text string) {
	text = model.OneLine(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, model.ServiceEvent{Num: s.lastEvent() + 1, At: time.Now().UTC(), Kind: kind, ID: id, State: state, Text: text})
	if len(s.events) >= maxEvents+maxEvents/10 { // not at each event
		s.events = slices.Clone(s.events[len(s.events)-maxEvents:])
	}
	for c := range s.subs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	s.log.Info(text, "kind", kind, "id", id, "state", state)
}

// lastEvent is the number of the last event; of one before all, where none has
// happened yet. The caller holds mu.
func (s *Service) lastEvent() uint64 {
	if len(s.events) == 0 {
		return s.before
	}
	return s.events[len(s.events)-1].Num
}

// eventsAfter are the events after the given number. A reader who missed some,
// since they are kept no more or were another daemon's, is told so first; one
// who has read nothing (0) missed none. The caller holds mu.
func (s *Service) eventsAfter(after uint64) []model.ServiceEvent {
	oldest := s.lastEvent() - uint64(len(s.events)) // the one before the first kept
	if after == 0 {
		after = oldest
	}
	var out []model.ServiceEvent
	if after < oldest || after > s.lastEvent() {
		out = append(out, model.ServiceEvent{Num: oldest, At: time.Now().UTC(), Kind: "events", State: "missed",
			Text: fmt.Sprintf("events after number %d are not kept, because the daemon was restarted or more than %d events have come: read the lists again", after, maxEvents)})
		after = oldest
	}
	return append(out, s.events[after-oldest:]...)
}

// Events sends what happens after the given number, or from now on, until ctx ends.
func (s *Service) Events(ctx context.Context, after uint64) (<-chan model.ServiceEvent, error) {
	out := make(chan model.ServiceEvent, 64)
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	s.subs[wake] = true
	if after == model.EventsFromNow {
		after = s.lastEvent()
	}
	s.mu.Unlock()
	go func() {
		defer close(out)
		defer func() {
			s.mu.Lock()
			delete(s.subs, wake)
			s.mu.Unlock()
		}()
		for {
			s.mu.Lock()
			next := s.eventsAfter(after)
			s.mu.Unlock()
			for _, e := range next {
				select {
				case out <- e:
					after = e.Num
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
