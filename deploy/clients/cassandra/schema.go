package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/clients/cassandra/admin"
	"netsplit/model"
)

// made is what a round of schema changes made.
type made struct {
	keyspace string // "" if nothing
	column   string // of the table t in it, the one that was made last; "" if there is none
}

func (m made) table() string { return m.keyspace + ".t" }

// changeSchema goes through rounds of schema changes, all made through one
// coordinator, since changes from two sides at once are not supported
// (Cassandra, CQL, "Data Definition"); each is followed by a wait for
// agreement. Every round makes a keyspace, looks for it through every node,
// makes a table, adds a column to it, uses both through another node, and drops
// what the round before made. When the time is over users go on with what was
// made last until all of them can.
func changeSchema(ctx context.Context, users []*user, first *user, rng *rand.Rand) {
	other := func() *user { return users[(first.id+1+rng.IntN(len(users)-1))%len(users)] }
	var last made
	for i := 0; ctx.Err() == nil && time.Now().Before(first.enough); i++ {
		old := last
		last = first.round(ctx, fmt.Sprintf("ks%d", i), users, other)
		if old.column == "extra" {
			_, _ = first.change(ctx, "drop-column", old.table()+".extra", "ALTER TABLE "+old.table()+" DROP extra")
			_ = other().use(ctx, old.table(), "value")
		}
		if i%2 == 1 && old.keyspace != "" {
			_, _ = first.change(ctx, "drop-table", old.table(), "DROP TABLE IF EXISTS "+old.table())
			_, _ = first.change(ctx, "delete", old.keyspace, "DROP KEYSPACE IF EXISTS "+old.keyspace)
		}
	}
	for !all(ctx, users, last) && admin.Pause(ctx, 2*time.Second) {
	}
}

func (u *user) round(ctx context.Context, ks string, users []*user, other func() *user) made {
	m := made{keyspace: ks}
	agreed, err := u.change(ctx, "create", ks, createKeyspace(ks, len(users)))
	if err != nil {
		return made{}
	}
	look(ctx, users, ks, agreed)
	if _, err := u.change(ctx, "create-table", m.table(), "CREATE TABLE IF NOT EXISTS "+m.table()+" (key text PRIMARY KEY, value text)"); err != nil {
		return m
	}
	m.column = "value"
	_ = other().use(ctx, m.table(), m.column)
	if _, err := u.change(ctx, "add-column", m.table()+".extra", "ALTER TABLE "+m.table()+" ADD extra text"); err == nil {
		m.column = "extra"
	}
	_ = other().use(ctx, m.table(), m.column)
	return m
}

// all says whether every user can use what a round made.
func all(ctx context.Context, users []*user, m made) bool {
	if m.keyspace == "" {
		return true
	}
	ok := look(ctx, users, m.keyspace, false)
	for _, u := range users {
		if m.column != "" && u.use(ctx, m.table(), m.column) != nil {
			ok = false
		}
	}
	return ok
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
func (u *user) use(ctx context.Context, tab, column string) error {
	if ctx.Err() != nil || !u.reach(ctx) {
		return context.Canceled
	}
	key := fmt.Sprintf("%s-%d", tab, u.id)
	insert := fmt.Sprintf("INSERT INTO %s (key, %s) VALUES (?, ?)", tab, column)
	if err := u.exec("write-new", key, key, u.needs(u.replicas()), insert, gocql.Quorum, key, key); err != nil {
		return err
	}
	_, err := u.do("read-new", key, "", u.needs(u.replicas()), false, func(octx context.Context) (string, error) {
		var v string
		query := fmt.Sprintf("SELECT %s FROM %s WHERE key = ?", column, tab)
		err := u.sess.Query(query, key).Consistency(gocql.Quorum).WithContext(octx).Scan(&v)
		return v, err
	})
	return err
}
