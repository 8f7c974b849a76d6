package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/clients/cassandra/admin"
)

// workAll runs the users of a workload, one for each coordinator, until the
// context ends. The first, whose coordinator the seed chooses, makes the
// keyspace and the table before the others begin.
func workAll(ctx context.Context, c *common) error {
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
		return nil
	}
	if c.workload == "schema" {
		changeSchema(ctx, users, first, rng)
		return nil
	}
	acked := &ackedKeys{}
	using, stop := context.WithCancel(ctx)
	defer stop()
	var stay, leave sync.WaitGroup
	for _, u := range users {
		rng := rand.New(rand.NewPCG(c.seed, uint64(u.id)))
		if u.leaves() {
			leave.Go(func() { u.loop(using, rng, acked, u == first) })
			continue
		}
		stay.Go(func() { u.loop(ctx, rng, acked, u == first) })
	}
	stay.Wait()
	stop()
	leave.Wait()
	return nil
}

// Names of the data model.
const (
	keyspace = "app"
	table    = "app.items"
)

// prepare makes the keyspace and the table, as a user of a driver does: make
// it, wait until the nodes agree on the schema, go on even if they do not. It
// tries until the context ends.
func (u *user) prepare(ctx context.Context) bool {
	for _, s := range []struct{ f, key, stmt string }{
		{"create", keyspace, createKeyspace(keyspace, u.factor())},
		{"create-table", table, "CREATE TABLE IF NOT EXISTS " + table + " (key text PRIMARY KEY, value text)"},
	} {
		for {
			if !u.reach(ctx) {
				return false
			}
			if u.exec(s.f, s.key, "", u.needs(0), s.stmt, gocql.Quorum) == nil {
				break
			}
			if !admin.Pause(ctx, 500*time.Millisecond) {
				return false
			}
		}
		u.agree()
	}
	return true
}

// factor is the replication factor. Where a node leaves, as many replicas as
// before must remain possible: its data moves to the others.
func (c *common) factor() int {
	if c.workload == "decommission" {
		return len(c.nodes) - 1
	}
	return len(c.nodes)
}

func createKeyspace(name string, rf int) string {
	return fmt.Sprintf("CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}", name, rf)
}

// agree waits until all nodes have one schema version, as far as the
// coordinator knows, and notes and returns whether they have. Drivers do so after
// each change of the schema, for a limited time, and nobody promises that it is
// enough: it needs nothing, so it is not judged.
func (u *user) agree() bool {
	_, err := u.do("agree", "schema", "", nil, false, func(octx context.Context) (string, error) {
		wait, cancel := context.WithTimeout(octx, u.agreeing)
		defer cancel()
		for {
			versions, err := u.versions(octx)
			if err != nil {
				return "", err
			}
			if u.agreement(versions) {
				return versions[0], nil
			}
			if !admin.Pause(wait, 200*time.Millisecond) {
				return "", fmt.Errorf("%w: %d of %d nodes known, %d versions after %v", errDisagree, len(versions), len(u.nodes), distinct(versions), u.agreeing)
			}
		}
	})
	u.agreed.Store(err == nil)
	return err == nil
}

// notice asks again whether the nodes agree by now, outside the history.
func (u *user) notice(ctx context.Context) {
	if u.agreed.Load() {
		return
	}
	if v, err := u.versions(ctx); err == nil && u.agreement(v) {
		u.agreed.Store(true)
	}
}

// agreement says whether all nodes are known to have one schema version. A node
// that the coordinator does not list may have any.
func (u *user) agreement(versions []string) bool {
	return len(versions) == len(u.nodes) && distinct(versions) == 1
}

func distinct(list []string) int { return len(slices.Compact(slices.Sorted(slices.Values(list)))) }

// versions are the schema versions of the nodes that the coordinator lists, its own first.
func (u *user) versions(ctx context.Context) ([]string, error) {
	var out []string
	for _, q := range []string{"SELECT schema_version FROM system.local", "SELECT schema_version FROM system.peers"} {
		it := u.sess.Query(q).Consistency(gocql.One).WithContext(ctx).Iter()
		var v gocql.UUID
		for it.Scan(&v) {
			out = append(out, v.String())
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leaves says that the user's coordinator is the node that is decommissioned.
// Drivers use a node until it has left.
func (u *user) leaves() bool { return u.workload == "decommission" && u.at.Name == u.leaver }

func (u *user) loop(ctx context.Context, rng *rand.Rand, acked *ackedKeys, first bool) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / u.rate))
	defer tick.Stop()
	left := admin.Left{From: u.enough}
	for n := 0; ; n++ {
		if !u.reach(ctx) {
			return
		}
		if u.workload == "decommission" && !u.leaves() && left.Over(u.gone(ctx)) {
			return
		}
		if first {
			u.notice(ctx)
		}
		switch {
		case u.workload == "paxos":
			u.transaction(n, rng, acked)
		case n%2 == 0:
			u.write(n, acked)
		default:
			u.read(rng, acked, gocql.Quorum)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gone asks the coordinator whether the node that leaves is no peer any more.
func (u *user) gone(ctx context.Context) bool {
	it := u.sess.Query("SELECT peer FROM system.peers").Consistency(gocql.One).WithContext(ctx).Iter()
	gone := true
	var peer net.IP
	for it.Scan(&peer) {
		for _, n := range u.nodes {
			if n.Name == u.leaver && n.IP.String() == peer.String() {
				gone = false
			}
		}
	}
	return it.Close() == nil && gone
}

// replicas is how many nodes the coordinator of a quorum operation must
// reach. While a node leaves, the replicas of a key change and a write also
// needs the node that takes over (Cassandra, Architecture, "Pending ranges");
// while the nodes do not agree on the schema, one of them may be the only one
// that has the table. Then only an operation that reaches everybody must
// succeed.
func (u *user) replicas() int {
	if u.workload == "decommission" || !u.agreed.Load() {
		return len(u.nodes)
	}
	return u.quorum()
}

func (u *user) write(n int, acked *ackedKeys) {
	key := fmt.Sprintf("%s-%d-%05d", u.workload, u.id, n)
	if u.exec("write", key, key, u.needs(u.replicas()), "INSERT INTO "+table+" (key, value) VALUES (?, ?)", gocql.Quorum, key, key) == nil {
		acked.add(key)
	}
}

func (u *user) read(rng *rand.Rand, acked *ackedKeys, cons gocql.Consistency) {
	key, ok := acked.any(rng)
	if !ok {
		return
	}
	_, _ = u.do("read", key, "", u.needs(u.replicas()), false, func(ctx context.Context) (string, error) {
		var v string
		err := u.sess.Query("SELECT value FROM "+table+" WHERE key = ?", key).Consistency(cons).WithContext(ctx).Scan(&v)
		if errors.Is(err, gocql.ErrNotFound) {
			return "", nil
		}
		return v, err
	})
}

// transaction is one step of lightweight transactions on keys that nobody
// else writes: insert if not exists, change if it is what was written, read at
// SERIAL. Users do not contend: contention is a reason to fail.
func (u *user) transaction(n int, rng *rand.Rand, acked *ackedKeys) {
	key := fmt.Sprintf("%s-%d-%05d", u.workload, u.id, n/3)
	switch n % 3 {
	case 0:
		if u.conditional("write", key, key, "INSERT INTO "+table+" (key, value) VALUES (?, ?) IF NOT EXISTS", key, key) == nil {
			acked.add(key)
		}
	case 1:
		if acked.has(key) {
			u.conditional("write", key, key+"+", "UPDATE "+table+" SET value = ? WHERE key = ? IF value = ?", key+"+", key, key)
		}
	default:
		u.read(rng, acked, gocql.Consistency(gocql.Serial))
	}
}

func (u *user) conditional(f, key, value, stmt string, args ...any) error {
	_, err := u.do(f, key, value, u.needs(u.replicas()), true, func(ctx context.Context) (string, error) {
		was := map[string]any{}
		applied, err := u.sess.Query(stmt, args...).Consistency(gocql.Quorum).SerialConsistency(gocql.Serial).WithContext(ctx).MapScanCAS(was)
		if err == nil && !applied {
			return "", fmt.Errorf("%w: found %v", errNotApplied, was["value"])
		}
		return value, err
	})
	return err
}

// ackedKeys are the keys whose write was acknowledged.
type ackedKeys struct {
	mu   sync.Mutex
	keys []string
	set  map[string]bool
}

func (a *ackedKeys) add(k string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil {
		a.set = map[string]bool{}
	}
	if !a.set[k] {
		a.set[k] = true
		a.keys = append(a.keys, k)
	}
}

func (a *ackedKeys) has(k string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set[k]
}

func (a *ackedKeys) any(rng *rand.Rand) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.keys) == 0 {
		return "", false
	}
	return a.keys[rng.IntN(len(a.keys))], true
}
