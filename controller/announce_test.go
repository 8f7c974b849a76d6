package controller

import (
	"net"
	"testing"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

// reported counts how often a handler hears of a switch.
type reported struct{ up, down int }

func (h *reported) SwitchUp(*Switch)                            { h.up++ }
func (h *reported) SwitchDown(*Switch, error)                   { h.down++ }
func (h *reported) PacketIn(*Switch, time.Time, *of13.PacketIn) {}
func (h *reported) FlowRemoved(*Switch, *of13.FlowRemoved)      {}
func (h *reported) PortStatus(*Switch, *of13.PortStatus)        {}
func (h *reported) RoleChanged(*Switch, of13.Role)              {}
func (h *reported) Error(*Switch, *SwitchError)                 {}

// Whoever registers while a switch comes up stays its handler, though the session
// is announced behind that.
func TestARegistrationWhileASwitchComesUpHolds(t *testing.T) {
	var fallback, fabric reported
	c := New(Config{Handler: &fallback})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	sw := newSwitch(c, ours)
	sw.id = model.DatapathID(7)
	if err := c.admit(sw); err != nil {
		t.Fatal(err)
	}
	// The session comes up as in Serve, and is held up before it is announced.
	c.present(sw)
	sw.announcing.Lock()
	announced := make(chan struct{})
	go func() { sw.announce(); close(announced) }()
	time.Sleep(100 * time.Millisecond) // what it looks up before it has the lock, it has looked up by now
	registered := make(chan func())
	go func() {
		unregister, err := c.Register(7, &fabric)
		if err != nil {
			t.Error(err)
		}
		registered <- unregister
	}()
	for c.handlerOf(7) == c.fallback {
		time.Sleep(time.Millisecond)
	}
	sw.announcing.Unlock()
	<-announced
	unregister := <-registered
	if h := sw.handler.Load(); h == nil || h.Handler != Handler(&fabric) || fabric.up != 1 || fallback.up != 0 {
		t.Fatalf("handler %+v; the fabric was told %d times, the others %d", h, fabric.up, fallback.up)
	}
	unregister()
	if sw.handler.Load() != c.fallback || fallback.up != 1 {
		t.Errorf("after it is undone: %+v", fallback)
	}
	sw.retire(ErrClosed)
	if fallback.down != 1 || fabric.down != 0 {
		t.Errorf("at its end: %+v %+v", fallback, fabric)
	}
}
