package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netsplit/api"
	"netsplit/campaign"
	"netsplit/model"
	"netsplit/testbed/agent"
)

const (
	cutRate = 10_000 // datagrams a second
	cutSize = 200    // bytes of a frame
	// fewFlows fit into any cache; with more of them cuts take longer.
	fewFlows = 10
	// wellAfter is how long after a heal packets are counted.
	wellAfter = 200 * time.Millisecond
	// lateLimit is how late a packet may be without being lost.
	lateLimit = 3 * time.Second
	// openLimit is how long after a heal a packet is waited for.
	openLimit = 5 * time.Second
	cutBlock  = 20 // cuts of one kind in a row
)

// cutKind is a way to cut host b off from host a.
type cutKind struct {
	name  string
	ready func(context.Context) error // prepares a block of cuts
	// cut returns when it was said to be in force, heal what else was said.
	cut  func(context.Context) (time.Time, error)
	heal func(context.Context) (claims, error)
	got  map[int]*cutFigures // by number of flows
}

// claims are the moments that a cut's owner names. Nothing arrives from inForce
// on until the heal is asked for, which may be before it is said; what is sent
// from healed on arrives. Zero: from when it was said.
type claims struct{ inForce, healed time.Time }

// cutFigures are those of one kind with so many flows, one for each cut.
type cutFigures struct {
	cached                    []int           // decisions in the cache before a block
	afterRequest, afterForce  []int           // packets that arrived
	inForce, healed, first    []time.Duration // from the request
	share                     []float64       // of what was sent just after the first packet that passed again
	cuts, leaky, leaked, open int             // leaked: after in force; open: heals after which no packet passed in time
	lost                      []int           // of what was sent in the time wellAfter healed was said
}

// cutTestbed is a lab with a load, and the service or nothing on top.
type cutTestbed struct {
	*rig
	dir    string
	agents map[model.NodeID]*agent.Client
	load   *mixLoad
	svc    *campaign.Service
	by     model.CutBy               // what svc cuts by
	events <-chan model.ServiceEvent // of svc
	unhear func()                    // ends events
	cuts   int
}

func newCutTestbed(ctx context.Context) (c *cutTestbed, err error) {
	b, err := newTestbed(ctx, "cuts", "")
	if err != nil {
		return nil, err
	}
	c = &cutTestbed{rig: b}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "netsplit-bench-"); err != nil {
		return c, err
	}
	b.closers = append(b.closers, func() error { return os.RemoveAll(c.dir) }, func() error { return c.stop() })
	if c.agents, err = b.agents(ctx); err != nil {
		return c, err
	}
	if err = b.quiet(); err != nil {
		return c, err
	}
	c.load, err = b.newMix()
	return c, err
}

func (c *cutTestbed) stop() error {
	if c.svc == nil {
		return nil
	}
	err := c.svc.Close()
	c.unhear()
	c.svc = nil
	return err
}

// serve has the service control the switch and cut as told.
func (c *cutTestbed) serve(ctx context.Context, by model.CutBy) error {
	if c.svc != nil && c.by == by {
		return nil
	}
	if err := c.stop(); err != nil {
		return err
	}
	err := c.unsplit(ctx)
	if err != nil {
		return err
	}
	tb := c.testbed
	tb.Cuts, c.by = by, by
	c.svc, err = campaign.Open(campaign.Config{RunsDir: filepath.Join(c.dir, string(by)), ControllerAddr: "127.0.0.1:0", Testbed: &tb,
		Binary: c.self, BinDir: filepath.Dir(c.self), Metrics: api.NewMetrics("bench", nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	hearing, unhear := context.WithCancel(context.Background())
	c.unhear = unhear
	if c.events, err = c.svc.Events(hearing, 0); err != nil {
		return err
	}
	if err := c.lab.SetController(ctx, "tcp:"+c.svc.ControllerAddr()); err != nil {
		return err
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	return c.split(ctx)
}

// saidInForce waits for the event that the partition is in force and returns its
// time. Any other event of the partition is an error with its text. Asking for the
// status instead would take longer: it counts what is dropped first, and that makes
// Open vSwitch look at its cache.
func saidInForce(ctx context.Context, events <-chan model.ServiceEvent, name string) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case e, ok := <-events:
			switch {
			case !ok:
				return time.Time{}, errors.New("the service tells no more events")
			case e.Kind != "partition" || e.ID != name:
			case e.State != string(model.PartitionInForce):
				return time.Time{}, errors.New(e.Text)
			default:
				return e.At, nil
			}
		}
	}
}

// byService are cuts manually as users make them, without the way to the daemon.
func (c *cutTestbed) byService(name string, by model.CutBy) *cutKind {
	current := ""
	return &cutKind{name: name, got: map[int]*cutFigures{},
		ready: func(ctx context.Context) error { return c.serve(ctx, by) },
		cut: func(ctx context.Context) (time.Time, error) {
			c.cuts++
			current = fmt.Sprintf("cut-%d", c.cuts)
			_, err := c.svc.CreatePartition(ctx, model.PartitionSpec{Name: current,
				Partition: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{hostA}, {hostB}}}})
			if err != nil {
				return time.Time{}, err
			}
			return saidInForce(ctx, c.events, current)
		},
		heal: func(ctx context.Context) (claims, error) {
			p, err := c.svc.DeletePartition(ctx, current)
			if err == nil && p.Reason != "" {
				err = errors.New(p.Reason)
			}
			if err == nil && (p.InForce.IsZero() || p.Healed.IsZero()) {
				err = fmt.Errorf("partition %s was in force from %v and healed at %v: want both times", current, p.InForce, p.Healed)
			}
			return claims{p.InForce, p.Healed}, err
		}}
}

// byOfctl is what the command line of Open vSwitch does: add-flow and a barrier
// behind each, del-flows and a barrier. Nothing is proved.
func (c *cutTestbed) byOfctl() *cutKind {
	var rules string
	for _, p := range [][2]model.NodeID{{hostA, hostB}, {hostB, hostA}} {
		rules += fmt.Sprintf("table=1,priority=500,cookie=0xc07,in_port=%d,dl_dst=%s,actions=drop\n", c.host(p[0]).Port.Number, c.host(p[1]).MAC)
	}
	file := filepath.Join(c.dir, "ofctl.flows")
	return &cutKind{name: "ovs-ofctl", got: map[int]*cutFigures{},
		ready: func(ctx context.Context) error {
			return errors.Join(os.WriteFile(file, []byte(rules), 0o600), c.serve(ctx, model.CutByRules))
		},
		cut: func(ctx context.Context) (time.Time, error) {
			_, err := c.ofctl(ctx, "add-flows", c.mgmt(), file)
			return time.Now(), err
		},
		heal: func(ctx context.Context) (claims, error) {
			_, err := c.ofctl(ctx, "del-flows", c.mgmt(), "cookie=0xc07/-1")
			return claims{}, err
		}}
}

func (c *cutTestbed) one(ctx context.Context, k *cutKind, m mix, into *cutFigures) error {
	from := agent.Sender{Addrs: []netip.Addr{c.host(hostA).IP}, Only: []model.Traffic{{Proto: "udp"}}}
	count := func(a, z time.Time) (int, error) {
		n, err := c.agents[hostB].CountFrom(ctx, from, a, z)
		if err == nil && n.Incomplete {
			err = errors.New("the agent on host b missed packets: the count would be worth nothing")
		}
		return n.Packets, err
	}
	hold := 60 * time.Millisecond
	if m.Flows > fewFlows {
		hold = 600 * time.Millisecond // a round of revalidation and more
	}
	requested := time.Now()
	said, err := k.cut(ctx)
	if err != nil {
		return err
	}
	time.Sleep(hold)
	end := time.Now() // and the heal's request
	claimed, err := k.heal(ctx)
	if err != nil {
		return err
	}
	healed := time.Now()
	all, err := count(requested, end)
	if err != nil {
		return err
	}
	late, err := count(since(claimed.inForce, said), end)
	if err != nil {
		return err
	}
	into.cuts++
	into.afterRequest, into.afterForce = append(into.afterRequest, all), append(into.afterForce, late)
	into.inForce = append(into.inForce, said.Sub(requested))
	if into.leaked += late; late > 0 {
		into.leaky++
	}
	into.healed = append(into.healed, healed.Sub(end))
	opened := since(claimed.healed, healed)
	time.Sleep(time.Until(opened.Add(wellAfter)))
	lost, err := c.lostIn(ctx, opened, opened.Add(wellAfter))
	if err != nil {
		return err
	}
	into.lost = append(into.lost, lost)
	var first time.Time
	for limit := time.Now().Add(openLimit); first.IsZero() && time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		if first, err = c.agents[hostB].FirstFrom(ctx, from, end); err != nil {
			return err
		}
	}
	if first.IsZero() {
		into.open++
		return nil
	}
	into.first = append(into.first, first.Sub(end))
	time.Sleep(wellAfter - time.Since(first) + 10*time.Millisecond)
	n, err := count(first, first.Add(wellAfter))
	if err != nil {
		return err
	}
	into.share = append(into.share, float64(n)/(float64(m.Rate)*wellAfter.Seconds()))
	// Once round, so that every flow is in the cache again.
	time.Sleep(time.Duration(float64(m.Flows) / float64(m.Rate) * float64(time.Second)))
	return ctx.Err()
}

// since is the moment that was claimed, if one was, or that at which it was said.
func since(claimed, said time.Time) time.Time {
	if claimed.IsZero() {
		return said
	}
	return claimed
}

// lostIn is how many of the packets that were sent from one time to another did
// not arrive: each is known by its number.
func (c *cutTestbed) lostIn(ctx context.Context, from, to time.Time) (int, error) {
	digests, err := c.load.sentIn(from, to)
	if err != nil {
		return 0, err
	}
	if len(digests) == 0 {
		return 0, errors.New("the load sent nothing after a heal: nothing can be said of what was lost")
	}
	// What is late is not lost: a switch that gets no processor keeps it for long.
	for limit := time.Now().Add(lateLimit); ; time.Sleep(50 * time.Millisecond) {
		at, err := c.agents[hostB].ArrivalsOf(ctx, digests, from)
		if err != nil {
			return 0, err
		}
		lost := 0
		for _, a := range at {
			if len(a) == 0 {
				lost++
			}
		}
		if lost == 0 || time.Now().After(limit) {
			return lost, ctx.Err()
		}
	}
}

// measure makes cuts of all kinds in turn. What was measured until ctx ended
// counts, if every kind had its turn.
func (c *cutTestbed) measure(ctx context.Context, kinds []*cutKind, trials int, m mix, say func(string, ...any)) error {
	err := c.rounds(ctx, kinds, trials, m, say)
	if err == nil || ctx.Err() == nil || slices.ContainsFunc(kinds, func(k *cutKind) bool { return k.got[m.Flows] == nil || k.got[m.Flows].cuts == 0 }) {
		return err
	}
	say("the time is over after %d of %d cuts of each kind", kinds[len(kinds)-1].got[m.Flows].cuts, trials)
	return nil
}

func (c *cutTestbed) rounds(ctx context.Context, kinds []*cutKind, trials int, m mix, say func(string, ...any)) error {
	for done := 0; done < trials; done += cutBlock {
		for _, k := range kinds {
			if err := k.ready(ctx); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			if err := c.load.tell(m); err != nil {
				return err
			}
			time.Sleep(time.Duration(float64(m.Flows)/float64(m.Rate)*float64(time.Second)) + time.Second)
			f := k.got[m.Flows]
			if f == nil {
				f = &cutFigures{}
				k.got[m.Flows] = f
			}
			n, err := c.cached(ctx)
			if err != nil {
				return err
			}
			f.cached = append(f.cached, n)
			for range min(cutBlock, trials-done) {
				if err := c.one(ctx, k, m, f); err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
			}
			say("cuts by %s, %d flows: %d of %d; arrived after the request p50 %d, after it was said to be in force %d in %d cuts; in force p50 %v, first packet after a heal p50 %v, healed p50 %v", k.name, m.Flows,
				f.cuts, trials, quantile(f.afterRequest, .5), f.leaked, f.leaky, quantile(f.inForce, .5).Round(100*time.Microsecond), quantile(f.first, .5).Round(100*time.Microsecond), quantile(f.healed, .5).Round(100*time.Microsecond))
		}
	}
	return nil
}

func onCutTestbed(ctx context.Context, f func(*cutTestbed) ([]row, error)) ([]row, error) {
	c, err := newCutTestbed(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := f(c)
	return rows, errors.Join(err, c.close())
}

// kinds are the ways to cut: ours, ours by rules alone, another's.
func (c *cutTestbed) kinds() []*cutKind {
	return []*cutKind{c.byService("meters", model.CutByMeters), c.byService("rules alone", model.CutByRules), c.byOfctl()}
}

// trialsWith is how many cuts are made with so many flows: few if they fit into
// any cache, otherwise many, or a tenth of few if many is 0.
func trialsWith(flows, few, many int) int {
	switch {
	case flows <= fewFlows:
		return few
	case many > 0:
		return many
	}
	return max(few/10, 1)
}

// cutLeaks measures how many packets pass a cut, and when they pass again, with
// so many flows in the cache.
func cutLeaks(ctx context.Context, c *cutTestbed, few, many int, flows []int, say func(string, ...any)) ([]row, error) {
	kinds := c.kinds()
	var rows []row
	for _, n := range flows {
		m := mix{Flows: n, Rate: cutRate, Size: cutSize}
		if err := c.measure(ctx, kinds, trialsWith(n, few, many), m, say); err != nil {
			return rows, err
		}
		rows = append(rows, leakRows(n, kinds[0].got[n], kinds[1].got[n], kinds[2].got[n])...)
	}
	return rows, nil
}
