package cluster

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// taking is a runner of a test that takes items and answers when it is told.
type taking struct {
	*class
	consumer jetstream.Consumer
	ended    chan string
}

func (c *class) takes() *taking {
	consumer, err := c.hub.items.Consumer(c.Context(), "c-1")
	if err != nil {
		c.Fatal(err)
	}
	return &taking{c, consumer, make(chan string, 10)}
}

// hands has a run made that this runner takes.
func (c *taking) hands(o *Offer, n int) jetstream.Msg {
	c.Helper()
	go func() {
		_, err := o.Run(c.Context(), item(n), c.record(item(n).Run), func(string) error { return nil })
		c.ended <- item(n).Run + ": " + err.Error()
	}()
	return c.next(item(n).Run)
}

func (c *taking) next(run string) jetstream.Msg {
	c.Helper()
	m, err := c.consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		c.Fatalf("%s does not come: %v", run, err)
	}
	if got := word(m.Subject(), 3); got != run {
		c.Fatalf("%s comes, want %s", got, run)
	}
	return m
}

// fails says that a run failed, and waits until that is taken.
func (c *taking) fails(run string) {
	c.Helper()
	b, err := json.Marshal(result{Error: "no room", Instance: "i"})
	if err == nil {
		_, err = c.hub.js.Publish(c.Context(), c.hub.n.subject("result", "c-1", run, "m1"), b)
	}
	if err != nil {
		c.Fatal(err)
	}
	select {
	case said := <-c.ended:
		if want := run + ": runner m1: no room"; said != want {
			c.Fatalf("%q, want %q", said, want)
		}
	case <-time.After(patience):
		c.Fatalf("%s does not end", run)
	}
}

// TestAKilledRunnersItemComesAgain, whatever runs were taken before their runners acknowledged them.
func TestAKilledRunnersItemComesAgain(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	r := c.takes()
	r.hands(o, 1) // and is killed
	r.hands(o, 2)
	r.fails("c-1-r0002") // and is killed before it acknowledges that
	if err := r.hands(o, 3).DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fails("c-1-r0003")
	if m, err := r.next("c-1-r0001").Metadata(); err != nil || m.NumDelivered != 2 {
		t.Errorf("%+v, %v: want it delivered again", m, err)
	}
	r.fails("c-1-r0001")
	c.until("nothing of them is left", func() bool { return len(c.left()) == 0 })
}

// TestAnItemThatTheBrokerForgetsIsHandedOutAnew: a purge makes it do so.
func TestAnItemThatTheBrokerForgetsIsHandedOutAnew(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	r := c.takes()
	r.hands(o, 1)
	r.hands(o, 2)
	if err := c.hub.items.Purge(t.Context(), jetstream.WithPurgeSubject(c.hub.n.subject("item", "c-1", "c-1-r0002"))); err != nil {
		t.Fatal(err)
	}
	third := r.hands(o, 3)
	if err := third.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fails("c-1-r0003")
	ctx, stop := context.WithTimeout(t.Context(), 3*short.lease)
	defer stop()
	if m, err := r.consumer.Next(jetstream.FetchContext(ctx)); err == nil {
		t.Fatalf("the broker delivers %s: the note in unpublish is not true any more", m.Subject())
	}
	for range 2 { // the second has no item and no result: it comes anew as well
		m, err := r.consumer.Next(jetstream.FetchMaxWait(patience))
		if err != nil {
			t.Fatal(err)
		}
		r.fails(word(m.Subject(), 3))
	}
}

func TestForgotten(t *testing.T) {
	for _, x := range []struct {
		floor                uint64
		waiting, outstanding int
		want                 bool
	}{{6, 0, 1, false}, {6, 1, 0, false}, {7, 3, 3, true}, {8, 0, 0, true}, {0, 0, 0, true}} {
		i := &jetstream.ConsumerInfo{AckFloor: jetstream.SequenceInfo{Stream: x.floor}, NumPending: uint64(x.waiting), NumAckPending: x.outstanding}
		if got := forgotten(i, 7); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// TestAResultThatWasNotHeardIsFound by the next look.
func TestAResultThatWasNotHeardIsFound(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	r := c.takes()
	for _, reading := range c.hub.reading {
		reading.Stop()
	}
	m := r.hands(o, 1)
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fails("c-1-r0001")
}
