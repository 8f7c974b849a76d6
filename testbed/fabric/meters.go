package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// errNoMeters: a switch did not take a meter, or a rule that names one. What is
// desired is to be tried again.
var errNoMeters = errors.New("the switch does not do as its meters should")

// meters is what is known of a switch's meters.
type meters struct {
	mu        sync.Mutex
	requested *controller.Switch // the session that was asked
	has       bool               // the switch has meters
	top       uint32             // the greatest number; 0: none are used
	why       error              // why none are used
}

func (s *meters) greatest() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.top
}

func (s *meters) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.top == 0 && s.why == nil {
		return errors.New("the switch has not told yet what meters it has")
	}
	return s.why
}

func (s *meters) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

// learn asks a new session what meters it has, and says whether that changes
// what is to be installed.
func (s *meters) learn(ctx context.Context, m *member, sw *controller.Switch) bool {
	s.mu.Lock()
	requested := s.requested
	s.mu.Unlock()
	if requested == sw {
		return false
	}
	f, err := sw.MeterFeatures(ctx)
	var refused *controller.SwitchError
	if err != nil && !errors.As(err, &refused) {
		return false // the session ends, or is asked again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.top
	s.requested, s.has, s.why = sw, err == nil && f.MaxMeter > 0, flowrules.WithoutMeters(m.f.cfg.Testbed.Cuts, f, err, len(m.hosts), m.far)
	s.top = 0
	if s.why == nil {
		s.top = flowrules.TopMeter(f)
	}
	return s.top != old
}

// giveUp has the session go on without meters.
func (s *meters) giveUp(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.top, s.why = 0, why
}

// mine makes sure, on a session not read back yet, that no meter is somebody
// else's.
func (s *meters) mine(have []of13.MeterConfig, plan flowrules.Plan) error {
	why := flowrules.Taken(have, plan)
	if why == nil {
		return nil
	}
	s.giveUp(why)
	return fmt.Errorf("%w: %w", errNoMeters, why)
}

// withoutMeters goes on without meters if the switch refused something because of
// them. If it only misses some they are put back first.
func (m *member) withoutMeters(err error) error {
	var refused *controller.SwitchError
	if !errors.As(err, &refused) {
		return err
	}
	_, aboutMeter := refused.Sent.(*of13.MeterMod)
	switch e := refused.Err; {
	case e.Type == of13.ErrTypeMeterModFailed && (e.Code == of13.MeterModFailedUnknownMeter || e.Code == of13.MeterModFailedInvalidMeter && !aboutMeter):
	case aboutMeter, e.Type == of13.ErrTypeMeterModFailed, e.Type == of13.ErrTypeBadInstruction:
		m.meters.giveUp(fmt.Errorf("the switch refuses them: %w", err))
	default:
		return err
	}
	return fmt.Errorf("%w: %w", errNoMeters, err)
}

// look reads back the rules whose cookie agrees in the bits of mask, and the meters of a
// switch that has some.
func (m *member) look(ctx context.Context, sw *controller.Switch, cookie, mask uint64) (flowrules.State, error) {
	var have flowrules.State
	var err error
	if m.meters.any() {
		if have.Meters, err = sw.Meters(ctx); err != nil {
			return have, err
		}
	}
	have.Flows, err = sw.DumpFlows(ctx, cookie, mask)
	return have, err
}

// recompile has one switch hold what is desired now.
func (f *Fabric) recompile(ctx context.Context, m *member) error {
	if err := f.mu.take(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	plan, err := flowrules.Compile(m.input(f))
	if err != nil {
		return err
	}
	return m.turnTo(ctx, plan)
}

// Lift removes the drop rules of a partition and leaves its meters down. It says which
// probe packets nothing holds but a meter now, by link, for each, and leaves out links
// where it holds none of them; without any, Heal is all that is left to do. Once
// nothing goes by the old rules any more, Heal has all links pass at one moment.
func (f *Fabric) Lift(ctx context.Context, id uint32, of []model.ProbePacket) (map[model.Link][]bool, error) {
	if err := f.mu.take(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.partitions, func(p flowrules.Desired) bool { return p.ID == id })
	if i < 0 || f.partitions[i].Lifted || f.mechanism(f.partitions[i].Partition) != nil {
		return nil, nil
	}
	p := f.partitions[i].Partition
	f.partitions[i].Lifted = true
	f.changed(p)
	f.book(ctx)
	if err := f.apply(ctx); err != nil {
		return nil, err
	}
	held := map[model.Link][]bool{}
	for _, l := range p.Links() {
		held[l] = slices.Repeat([]bool{true}, len(of))
	}
	for _, m := range f.members {
		for _, r := range m.intended.Load().Rules {
			if on := held[r.Link]; r.Kind == flowrules.KindDrop && on != nil {
				for i, s := range of {
					on[i] = on[i] && !r.Match.Takes(s)
				}
			}
		}
	}
	maps.DeleteFunc(held, func(_ model.Link, on []bool) bool { return !slices.Contains(on, true) })
	return held, nil
}

// Mechanism says why a partition's cut is by rules alone; nil: all its links go
// through meters that are turned down first.
func (f *Fabric) Mechanism(p model.Partition) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mechanism(p)
}

func (f *Fabric) mechanism(p model.Partition) error {
	if len(p.Only) > 0 {
		return errors.New("a meter holds back all of a pair, this cuts some traffic")
	}
	links := map[model.Link]bool{}
	for _, l := range p.Links() {
		m := f.byHost[l.Src]
		if m == nil || m != f.byHost[l.Dst] {
			return fmt.Errorf("%s and %s are not on one switch", l.Src, l.Dst)
		}
		if why := m.meters.reason(); why != nil {
			return fmt.Errorf("switch %s: %w", m.id, why)
		}
		links[l] = true
	}
	for _, pairs := range [][]Pair{f.gate, f.mirror} {
		for _, pair := range pairs {
			if links[model.Link{Src: pair.A, Dst: pair.B}] || links[model.Link{Src: pair.B, Dst: pair.A}] {
				return fmt.Errorf("%s and %s are gated or mirrored", pair.A, pair.B)
			}
		}
	}
	return nil
}

// Meters says why cuts on a switch are by rules alone; nil: by meters, then
// rules.
func (f *Fabric) Meters(id model.DatapathID) error {
	for _, m := range f.members {
		if m.id == id {
			if m.session() == nil {
				return ErrDown
			}
			return m.meters.reason()
		}
	}
	return fmt.Errorf("switch %s is not in the testbed", id)
}
