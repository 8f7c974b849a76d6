package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"netsplit/campaign/run"
	"netsplit/model"
)

// Goroutines that a script has left do nothing more once its function has ended,
// however that was: the step that one is in is waited for, and entered.
func TestNothingOutlivesTheScript(t *testing.T) {
	for name, end := range map[string]func(*testing.T){
		"returns": func(*testing.T) {},
		"panics":  func(*testing.T) { panic("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			r := &fakeRun{}
			const workers = 4
			stopped := make(chan struct{}, workers)
			under := make(chan struct{})
			s := &Script{ctx: t.Context(), live: r}
			err := s.play(func(s *Script) {
				for range workers {
					go func() {
						defer func() { stopped <- struct{}{} }()
						for {
							s.Client("c1").Do("get", "n1", "x")
							s.Sleep(time.Millisecond)
						}
					}()
				}
				go func() {
					defer func() { stopped <- struct{}{} }()
					s.step("long", "a step that takes a while", func() (string, error) {
						close(under)
						time.Sleep(20 * time.Millisecond)
						r.note("long over")
						return "", nil
					})
					s.Cut("late", model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}})
				}()
				<-under
				end(t)
			})
			did, steps := r.done(), len(r.steps) // the play is over: it is healed and closed
			if (err != nil) != (name == "panics") || !strings.HasSuffix(did, "long over") || strings.Contains(did, "two operations at once") || r.steps[steps-1].Do != "long" {
				t.Errorf("ended with %v, having done %s; %d steps", err, did, steps)
			}
			for range workers + 1 {
				select {
				case <-stopped:
				case <-time.After(10 * time.Second):
					t.Fatal("a goroutine of the script goes on")
				}
			}
			if now := r.done(); now != did || len(r.steps) != steps {
				t.Errorf("after the play: %s", strings.TrimPrefix(now, did))
			}
		})
	}
}

// A step that cannot be done ends the script, in whichever goroutine it was, and
// says so itself; one that is told to end by its context stops.
func TestHowAScriptEnds(t *testing.T) {
	r := &fakeRun{}
	stuck := make(chan struct{})
	err := (&Script{ctx: t.Context(), live: r}).play(func(s *Script) {
		go func() {
			defer close(stuck)
			s.step("op", "cannot", func() (string, error) { return "", errors.New("cannot be done") })
		}()
		<-stuck
		s.Client("c1").Do("get", "n1", "x")
		t.Error("the script went on")
	})
	if err != nil || len(r.steps) != 1 || r.steps[0].Outcome != model.StepStuck || r.done() != "" {
		t.Errorf("%v, %+v", err, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r = &fakeRun{ops: map[string]run.OpResult{}}
	err = (&Script{ctx: ctx, live: r}).play(func(s *Script) {
		s.Client("c1").Do("get", "n1", "x")
		cancel()
		s.Client("c1").Do("get", "n1", "y")
	})
	if err != nil || r.done() != "c1 get n1 x" {
		t.Errorf("%v, did %s", err, r.done())
	}
}
