package controller

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

// Handler receives what switches do. The goroutine that reads the connection of a
// switch makes the calls, one at a time, in order of arrival. So a call must not
// wait for an answer from the switch. Calls for its next session come after
// SwitchDown of the last.
type Handler interface {
	// SwitchUp: the handshake is over and the session works both ways.
	SwitchUp(sw *Switch)
	// SwitchDown: the session ended. Nothing more comes from sw.
	SwitchDown(sw *Switch, err error)
	// PacketIn: in and in.Data are only valid during the call.
	PacketIn(sw *Switch, at time.Time, in *of13.PacketIn)
	FlowRemoved(sw *Switch, m *of13.FlowRemoved)
	PortStatus(sw *Switch, m *of13.PortStatus)
	// RoleChanged: the switch now gives this controller the role. A slave gets no
	// packets and can change nothing.
	RoleChanged(sw *Switch, role of13.Role)
	// Error: the switch refused a message, and no call waits for its answer.
	Error(sw *Switch, err *SwitchError)
}

// Config of a controller. The zero value of a field takes the default.
type Config struct {
	Addr    string             // TCP address to listen on, e.g. "127.0.0.1:6653"
	TLS     *tls.Config        // see LoadTLS; nil: plain TCP
	Allowed []model.DatapathID // empty: every datapath
	// Role to ask every switch for: RoleMaster, the default, or RoleEqual. A new
	// master turns the old one into a slave, but not a controller with role equal
	// (OpenFlow 1.3 §6.3.4): that one also gets every packet that the gate holds.
	Role    of13.Role
	Log     *slog.Logger // default: nothing is logged
	Handler Handler      // for datapaths without a Register call; may be nil
	// Refused receives every connection that did not become a session.
	Refused func(addr string, err error)

	HandshakeTimeout time.Duration // default 5 s
	EchoInterval     time.Duration // silence before an echo request; default 5 s
	EchoTimeout      time.Duration // silence before the session ends; default 15 s
	RoleInterval     time.Duration // between requests for the role; default 1 s
	// DuplicateTimeout is how long the session of a datapath id may take to answer
	// an echo when another connection claims that id; default 1 s.
	DuplicateTimeout time.Duration
	Now              func() time.Time // default time.Now
}

// Errors that refuse or end a connection; test with errors.Is.
var (
	// ErrVersion: the switch does not speak OpenFlow 1.3.
	ErrVersion = errors.New("switch does not speak OpenFlow 1.3")
	// ErrDuplicate: the datapath id already has a connection that answers.
	ErrDuplicate = errors.New("datapath already connected")
	// ErrUnknownDatapath: the datapath id is not in Config.Allowed.
	ErrUnknownDatapath = errors.New("unknown datapath")
	// ErrProtocol: bytes that are not OpenFlow 1.3.
	ErrProtocol = errors.New("not OpenFlow 1.3")
	// ErrSilent: nothing was received for Config.EchoTimeout.
	ErrSilent = errors.New("switch is silent")
	// ErrReplaced: the connection did not answer, and the switch has connected again.
	ErrReplaced = errors.New("connection is dead and the switch has another")
	// ErrPanic: netsplit itself panicked at a message of the switch.
	ErrPanic = errors.New("netsplit itself failed at a message of the switch")
	// ErrClosed: this side closed the session.
	ErrClosed = errors.New("controller closed")
)

// Controller holds the listener and the live sessions.
type Controller struct {
	cfg   Config
	ln    net.Listener
	wg    sync.WaitGroup
	began time.Time

	// mu guards the fields below. Order of locks: Switch.announcing, mu, the other
	// locks of a Switch. No Handler call is made under mu.
	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]struct{}
	switches map[model.DatapathID]*Switch
	leaving  map[model.DatapathID]*Switch // no longer in switches; their SwitchDown is not over yet
	handlers map[model.DatapathID]*registration
	fallback *registration // Config.Handler; may be nil
}

// New makes a controller that does not listen: pass each connection to Serve.
func New(cfg Config) *Controller {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.HandshakeTimeout == 0 {
		cfg.HandshakeTimeout = 5 * time.Second
	}
	if cfg.EchoInterval == 0 {
		cfg.EchoInterval = 5 * time.Second
	}
	if cfg.EchoTimeout == 0 {
		cfg.EchoTimeout = 15 * time.Second
	}
	if cfg.RoleInterval == 0 {
		cfg.RoleInterval = time.Second
	}
	if cfg.DuplicateTimeout == 0 {
		cfg.DuplicateTimeout = time.Second
	}
	if cfg.Role == of13.RoleNoChange {
		cfg.Role = of13.RoleMaster
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Controller{cfg: cfg, began: cfg.Now(), conns: map[net.Conn]struct{}{},
		switches: map[model.DatapathID]*Switch{}, leaving: map[model.DatapathID]*Switch{}, handlers: map[model.DatapathID]*registration{}}
	if cfg.Handler != nil {
		c.fallback = &registration{cfg.Handler}
	}
	return c
}

// Listen makes a controller that accepts switches on cfg.Addr.
func Listen(cfg Config) (*Controller, error) {
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("controller: %w: another controller listens there; stop it, or choose another address", err)
		}
		return nil, fmt.Errorf("controller: %w: choose an address of this machine and a port, such as 127.0.0.1:6653", err)
	}
	c := New(cfg)
	c.ln = ln
	c.wg.Add(1)
	go c.accept()
	return c, nil
}

// clock is the time since the controller was made. Setting the machine's clock does
// not change it.
func (c *Controller) clock(t time.Time) time.Duration { return t.Sub(c.began) }

// Addr is the address on which the controller listens; nil if it does not.
func (c *Controller) Addr() net.Addr {
	if c.ln == nil {
		return nil
	}
	return c.ln.Addr()
}

func (c *Controller) accept() {
	defer c.wg.Done()
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			c.cfg.Log.Error("accept failed, trying again in 100 ms", "err", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if c.cfg.TLS != nil {
			conn = tls.Server(conn, c.cfg.TLS)
		}
		c.wg.Add(1)
		go func() {
			defer c.wg.Done()
			_ = c.Serve(conn) // reported by Serve
		}()
	}
}

// Serve runs the session of one connection, which may be a *tls.Conn, and returns
// why it ended.
func (c *Controller) Serve(conn net.Conn) error {
	defer conn.Close()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.conns[conn] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()

	if tc, ok := conn.(*tls.Conn); ok {
		if err := c.encrypt(tc); err != nil {
			return c.refuse(conn, err)
		}
	}
	sw := newSwitch(c, conn)
	wrote := make(chan error, 1)
	go func() {
		err := sw.out.run(conn)
		// The reader ends too, a moment later: if the switch said why before
		// it closed, that is the better error.
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		wrote <- err
	}()
	// end sends what is still queued, and closes.
	end := func(err error) {
		sw.finish(err)
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		<-wrote
		conn.Close()
	}
	err := sw.handshake()
	if err == nil {
		err = c.admit(sw)
	}
	if err != nil {
		end(err)
		return c.refuse(conn, err)
	}
	if err := sw.claim(); err != nil {
		end(err)
		c.forget(sw)
		return c.refuse(conn, err)
	}
	c.cfg.Log.Info("switch up", "dpid", sw.id.String(), "addr", remote(conn))
	stop := make(chan struct{})
	var keep sync.WaitGroup
	keep.Go(func() { sw.keepAlive(stop) })
	keep.Go(func() { sw.watchRole(stop) })
	if sw.before != nil {
		<-sw.before
	}
	c.present(sw)
	sw.announce()
	close(sw.reads)
	err = sw.readGuarded()
	close(stop)
	keep.Wait()

	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		err = <-wrote // the reader was told to stop
		wrote <- err
	}
	c.mu.Lock()
	if c.closed {
		err = ErrClosed
	}
	c.mu.Unlock()
	end(err)
	c.leave(sw)
	err = fmt.Errorf("switch %s at %s: %w", sw.id, remote(conn), err)
	c.cfg.Log.Warn("switch down", "dpid", sw.id.String(), "err", err)
	sw.retire(err)
	c.left(sw)
	return err
}

// refuse reports a connection that did not become a session.
func (c *Controller) refuse(conn net.Conn, err error) error {
	err = fmt.Errorf("switch at %s: %w", remote(conn), err)
	c.cfg.Log.Warn("switch refused", "addr", remote(conn), "err", err)
	if c.cfg.Refused != nil {
		c.cfg.Refused(remote(conn), err)
	}
	return err
}

// forget takes a switch that admit entered out of the table of live ones.
func (c *Controller) forget(sw *Switch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.switches, sw.id)
	close(sw.gone)
}

// leave is forget for a session that the handler knows: left follows when SwitchDown
// is over. The switch's next session may come up meanwhile; the handler hears of it
// only then.
func (c *Controller) leave(sw *Switch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.switches, sw.id)
	c.leaving[sw.id] = sw
}

func (c *Controller) left(sw *Switch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leaving, sw.id)
	close(sw.gone)
}

// admit enters the switch into the table of live ones, or says why not. If its
// datapath id has a session already, that one stays if it answers and ends otherwise.
func (c *Controller) admit(sw *Switch) error {
	if len(c.cfg.Allowed) > 0 && !slices.Contains(c.cfg.Allowed, sw.id) {
		return fmt.Errorf("%w: %s is not among the allowed %v (--allowed-datapath); add it, or point that switch elsewhere",
			ErrUnknownDatapath, sw.id, c.cfg.Allowed)
	}
	for {
		old, err := c.enter(sw)
		if old == nil {
			return err
		}
		select {
		case <-old.reads:
		case <-old.gone:
			continue
		case <-sw.over:
			return sw.err
		case <-time.After(c.cfg.HandshakeTimeout):
			return fmt.Errorf("%w: %s is coming up from %s; it may try again", ErrDuplicate, sw.id, remote(old.conn))
		}
		if old.answers(c.cfg.DuplicateTimeout) {
			return fmt.Errorf("%w: %s is connected from %s, which answers; two switches must not share a datapath id",
				ErrDuplicate, sw.id, remote(old.conn))
		}
		old.finish(fmt.Errorf("%w: no answer to an echo within %v, and it connected from %s", ErrReplaced, c.cfg.DuplicateTimeout, remote(sw.conn)))
		old.conn.Close()
		select {
		case <-old.gone:
		case <-sw.over:
			return sw.err
		case <-time.After(c.cfg.HandshakeTimeout):
			return fmt.Errorf("%w: %s was connected from %s, and its last messages are still being processed; it may try again", ErrDuplicate, sw.id, remote(old.conn))
		}
	}
}

// enter puts the switch into the table of live ones, unless its datapath id has a
// session already, which enter returns.
func (c *Controller) enter(sw *Switch) (old *Switch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if old := c.switches[sw.id]; old != nil {
		return old, nil
	}
	c.switches[sw.id] = sw
	if old := c.leaving[sw.id]; old != nil {
		sw.before = old.gone
	}
	return nil, nil
}

// Register makes h the handler of one datapath. If the switch is connected,
// Register calls h.SwitchUp before it returns. The returned function undoes it.
func (c *Controller) Register(id model.DatapathID, h Handler) (unregister func(), err error) {
	c.mu.Lock()
	if c.handlers[id] != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("controller: datapath %s is in use already: close its fabric first", id)
	}
	c.handlers[id] = &registration{h}
	sw := c.presented(id)
	c.mu.Unlock()
	if sw != nil {
		sw.announce()
	}
	return func() {
		c.mu.Lock()
		delete(c.handlers, id)
		sw := c.presented(id)
		c.mu.Unlock()
		if sw != nil {
			sw.announce()
		}
	}, nil
}

// present makes the switch visible to Register, Switch and Switches. Before, it is
// in the table only to reserve its datapath id.
func (c *Controller) present(sw *Switch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sw.present = true
}

// handlerOf is the present handler of a datapath; it may be nil.
func (c *Controller) handlerOf(id model.DatapathID) *registration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.handlers[id]; h != nil {
		return h
	}
	return c.fallback
}

// presented is the live session of a datapath, or nil; c.mu is held.
func (c *Controller) presented(id model.DatapathID) *Switch {
	if sw := c.switches[id]; sw != nil && sw.present {
		return sw
	}
	return nil
}

// Switch returns the live session of a datapath, or nil.
func (c *Controller) Switch(id model.DatapathID) *Switch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.presented(id)
}

// Switches lists the live datapaths, sorted.
func (c *Controller) Switches() []model.DatapathID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]model.DatapathID, 0, len(c.switches))
	for id := range c.switches {
		if c.presented(id) != nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Close stops listening, ends every session and waits for them.
func (c *Controller) Close() error {
	c.mu.Lock()
	c.closed = true
	conns := make([]io.Closer, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	var err error
	if c.ln != nil {
		err = c.ln.Close()
	}
	for _, conn := range conns {
		conn.Close()
	}
	c.wg.Wait()
	return err
}

func remote(conn net.Conn) string {
	if a := conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return "?"
}
