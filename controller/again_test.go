package controller_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
)

// TestConnectedAgain: a switch that connects while its last session is dead, and not
// yet known to be, is taken at once. That session has ended for its handler before.
func TestConnectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, _, rec, c := start(t, controller.Config{DuplicateTimeout: 50 * time.Millisecond, EchoTimeout: time.Hour}, switchtest.Config{Datapath: 7, Mute: true})
		end := join(t, c, switchtest.New(switchtest.Config{Datapath: 7}))
		if err := get(t, "the end of the dead session", rec.down); !errors.Is(err, controller.ErrReplaced) {
			t.Errorf("the dead session ended with %v", err)
		}
		again := get(t, "switch up", rec.up)
		if again == dead || c.Switch(7) != again {
			t.Errorf("the session of the datapath is %p, not the new one %p", c.Switch(7), again)
		}
		if err := again.Barrier(soon(t)); err != nil {
			t.Error(err)
		}
		// A third one is refused: this one answers.
		if err := get(t, "a third one", join(t, c, switchtest.New(switchtest.Config{Datapath: 7}))); !errors.Is(err, controller.ErrDuplicate) {
			t.Error(err)
		}
		select {
		case err := <-end:
			t.Errorf("the new session has ended: %v", err)
		default:
		}
	})
}

// TestConnectedTwiceAtOnce: of two that come while the last session is dead one is
// taken, and the other refused.
func TestConnectedTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, rec, c := start(t, controller.Config{DuplicateTimeout: 50 * time.Millisecond, EchoTimeout: time.Hour}, switchtest.Config{Datapath: 7, Mute: true})
		ends := make(chan error, 2)
		for range 2 {
			end := join(t, c, switchtest.New(switchtest.Config{Datapath: 7}))
			go func() { ends <- <-end }()
		}
		get(t, "the end of the dead session", rec.down)
		again := get(t, "switch up", rec.up)
		if err := get(t, "the end of one of the two", ends); !errors.Is(err, controller.ErrDuplicate) {
			t.Error(err)
		}
		if err := again.Barrier(soon(t)); err != nil {
			t.Error(err)
		}
	})
}

// slow is a handler that takes its time when a switch comes up.
type slow struct {
	*recorder
	release chan struct{}
}

func (s slow) SwitchUp(sw *controller.Switch) {
	<-s.release
	s.recorder.SwitchUp(sw)
}

// TestConnectedTwiceWhileComingUp: a session that is not read yet cannot answer, and is
// not taken for dead.
func TestConnectedTwiceWhileComingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := slow{newRecorder(), make(chan struct{})}
		c := controller.New(controller.Config{Handler: rec, DuplicateTimeout: 20 * time.Millisecond, EchoTimeout: time.Hour})
		defer c.Close()
		ends := make(chan error, 2)
		for range 2 {
			end := join(t, c, switchtest.New(switchtest.Config{Datapath: 7}))
			go func() { ends <- <-end }()
		}
		select {
		case err := <-ends:
			t.Fatalf("one ended before the first could answer: %v", err)
		case <-time.After(200 * time.Millisecond): // ten times what a dead one gets
		}
		close(rec.release)
		up := get(t, "switch up", rec.up)
		if err := get(t, "the end of the other", ends); !errors.Is(err, controller.ErrDuplicate) {
			t.Error(err)
		}
		if err := up.Barrier(soon(t)); err != nil {
			t.Error(err)
		}
	})
}

// failing is a handler that fails at packets.
type failing struct{ *recorder }

func (failing) PacketIn(*controller.Switch, time.Time, *of13.PacketIn) { panic("at a packet") }

// TestPanicOfAHandler ends the session, and nothing but that.
func TestPanicOfAHandler(t *testing.T) {
	rec := failing{newRecorder()}
	c := controller.New(controller.Config{Handler: rec})
	defer c.Close()
	sw := switchtest.New(switchtest.Config{Datapath: 7, Ports: []uint32{1}})
	join(t, c, sw)
	get(t, "switch up", rec.up)
	sw.Push(&of13.PacketIn{BufferID: of13.NoBuffer, Data: make([]byte, 60)})
	if err := get(t, "switch down", rec.down); !errors.Is(err, controller.ErrPanic) {
		t.Errorf("the session ended with %v", err)
	}
	join(t, c, switchtest.New(switchtest.Config{Datapath: 7}))
	if err := get(t, "switch up again", rec.up).Barrier(soon(t)); err != nil {
		t.Error(err)
	}
}
