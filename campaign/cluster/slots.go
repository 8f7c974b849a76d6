package cluster

import (
	"context"
	"sync"
)

// slots bounds the runs under way by a number that changes while runners come and go.
type slots struct {
	mu      sync.Mutex
	changed sync.Cond
	n, used int
}

func newSlots() *slots {
	s := &slots{}
	s.changed.L = &s.mu
	return s
}

// set says how many there are. Those that are used stay used.
func (s *slots) set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n != n {
		s.n = n
		s.changed.Broadcast()
	}
}

// take waits for a free one; give gives it back.
func (s *slots) take(ctx context.Context) (give func(), err error) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.used >= s.n {
		if ctx.Err() != nil {
			s.changed.Signal() // it may have been for another one
			return nil, context.Cause(ctx)
		}
		s.changed.Wait()
	}
	s.used++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.used--; s.used < s.n {
			s.changed.Signal()
		}
	}), nil
}
