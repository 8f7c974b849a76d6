package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
	"netsplit/testbed/nft"
)

// Agent does what a host is told; agent.Client is one. A new one has no rules.
type Agent interface {
	Filter(ctx context.Context, table string, addr netip.Addr, rules []hostrules.Rule, lease time.Duration) (map[string]uint64, error)
	Renew(ctx context.Context, lease time.Duration) error
	Dropped(ctx context.Context) (map[string]uint64, error)
}

// Config of Hosts. The zero value of an optional field takes its default.
type Config struct {
	Testbed model.Testbed
	// Agent returns the agent of a host. It starts one that died again, which may take far
	// longer than an answer. It is not called again for a host before it has returned.
	Agent func(context.Context, model.NodeID) (Agent, error)
	// Lost is told when the rules of a host are no longer in force, or may not be. It must
	// not block.
	Lost func(host model.NodeID, why error)

	// Shorter in tests.
	renewEvery, timeout time.Duration
}

const (
	lease      = 5 * time.Second // life of rules
	renewEvery = time.Second
	timeout    = 3 * time.Second // longest wait for a host
)

// Hosts keeps the rules of all hosts of one testbed.
type Hosts struct {
	cfg   Config
	table string
	all   []hostrules.Host
	life  context.Context // until Close
	stop  context.CancelFunc
	work  sync.WaitGroup

	// change is held by every operation from compile to confirmation. Renewing
	// does not wait for it: one host that is slow lets no other expire.
	change     sync.Mutex
	partitions []*inForce
	hosts      map[model.NodeID]*host
}

// inForce is a partition and what was dropped for it.
type inForce struct {
	id      uint32
	p       model.Partition
	new     bool                // being cut: what shared rules have dropped so far does not count for it
	on      map[model.Link]bool // the links that it cuts
	dropped map[string]*drop    // by host and rule
}

// counts says whether what the rule drops counts for the partition.
func (f *inForce) counts(r hostrules.Rule) bool { return f.on[r.Link] && r.Counts(f.p) }

// New makes the tables on all hosts, without rules. The error says which host
// cannot and why.
func New(ctx context.Context, cfg Config) (*Hosts, error) {
	cfg.renewEvery, cfg.timeout = cmp.Or(cfg.renewEvery, renewEvery), cmp.Or(cfg.timeout, timeout)
	h := &Hosts{cfg: cfg, table: TableName(cfg.Testbed.Name), hosts: map[model.NodeID]*host{}}
	for _, t := range cfg.Testbed.Hosts {
		mac, err := net.ParseMAC(t.MAC)
		if err != nil || len(mac) != 6 {
			return nil, fmt.Errorf("host %s: mac %q is no Ethernet address", t.Name, t.MAC)
		}
		h.all = append(h.all, hostrules.Host{Name: t.Name, MAC: hostrules.MAC(mac), IP: t.IP})
		h.hosts[t.Name] = &host{name: t.Name, ip: t.IP}
	}
	h.life, h.stop = context.WithCancel(context.Background())
	if err := h.apply(ctx); err != nil {
		h.Close()
		return nil, err
	}
	for _, o := range h.hosts {
		h.work.Go(func() { h.renewing(h.life, o) })
	}
	return h, nil
}

var plainName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,40}$`)

// TableName is the name of a testbed's tables: two daemons cut the same hosts only
// for testbeds of different names.
func TableName(testbed string) string {
	if !plainName.MatchString(testbed) {
		sum := fnv.New64a()
		sum.Write([]byte(testbed))
		testbed = fmt.Sprintf("%x", sum.Sum64())
	}
	return "netsplit-" + testbed
}

// Cut cuts a partition and returns when both ends of every link have confirmed it. On error
// it removes the rules again from the hosts that it can reach.
func (h *Hosts) Cut(ctx context.Context, id uint32, p model.Partition) error {
	h.change.Lock()
	defer h.change.Unlock()
	f := &inForce{id: id, p: p, on: map[model.Link]bool{}, dropped: map[string]*drop{}, new: true}
	for _, l := range p.Links() {
		f.on[l] = true
	}
	h.partitions = append(h.partitions, f)
	err := h.apply(ctx)
	f.new = false
	if err != nil {
		h.partitions = h.partitions[:len(h.partitions)-1]
		h.lose(h.apply(context.WithoutCancel(ctx))) // a host that cannot be reached forgets by itself
	}
	return err
}

// Heal lifts the partition with that id, if it is in force. On error its rules
// stay on the hosts that the error names until the lease runs out.
func (h *Hosts) Heal(ctx context.Context, id uint32) error {
	h.change.Lock()
	defer h.change.Unlock()
	n := len(h.partitions)
	kept := slices.DeleteFunc(slices.Clone(h.partitions), func(f *inForce) bool { return f.id == id })
	if h.partitions = kept; len(kept) == n {
		return nil
	}
	err := h.apply(ctx)
	h.lose(err)
	return err
}

// lose reports the hosts that did not take their rules. What they still have is not renewed,
// so partitions there may no longer be in force.
func (h *Hosts) lose(err error) {
	if err == nil || len(h.partitions) == 0 {
		return
	}
	for name, o := range h.hosts {
		o.mu.Lock()
		lost := o.agent == nil
		o.reported = o.reported || lost
		o.mu.Unlock()
		if lost {
			h.cfg.Lost(name, err)
		}
	}
}

// LeaseExpiry is the earliest time at which the rules of a partition expire on one of its
// hosts unless they are renewed, and what hinders the renewal. It does not wait.
func (h *Hosts) LeaseExpiry(p model.Partition) (time.Time, error) {
	var until time.Time
	for _, t := range h.all {
		if !concerns(p, t.Name) {
			continue
		}
		o := h.hosts[t.Name]
		o.mu.Lock()
		lost, some, u := o.agent == nil, o.renew, o.until
		o.mu.Unlock()
		switch {
		case lost:
			return until, fmt.Errorf("host %s has lost its rules", t.Name)
		case !some:
		case !u.After(time.Now()):
			return u, fmt.Errorf("host %s has not confirmed for %v that it keeps its rules", t.Name, lease)
		case until.IsZero() || u.Before(until):
			until = u
		}
	}
	return until, nil
}

// Verify does nothing: a host's rules are set all at once, and nobody else's can
// displace them.
func (h *Hosts) Verify(context.Context, model.Partition) error { return nil }

// Close stops renewing. Rules still in force end with the agents, or with the lease.
func (h *Hosts) Close() {
	h.stop()
	h.work.Wait()
}

func concerns(p model.Partition, host model.NodeID) bool {
	return slices.ContainsFunc(p.Links(), func(l model.Link) bool { return l.Src == host || l.Dst == host })
}

// apply brings every host whose rules are to change to the desired state. change is
// held, or nobody else has h yet.
func (h *Hosts) apply(ctx context.Context) error {
	var ps []model.Partition
	for _, f := range h.partitions {
		ps = append(ps, f.p)
	}
	return h.each(ctx, func(ctx context.Context, o *host) (func(), error) {
		rules := hostrules.Compile(o.name, h.all, ps)
		a := o.holder()
		if a != nil && slices.Equal(rules, o.rules) {
			if !slices.ContainsFunc(h.partitions, func(f *inForce) bool { return f.new && concerns(f.p, o.name) }) {
				return nil, nil
			}
			dropped, err := a.Dropped(ctx) // so far its rules dropped for other partitions
			if err == nil {
				return func() { h.book(o, dropped) }, nil
			}
			if now, gone := h.agent(ctx, o); gone != nil || now == a {
				return nil, err
			}
			// The agent has died: give the rules to the new one.
		}
		next, err := h.agent(ctx, o)
		if err != nil {
			o.set(nil, false, time.Time{})
			return nil, err
		}
		began := time.Now()
		dropped, err := next.Filter(ctx, h.table, o.ip, rules, lease)
		if err != nil && !errors.Is(err, nft.ErrExpired) {
			o.set(nil, false, time.Time{})
			return nil, err
		}
		if lost := o.gap(a, next, rules, dropped, err); lost != nil {
			h.cfg.Lost(o.name, lost)
		}
		o.set(next, len(rules) > 0, began.Add(lease))
		return func() {
			if a == next {
				h.book(o, dropped)
			}
			o.rules, o.seen = rules, dropped
		}, nil
	})
}
