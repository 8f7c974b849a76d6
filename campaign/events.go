package campaign

import (
	"context"
	"slices"
	"time"

	"netsplit/model"
)

// maxEvents of the daemon's log are kept for readers that resume.
const maxEvents = 10000

// tell enters a change into the daemon's log and wakes its readers.
func (s *Service) tell(kind, id, state, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := uint64(1)
	if len(s.events) > 0 {
		n = s.events[len(s.events)-1].Num + 1
	}
	s.events = append(s.events, model.ServiceEvent{Num: n, At: time.Now(), Kind: kind, ID: id, State: state, Text: text})
	if len(s.events) > maxEvents {
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

// Events sends what happens after the given number until ctx ends.
func (s *Service) Events(ctx context.Context, after uint64) (<-chan model.ServiceEvent, error) {
	out := make(chan model.ServiceEvent, 64)
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	s.subs[wake] = true
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
			var next []model.ServiceEvent
			for _, e := range s.events {
				if e.Num > after {
					next = append(next, e)
				}
			}
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
