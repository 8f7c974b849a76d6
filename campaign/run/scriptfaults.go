package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed"
)

// proofLimit is how long what a fault let go may take to arrive before its end is proved.
const proofLimit = 2 * time.Second

// Fault begins a message fault, which acts until End or the end of the script. What it
// may be about is held at the gate from now on; Fault returns when it is proved that
// nothing passes the gate by. The name is free again after End.
func (l *Live) Fault(ctx context.Context, name string, f model.MessageFault) (model.MessageFault, error) {
	if l.faults[name] != 0 {
		return f, fmt.Errorf("a message fault named %q acts already: end it first, or take another name", name)
	}
	if f.While != nil || f.After != 0 {
		return f, errors.New("a script begins its faults and ends them by its steps: leave out while and after")
	}
	if err := l.ends(&f.Match); err != nil {
		return f, err
	}
	if err := f.Validate(l.Hosts()); err != nil {
		return f, err
	}
	if err := l.hold(ctx, &f); err != nil {
		return f, err
	}
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Name: name, Begin: &f}}))
	s.scn = s.engine.Scenario()
	if l.faults == nil {
		l.faults = map[string]int{}
	}
	l.faults[name] = len(s.scn.Steps)
	return f, nil
}

// ends reads roles in place of hosts, those of the target and those of the testbed file.
func (l *Live) ends(m *model.MessageMatch) error {
	return sut.Ends(m, l.Hosts(), slices.Concat(slices.Collect(maps.Keys(l.r.target.Roles)), slices.Collect(maps.Keys(l.r.c.Testbed.Testbed.Roles))))
}

// hold has the gate hold what a fault may be about, beside what it holds already.
func (l *Live) hold(ctx context.Context, f *model.MessageFault) error {
	s := l.r.s
	s.mu.Lock()
	links := maps.Clone(s.gated.links)
	s.mu.Unlock()
	had := len(links)
	if links == nil {
		links = map[model.Link]bool{}
	}
	for _, x := range l.r.about(f.Match) {
		if x.Src != x.Dst {
			links[x], links[x.Reverse()] = true, true
		}
	}
	if len(links) == had {
		return nil
	}
	var held, mirrored []testbed.Pair
	for x := range links {
		if x.Src < x.Dst {
			held = append(held, testbed.Pair{A: x.Src, B: x.Dst})
		}
	}
	slices.SortFunc(held, func(a, b testbed.Pair) int { return strings.Compare(string(a.A+">"+a.B), string(b.A+">"+b.B)) })
	nodes, clients := l.r.watched()
	for _, p := range slices.Concat(nodes, clients) {
		if !links[model.Link{Src: p.A, Dst: p.B}] {
			mirrored = append(mirrored, p)
		}
	}
	s.mu.Lock()
	s.faulty, s.transport = true, l.r.c.Testbed.GateName("gate")
	s.gated.links = nil // until it is proved
	s.mu.Unlock()
	if err := l.r.c.Testbed.Hold(ctx, held, mirrored); err != nil {
		return err
	}
	s.mu.Lock()
	s.gated = gated{links, s.now()}
	s.mu.Unlock()
	return nil
}

// End ends a message fault by its name. What it keeps goes on at once. End returns when the
// receiving hosts have confirmed what the fault did, and fails where they do not.
func (l *Live) End(ctx context.Context, name string) (model.FaultProof, error) {
	n := l.faults[name]
	if n == 0 {
		return model.FaultProof{}, l.noFault(name)
	}
	delete(l.faults, name)
	s := l.r.s
	s.endFault(name, n)
	for end := time.Now().Add(proofLimit); ; {
		l.r.proveFaults(ctx)
		p := s.proofOf(n)
		switch {
		case p.Known && p.Wrong == 0:
			return p, nil
		case !time.Now().Before(end) || ctx.Err() != nil:
			return p, fmt.Errorf("what the fault did is not proved: %s", p.Trouble)
		}
		if err := l.Sleep(ctx, 20*time.Millisecond); err != nil {
			return p, err
		}
	}
}

// endFault ends a message fault, given its place among the steps, from 1.
func (s *session) endFault(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Name: name, End: n}}))
}

// proofOf is what a message fault has done so far, given its place among the steps, from 1.
func (s *session) proofOf(n int) model.FaultProof {
	s.mu.Lock()
	defer s.mu.Unlock()
	proofs := s.faultProofs(s.engine.Result().Faults)
	return proofs[slices.IndexFunc(proofs, func(p model.FaultProof) bool { return p.Fault == n })]
}

// Acted waits until a fault has acted on a number of packets, or for the limit, and
// returns on how many it did, and how many messages it met.
func (l *Live) Acted(ctx context.Context, name string, want int, limit time.Duration) (acted, met int, err error) {
	n := l.faults[name]
	if n == 0 {
		return 0, 0, l.noFault(name)
	}
	s := l.r.s
	over := time.After(limit)
	for {
		var more <-chan struct{}
		if acted, met, more = s.acted(n); acted >= want {
			return acted, met, nil
		}
		select {
		case <-more:
		case <-over:
			return acted, met, nil
		case <-ctx.Done():
			return acted, met, context.Cause(ctx)
		}
	}
}

// acted says on how many packets a message fault has acted, and how many messages it met; more is
// closed when a fault acts again.
func (s *session) acted(n int) (acted, met int, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	acted, met = s.engine.Acted(n)
	if s.faults.acted == nil {
		s.faults.acted = make(chan struct{})
	}
	return acted, met, s.faults.acted
}

func (l *Live) noFault(name string) error {
	return fmt.Errorf("no message fault named %q acts: there are %s", name, strings.Join(append(slices.Sorted(maps.Keys(l.faults)), "no others"), ", "))
}
