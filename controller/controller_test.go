package controller_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

// recorder is a Handler that notes what it is told.
type recorder struct {
	up      chan *controller.Switch
	down    chan error
	errs    chan *controller.SwitchError
	frames  chan string
	removed chan *of13.FlowRemoved
	roles   chan of13.Role
}

func newRecorder() *recorder {
	return &recorder{up: make(chan *controller.Switch, 10), down: make(chan error, 10), errs: make(chan *controller.SwitchError, 10),
		frames: make(chan string, 10_000), removed: make(chan *of13.FlowRemoved, 10),
		roles: make(chan of13.Role, 10)}
}

func (r *recorder) SwitchUp(sw *controller.Switch)                          { r.up <- sw }
func (r *recorder) SwitchDown(_ *controller.Switch, err error)              { r.down <- err }
func (r *recorder) FlowRemoved(_ *controller.Switch, m *of13.FlowRemoved)   { r.removed <- m }
func (r *recorder) RoleChanged(_ *controller.Switch, role of13.Role)        { r.roles <- role }
func (r *recorder) PortStatus(*controller.Switch, *of13.PortStatus)         {}
func (r *recorder) Error(_ *controller.Switch, err *controller.SwitchError) { r.errs <- err }
func (r *recorder) PacketIn(_ *controller.Switch, _ time.Time, m *of13.PacketIn) {
	r.frames <- string(m.Data)
}

func get[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nothing within 30 s", what)
		panic("unreachable")
	}
}

// join connects a model switch by a pipe; the returned channel gets the
// result of Serve.
func join(t *testing.T, c *controller.Controller, sw *switchtest.Switch) <-chan error {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = sw.Serve(theirs) }()
	t.Cleanup(func() { theirs.Close() })
	end := make(chan error, 1)
	go func() { end <- c.Serve(ours) }()
	return end
}

func start(t *testing.T, cfg controller.Config, model switchtest.Config) (*controller.Switch, *switchtest.Switch, *recorder, *controller.Controller) {
	t.Helper()
	rec := newRecorder()
	cfg.Handler = rec
	c := controller.New(cfg)
	t.Cleanup(func() { c.Close() })
	m := switchtest.New(model)
	join(t, c, m)
	return get(t, "switch up", rec.up), m, rec, c
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func rule(prio uint16) *of13.FlowMod {
	m := of13.NewFlowMod(of13.FlowAdd)
	m.Priority, m.Cookie = prio, uint64(prio)
	return m
}

func TestSession(t *testing.T) {
	sw, m, _, c := start(t, controller.Config{}, switchtest.Config{Datapath: 0xabc, Ports: []uint32{1, 2}})
	ctx := soon(t)
	if sw.ID() != 0xabc || sw.Features().Tables != 254 || c.Switch(0xabc) != sw {
		t.Errorf("id %v, features %v", sw.ID(), sw.Features())
	}
	err := sw.Barrier(ctx)
	var got bool
	for _, msg := range m.Received() {
		cfg, ok := msg.(*of13.SetConfig)
		got = got || ok && cfg.MissSendLen == 0xffff && cfg.Flags == 0
	}
	if err != nil || !got {
		t.Errorf("whole packets asked for: %v; barrier: %v", got, err)
	}
	if err := sw.Apply(ctx, rule(1), rule(2), rule(3), rule(4), rule(5)); err != nil {
		t.Fatal(err)
	}
	flows, err := sw.DumpFlows(ctx, 0, 0) // in three parts
	if err != nil || len(flows) != 5 || flows[4].Priority != 5 {
		t.Errorf("flows %v, %v", flows, err)
	}
	if flows, err = sw.DumpFlows(ctx, 4, 0xffff); err != nil || len(flows) != 1 || flows[0].Cookie != 4 {
		t.Errorf("flows with cookie 4: %v, %v", flows, err)
	}
	if ports, err := sw.PortDesc(ctx); err != nil || len(ports) != 2 {
		t.Errorf("ports %v, %v", ports, err)
	}
	if d, err := sw.Desc(ctx); err != nil || d.Software != "switchtest" {
		t.Errorf("description %v, %v", d, err)
	}
	if stats, err := sw.PortStats(ctx); err != nil || len(stats) != 2 {
		t.Errorf("port counters %v, %v", stats, err)
	}
	if _, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartGroupFeatures)); err == nil || !strings.Contains(err.Error(), "MULTIPART") {
		t.Errorf("a refused request gives %v", err)
	}
}

func TestApplyNamesWhatWasRefused(t *testing.T) {
	sw, m, rec, _ := start(t, controller.Config{}, switchtest.Config{Limit: 2})
	err := sw.Apply(soon(t), rule(10), rule(11), rule(12), rule(13))
	var se *controller.SwitchError
	if !errors.As(err, &se) {
		t.Fatalf("error %v", err)
	}
	refused, ok := se.Sent.(*of13.FlowMod)
	if !ok || refused.Priority != 12 || se.Err.Type != of13.ErrTypeFlowModFailed || se.Err.Code != of13.FlowModFailedTableFull {
		t.Errorf("refused %v with %v", se.Sent, se.Err)
	}
	if n := len(m.Flows()); n != 2 {
		t.Errorf("%d rules, want the two that fit", n)
	}
	// Outside Apply the handler is told.
	if err := sw.Send(rule(14)); err != nil {
		t.Fatal(err)
	}
	if se := get(t, "error", rec.errs); se.Sent.(*of13.FlowMod).Priority != 14 {
		t.Errorf("handler told of %v", se.Sent)
	}
	m.Push(&of13.FlowRemoved{Cookie: 77})
	if r := get(t, "flow removed", rec.removed); r.Cookie != 77 {
		t.Errorf("handler told of %v", r)
	}
}

func TestPacketsComeAndGoInOrder(t *testing.T) {
	sw, m, rec, _ := start(t, controller.Config{}, switchtest.Config{Ports: []uint32{1, 2}})
	toController := rule(1)
	toController.Instructions = []of13.Instruction{of13.Apply(of13.ToController())}
	if err := sw.Apply(soon(t), toController); err != nil {
		t.Fatal(err)
	}
	const n = 500
	text := func(i int) string { return fmt.Sprintf("frame %08d of more than fourteen bytes", i) }
	for i := range n {
		m.Inject(1, []byte(text(i)))
	}
	for i := range n {
		if got := get(t, "packet-in", rec.frames); got != text(i) {
			t.Fatalf("packet-in %d is %q", i, got)
		}
		if err := sw.PacketOut(of13.PortController, []byte(text(i)), 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := sw.Barrier(soon(t)); err != nil {
		t.Fatal(err)
	}
	out := m.Sent()
	if len(out) != n {
		t.Fatalf("%d frames sent, want %d", len(out), n)
	}
	for i, o := range out {
		if string(o.Frame) != text(i) || o.Port != 2 {
			t.Fatalf("frame %d is %q on port %d", i, o.Frame, o.Port)
		}
	}
}

func TestRefusedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newRecorder()
		refused := make(chan error, 10)
		c := controller.New(controller.Config{Handler: rec, Allowed: []model.DatapathID{1}, HandshakeTimeout: 300 * time.Millisecond,
			Refused: func(_ string, err error) { refused <- err }})
		defer c.Close()
		join(t, c, switchtest.New(switchtest.Config{Datapath: 1}))
		live := get(t, "switch up", rec.up)
		for _, tc := range []struct {
			name string
			cfg  switchtest.Config
			is   error
			says string
		}{
			{"a second one", switchtest.Config{Datapath: 1}, controller.ErrDuplicate, "must not share"},
			{"an unknown one", switchtest.Config{Datapath: 2}, controller.ErrUnknownDatapath, "--allowed-datapath"},
			{"1.0 only", switchtest.Config{Datapath: 1, Only10: true}, controller.ErrVersion, "protocols=OpenFlow13"},
			{"1.0 only, its words", switchtest.Config{Datapath: 1, Only10: true}, controller.ErrVersion, "no common versions"},
		} {
			end := join(t, c, switchtest.New(tc.cfg))
			err := get(t, tc.name, end)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if got := get(t, tc.name+" reported", refused); got.Error() != err.Error() {
				t.Errorf("%s: reported %v", tc.name, got)
			}
		}
		if err := live.Barrier(soon(t)); err != nil {
			t.Errorf("the first switch suffered: %v", err)
		}
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() { _, _ = theirs.Read(make([]byte, 100)) }() // the hello
		if err := c.Serve(ours); err == nil || !strings.Contains(err.Error(), "is that an OpenFlow switch") {
			t.Errorf("a peer that says nothing: %v", err)
		}
	})
}

// handshake speaks as a switch with that datapath id.
func handshake(id uint64) []byte {
	var b []byte
	b, _ = of13.Append(b, of13.NewHello(of13.Version), 1)
	b, _ = of13.Append(b, &of13.FeaturesReply{DatapathID: id}, 2)
	b, _ = of13.Append(b, &of13.RoleReply{RoleState: of13.RoleState{Role: of13.RoleMaster}}, 4)
	return b
}

// raw connects bytes instead of a switch, closes after a while, and returns
// how the session ends.
func raw(c *controller.Controller, b []byte, while time.Duration) error {
	ours, theirs := net.Pipe()
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := theirs.Read(buf); err != nil {
				return
			}
		}
	}()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = theirs.Write(b)
		time.Sleep(while)
		theirs.Close()
	}()
	err := c.Serve(ours)
	<-closed
	return err
}

var hostile = map[string][]byte{
	"nothing":             {},
	"http":                []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	"short header":        {4, 0, 0},
	"length zero":         {4, 0, 0, 0, 0, 0, 0, 1},
	"length below header": {4, 0, 0, 7, 0, 0, 0, 1},
	"cut off":             {4, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0},
	"version zero":        {0, 0, 0, 8, 0, 0, 0, 1},
	"no hello first":      {4, 2, 0, 8, 0, 0, 0, 1},
	"zeros":               make([]byte, 70_000),
	"packet-in match beyond its end": append(handshake(9),
		4, 10, 0, 34, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0),
	"wrong version later":    append(handshake(9), 1, 2, 0, 8, 0, 0, 0, 1),
	"multipart without body": append(handshake(9), 4, 19, 0, 8, 0, 0, 0, 1),
	"garbage later":          append(handshake(9), []byte(strings.Repeat("\x04\x13\x00\x40garbage!", 500))...),
}

func TestHostileBytesEndOnlyTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live, _, rec, c := start(t, controller.Config{HandshakeTimeout: time.Second}, switchtest.Config{Datapath: 1})
		for name, b := range hostile {
			end := make(chan error, 1)
			go func() { end <- raw(c, b, 50*time.Millisecond) }()
			if err := get(t, name+": end of the session", end); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if err := live.Barrier(soon(t)); err != nil {
			t.Errorf("the honest switch suffered: %v", err)
		}
		if len(c.Switches()) != 1 {
			t.Errorf("live switches %v", c.Switches())
		}
		select {
		case sw := <-rec.up:
			get(t, "and down again", rec.down)
			_ = sw
		default:
			t.Error("no hostile peer got as far as a session: the test is weaker than meant")
		}
	})
}

// FuzzSession feeds bytes behind a handshake: the session must end with an
// error, wherever the bytes are cut, and never take the controller along.
func FuzzSession(f *testing.F) {
	for _, b := range hostile {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, greet bool) {
		c := controller.New(controller.Config{Handler: silent{}, HandshakeTimeout: time.Second})
		if greet {
			b = append(handshake(9), b...)
		}
		if err := raw(c, b, 0); err == nil {
			t.Error("session over, no error")
		}
		if n := len(c.Switches()); n != 0 {
			t.Errorf("%d switches left", n)
		}
		c.Close()
	})
}

// silent is a Handler that does nothing.
type silent struct{}

func (silent) SwitchUp(*controller.Switch)                            {}
func (silent) SwitchDown(*controller.Switch, error)                   {}
func (silent) FlowRemoved(*controller.Switch, *of13.FlowRemoved)      {}
func (silent) RoleChanged(*controller.Switch, of13.Role)              {}
func (silent) PortStatus(*controller.Switch, *of13.PortStatus)        {}
func (silent) Error(*controller.Switch, *controller.SwitchError)      {}
func (silent) PacketIn(*controller.Switch, time.Time, *of13.PacketIn) {}

func TestKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := controller.Config{EchoInterval: 20 * time.Millisecond, EchoTimeout: 200 * time.Millisecond}
		sw, _, rec, _ := start(t, cfg, switchtest.Config{})
		select {
		case err := <-rec.down:
			t.Fatalf("a switch that answers echo was given up: %v", err)
		case <-time.After(500 * time.Millisecond):
		}
		if err := sw.Barrier(soon(t)); err != nil {
			t.Fatal(err)
		}
		mute, _, rec, _ := start(t, cfg, switchtest.Config{Mute: true})
		waiting := make(chan error, 1)
		go func() { waiting <- mute.Barrier(context.Background()) }()
		if err := get(t, "mute switch given up", rec.down); !errors.Is(err, controller.ErrSilent) {
			t.Errorf("session ended with %v", err)
		}
		if err := get(t, "barrier", waiting); !errors.Is(err, controller.ErrSilent) {
			t.Errorf("the barrier that was waiting gives %v", err)
		}
		if err := mute.Send(rule(1)); !errors.Is(err, controller.ErrSilent) {
			t.Errorf("sending to a switch that is gone: %v", err)
		}
	})
}

func TestEchoIsAnswered(t *testing.T) {
	c := controller.New(controller.Config{})
	defer c.Close()
	ours, theirs := net.Pipe()
	go func() { _ = c.Serve(ours) }()
	defer theirs.Close()
	read := func() (of13.Message, uint32) {
		b, err := of13.ReadFrame(theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, xid, err := of13.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		return m, xid
	}
	read() // hello
	go func() { _, _ = theirs.Write(handshake(5)) }()
	read() // features request
	read() // set config
	read() // role request
	for i := range uint32(3) {
		b, _ := of13.Append(nil, &of13.EchoRequest{Data: []byte("are you there")}, 700+i)
		go func() { _, _ = theirs.Write(b) }()
		m, xid := read()
		if e, ok := m.(*of13.EchoReply); !ok || xid != 700+i || string(e.Data) != "are you there" {
			t.Errorf("echo request answered by %v with xid %d", m, xid)
		}
	}
}

func TestRegister(t *testing.T) {
	_, _, rec, c := start(t, controller.Config{}, switchtest.Config{Datapath: 3})
	mine := newRecorder()
	unregister, err := c.Register(3, mine)
	if err != nil {
		t.Fatal(err)
	}
	sw := get(t, "told of the live switch", mine.up)
	if _, err := c.Register(3, newRecorder()); err == nil {
		t.Error("a datapath was given away twice")
	}
	unregister()
	if got := get(t, "handed back", rec.up); got != sw {
		t.Error("another switch was handed back")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := get(t, "down", rec.down); !errors.Is(err, controller.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
}

func TestListen(t *testing.T) {
	rec := newRecorder()
	c, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0", Handler: rec})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := controller.Listen(controller.Config{Addr: c.Addr().String()}); err == nil || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("port in use: %v", err)
	}
	conn, err := net.Dial("tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = switchtest.New(switchtest.Config{Datapath: 8}).Serve(conn) }()
	if sw := get(t, "switch up", rec.up); sw.Barrier(soon(t)) != nil || sw.ID() != 8 {
		t.Error("session over TCP does not work")
	}
}

// BenchmarkGate is the controller's part of a held packet: read the packet-in,
// release it. b.N packets cross a loopback TCP connection twice.
func BenchmarkGate(b *testing.B) {
	for _, size := range []int{64, 1500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			rel := &releaser{}
			c, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0", Handler: rel})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			conn, err := net.Dial("tcp", c.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write(handshake(1)); err != nil {
				b.Fatal(err)
			}
			in := &of13.PacketIn{BufferID: of13.NoBuffer, TotalLen: uint16(size), Data: make([]byte, size)}
			_ = in.SetMatch(of13.Match{of13.InPort(1)})
			one, _ := of13.Append(nil, in, 0)
			go func() {
				for range b.N {
					if _, err := conn.Write(one); err != nil {
						return
					}
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			buf := make([]byte, 1<<16)
			for n := 0; n < b.N; {
				m, err := of13.ReadFrame(conn, buf)
				if err != nil {
					b.Fatal(err)
				}
				if m[1] == byte(of13.TypePacketOut) {
					if binary.BigEndian.Uint16(m[2:]) != uint16(40+size) {
						b.Fatal("packet-out of another size")
					}
					n++
				}
			}
		})
	}
}

type releaser struct{ silent }

func (*releaser) PacketIn(sw *controller.Switch, _ time.Time, m *of13.PacketIn) {
	_ = sw.PacketOut(of13.PortController, m.Data, 2)
}
