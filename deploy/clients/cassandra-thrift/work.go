package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netsplit/deploy/clients/cassandra/admin"
	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// Names of the data model. Every row has one column.
const (
	keyspace = "app"
	items    = "items" // the column family whose rows stay
)

// user is one client: it has one connection, to one coordinator, and one
// operation at a time.
type user struct {
	*common
	id   int // process in the history
	at   workload.Node
	conn *client
	set  bool // the keyspace of the connection is set
}

// workAll runs the users of a workload, one for each coordinator, until the
// context ends. The first, whose coordinator the seed chooses, makes the
// keyspace before the others begin.
func workAll(ctx context.Context, c *common) {
	rng := rand.New(rand.NewPCG(c.seed, 0xca55))
	var users []*user
	for i := range c.nodes {
		users = append(users, &user{common: c, id: i, at: c.nodes[i]})
	}
	defer func() {
		for _, u := range users {
			u.close()
		}
	}()
	first := users[rng.IntN(len(users))]
	if !first.prepare(ctx) {
		return
	}
	if c.workload == "drop" {
		fillAndDrop(ctx, users, first.id, rng)
		return
	}
	acked := &ackedKeys{}
	var wg sync.WaitGroup
	for _, u := range users {
		if c.workload == "decommission" && u.at.Name == c.leaver {
			continue // nobody uses a node that is about to leave
		}
		rng := rand.New(rand.NewPCG(c.seed, uint64(u.id)))
		wg.Go(func() { u.loop(ctx, rng, acked) })
	}
	wg.Wait()
}

// replicas of a key. Where a node leaves, two must remain enough: these
// releases cannot compute the ring of a keyspace that wants more replicas
// than there are nodes.
func (c *common) replicas() int {
	if c.workload == "decommission" {
		return len(c.nodes) - 1
	}
	return len(c.nodes)
}

// needs says what a quorum operation cannot do without: its client reaches the
// coordinator, and the coordinator a majority of the replicas. Which nodes
// are the replicas of a key is not known here; one that reaches all reaches
// enough of them.
func (u *user) needs(all bool) []model.Need {
	n := len(u.nodes)/2 + 1
	if all || u.replicas() < len(u.nodes) {
		n = len(u.nodes)
	}
	return append(u.client(), model.Need{Via: u.at.Name, From: u.names(), Count: n})
}

func (u *user) client() []model.Need {
	return []model.Need{{Via: u.self, From: []model.NodeID{u.at.Name}, Count: 1}}
}

// reach opens the connection if there is none, until the context ends.
func (u *user) reach(ctx context.Context) bool {
	for u.conn == nil {
		c, err := dial(netip.AddrPortFrom(u.at.IP, uint16(u.port)).String(), u.tmo)
		if err == nil {
			u.conn, u.set = c, false
			return true
		}
		if !admin.Pause(ctx, 300*time.Millisecond) {
			return false
		}
	}
	return true
}

func (u *user) close() {
	if u.conn != nil {
		_ = u.conn.sock.Close()
		u.conn = nil
	}
}

// do makes one operation with its invocation and its answer. It does not end
// with the run's context: an operation that was begun gets its answer or its
// timeout. The keyspace of the connection is set within the operation.
func (u *user) do(f, key, value string, needs []model.Need, writes, inKeyspace bool, op func(ctx context.Context) (string, error)) (string, error) {
	o := model.Operation{Process: u.id, Type: model.OpInvoke, F: f, Key: key, Value: value, Node: u.at.Name, Needs: needs}
	u.out.Add(o)
	ctx, cancel := context.WithTimeout(context.Background(), u.tmo)
	defer cancel()
	var v string
	var err error
	if inKeyspace && !u.set {
		if err = u.conn.setKeyspace(ctx, keyspace); err == nil {
			u.set = true
		}
	}
	if err == nil {
		v, err = op(ctx)
	} else {
		writes = false // nothing was sent yet
	}
	o.Needs, o.Type, o.Value = nil, model.OpOK, v
	if err != nil {
		var broken bool
		o.Value = value
		o.Type, o.Error, broken = failure(err, writes)
		if broken {
			u.close()
		}
	}
	u.out.Add(o)
	return v, err
}

// prepare makes the keyspace and waits until the nodes agree on the schema.
func (u *user) prepare(ctx context.Context) bool {
	for {
		if !u.reach(ctx) {
			return false
		}
		_, err := u.do("create", keyspace, "", u.client(), true, false, func(ctx context.Context) (string, error) {
			return "", u.conn.addKeyspace(ctx, u.release, keyspace, items, u.replicas())
		})
		if err == nil {
			return u.agree(ctx)
		}
		if !admin.Pause(ctx, time.Second) {
			return false
		}
	}
}

// agreedVersion is the one schema version of all nodes. Nodes that do not
// answer have not agreed: whoever goes on without them changes the schema from
// two sides, which these releases do not support.
func agreedVersion(versions map[string]any) (string, bool) {
	found := ""
	for v, nodes := range versions {
		if l, _ := nodes.([]any); len(l) == 0 {
			continue
		}
		if v == unreachable || found != "" {
			return "", false
		}
		found = v
	}
	return found, found != ""
}

// agree waits until all nodes have one schema version, as users do after each
// change.
func (u *user) agree(ctx context.Context) bool {
	for {
		if !u.reach(ctx) {
			return false
		}
		_, err := u.do("agree", "schema", "", u.needs(true), false, false, func(octx context.Context) (string, error) {
			for {
				m, err := u.conn.versions(octx)
				if err != nil {
					return "", err
				}
				if v, ok := agreedVersion(m); ok {
					return v, nil
				}
				if !admin.Pause(octx, 200*time.Millisecond) {
					return "", fmt.Errorf("%w after %v: %v", errDisagree, u.tmo, m)
				}
			}
		})
		if err == nil {
			return true
		}
		if !admin.Pause(ctx, 500*time.Millisecond) {
			return false
		}
	}
}

func (u *user) loop(ctx context.Context, rng *rand.Rand, acked *ackedKeys) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / u.rate))
	defer tick.Stop()
	left := admin.Left{From: u.enough}
	for n := 0; ; n++ {
		if !u.reach(ctx) {
			return
		}
		if u.workload == "decommission" && left.Over(u.gone(ctx)) {
			return
		}
		if !u.reach(ctx) {
			return
		}
		if n%2 == 0 {
			key := fmt.Sprintf("%s-%d-%05d", u.workload, u.id, n)
			if u.insert("write", items, key) == nil {
				acked.add(key)
			}
		} else if key, ok := acked.any(rng); ok {
			u.read("read", items, key)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gone asks the coordinator whether the node that leaves owns no range any
// more. This takes part in no history: it only says when to end.
func (u *user) gone(ctx context.Context) bool {
	if u.conn == nil {
		return false
	}
	endpoints, err := u.conn.ring(ctx, keyspace)
	if err != nil {
		u.close()
		return false
	}
	for _, n := range u.nodes {
		if n.Name == u.leaver {
			return !slices.Contains(endpoints, n.IP.String())
		}
	}
	return true
}

func (u *user) insert(f, cf, key string) error {
	_, err := u.do(f, key, key, u.needs(false), true, true, func(ctx context.Context) (string, error) {
		return key, u.conn.insert(ctx, cf, key, key, quorum)
	})
	return err
}

func (u *user) read(f, cf, key string) {
	_, _ = u.do(f, key, "", u.needs(false), false, true, func(ctx context.Context) (string, error) {
		return u.conn.get(ctx, cf, key, quorum)
	})
}

// fillAndDrop goes through rounds: make a column family, write rows through
// all coordinators, read some, drop it.
func fillAndDrop(ctx context.Context, users []*user, at int, rng *rand.Rand) {
	next := func() *user {
		at = (at + 1 + rng.IntN(len(users)-1)) % len(users)
		return users[at]
	}
	for i := 0; ctx.Err() == nil; i++ {
		cf := fmt.Sprintf("cf%d", i)
		if !next().change(ctx, "create-family", cf, func(octx context.Context, c *client) error { return c.addFamily(octx, keyspace, cf) }) {
			return
		}
		every := time.Duration(float64(time.Second) / users[0].rate / float64(len(users)))
		for n := 0; n < rowsPerFamily && admin.Pause(ctx, every); n++ {
			u := users[n%len(users)]
			if !u.reach(ctx) {
				return
			}
			key := fmt.Sprintf("%s-%d-%05d", cf, u.id, n)
			if u.insert("write-new", cf, key) == nil && n%4 == 3 && u.reach(ctx) {
				u.read("read-new", cf, key)
			}
			if n%4 == 0 && u.reach(ctx) {
				_ = u.insert("write", items, "items-"+key)
			}
		}
		if !next().change(ctx, "drop-family", cf, func(octx context.Context, c *client) error { return c.dropFamily(octx, cf) }) {
			return
		}
	}
}

// rowsPerFamily is how many rows a column family gets before it is dropped.
const rowsPerFamily = 24

// change makes one change of the schema and waits for agreement. An answer
// that did not come is not asked for again; without agreement nothing goes on
// but the waiting.
func (u *user) change(ctx context.Context, f, cf string, op func(context.Context, *client) error) bool {
	if ctx.Err() != nil || !u.reach(ctx) {
		return false
	}
	_, _ = u.do(f, cf, "", u.client(), true, true, func(octx context.Context) (string, error) {
		return "", op(octx, u.conn)
	})
	return u.agree(ctx)
}

// ackedKeys are the keys whose write was acknowledged.
type ackedKeys struct {
	mu   sync.Mutex
	keys []string
}

func (a *ackedKeys) add(k string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = append(a.keys, k)
}

func (a *ackedKeys) any(rng *rand.Rand) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.keys) == 0 {
		return "", false
	}
	return a.keys[rng.IntN(len(a.keys))], true
}
