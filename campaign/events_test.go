package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"netsplit/model"
)

// A reader that comes back after the daemon was restarted, or after more came
// than is kept, hears what there is and that it missed something.
func TestAReaderIsToldWhatItMissed(t *testing.T) {
	open := func(before uint64, events int) *Service {
		s := &Service{log: slog.New(slog.DiscardHandler), subs: map[chan struct{}]bool{}, before: before}
		for n := range events {
			s.tell("run", fmt.Sprint("r", n+1), "pass", "a run")
		}
		return s
	}
	for _, c := range []struct {
		name   string
		s      *Service
		after  uint64
		first  uint64 // of the events that it hears
		missed bool
	}{
		{"from the start", open(7000, 3), 0, 7001, false},
		{"goes on", open(7000, 3), 7002, 7003, false},
		{"from the last daemon", open(7000, 3), 500, 7001, true},
		{"from a daemon whose clock was ahead", open(7000, 3), 9000, 7001, true},
		{"the last of the last daemon", open(7000, 3), 7000, 7001, false},
		{"fell off", open(7000, maxEvents+maxEvents/10+5), 7999, 8001, true},
		{"did not quite fall off", open(7000, maxEvents+maxEvents/10+5), 8000, 8001, false},
		{"from the last daemon, and nothing has happened", open(7000, 0), 500, 0, true},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		events, err := c.s.Events(ctx, c.after)
		if err != nil {
			t.Fatal(err)
		}
		var got model.ServiceEvent
		if got = <-events; c.missed {
			if got.Kind != "events" || got.State != "missed" || !strings.Contains(got.Text, "read the lists again") || c.first > 0 && got.Num != c.first-1 {
				t.Errorf("%s: not told: %+v", c.name, got)
			}
			if c.first > 0 {
				got = <-events
			}
		}
		if c.first > 0 && (got.Num != c.first || got.Kind != "run") {
			t.Errorf("%s: hears %+v first, want number %d", c.name, got, c.first)
		}
		cancel()
	}
	if s := open(0, 0); s.lastEvent() != 0 {
		t.Error(s.lastEvent())
	}
}

// TestAnEventIsOneLine, whatever a partition's reason says.
func TestAnEventIsOneLine(t *testing.T) {
	s := &Service{log: slog.New(slog.DiscardHandler), subs: map[chan struct{}]bool{}}
	s.tell("partition", "p1", "healing", "not proved:\nhost a: no link\nhost b: no link")
	if got, want := s.events[0].Text, "not proved: host a: no link; host b: no link"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFromNow: who asks for what comes hears nothing of what happened.
func TestFromNow(t *testing.T) {
	s := &Service{log: slog.New(slog.DiscardHandler), subs: map[chan struct{}]bool{}, before: 7000}
	s.tell("run", "r1", "pass", "a run")
	events, err := s.Events(t.Context(), model.EventsFromNow)
	if err != nil {
		t.Fatal(err)
	}
	s.tell("run", "r2", "pass", "a run")
	if got := <-events; got.ID != "r2" || got.Num != 7002 {
		t.Errorf("heard %+v", got)
	}
}
