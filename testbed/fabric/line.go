package fabric

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/inference/tap"
	"netsplit/model"
)

// Port is the far end of a switch's gate port; see tap.Port.
type Port interface {
	Read(ctx context.Context, f func(ts time.Time, vid uint16, frame []byte)) error
	Write(vid uint16, frame []byte) error
	Stats() (tap.PortStats, error)
	Close() error
}

// ErrGateDown: a gate port cannot be read and written.
var ErrGateDown = errors.New("gate port is down")

// line is the gate port of one switch.
type line struct {
	m     *member
	where model.GatePort
	// used counts the frames that crossed it, fenced is how many of them had when the
	// last fence that came back was sent.
	used, fenced atomic.Uint64
	// checking serialises what counts losses.
	checking sync.Mutex
	out      *window

	mu   sync.Mutex // guards the fields below; never held while waiting
	port Port
	up   chan struct{} // closed while port can be used
	down chan struct{} // closed while it cannot
	why  error         // why it is down
	lost loss          // reported
}

func newLine(m *member, p model.GatePort) *line {
	l := &line{m: m, where: p, up: make(chan struct{}), down: make(chan struct{})}
	l.out = newWindow(l.write, func(err error) { go l.fault(err) }) // GateFault may write to the window, whose lock is held
	return l
}

func (f *Fabric) openPorts() error {
	if err := f.cfg.Gate.Validate(); err != nil {
		return fmt.Errorf("fabric: %w", err)
	}
	if f.cfg.Gate == model.GateByPort {
		if err := f.CheckGatePorts(); err != nil {
			return err
		}
	}
	for _, m := range f.members {
		if m.line == nil {
			continue
		}
		p, err := m.line.open()
		if err != nil {
			return errors.Join(fmt.Errorf("fabric: testbed %s: gate port of switch %s: %w; fix it, or gate by packet-in", f.cfg.Testbed.Name, m.id, err), f.closePorts())
		}
		m.line.port = p
		close(m.line.up)
	}
	return nil
}

// CheckGatePorts says why the gate cannot be by port on every switch; nil if it can.
func (f *Fabric) CheckGatePorts() error {
	for _, m := range f.members {
		switch {
		case m.line != nil:
		case f.cfg.Gate == model.GateByPacketIn:
			return fmt.Errorf("the gate ports of testbed %s are not open: start netsplit serve without --gate %s, or gate by packet-in", f.cfg.Testbed.Name, model.GateByPacketIn)
		default:
			return fmt.Errorf("testbed %s has no gate port on switch %s: name one in its gates, or gate by packet-in", f.cfg.Testbed.Name, m.id)
		}
	}
	return nil
}

func (l *line) open() (Port, error) {
	if open := l.m.f.cfg.OpenPort; open != nil {
		return open(l.where)
	}
	return tap.OpenPort(l.where.Interface, l.where.Netns)
}

func (f *Fabric) closePorts() error {
	var errs []error
	for _, m := range f.members {
		if m.line == nil {
			continue
		}
		m.line.mu.Lock()
		if m.line.port != nil {
			errs = append(errs, m.line.port.Close())
		}
		m.line.port = nil
		m.line.mu.Unlock()
	}
	return errors.Join(errs...)
}

// setTransport makes every switch that has a gate port use it, or none; f.mu is
// held, or nobody else has the fabric.
func (f *Fabric) setTransport(g model.Gate) {
	f.transport = g
	for _, m := range f.members {
		m.viaPort.Store(m.line != nil && g != model.GateByPacketIn)
	}
}

// UseGate changes the transport of the gate. What is held already may be
// released either way.
func (f *Fabric) UseGate(ctx context.Context, g model.Gate) error {
	if err := g.Validate(); err != nil {
		return err
	}
	if g == model.GateByPort {
		if err := f.CheckGatePorts(); err != nil {
			return err
		}
	}
	if err := f.mu.take(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.transport == g {
		return nil
	}
	old := f.transport
	f.setTransport(g)
	if err := f.check(); err != nil {
		f.setTransport(old)
		return err
	}
	return f.apply(ctx)
}

// Gate says which transport the gate has: GateByPort, GateByPacketIn, or both
// with a comma where switches differ.
func (f *Fabric) Gate() string {
	var by []string
	for _, m := range f.members {
		g := string(model.GateByPacketIn)
		if m.viaPort.Load() {
			g = string(model.GateByPort)
		}
		if !slices.Contains(by, g) {
			by = append(by, g)
		}
	}
	slices.Sort(by)
	if len(by) == 1 {
		return by[0]
	}
	return by[0] + "," + by[1]
}

func (l *line) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.port != nil
}

// waitUp waits until the port can be read and written.
func (l *line) waitUp(ctx context.Context) error {
	for {
		l.mu.Lock()
		up := l.up
		l.mu.Unlock()
		select {
		case <-up:
			return nil
		case <-l.m.f.stop:
			return errors.New("fabric: closed")
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			return fmt.Errorf("switch %s: %w: %w (%w)", l.m.id, ErrGateDown, l.why, context.Cause(ctx))
		}
	}
}

// run reads until the fabric is closed; a port that fails is opened again.
func (l *line) run() {
	defer l.m.f.work.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.m.f.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		l.mu.Lock()
		p := l.port
		l.mu.Unlock()
		err := l.readGuarded(ctx, p)
		if ctx.Err() != nil {
			return
		}
		l.fail(err)
		l.reopen(ctx)
	}
}

// readGuarded reads until that fails; a panic at a frame is a failure, too.
func (l *line) readGuarded(ctx context.Context, p Port) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("netsplit itself failed at a frame, please report it: %v\n%s", v, debug.Stack())
		}
	}()
	return p.Read(ctx, l.read)
}

// fail marks the port as down. Until it is up again, gated pairs are forwarded without the gate,
// and drop rules keep pairs cut.
func (l *line) fail(err error) {
	l.mu.Lock()
	p := l.port
	l.port, l.why = nil, err
	l.up = make(chan struct{})
	close(l.down)
	l.mu.Unlock()
	p.Close() // its error repeats that of Read
	waited := ""
	if n := l.out.drop(); n > 0 {
		waited = fmt.Sprintf(" and %d released packets that waited for their turn", n)
	}
	l.fault(fmt.Errorf("%w, with what was on its way%s: %w", ErrGateDown, waited, err))
	l.m.f.replan()
}

func (l *line) reopen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.m.f.cfg.renewEvery):
		}
		p, err := l.open()
		l.mu.Lock()
		if err != nil {
			l.why = err
			l.mu.Unlock()
			continue
		}
		l.port, l.lost = p, loss{}
		l.down = make(chan struct{})
		close(l.up)
		l.mu.Unlock()
		l.m.f.cfg.Log.Info("gate port is up again", "dpid", l.m.id.String(), "interface", l.where.Interface)
		l.m.f.replan()
		return
	}
}

// replan brings every switch to the desired state anew.
func (f *Fabric) replan() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if err := f.apply(context.Background()); err != nil {
		f.cfg.Log.Error("rules could not be changed after a gate port went down or came up", "err", err)
	}
}

// fault tells the fabric's owner.
func (l *line) fault(err error) {
	l.m.f.cfg.Log.Error("gate port", "dpid", l.m.id.String(), "err", err)
	if cb := l.m.f.cfg.Events.GateFault; cb != nil {
		cb(l.m.id, err)
	}
}

// read takes a frame that the switch sent.
func (l *line) read(at time.Time, vid uint16, frame []byte) {
	if vid == flowrules.GateFence {
		l.out.echo(frame)
		return
	}
	l.used.Add(1)
	host, known := l.m.at.Load().hostAt[of13.PortNo(vid)]
	if !known {
		l.m.f.tally.strays.Add(1)
		return
	}
	l.m.hold(host, at, frame)
}

func (l *line) send(port uint16, frame []byte) error {
	if !l.isUp() {
		return fmt.Errorf("switch %s: %w", l.m.id, ErrGateDown)
	}
	l.used.Add(1)
	return l.out.put(port, frame)
}

func (l *line) write(vid uint16, frame []byte) error {
	l.mu.Lock()
	p := l.port
	l.mu.Unlock()
	if p == nil {
		return fmt.Errorf("switch %s: %w", l.m.id, ErrGateDown)
	}
	return p.Write(vid, frame)
}

// fenceLine waits until all that crossed the gate port so far has been
// forwarded, or handed to PacketIn.
func (m *member) fenceLine(ctx context.Context) error {
	if m.line == nil || m.at.Load().gatePort == 0 || !m.line.isUp() {
		return nil
	}
	used, fenced := m.line.used.Load(), m.line.fenced.Load()
	if used == fenced {
		return nil
	}
	// Twice: a switch may take several frames at once and send them on in any
	// order of their ports, so the first may come back before what was ahead of
	// it has left. When it is back, the switch is done with the lot soon; the
	// second is taken after that.
	for range 2 {
		if err := m.line.fence(ctx); err != nil {
			return fmt.Errorf("switch %s: %w", m.id, err)
		}
	}
	m.line.fenced.CompareAndSwap(fenced, used) // or somebody else's fence came back first
	return nil
}

// fenceAgain is how long a fence may be on its way before another is sent: Open
// vSwitch drops frames by what it had cached before its rules came, for up to
// half a second.
const fenceAgain = 200 * time.Millisecond

// fence sends one round. A switch that is not connected may be dead, and with it what
// was on its way.
func (l *line) fence(ctx context.Context) error {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	for {
		if l.m.session() == nil {
			return ErrDown
		}
		back, err := l.out.fence()
		if err != nil {
			return err
		}
		select {
		case <-back:
			return nil
		case <-down:
			return ErrGateDown
		case <-time.After(fenceAgain):
			// Lost, with what was lost before it, which the window tells of.
		case <-ctx.Done():
			return fmt.Errorf("the switch did not turn a frame back to gate port %v in time: this machine is too busy, or %s is not its far end: %w", l.where.Port, l.where.Interface, context.Cause(ctx))
		}
	}
}
