package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/campaign/agent"
	"netsplit/model"
)

// handCut is a partition cut by hand on the outside testbed, at line rate: by
// drop rules, not by the gate.
type handCut struct {
	id uint32 // in the rules' cookies

	// turn lets the cut and its heals follow one another: a heal that overtook
	// the cut would leave it standing. It guards stop.
	turn sync.Mutex
	stop context.CancelFunc // of the goroutine that proves it

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	st    model.PartitionStatus
}

func (h *handCut) status() model.PartitionStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.st
}

// standing says whether anything of the partition may still be on a switch.
func (h *handCut) standing() bool {
	st := h.status().State
	return st != model.PartitionHealed && st != model.PartitionFailed
}

// Limits of the proof of a partition by hand. Open vSwitch goes on forwarding
// from its cache until its revalidators have looked at the new rules, at least
// every 500 ms by default, so silence counts from after that.
const (
	quietFor   = 700 * time.Millisecond
	proofLimit = 10 * time.Second
	knockLimit = time.Second
)

// knockPort is where a host is knocked at: nobody listens there, so that its
// kernel answers with a reset, which proves both directions.
const knockPort = 1

var partitionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// CreatePartition cuts by hand. It returns when the rules were sent; the
// partition is in force once nothing was seen to pass.
func (s *Service) CreatePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	fail := func(kind error, format string, args ...any) (model.PartitionStatus, error) {
		return model.PartitionStatus{}, fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
	}
	if s.outside == nil {
		return fail(model.ErrUnavailable, "this daemon has no testbed of its own to cut by hand: start it with --testbed FILE")
	}
	if spec.Partition.Effect == "" {
		spec.Partition.Effect = model.Drop
	}
	if spec.Partition.Effect != model.Drop {
		return fail(model.ErrInvalid, "effect %q: a partition by hand drops; only the gate, in campaigns, can reset connections", spec.Partition.Effect)
	}
	if err := spec.Partition.Validate(s.cfg.Testbed.Names()); err != nil {
		return fail(model.ErrInvalid, "%v", err)
	}
	s.mu.Lock()
	if s.claimed != "" {
		defer s.mu.Unlock()
		return fail(model.ErrConflict, "campaign %s uses the testbed: wait for it or cancel it", s.claimed)
	}
	s.ids++
	if spec.Name == "" {
		spec.Name = fmt.Sprintf("p-%d-%d", time.Now().Unix(), s.ids)
	}
	if !partitionName.MatchString(spec.Name) {
		defer s.mu.Unlock()
		return fail(model.ErrInvalid, "name %q: use 1 to 63 of a-z, 0-9 and -", spec.Name)
	}
	if old := s.hand[spec.Name]; old != nil && old.standing() {
		defer s.mu.Unlock()
		return fail(model.ErrConflict, "partition %q exists and is %s: heal it first or take another name", spec.Name, old.status().State)
	}
	h := &handCut{id: uint32(s.ids), st: model.PartitionStatus{PartitionSpec: spec, State: model.PartitionRequested, Created: time.Now()}}
	h.turn.Lock() // before a heal can find it
	defer h.turn.Unlock()
	s.hand[spec.Name] = h
	s.mu.Unlock()

	if err := s.store.PutPartition(h.status()); err != nil {
		s.mu.Lock()
		delete(s.hand, spec.Name)
		s.mu.Unlock()
		return model.PartitionStatus{}, err
	}
	if err := s.outside.fabric.Cut(ctx, h.id, spec.Partition); err != nil {
		s.set(h, func(p *model.PartitionStatus) { p.State, p.Reason = model.PartitionFailed, err.Error() })
		herr := s.outside.fabric.Heal(context.WithoutCancel(ctx), h.id)
		return h.status(), errors.Join(fmt.Errorf("%w: the switch did not take the cut: %w", model.ErrUnavailable, err), herr)
	}
	s.metrics.CutStarted(spec.Partition.Shape, spec.Partition.Links())
	pctx, stop := context.WithTimeout(context.Background(), proofLimit)
	h.stop = stop
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer stop()
		s.proveCut(pctx, h)
	}()
	return h.status(), nil
}

// set changes the status of a partition, stores it and tells of it.
func (s *Service) set(h *handCut, change func(*model.PartitionStatus)) {
	h.mu.Lock()
	change(&h.st)
	st := h.st
	h.mu.Unlock()
	if err := s.store.PutPartition(st); err != nil {
		s.log.Error("a partition's state could not be stored", "partition", st.Name, "err", err)
	}
	text := fmt.Sprintf("partition %s is %s", st.Name, st.State)
	if st.Reason != "" {
		text += ": " + st.Reason
	}
	s.tell("partition", st.Name, string(st.State), text)
}

// proveCut waits until nothing passes any more: no packet arrived for
// quietFor, counted at the receiving hosts, and no knock across is answered.
func (s *Service) proveCut(ctx context.Context, h *handCut) {
	links := h.status().Partition.Links()
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			if h.status().State == model.PartitionRequested {
				s.set(h, func(p *model.PartitionStatus) {
					p.Reason = fmt.Sprintf("not proved within %v: packets still pass, or a host cannot be asked", proofLimit)
				})
			}
			return
		case <-time.After(quietFor):
		}
		if n, err := s.crossed(ctx, links, began, time.Now()); err != nil || n > 0 {
			continue
		}
		if yes, err := s.anyAnswers(ctx, links); yes || err != nil {
			continue
		}
		s.set(h, func(p *model.PartitionStatus) {
			if p.State == model.PartitionRequested {
				p.State, p.InForce, p.LeakKnown = model.PartitionInForce, began.Add(quietFor), true
			}
		})
		if d := h.status().For; d > 0 {
			h.mu.Lock()
			h.timer = time.AfterFunc(d, func() {
				if _, err := s.heal(h); err != nil {
					s.log.Error("a partition did not heal at its time", "partition", h.status().Name, "err", err)
				}
			})
			h.mu.Unlock()
		}
		return
	}
}

// crossed counts at the receiving hosts what arrived over the links.
func (s *Service) crossed(ctx context.Context, links []model.Link, from, to time.Time) (int, error) {
	total := 0
	for _, l := range links {
		n, _, err := s.outside.arrived(ctx, l, from, to)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// anyAnswers says whether a knock over any of the links is answered; an error
// says that one could not be tried. All are tried at once.
func (s *Service) anyAnswers(ctx context.Context, links []model.Link) (bool, error) {
	type answer struct {
		yes bool
		err error
	}
	back := make(chan answer, len(links))
	for _, l := range links {
		go func() {
			yes, err := s.answers(ctx, l)
			back <- answer{yes, err}
		}()
	}
	any, errs := false, []error{ctx.Err()} // a knock that was cut short proves nothing
	for range links {
		a := <-back
		any, errs = any || a.yes, append(errs, a.err)
	}
	return any, errors.Join(append(errs, ctx.Err())...)
}

// answers knocks over a link: the agent on its source opens a TCP connection
// to its destination. Being refused is an answer. An error says that nobody
// knocked.
func (s *Service) answers(ctx context.Context, l model.Link) (bool, error) {
	a := s.outside.agents[l.Src]
	dst, ok := s.cfg.Testbed.Host(l.Dst)
	if a == nil || !ok {
		return false, fmt.Errorf("no agent on host %s", l.Src)
	}
	_, _, err := a.Probe(ctx, model.Probe{TCP: netip.AddrPortFrom(dst.IP, knockPort).String(), Limit: knockLimit})
	if errors.Is(err, agent.ErrGone) {
		return false, fmt.Errorf("host %s: %w", l.Src, err)
	}
	return err == nil || strings.Contains(err.Error(), "connection refused"), nil
}

// DeletePartition heals a partition cut by hand. Healing twice is harmless. It
// returns when a packet passed again, or with what hinders it.
func (s *Service) DeletePartition(_ context.Context, name string) (model.PartitionStatus, error) {
	s.mu.Lock()
	h := s.hand[name]
	s.mu.Unlock()
	if h == nil {
		return model.PartitionStatus{}, fmt.Errorf("%w: no partition %q", model.ErrNotFound, name)
	}
	return s.heal(h)
}

// loseHandCuts books, whenever a switch does not do what we say any more, that
// the partitions by hand are lost.
func (s *Service) loseHandCuts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-s.lost:
			s.mu.Lock()
			lost := slices.Collect(maps.Values(s.hand))
			s.mu.Unlock()
			for _, h := range lost {
				s.lose(h, why)
			}
		}
	}
}

// lose takes a partition out of what is desired, so that it does not come back
// with the switch, and books it as failed.
func (s *Service) lose(h *handCut, why error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	if !h.standing() {
		return
	}
	h.end()
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	_ = s.outside.fabric.Heal(ctx, h.id) // on the switch that is lost the rules expire
	s.metrics.CutEnded("lost", h.status().Partition.Links())
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Reason = model.PartitionFailed, "its rules are not renewed and expire within seconds: "+why.Error()
	})
}

// end stops what waits for the partition: its proof and its time to heal. turn
// is held.
func (h *handCut) end() {
	if h.stop != nil {
		h.stop()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// healLimit is how long all of a heal may take.
const healLimit = time.Minute

// heal ends a partition. It goes on when whoever asked for it has gone.
func (s *Service) heal(h *handCut) (model.PartitionStatus, error) {
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	h.turn.Lock()
	defer h.turn.Unlock()
	if st := h.status(); st.State == model.PartitionHealed {
		return st, nil
	}
	h.end()
	s.finalCounts(ctx, h)
	s.set(h, func(p *model.PartitionStatus) { p.State = model.PartitionHealing })
	if err := s.outside.fabric.Heal(ctx, h.id); err != nil {
		s.set(h, func(p *model.PartitionStatus) { p.Reason = err.Error() })
		return h.status(), fmt.Errorf("%w: the switch did not confirm the heal, its rules expire by themselves within seconds: %w", model.ErrUnavailable, err)
	}
	links := h.status().Partition.Links()
	s.metrics.CutEnded("by-hand", links)
	began := time.Now()
	for time.Since(began) < proofLimit && ctx.Err() == nil {
		if yes, _ := s.answers(ctx, links[0]); yes || s.anotherCut(h, links[0]) {
			s.metrics.HealTime(time.Since(began))
			s.set(h, func(p *model.PartitionStatus) {
				p.State, p.Healed, p.Reason = model.PartitionHealed, time.Now(), ""
			})
			return h.status(), nil
		}
	}
	s.set(h, func(p *model.PartitionStatus) {
		p.State, p.Healed = model.PartitionHealed, time.Now()
		p.Reason = fmt.Sprintf("rules removed, but nothing from %s to %s was answered within %v", links[0].Src, links[0].Dst, proofLimit)
	})
	return h.status(), nil
}

// anotherCut says whether another partition still cuts the link, so that no
// packet can prove this heal.
func (s *Service) anotherCut(h *handCut, l model.Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.hand {
		if o == h || !o.standing() {
			continue
		}
		for _, ol := range o.status().Partition.Links() {
			if ol == l || ol == l.Reverse() {
				return true
			}
		}
	}
	return false
}

// finalCounts books what wanted to cross and what leaked, before the rules
// and their counters go.
func (s *Service) finalCounts(ctx context.Context, h *handCut) {
	st := h.status()
	dropped, derr := s.outside.fabric.DropCount(ctx, h.id)
	leaked, lerr := 0, error(nil)
	if !st.InForce.IsZero() {
		leaked, lerr = s.crossed(ctx, st.Partition.Links(), st.InForce, time.Now())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if derr == nil {
		h.st.Dropped = dropped
	}
	h.st.Leaked, h.st.LeakKnown = uint64(leaked), lerr == nil && !st.InForce.IsZero()
	h.st.Wanted = h.st.Dropped + h.st.Leaked
}

// Partitions lists the partitions by hand, newest first.
func (s *Service) Partitions(ctx context.Context) ([]model.PartitionStatus, error) {
	return s.store.ListPartitions()
}

// Partition returns one.
func (s *Service) Partition(ctx context.Context, name string) (model.PartitionStatus, error) {
	s.mu.Lock()
	h := s.hand[name]
	s.mu.Unlock()
	if h != nil {
		return h.status(), nil
	}
	return s.store.GetPartition(name)
}

// Reset heals every partition cut by hand and returns their names, sorted.
func (s *Service) Reset(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	var names []string
	for name, h := range s.hand {
		if h.standing() {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		_, err := s.DeletePartition(ctx, name)
		errs = append(errs, err)
	}
	return names, errors.Join(errs...)
}

// healLeftovers books the partitions that a daemon left behind when it died:
// its rules expire by themselves, and the fabric removes what it finds.
func (s *Service) healLeftovers() error {
	left, err := s.store.ListPartitions()
	if err != nil {
		return err
	}
	for _, p := range left {
		if p.State == model.PartitionHealed || p.State == model.PartitionFailed {
			continue
		}
		p.State, p.Healed, p.Reason = model.PartitionHealed, time.Now(), "the daemon that cut it ended; its rules expired or were removed"
		if err := s.store.PutPartition(p); err != nil {
			return err
		}
	}
	return nil
}

// claimOutside reserves the outside testbed for a campaign.
func (s *Service) claimOutside(campaign string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, h := range s.hand {
		if h.standing() {
			return fmt.Errorf("%w: partition %q is %s on the testbed: heal it first", model.ErrConflict, name, h.status().State)
		}
	}
	s.claimed = campaign
	return nil
}

func (s *Service) releaseOutside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = ""
}
