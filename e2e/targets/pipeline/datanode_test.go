package main

import (
	"io"
	"net"
	"reflect"
	"testing"
	"time"
)

// TestWhatWasDroppedIsNotReported: a replica came twice, was dropped as one too many,
// and the notice of its second coming was still to be sent.
func TestWhatWasDroppedIsNotReported(t *testing.T) {
	s := open(t, t.TempDir())
	gone, kept := replica{"b1", 1}, replica{"b2", 2}
	put(t, s, gone, "one")
	put(t, s, kept, "two")
	d := &dataNode{id: "n2", hop: 30 * time.Second, store: s, log: io.Discard, kick: make(chan struct{}, 1)}
	d.notice("received", held{gone, 3})
	d.notice("received", held{kept, 3})
	d.drop(gone)
	d.notice("bad", held{gone, 3})
	a, b := net.Pipe()
	var told []string
	done := make(chan bool)
	go func() {
		defer close(done)
		for l := newLink(b); ; {
			m, err := l.receive()
			if err != nil {
				return
			}
			told = append(told, m.Type+" "+m.Replica.String())
			if err := l.send(okTo(m)); err != nil {
				return
			}
		}
	}()
	if err := d.tell(newLink(a)); err != nil {
		t.Error(err)
	}
	a.Close()
	<-done
	if want := []string{"received b2@2", "bad b1@1"}; !reflect.DeepEqual(told, want) || len(d.notices) > 0 {
		t.Errorf("told %q, want %q; %d notices are left", told, want, len(d.notices))
	}
}
