package run

import (
	"context"
	"strings"
	"testing"
	"time"
)

// What an author of a target sees of an answer in which nothing was found is what
// the pattern should have matched, not the header before it.
func TestTheHeadOfAnAnswerShowsItsBody(t *testing.T) {
	long := strings.Repeat("x", 300)
	for answer, want := range map[string]string{
		"HTTP/1.0 200 OK\r\nAccess-Control-Allow-Headers: accept, content-type\r\nDate: now\r\n\r\n{\"leader\":\"7\"}": `HTTP/1.0 200 OK … {"leader":"7"}`,
		"HTTP/1.0 204 No Content\r\nDate: now\r\n\r\n":                                                                 "HTTP/1.0 204 No Content … ",
		"role:master\r\n\r\nx": "role:master\r\n\r\nx",
		long:                   long[:200],
	} {
		if got := head(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

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
