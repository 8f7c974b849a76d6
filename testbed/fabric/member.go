package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed/config"
)

// member is one switch of the fabric; it handles the switch's session.
type member struct {
	f          *Fabric
	id         model.DatapathID
	hosts      []hostPort // on its ports
	far        int        // how many are on other switches, over links
	route      flowrules.Route
	mirrorPort model.Port  // zero: none
	line       *line       // the gate port; nil: none
	viaPort    atomic.Bool // the gate's transport is that port
	meters     meters
	named      bool                           // some of its ports are given by name
	at         atomic.Pointer[places]         // stored under state
	moved      atomic.Bool                    // at has changed since the plan was made
	intended   atomic.Pointer[flowrules.Plan] // plan, to read without holding rules
	unregister func()
	kick       chan struct{} // asks run for a check now
	distrust   atomic.Bool   // rules may have changed although the session has not

	// rules serialises everything that changes or compares the flow table,
	// and guards the fields below. Held while waiting for the switch.
	rules   turn
	plan    flowrules.Plan     // set by intend
	alive   alive              // has a lock of its own
	known   *controller.Switch // the session on which plan was installed
	foreign int                // rules of others, when the whole table was last read
	briefly int                // readings since then of our own rules alone
	// repaired says that the last reading found rules that somebody had changed.
	repaired  bool
	drain     drain
	requested *controller.Switch // the session that was asked to match ports in fragments
	blind     error              // why it does not; nil: it does
	// reported are the conflicts last reported, so that none is reported twice.
	reported string

	// state guards the fields below; never held while waiting.
	state  sync.Mutex
	others others
	sw     *controller.Switch
	ready  chan struct{} // closed while the session holds its rules
	why    error         // why the last attempt to install failed
	// announced is the session that was told to hold its rules; lacked says that
	// since then nothing but a port made it unready.
	announced *controller.Switch
	lacked    bool
	ports     ports

	telling sync.Mutex // serialises what is told of ports; taken before state
}

func newMember(f *Fabric, id model.DatapathID) *member {
	m := &member{f: f, id: id, rules: newTurn(), named: config.NamesPorts(&f.cfg.Testbed, id), kick: make(chan struct{}, 1), alive: alive{life: f.cfg.HardTimeout}, ready: make(chan struct{}), why: ErrDown}
	m.ports.name, m.ports.told, m.ports.toldOthers = map[of13.PortNo]string{}, map[model.NodeID]error{}, map[model.Port]error{}
	return m
}

// input is the switch's part of the desired state; f.mu is held.
func (m *member) input(f *Fabric) flowrules.Input {
	at := m.at.Load()
	in := at.in
	in.Partitions, in.Gate, in.Mirror, in.MirrorPort, in.Changes, in.HardTimeout = f.partitions, f.gate, f.mirror, at.mirrorPort, f.changes, f.cfg.HardTimeout
	if !f.leaving {
		in.TopMeter = m.meters.greatest()
	}
	if m.line != nil && !f.leaving {
		// What was released to the port is sent on, whatever the transport is
		// by then.
		in.GatePort, in.ByPort = at.gatePort, m.viaPort.Load()
		if in.ByPort && (at.gatePort == 0 || !m.line.isUp()) {
			in.Gate = nil
		}
		in.ByPort = in.ByPort && at.gatePort != 0
	}
	if at.mirrorPort == 0 && !m.mirrorPort.IsZero() { // named, and not there: nothing can be copied
		in.Mirror = nil
	}
	return in
}

// intend makes a plan the one to hold; m.rules is held.
func (m *member) intend(p flowrules.Plan) {
	m.plan = p
	m.intended.Store(&p)
}

func (m *member) session() *controller.Switch {
	m.state.Lock()
	defer m.state.Unlock()
	return m.sw
}

// errInstalling: the switch has just connected.
var errInstalling = errors.New("rules are being installed")

// waitReady waits until the switch holds its rules.
func (m *member) waitReady(ctx context.Context) error {
	for {
		m.state.Lock()
		ready := m.ready
		m.state.Unlock()
		select {
		case <-ready:
			return nil
		case <-m.f.stop:
			return errors.New("fabric: closed")
		case <-ctx.Done():
			m.state.Lock()
			defer m.state.Unlock()
			return fmt.Errorf("switch %s holds no rules yet: %w (%w)", m.id, m.why, context.Cause(ctx))
		}
	}
}

// turnTo installs the plan and returns when the switch has confirmed it.
func (m *member) turnTo(ctx context.Context, plan flowrules.Plan) error {
	if err := m.rules.take(ctx); err != nil {
		return err
	}
	defer m.rules.Unlock()
	old := m.plan
	m.intend(plan)
	// If the rules stay the same, it does not matter that the switch is disconnected, has
	// another master, or has rules of others in the way: it gets the plan later.
	alike := flowrules.Alike(old, plan)
	sw, err := m.command()
	if alike && (errors.Is(err, ErrDown) || errors.Is(err, ErrSlave)) {
		return nil
	}
	if err == nil {
		err = m.located(sw)
	}
	if err != nil {
		return err
	}
	if m.unread(sw) {
		m.alive.keep(plan)
		if err = m.readBack(ctx, sw, false); alike && errors.Is(err, ErrInTheWay) {
			return nil
		}
		return err
	}
	if err = m.carryOut(ctx, sw, flowrules.Diff(old.State(), plan)); err != nil {
		m.known = nil // read it back before trusting it again
		m.alive.keep(plan)
		m.check()
	}
	return err
}

// unread says that the flow table was not read back since the switch connected or we became
// its master again; m.rules is held.
func (m *member) unread(sw *controller.Switch) bool {
	if m.distrust.Swap(false) {
		m.known = nil
	}
	return m.known != sw
}

// carryOut sends the steps with their barriers; m.rules is held.
func (m *member) carryOut(ctx context.Context, sw *controller.Switch, d flowrules.Delta) error {
	var before []of13.Message // that is sent with the next step
	for i, s := range d.Steps {
		m.alive.sending(s.Mods)
		ms := append(before, s.Mods...)
		before = nil
		var err error
		switch {
		case s.Urgent && i+1 < len(d.Steps):
			before = append(ms, &of13.BarrierRequest{})
		case s.Barrier:
			err = sw.Apply(ctx, ms...)
		default:
			err = sw.Send(ms...)
		}
		if err != nil {
			return fmt.Errorf("installing rules (%s): %w", s.Name, m.withoutMeters(m.refused(err)))
		}
	}
	return nil
}

// readBack dumps the flow table, repairs the difference to the plan and
// reports what was tampered with. m.rules is held.
func (m *member) readBack(ctx context.Context, sw *controller.Switch, tampered bool) error {
	m.lookInto(ctx, sw)
	have, err := m.look(ctx, sw, 0, 0)
	if err == nil && m.known != sw {
		err = m.meters.mine(have.Meters, m.plan)
	}
	if err != nil {
		m.settled(sw, err)
		return err
	}
	m.briefly, m.foreign = 0, 0
	for _, s := range have.Flows {
		if !flowrules.Cookie(s.Cookie).Ours(m.f.lab) {
			m.foreign++
		}
	}
	others := m.othersIn(have.Flows, tampered)
	m.state.Lock()
	before := m.others
	m.others = others
	m.state.Unlock()
	if cb := m.f.cfg.Events.Unhindered; cb != nil && before.drop != nil && (others.drop == nil || others.drop.Error() != before.drop.Error()) {
		cb(m.id)
	}
	if others.around != nil && !tampered {
		m.refuse(sw, others.around)
		return others.around
	}
	d := flowrules.Diff(have, m.plan)
	m.alive.hold(sw, m.plan.Expiring(have))
	err = m.carryOut(ctx, sw, d)
	if err == nil && m.known != sw {
		err = m.renewNow(ctx, sw)
	}
	if err == nil {
		m.known = sw
	}
	m.settled(sw, err)
	m.repaired = tampered && d.Missing+d.Changed+d.Stale > 0
	t := Tampering{Conflicts: d.Conflicts}
	drained := false
	if tampered {
		t.Missing, t.Changed, t.Stale = d.Missing, d.Changed, d.Stale
		drained = m.drain.saw(d.Missing)
	}
	conflicts := fmt.Sprint(t.Conflicts)
	news := conflicts != m.reported && len(t.Conflicts) > 0
	m.reported = conflicts
	if t.Missing+t.Changed+t.Stale > 0 || news {
		m.f.cfg.Log.Warn("flow table was changed by somebody else", "dpid", m.id.String(), "what", t.String())
		if cb := m.f.cfg.Events.Tampered; cb != nil {
			cb(m.id, t)
		}
	}
	if cb := m.f.cfg.Events.Drained; cb != nil && drained {
		cb(m.id, m.drained(have))
	}
	return err
}

// lookInto asks the switch to match ports in the first fragment of a datagram (Open
// vSwitch's OFPC_FRAG_NX_MATCH). Without its first fragment, no datagram can be assembled.
// m.rules is held.
func (m *member) lookInto(ctx context.Context, sw *controller.Switch) {
	if m.requested == sw {
		return
	}
	set := func(f of13.ConfigFlags) error {
		return sw.Apply(ctx, &of13.SetConfig{SwitchConfig: of13.SwitchConfig{Flags: f, MissSendLen: of13.MaxLenNoBuffer}})
	}
	m.requested, m.blind = sw, set(of13.FragNXMatch)
	if m.blind != nil {
		_ = set(of13.FragNormal) // a failure ends the session
	}
}

// canCut says why the switch cannot tell what the partition cuts from the rest.
func (m *member) canCut(ctx context.Context, p model.Partition) error {
	if err := m.onPorts(p); err != nil {
		return err
	}
	if err := m.rules.take(ctx); err != nil {
		return err
	}
	defer m.rules.Unlock()
	for _, t := range p.Only {
		if t.Port != 0 && m.blind != nil {
			return fmt.Errorf("switch %s does not look for ports in fragments, so that datagrams in pieces would cross: cut %s as a whole: %w", m.id, t.Proto, m.blind)
		}
	}
	return nil
}

// check asks run for a check soon.
func (m *member) check() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// run checks until the fabric is closed.
func (m *member) run() {
	verify := time.NewTicker(m.f.cfg.checkEvery)
	defer verify.Stop()
	for {
		select {
		case <-m.f.stop:
			return
		case <-verify.C:
			m.verify()
			m.verifyLine()
		case <-m.kick:
			m.verify()
		}
	}
}

func (m *member) verify() {
	sw, err := m.command()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.f.cfg.Timeout)
	defer cancel()
	if m.named {
		if err := m.learnPorts(ctx, sw); err != nil {
			m.settled(sw, err)
			m.f.cfg.Log.Error("the ports of a switch are not known, so that no rules can be made for it", "dpid", m.id.String(), "err", err)
			return
		}
	}
	if moved := m.moved.Swap(false); m.meters.learn(ctx, m, sw) || moved {
		if err := m.f.recompile(ctx, m); err != nil && !errors.Is(err, errNoMeters) {
			if moved {
				m.moved.Store(true)
			}
			m.f.cfg.Log.Error("flow table could not be brought to its desired state", "dpid", m.id.String(), "err", err)
			return
		}
	}
	if err := m.rules.take(ctx); err != nil {
		m.f.cfg.Log.Warn("flow table was not read back", "dpid", m.id.String(), "err", err)
		return
	}
	fresh := m.unread(sw)
	if !fresh && m.asLeft(ctx, sw) {
		m.settled(sw, nil)
	} else {
		err = m.readBack(ctx, sw, !fresh)
	}
	repaired := m.repaired
	m.rules.Unlock()
	if errors.Is(err, errNoMeters) {
		err = m.f.recompile(ctx, m)
	}
	if err == nil && repaired {
		err = m.f.lookAnew(ctx, m)
	}
	if err == nil {
		err = m.learnPorts(ctx, sw)
	}
	if err == nil && m.named && !m.moved.Load() {
		m.tellPorts(true)
	}
	if err != nil && !errors.Is(err, ErrInTheWay) {
		m.f.cfg.Log.Error("flow table could not be brought to its desired state", "dpid", m.id.String(), "err", err)
	}
}

func (m *member) verifyLine() {
	if m.line == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.f.cfg.Timeout)
	defer cancel()
	if err := m.line.checkLoss(ctx); err != nil {
		m.f.cfg.Log.Error("losses at the gate port could not be counted", "err", err)
	}
}

// settled notes the outcome of an attempt to install the plan on sw.
func (m *member) settled(sw *controller.Switch, err error) {
	m.state.Lock()
	if m.sw != sw || sw.Role() == of13.RoleSlave {
		m.state.Unlock()
		return
	}
	first := false
	if err == nil {
		err = m.missing(m.at.Load())
	}
	if err == nil && m.moved.Load() {
		err = errors.New("ports have moved, and rules are being installed for where they are now")
	}
	m.why = err
	if err == nil {
		select {
		case <-m.ready:
		default:
			close(m.ready)
			first = m.announced != sw || !m.lacked
			m.announced, m.lacked = sw, false
		}
	}
	m.state.Unlock()
	if cb := m.f.cfg.Events.Ready; first && cb != nil {
		cb(m.id)
	}
}

// clear removes the fabric's rules, and nobody else's.
func (m *member) clear(ctx context.Context) error {
	if err := m.rules.take(ctx); err != nil {
		return err
	}
	defer m.rules.Unlock()
	sw, err := m.command()
	if errors.Is(err, ErrDown) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("our rules stay: %w", err)
	}
	return m.refused(sw.Apply(ctx, append([]of13.Message{flowrules.RemoveAll(m.f.lab)}, m.plan.RemoveMeters()...)...))
}

// leave takes the switch to plain forwarding and lets it be.
func (m *member) leave(ctx context.Context) error {
	sw, err := m.command()
	if err != nil {
		return nil // what cuts there expires by itself
	}
	have, err := sw.DumpFlows(ctx, 0, 0)
	if err != nil {
		return err
	}
	for _, r := range have {
		if !flowrules.Cookie(r.Cookie).Ours(m.f.lab) {
			return m.clear(ctx)
		}
	}
	plan, err := flowrules.Compile(m.input(m.f))
	if err != nil {
		return err
	}
	return m.turnTo(ctx, plan)
}

// The methods below make member a controller.Handler.

// SwitchUp takes the session and has its flow table brought in order.
func (m *member) SwitchUp(sw *controller.Switch) {
	m.state.Lock()
	m.sw, m.why = sw, errInstalling
	if m.named { // what the names mean on this session is to be asked
		m.ports.on, m.ports.have = nil, nil
		m.place()
	}
	if sw.Role() == of13.RoleSlave {
		m.why = m.slave()
	}
	m.state.Unlock()
	if cb := m.f.cfg.Events.SwitchUp; cb != nil {
		cb(m.id)
	}
	m.check()
}

// SwitchDown forgets the session.
func (m *member) SwitchDown(sw *controller.Switch, err error) {
	m.state.Lock()
	if m.sw == sw {
		m.sw = nil
		m.unready(ErrDown)
	}
	m.state.Unlock()
	if cb := m.f.cfg.Events.SwitchDown; cb != nil {
		cb(m.id, err)
	}
}

// PacketIn hands the fabric's owner a held packet, or a packet that wanted to cross a cut
// with effect reset.
func (m *member) PacketIn(_ *controller.Switch, at time.Time, in *of13.PacketIn) {
	c := flowrules.Cookie(in.Cookie)
	port, ok := in.InPort()
	host, known := m.at.Load().hostAt[port]
	switch crossed := m.f.cfg.Crossed; {
	case !ok || !known || !c.Ours(m.f.lab):
		m.f.tally.strays.Add(1)
	case c.Kind() == flowrules.KindGate:
		m.hold(host, at, in.Data)
	case c.Kind() == flowrules.KindDrop && crossed != nil:
		crossed(c.Partition(), host, in.Data)
	default:
		m.f.tally.strays.Add(1)
	}
}

// hold hands a packet to the fabric's owner, by whichever way it came.
func (m *member) hold(host model.NodeID, at time.Time, frame []byte) {
	m.f.tally.held.Add(1)
	if cb := m.f.cfg.PacketIn; cb != nil {
		cb(host, at, frame)
	}
}

// FlowRemoved has the table checked if the switch removed one of our rules.
func (m *member) FlowRemoved(_ *controller.Switch, r *of13.FlowRemoved) {
	if flowrules.Cookie(r.Cookie).Ours(m.f.lab) {
		m.check()
	}
}

// PortStatus reports changes of host ports and of the gate port. The rules of a port stay
// when the port goes.
func (m *member) PortStatus(sw *controller.Switch, s *of13.PortStatus) {
	m.f.cfg.Log.Info("port status", "dpid", m.id.String(), "status", s.String())
	gate := m.at.Load().gatePort
	m.portStatus(sw, s)
	gone := s.Reason == of13.PortDeleted || s.Port.State&of13.PortStateLinkDown != 0
	if m.line != nil && gate != 0 && uint32(s.Port.No) == gate && gone {
		m.line.fault(fmt.Errorf("the switch says that its gate port %d has no link any more, with what was on its way", gate))
	}
}

// Error reports a refused message that nobody waits for, such as a renewal.
func (m *member) Error(_ *controller.Switch, err *controller.SwitchError) {
	if cb := m.f.cfg.Events.SwitchError; cb != nil {
		cb(m.id, err)
	}
	m.check()
}
