package learn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/learn/sketch"
)

// Times of our rules and frames.
const (
	copyLife = 10 * time.Second
	// forwardLife outlasts what Open vSwitch in standalone mode waits before it
	// forwards by itself: three times its inactivity probe of 5 s
	// (ovs-vswitchd.conf.db(5), fail_mode).
	forwardLife = 20 * time.Second
	// loopLook is how long links are looked for before a switch forwards.
	loopLook      = 500 * time.Millisecond
	progressEvery = 5 * time.Second
	// askLimit is how long a switch may take to answer.
	askLimit = 5 * time.Second
)

// Config of a Learner.
type Config struct {
	// Mark makes its LLDP frames its own: a word that nobody else uses.
	Mark string
	// For is how long it will listen: in the second half, any IP packet is asked
	// for where no address was heard. 0: never.
	For time.Duration
	// NoForward: a switch without rules is left so. Otherwise it is told to forward as
	// a plain switch meanwhile, unless links show a way round.
	NoForward bool
	// Say receives what was found, a line each; calls come one at a time.
	Say func(string)
	// Beat is the time between LLDP frames; default 1 s.
	Beat time.Duration
}

// Learner listens to the switches of a controller, whose Handler it is.
type Learner struct {
	cfg   Config
	ctx   context.Context // listening
	began time.Time
	work  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	sketch   *sketch.Sketch
	switches map[model.DatapathID]*pupil
	met      map[model.DatapathID]bool // that were ever connected
	said     map[string]bool           // what is told once
	over     bool
}

// pupil is one switch that is connected.
type pupil struct {
	*Learner
	sw     *controller.Switch
	kick   chan struct{} // look at the rules now
	ours   map[string]rule
	normal bool // we have it forward
	since  time.Time
}

// New makes a Learner that listens until ctx ends.
func New(ctx context.Context, c Config) *Learner {
	if c.Beat == 0 {
		c.Beat = time.Second
	}
	if c.Say == nil {
		c.Say = func(string) {}
	}
	return &Learner{cfg: c, ctx: ctx, began: time.Now(), sketch: sketch.New(c.Mark), switches: map[model.DatapathID]*pupil{},
		met: map[model.DatapathID]bool{}, said: map[string]bool{}}
}

// Result is what was learned.
type Result struct {
	*sketch.Sketch
	Switches []model.DatapathID // that were connected, sorted
}

// Wait returns when ctx has ended and what was installed is taken away, as far
// as switches are still connected; elsewhere it expires.
func (l *Learner) Wait() Result {
	l.progress()
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Result{Sketch: l.sketch}
	for id := range l.met {
		r.Switches = append(r.Switches, id)
	}
	slices.Sort(r.Switches)
	return r
}

// progress tells every few seconds what was heard, until ctx ends.
func (l *Learner) progress() {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		var silent []string
		for id := range l.switches {
			for _, n := range l.sketch.Silent(id) {
				silent = append(silent, l.sketch.Where(sketch.At{Datapath: id, Port: n}))
			}
		}
		slices.Sort(silent)
		up, hosts, links := l.sketch.Counts()
		text := fmt.Sprintf("so far %d switches, %d ports up, %d hosts, %d links", len(l.met), up, hosts, links)
		if more := len(silent) - 5; more > 0 {
			silent = append(silent[:5], fmt.Sprintf("%d more", more))
		}
		if len(silent) > 0 {
			text += "; nobody was heard at " + strings.Join(silent, ", ")
		}
		l.say("%s", text)
		l.mu.Unlock()
	}
}

// say tells something; l.mu is held.
func (l *Learner) say(format string, args ...any) { l.cfg.Say(fmt.Sprintf(format, args...)) }

// once tells something that would be told again and again.
func (l *Learner) once(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.said[text] {
		l.said[text] = true
		l.say("%s", text)
	}
}

// SwitchUp implements controller.Handler, as the methods below.
func (l *Learner) SwitchUp(sw *controller.Switch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	p := &pupil{Learner: l, sw: sw, kick: make(chan struct{}, 1), ours: map[string]rule{}, since: time.Now()}
	l.switches[sw.ID()], l.met[sw.ID()] = p, true
	l.say("switch %s connected from %s", sw.ID(), sw.Addr())
	l.work.Go(p.attend)
}

// SwitchDown: what was heard there stays.
func (l *Learner) SwitchDown(sw *controller.Switch, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.switches, sw.ID())
	if l.ctx.Err() == nil {
		l.say("%v", err)
	}
}

// PacketIn hears a frame.
func (l *Learner) PacketIn(sw *controller.Switch, _ time.Time, in *of13.PacketIn) {
	port, ok := in.InPort()
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	news := l.sketch.Observe(sketch.At{Datapath: sw.ID(), Port: uint32(port)}, in.Data)
	if news == "" {
		return
	}
	l.say("%s", news)
	for _, p := range l.switches { // a sample has come, or a way round
		p.lookSoon()
	}
}

func (p *pupil) lookSoon() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// PortStatus: a port came, went or changed.
func (l *Learner) PortStatus(sw *controller.Switch, m *of13.PortStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := sketch.At{Datapath: sw.ID(), Port: uint32(m.Port.No)}
	if m.Reason == of13.PortDeleted {
		l.say("%s is gone", l.sketch.Where(at))
		l.sketch.PortGone(at)
		return
	}
	l.sketch.PortIs(at.Datapath, portOf(m.Port))
}

// FlowRemoved concerns nothing of ours.
func (l *Learner) FlowRemoved(*controller.Switch, *of13.FlowRemoved) {}

// RoleChanged: a slave is told of ports only.
func (l *Learner) RoleChanged(sw *controller.Switch, role of13.Role) {
	if role == of13.RoleSlave {
		l.once(fmt.Sprintf("switch %s: another controller is its master, so netsplit sees nothing there: stop it, or make it share the switch as equal", sw.ID()))
	}
}

// Error: a frame was refused.
func (l *Learner) Error(sw *controller.Switch, err *controller.SwitchError) {
	l.once(fmt.Sprintf("switch %s refused: %v", sw.ID(), err.Err))
}

func portOf(p of13.Port) sketch.Port {
	return sketch.Port{Number: uint32(p.No), Name: p.Name, MAC: p.HWAddr,
		Up: p.Config&of13.PortConfigDown == 0 && p.State&of13.PortStateLinkDown == 0}
}

func (p *pupil) attend() {
	if err := p.ports(); err != nil {
		p.once(fmt.Sprintf("switch %s does not tell its ports: %v", p.sw.ID(), err))
	}
	p.probe()
	p.look(true)
	beat := time.NewTicker(p.cfg.Beat)
	defer beat.Stop()
	early := time.NewTimer(loopLook)
	defer early.Stop()
	for n := 1; ; n++ {
		select {
		case <-p.ctx.Done():
			p.leave()
			return
		case <-p.sw.Done():
			return
		case <-early.C:
			p.look(true)
		case <-p.kick:
			p.look(true)
		case <-beat.C: // until then a rule of ours does what one of others did before they changed it
			p.probe()
			p.look(n%3 == 0)
		}
	}
}

func (p *pupil) ports() error {
	ctx, cancel := context.WithTimeout(p.ctx, askLimit)
	defer cancel()
	list, err := p.sw.PortDesc(ctx)
	if err != nil {
		return err
	}
	ports := make([]sketch.Port, len(list))
	for i, o := range list {
		ports[i] = portOf(o)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sketch.Ports(p.sw.ID(), ports)
	p.say("switch %s: %d ports are up", p.sw.ID(), len(p.sketch.PortsUp(p.sw.ID())))
	return nil
}

// probe sends LLDP out of every port.
func (p *pupil) probe() {
	p.mu.Lock()
	frames := map[uint32][]byte{}
	for _, n := range p.sketch.PortsUp(p.sw.ID()) {
		frames[n] = p.sketch.Probe(sketch.At{Datapath: p.sw.ID(), Port: n})
	}
	p.mu.Unlock()
	for n, b := range frames {
		if p.sw.PacketOut(of13.PortController, b, of13.PortNo(n)) != nil {
			return // the session is over
		}
	}
}

// look brings our rules in line with those of others; renew has them live longer, too.
func (p *pupil) look(renew bool) {
	ctx, cancel := context.WithTimeout(p.ctx, askLimit)
	defer cancel()
	have, err := p.sw.DumpFlows(ctx, 0, 0)
	if err != nil {
		if p.ctx.Err() == nil {
			p.once(fmt.Sprintf("switch %s does not list its rules, so netsplit installs nothing and sees only what the switch sends by itself: %v", p.sw.ID(), err))
		}
		return
	}
	p.mu.Lock()
	loop := p.sketch.Loop(p.sw.ID())
	var sample []uint32
	if p.cfg.For > 0 && time.Since(p.began) > p.cfg.For/2 {
		sample = p.sketch.Silent(p.sw.ID())
	}
	p.mu.Unlock()
	early := time.Since(p.since) < loopLook
	rules, deaf := plan(have, !p.cfg.NoForward && !loop && !early, sample)
	for _, text := range deaf {
		p.once(fmt.Sprintf("switch %s: %s: netsplit does not see its packets", p.sw.ID(), text))
	}
	p.normal = slices.ContainsFunc(rules, func(r rule) bool { return r.cookie == forward })
	switch {
	case p.normal:
		p.once(fmt.Sprintf("switch %s has no rules: it forwards as a plain switch meanwhile (--no-forward prevents this)", p.sw.ID()))
	case loop && !early && !p.cfg.NoForward && !slices.ContainsFunc(have, others):
		p.once(fmt.Sprintf("switch %s has no rules, and there is a way round in the network: it does not forward, or packets would go round for ever", p.sw.ID()))
	}
	if renew || slices.ContainsFunc(rules, p.news) || len(rules) != len(p.ours) {
		p.install(ctx, rules)
	}
}

// news says that a rule is not installed, or does something else than it should.
func (p *pupil) news(r rule) bool {
	was, has := p.ours[r.key()]
	return !has || was.cookie != r.cookie || fmt.Sprint(was.do) != fmt.Sprint(r.do)
}

func (p *pupil) install(ctx context.Context, rules []rule) {
	var mods []of13.Message
	wanted := map[string]rule{}
	for _, r := range rules {
		wanted[r.key()] = r
	}
	for key, r := range p.ours { // before the new: one may be in another's way
		if _, stays := wanted[key]; !stays {
			m := of13.NewFlowMod(of13.FlowDeleteStrict)
			m.Priority, m.Match, m.Cookie, m.CookieMask = r.priority, r.match, r.cookie, ^uint64(0)
			mods = append(mods, m)
		}
	}
	for _, r := range rules {
		m := of13.NewFlowMod(of13.FlowAdd)
		m.Cookie, m.Priority, m.Match, m.Instructions, m.HardTimeout = r.cookie, r.priority, r.match, r.do, copyLife
		if r.cookie == forward {
			m.HardTimeout = forwardLife
		}
		mods = append(mods, m)
	}
	p.ours = wanted
	if err := p.sw.Apply(ctx, mods...); err != nil && p.ctx.Err() == nil {
		p.once(fmt.Sprintf("%s: netsplit will see less there", strings.Join(strings.Fields(err.Error()), " ")))
	}
}

// leave takes our rules away. The one that forwards stays until it expires: a
// switch in standalone mode forwards by itself only when it has missed us for a
// while.
func (p *pupil) leave() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), askLimit)
	defer cancel()
	del := of13.NewFlowMod(of13.FlowDelete)
	del.TableID, del.Cookie, del.CookieMask = of13.TableAll, copies, ^uint64(0)
	if err := p.sw.Apply(ctx, del); err != nil {
		p.once(fmt.Sprintf("switch %s: netsplit's rules could not be removed and expire within %v: %v", p.sw.ID(), copyLife, err))
	}
	if p.normal {
		p.once(fmt.Sprintf("switch %s had no rules: the forwarding rule expires within %v", p.sw.ID(), forwardLife))
	}
}
