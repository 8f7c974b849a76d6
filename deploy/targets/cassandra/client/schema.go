package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/gocql/gocql"

	"netsplit/deploy/targets/cassandra/admin"
)

// changeSchema goes through rounds of schema changes, one user after another,
// each followed by a wait until the nodes agree, as the documentation asks
// for: changes from two sides at once are not supported (Cassandra, CQL, "Data
// Definition"). Every round makes a keyspace and a table, looks for them
// through the next coordinator, writes and reads, adds a column, removes it
// and drops what an earlier round made.
func changeSchema(ctx context.Context, users []*user, first *user, rng *rand.Rand) {
	at := first.id
	next := func() *user {
		at = (at + 1 + rng.IntN(len(users)-1)) % len(users)
		return users[at]
	}
	u := first
	for i := 0; ctx.Err() == nil; i++ {
		ks := fmt.Sprintf("ks%d", i)
		tab := ks + ".t"
		u = u.change(ctx, "create", ks, createKeyspace(ks, len(users)))
		u.look(ctx, users, ks)
		u = u.change(ctx, "create-table", tab, "CREATE TABLE IF NOT EXISTS "+tab+" (key text PRIMARY KEY, value text)")
		u = next()
		u.use(ctx, tab)
		u = u.change(ctx, "add-column", tab+".extra", "ALTER TABLE "+tab+" ADD extra text")
		u = next()
		u.use(ctx, tab)
		u = u.change(ctx, "drop-column", tab+".extra", "ALTER TABLE "+tab+" DROP extra")
		u = next()
		u.use(ctx, tab)
		if i%2 == 1 {
			old := fmt.Sprintf("ks%d", i-1)
			u = u.change(ctx, "drop-table", old+".t", "DROP TABLE IF EXISTS "+old+".t")
			u = next()
			u = u.change(ctx, "delete", old, "DROP KEYSPACE IF EXISTS "+old)
			u = next()
		}
	}
}

// change makes one change of the schema and waits for agreement. An answer
// that did not come is not asked for again; without agreement nothing goes on
// but the waiting. It returns the user, so that changes can be chained.
func (u *user) change(ctx context.Context, f, key, stmt string) *user {
	if ctx.Err() != nil || !u.reach(ctx) {
		return u
	}
	_ = u.exec(f, key, "", u.needs(0), stmt, gocql.Quorum)
	for ctx.Err() == nil && u.agreed() != nil {
		admin.Pause(ctx, pauseTime)
	}
	return u
}

// look asks every coordinator for the keyspace that was just made and agreed
// upon. The answer is local to the coordinator.
func (u *user) look(ctx context.Context, users []*user, ks string) {
	for _, o := range users {
		if ctx.Err() != nil || !o.reach(ctx) {
			return
		}
		_, _ = o.do("find-keyspace", ks, "", u.needs(len(users)), false, func(octx context.Context) (string, error) {
			var name string
			err := o.sess.Query("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", ks).Consistency(gocql.One).WithContext(octx).Scan(&name)
			if err != nil {
				return "", fmt.Errorf("keyspace %s: %w", ks, err)
			}
			return name, nil
		})
	}
}

// use writes a row of a table and reads it back, at QUORUM.
func (u *user) use(ctx context.Context, tab string) {
	if ctx.Err() != nil || !u.reach(ctx) {
		return
	}
	key := fmt.Sprintf("%s-%d", tab, u.id)
	if u.exec("write-new", key, key, u.needs(u.quorum()), "INSERT INTO "+tab+" (key, value) VALUES (?, ?)", gocql.Quorum, key, key) != nil {
		return
	}
	_, _ = u.do("read-new", key, "", u.needs(u.quorum()), false, func(octx context.Context) (string, error) {
		var v string
		return v, u.sess.Query("SELECT value FROM "+tab+" WHERE key = ?", key).Consistency(gocql.Quorum).WithContext(octx).Scan(&v)
	})
}
