package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/model"
)

// capture keeps what it is given; write, if set, comes first.
type capture struct {
	write   func() error
	frames  []model.Frame
	flush   func() error
	flushes int
	closed  bool
}

func (c *capture) Write(f model.Frame, _ string) error {
	if c.write != nil {
		if err := c.write(); err != nil {
			return err
		}
	}
	c.frames = append(c.frames, f)
	return nil
}

func (c *capture) Flush() error {
	c.flushes++
	if c.flush != nil {
		return c.flush()
	}
	return nil
}
func (c *capture) Close() error { c.closed = true; return nil }

func newWriter(t *testing.T, c *capture) *Writer {
	t.Helper()
	w, err := Create(t.TempDir(), model.RunMeta{})
	if err != nil {
		t.Fatal(err)
	}
	w.Capture(c)
	return w
}

// TestEachOnesEntriesKeepTheirOrder, in lines and packets, and none is lost at the end.
func TestEachOnesEntriesKeepTheirOrder(t *testing.T) {
	c := &capture{}
	w := newWriter(t, c)
	const each, senders = 3 * queued / 4, 3 // more than the queue holds
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			data := make([]byte, 8) // is used anew, as a tap's
			for i := range each {
				w.Append(EventsFile, model.Event{Num: uint64(i), At: time.Duration(s)})
				data[0], data[1] = byte(i), byte(i>>8)
				w.Packet(model.Frame{Num: uint64(i), At: time.Duration(s), Data: data}, "")
			}
		})
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	events, _, err := ReadLines[model.Event](w.Dir, EventsFile)
	if err != nil || len(events) != each*senders || len(c.frames) != each*senders || !c.closed {
		t.Fatalf("%d events and %d packets of %d each; closed %v, %v", len(events), len(c.frames), each*senders, c.closed, err)
	}
	var nextEvent, nextFrame [senders]uint64
	for i, e := range events {
		f := c.frames[i]
		if e.Num != nextEvent[e.At] || f.Num != nextFrame[f.At] {
			t.Fatalf("entry %d: event %d of sender %d, want %d; packet %d of %d, want %d", i, e.Num, e.At, nextEvent[e.At], f.Num, f.At, nextFrame[f.At])
		}
		if want := []byte{byte(f.Num), byte(f.Num >> 8)}; !bytes.Equal(f.Data[:2], want) {
			t.Fatalf("packet %d has the bytes of another", f.Num)
		}
		nextEvent[e.At]++
		nextFrame[f.At]++
	}
}

// TestWhoeverFindsTheQueueFullWaits, which is counted; nobody waits before.
func TestWhoeverFindsTheQueueFullWaits(t *testing.T) {
	writing, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := &capture{write: func() error {
		once.Do(func() { close(writing) })
		<-goOn
		return nil
	}}
	w := newWriter(t, c)
	w.Packet(model.Frame{}, "")
	<-writing
	for range queued {
		w.Append(EventsFile, model.Event{})
	}
	if n, _ := w.Waits(); n != 0 {
		t.Fatalf("%d entries waited while there was room", n)
	}
	begins, late := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(late)
		close(begins)
		w.Append(EventsFile, model.Event{})
	}()
	<-begins
	select {
	case <-late:
		t.Fatal("an entry was taken for which there was no room")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-late
	if n, d := w.Waits(); n != 1 || d <= 0 { // it may have begun late
		t.Errorf("%d entries waited, %v in all: want 1", n, d)
	}
	if err := w.Close(); err != nil || w.Lines()[EventsFile] != queued+1 {
		t.Errorf("%d lines of %d, %v", w.Lines()[EventsFile], queued+1, err)
	}
}

// TestWhatFailsEndsTheRecord with its reason, and holds up nobody.
func TestWhatFailsEndsTheRecord(t *testing.T) {
	for name, fails := range map[string]struct {
		write func() error
		v     any
		want  string
	}{
		"a capture that cannot be written": {write: func() error { return errors.New("no room") }, want: "no room"},
		"a panic":                          {write: func() error { panic("bad packet") }, want: "bad packet"},
		"what is no JSON":                  {v: func() {}, want: "write events.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &capture{write: fails.write}
			w := newWriter(t, c)
			if fails.v != nil {
				w.Append(EventsFile, fails.v)
			} else {
				w.Packet(model.Frame{}, "")
			}
			for range 2 * queued {
				w.Append(EventsFile, model.Event{})
			}
			for what, err := range map[string]error{"Flush": w.Flush(), "Err": w.Err(), "Close": w.Close()} {
				if err == nil || !strings.Contains(err.Error(), fails.want) {
					t.Errorf("%s says %v: want %q", what, err, fails.want)
				}
			}
			if n := w.Lines()[EventsFile]; n != 0 || !c.closed {
				t.Errorf("%d lines behind the failure, capture closed %v", n, c.closed)
			}
		})
	}
}

// TestAPanicOfAFlushEndsTheRecord and not the daemon, whoever asked for it.
func TestAPanicOfAFlushEndsTheRecord(t *testing.T) {
	c := &capture{flush: func() error { panic("bad flush") }}
	w := newWriter(t, c)
	w.Append(EventsFile, model.Event{})
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "bad flush") || !c.closed {
		t.Errorf("%v, capture closed %v", err, c.closed)
	}
}

// TestAnEntryIsSoonWithTheOperatingSystem, where a killed process cannot lose it.
func TestAnEntryIsSoonWithTheOperatingSystem(t *testing.T) {
	w := newWriter(t, &capture{})
	defer w.Close()
	w.Append(EventsFile, model.Event{Num: 7})
	for end := time.Now().Add(time.Minute); ; time.Sleep(flushEvery / 4) {
		if b, _ := os.ReadFile(filepath.Join(w.Dir, EventsFile)); bytes.Contains(b, []byte(`"n":7`)) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the entry is in the file only when it is asked for")
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	w, err := Create(b.TempDir(), model.RunMeta{})
	if err != nil {
		b.Fatal(err)
	}
	m := &model.Message{From: "n1", To: "n2", Stream: "tcp 10.0.0.1:40312>10.0.0.2:6379#2", Type: "resp PUBLISH __sentinel__:hello",
		Fields: []model.Field{{Name: "arg1", Value: fmt.Sprint(b.N)}, {Name: "arg2", Value: "10.0.0.1,26379,6b1c,3,mymaster,10.0.0.1,6379,3"}}}
	b.ReportAllocs()
	for i := range b.N {
		w.Append(EventsFile, model.Event{Num: uint64(i), Kind: model.EventMessage, Message: m})
	}
	b.StopTimer()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
