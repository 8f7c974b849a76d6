package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/targets/cassandra/admin"
	"netsplit/model"
)

// changeSchema goes through rounds of schema changes, all made through one
// coordinator, since changes from two sides at once are not supported
// (Cassandra, CQL, "Data Definition"); each is followed by a wait for
// agreement. Every round makes a keyspace and a table, looks for them through
// every node, writes and reads through another node, adds a column and uses it,
// removes it and drops what the round before made. When the time is over users
// go on with what was made last until all of them could.
func changeSchema(ctx context.Context, users []*user, first *user, rng *rand.Rand) {
	other := func() *user { return users[(first.id+1+rng.IntN(len(users)-1))%len(users)] }
	last := ""
	for i := 0; ctx.Err() == nil && time.Now().Before(first.enough); i++ {
		ks := fmt.Sprintf("ks%d", i)
		tab := ks + ".t"
		agreed, err := first.change(ctx, "create", ks, createKeyspace(ks, len(users)))
		if err == nil {
			last = ks
		}
		look(ctx, users, ks, agreed)
		_, err = first.change(ctx, "create-table", tab, "CREATE TABLE IF NOT EXISTS "+tab+" (key text PRIMARY KEY, value text)")
		other().use(ctx, tab, "value")
		_, _ = first.change(ctx, "add-column", tab+".extra", "ALTER TABLE "+tab+" ADD extra text")
		other().use(ctx, tab, "extra")
		_, _ = first.change(ctx, "drop-column", tab+".extra", "ALTER TABLE "+tab+" DROP extra")
		other().use(ctx, tab, "value")
		if i%2 == 1 {
			old := fmt.Sprintf("ks%d", i-1)
			_, _ = first.change(ctx, "drop-table", old+".t", "DROP TABLE IF EXISTS "+old+".t")
			_, _ = first.change(ctx, "delete", old, "DROP KEYSPACE IF EXISTS "+old)
		}
	}
	for last != "" && !look(ctx, users, last, false) {
		if !admin.Pause(ctx, 2*time.Second) {
			return
		}
	}
}

// change makes one change of the schema and waits for agreement. It says whether
// the change was made and all nodes were said to have it. An answer that did not
// come is not asked for again.
func (u *user) change(ctx context.Context, f, key, stmt string) (agreed bool, err error) {
	if ctx.Err() != nil || !u.reach(ctx) {
		return false, context.Canceled
	}
	err = u.exec(f, key, "", u.needs(0), stmt, gocql.Quorum)
	return u.agree() && err == nil, err
}

// look asks every coordinator for a keyspace that was made and says whether all
// know it. The answer is local to the coordinator.
func look(ctx context.Context, users []*user, ks string, agreed bool) bool {
	known := true
	for _, u := range users {
		if ctx.Err() != nil || !u.reach(ctx) {
			return false
		}
		_, err := u.do("find-keyspace", ks, "", u.knows(agreed), false, func(octx context.Context) (string, error) {
			var name string
			err := u.sess.Query("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", ks).Consistency(gocql.One).WithContext(octx).Scan(&name)
			if err != nil {
				return "", fmt.Errorf("keyspace %s: %w", ks, err)
			}
			return name, nil
		})
		known = known && err == nil
	}
	return known
}

// knows is what a node needs to know a keyspace: all nodes, unless they were said to
// have agreed on it; then no cut excuses a node that does not know it.
func (u *user) knows(agreed bool) []model.Need {
	if agreed {
		return u.needs(0)
	}
	return u.needs(len(u.nodes))
}

// use writes a row of a table and reads it back, at QUORUM, in one of its columns.
func (u *user) use(ctx context.Context, tab, column string) {
	if ctx.Err() != nil || !u.reach(ctx) {
		return
	}
	key := fmt.Sprintf("%s-%d", tab, u.id)
	insert := fmt.Sprintf("INSERT INTO %s (key, %s) VALUES (?, ?)", tab, column)
	if u.exec("write-new", key, key, u.needs(u.replicas()), insert, gocql.Quorum, key, key) != nil {
		return
	}
	_, _ = u.do("read-new", key, "", u.needs(u.replicas()), false, func(octx context.Context) (string, error) {
		var v string
		query := fmt.Sprintf("SELECT %s FROM %s WHERE key = ?", column, tab)
		return v, u.sess.Query(query, key).Consistency(gocql.Quorum).WithContext(octx).Scan(&v)
	})
}
