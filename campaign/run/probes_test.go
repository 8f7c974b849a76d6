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
	p.first.Add(1)
	requested, asking, answer := 0, make(chan struct{}), make(chan struct{})
	p.wg.Go(func() {
		p.turns(context.Background(), time.Hour, func() { requested++; asking <- struct{}{}; <-answer })
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
	if requested != 2 {
		t.Errorf("asked %d times", requested)
	}
}

// The workload starts on what each source says of a target that is ready, not on
// what messages told while it started.
func TestProbesAreAskedBeforeTheWorkload(t *testing.T) {
	p := &probes{last: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	requested := make(chan string, 10)
	slow := make(chan struct{})
	p.first.Add(2)
	p.wg.Go(func() { p.turns(ctx, time.Millisecond, func() { requested <- "quick"; <-slow }) })
	p.wg.Go(func() { p.turns(ctx, time.Hour, func() { <-slow; requested <- "slow" }) })
	began := make(chan struct{})
	go func() { defer close(began); p.firstRound() }()
	<-requested
	select {
	case <-began:
		t.Fatal("the round is over before the slow source answered")
	case <-time.After(20 * time.Millisecond):
	}
	close(slow)
	<-began
	cancel()
	p.wait()
}
