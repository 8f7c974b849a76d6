package run

import (
	"context"
	"testing"
	"time"
)

// Nothing would show how a target ended whose probes are asked seldom, were they
// stopped at the moment at which it is stable.
func TestProbesAreAskedOnceMoreAtTheEnd(t *testing.T) {
	p := &probes{last: make(chan struct{})}
	asked, asking, answer := 0, make(chan struct{}), make(chan struct{})
	p.wg.Go(func() {
		p.turns(context.Background(), time.Hour, func() { asked++; asking <- struct{}{}; <-answer })
	})
	<-asking // and the answer is from before the end
	ended := make(chan struct{})
	go func() { defer close(ended); p.lastRound() }()
	<-p.last
	answer <- struct{}{}
	select {
	case <-asking:
		answer <- struct{}{}
	case <-ended:
	}
	<-ended
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
