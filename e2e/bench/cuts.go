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
	"netsplit/campaign/agent"
	"netsplit/model"
)

const (
	cutRate = 10_000 // datagrams a second
	cutSize = 200    // bytes of a frame
	// fewFlows fit into any cache; with more of them cuts take longer, and there
	// are a tenth of them.
	fewFlows = 10
	// wellAfter is how long after a heal packets are counted.
	wellAfter = 200 * time.Millisecond
	cutBlock  = 20 // cuts of one kind in a row
)

// cutKind is a way to cut host b off from host a.
type cutKind struct {
	name  string
	ready func(context.Context) error // prepares a block of cuts
	// cut and heal return when they were said to be done.
	cut, heal func(context.Context) error
	got       map[int]*cutFigures // by number of flows
}

// cutFigures are those of one kind with so many flows, one for each cut.
type cutFigures struct {
	cached                    []int // decisions in the cache before a block
	afterRequest, afterForce  []int // packets that arrived
	inForce, healed, first    []time.Duration
	share                     []float64 // of what was sent just after the first packet that passed again
	cuts, leaky, leaked, open int       // leaked: after in force; open: no packet passed in time
}

// cutBed is a lab with a load, and the service or nothing on top.
type cutBed struct {
	*bed
	dir    string
	agents map[model.NodeID]*agent.Client
	tell   func(mix) error
	svc    *campaign.Service
	by     model.CutBy // what svc cuts by
	cuts   int
}

func newCutBed(ctx context.Context) (c *cutBed, err error) {
	b, err := newBed(ctx, "cuts", "")
	if err != nil {
		return nil, err
	}
	c = &cutBed{bed: b}
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
	c.tell, err = b.newMix()
	return c, err
}

func (c *cutBed) stop() error {
	if c.svc == nil {
		return nil
	}
	err := c.svc.Close()
	c.svc = nil
	return err
}

// serve has the service control the switch and cut as told.
func (c *cutBed) serve(ctx context.Context, by model.CutBy) error {
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
	if err := c.lab.SetController(ctx, "tcp:"+c.svc.ControllerAddr()); err != nil {
		return err
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	return c.split(ctx)
}

// untilState waits until the partition is in the state.
func (c *cutBed) untilState(ctx context.Context, name string, want model.PartitionState) error {
	for {
		p, err := c.svc.Partition(ctx, name)
		if err != nil || p.State == want {
			return err
		}
		if p.State == model.PartitionFailed || p.Reason != "" {
			return fmt.Errorf("partition %s is %s: %s", name, p.State, p.Reason)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Microsecond):
		}
	}
}

// byService are cuts by hand as users make them, without the way to the daemon.
func (c *cutBed) byService(name string, by model.CutBy) *cutKind {
	current := ""
	return &cutKind{name: name, got: map[int]*cutFigures{},
		ready: func(ctx context.Context) error { return c.serve(ctx, by) },
		cut: func(ctx context.Context) error {
			c.cuts++
			current = fmt.Sprintf("cut-%d", c.cuts)
			_, err := c.svc.CreatePartition(ctx, model.PartitionSpec{Name: current,
				Partition: model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{hostA}, {hostB}}}})
			if err != nil {
				return err
			}
			return c.untilState(ctx, current, model.PartitionInForce)
		},
		heal: func(ctx context.Context) error {
			p, err := c.svc.DeletePartition(ctx, current)
			if err == nil && p.Reason != "" {
				err = errors.New(p.Reason)
			}
			return err
		}}
}

// byOfctl is what the command line of Open vSwitch does: add-flow and a barrier
// behind each, del-flows and a barrier. Nothing is proved.
func (c *cutBed) byOfctl() *cutKind {
	var rules string
	for _, p := range [][2]model.NodeID{{hostA, hostB}, {hostB, hostA}} {
		rules += fmt.Sprintf("table=1,priority=500,cookie=0xc07,in_port=%d,dl_dst=%s,actions=drop\n", c.host(p[0]).Port.Number, c.host(p[1]).MAC)
	}
	file := filepath.Join(c.dir, "ofctl.flows")
	return &cutKind{name: "ovs-ofctl", got: map[int]*cutFigures{},
		ready: func(ctx context.Context) error {
			return errors.Join(os.WriteFile(file, []byte(rules), 0o600), c.serve(ctx, model.CutByRules))
		},
		cut: func(ctx context.Context) error {
			_, err := c.ofctl(ctx, "add-flows", c.mgmt(), file)
			return err
		},
		heal: func(ctx context.Context) error {
			_, err := c.ofctl(ctx, "del-flows", c.mgmt(), "cookie=0xc07/-1")
			return err
		}}
}

// one makes a cut and a heal, and counts at the receiving host.
func (c *cutBed) one(ctx context.Context, k *cutKind, m mix, into *cutFigures) error {
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
	asked := time.Now()
	if err := k.cut(ctx); err != nil {
		return err
	}
	said := time.Now()
	time.Sleep(hold)
	end := time.Now()
	all, err := count(asked, end)
	if err != nil {
		return err
	}
	late, err := count(said, end)
	if err != nil {
		return err
	}
	into.cuts++
	into.afterRequest, into.afterForce = append(into.afterRequest, all), append(into.afterForce, late)
	into.inForce = append(into.inForce, said.Sub(asked))
	if into.leaked += late; late > 0 {
		into.leaky++
	}
	asked = time.Now()
	if err := k.heal(ctx); err != nil {
		return err
	}
	into.healed = append(into.healed, time.Since(asked))
	var first time.Time
	for limit := time.Now().Add(5 * time.Second); first.IsZero() && time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		if first, err = c.agents[hostB].FirstFrom(ctx, from, asked); err != nil {
			return err
		}
	}
	if first.IsZero() {
		into.open++
		return nil
	}
	into.first = append(into.first, first.Sub(asked))
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

// measure makes cuts of all kinds in turn. What was measured until ctx ended
// counts, if every kind had its turn.
func (c *cutBed) measure(ctx context.Context, kinds []*cutKind, trials int, m mix, say func(string, ...any)) error {
	err := c.rounds(ctx, kinds, trials, m, say)
	if err == nil || ctx.Err() == nil || slices.ContainsFunc(kinds, func(k *cutKind) bool { return k.got[m.Flows] == nil || k.got[m.Flows].cuts == 0 }) {
		return err
	}
	say("the time is over after %d of %d cuts of each kind", kinds[len(kinds)-1].got[m.Flows].cuts, trials)
	return nil
}

func (c *cutBed) rounds(ctx context.Context, kinds []*cutKind, trials int, m mix, say func(string, ...any)) error {
	if m.Flows > fewFlows {
		trials = max(trials/10, 1)
	}
	for done := 0; done < trials; done += cutBlock {
		for _, k := range kinds {
			if err := k.ready(ctx); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			if err := c.tell(m); err != nil {
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

// onCutBed makes a lab for cuts, and removes it.
func onCutBed(ctx context.Context, f func(*cutBed) ([]row, error)) ([]row, error) {
	c, err := newCutBed(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := f(c)
	return rows, errors.Join(err, c.close())
}

// kinds are the ways to cut: ours, ours by rules alone, another's.
func (c *cutBed) kinds() []*cutKind {
	return []*cutKind{c.byService("meters", model.CutByMeters), c.byService("rules alone", model.CutByRules), c.byOfctl()}
}

// cutLeaks measures how many packets pass a cut, and when they pass again, with
// so many flows in the cache.
func cutLeaks(ctx context.Context, c *cutBed, trials int, flows []int, say func(string, ...any)) ([]row, error) {
	kinds := c.kinds()
	var rows []row
	for _, n := range flows {
		m := mix{Flows: n, Rate: cutRate, Size: cutSize}
		if err := c.measure(ctx, kinds, trials, m, say); err != nil {
			return rows, err
		}
		ours, rules, other := kinds[0].got[n], kinds[1].got[n], kinds[2].got[n]
		what := fmt.Sprintf("%d flows (%d cached), %d cuts: ", n, slices.Min(slices.Concat(ours.cached, rules.cached, other.cached)), ours.cuts)
		add := func(name, goal string, ok mark, text func(*cutFigures) string, mid func(*cutFigures) float64) {
			r := row{what: what + name, ours: fmt.Sprintf("%s; rules alone %s", text(ours), text(rules)), beside: text(other), goal: goal, met: ok}
			if mid != nil && mid(other) > 0 {
				r.ratio = fmt.Sprintf("%.2f", mid(ours)/mid(other))
			}
			rows, what = append(rows, r), "… "
		}
		add("packets that arrive after the request, p50, greatest", "", noGoal,
			func(f *cutFigures) string {
				return fmt.Sprintf("%d, %d", quantile(f.afterRequest, .5), slices.Max(f.afterRequest))
			}, func(f *cutFigures) float64 { return float64(quantile(f.afterRequest, .5)) })
		add("packets that arrive after it is said to be in force", "0", is(ours.leaked == 0 && rules.leaked == 0),
			func(f *cutFigures) string { return fmt.Sprintf("%d in %d cuts", f.leaked, f.leaky) }, nil)
		add("heal: ms from the request to the first packet, p50, p99", "", noGoal,
			func(f *cutFigures) string { return spanText(f.first) }, func(f *cutFigures) float64 { return millis(quantile(f.first, .5)) })
		add(fmt.Sprintf("heal: share that arrives of what is sent in the %v from that packet on, p50, least", wellAfter), "", noGoal,
			func(f *cutFigures) string {
				if len(f.share) == 0 {
					return "none"
				}
				return fmt.Sprintf("%.2f, %.2f", quantile(f.share, .5), slices.Min(f.share))
			}, func(f *cutFigures) float64 { return quantile(f.share, .5) })
		add("heal: ms from the request to healed, p50, p99", "", noGoal,
			func(f *cutFigures) string { return spanText(f.healed) }, func(f *cutFigures) float64 { return millis(quantile(f.healed, .5)) })
	}
	return rows, nil
}

// inForce measures how long proofs take.
func inForce(ctx context.Context, c *cutBed, trials int, say func(string, ...any)) ([]row, error) {
	kinds := c.kinds()
	m := mix{Flows: fewFlows, Rate: cutRate / 10, Size: cutSize}
	if err := c.measure(ctx, kinds, trials, m, say); err != nil {
		return nil, err
	}
	ours, rules, other := kinds[0].got[m.Flows], kinds[1].got[m.Flows], kinds[2].got[m.Flows]
	line := func(name string, of func(*cutFigures) []time.Duration) row {
		return row{what: name, ours: fmt.Sprintf("%s; rules alone %s", spanText(of(ours)), spanText(of(rules))), beside: spanText(of(other)),
			ratio: fmt.Sprintf("%.2f", millis(quantile(of(ours), .5))/millis(quantile(of(other), .5)))}
	}
	return []row{
		line(fmt.Sprintf("ms from the request to in force, proved (ovs-ofctl: to the barrier reply), p50, p99 of %d", ours.cuts), func(f *cutFigures) []time.Duration { return f.inForce }),
		line("ms from the request to healed, proved (ovs-ofctl: to the barrier reply), p50, p99", func(f *cutFigures) []time.Duration { return f.healed }),
		{what: "packets that arrived after that", ours: fmt.Sprintf("%d; rules alone %d", ours.leaked, rules.leaked), beside: fmt.Sprint(other.leaked), goal: "0",
			met: is(ours.leaked == 0 && rules.leaked == 0)},
	}, nil
}

// spanText is p50 and p99 in ms.
func spanText(ds []time.Duration) string {
	if len(ds) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f, %.1f", millis(quantile(ds, .5)), millis(quantile(ds, .99)))
}
