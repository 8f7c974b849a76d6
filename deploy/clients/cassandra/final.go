package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gocql/gocql"

	"netsplit/deploy/clients/cassandra/admin"
	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

const pauseTime = 500 * time.Millisecond

// readAll reads everything through every node that serves, after recovery:
// "final-read" is what the first node that serves reads at QUORUM, "final-copy" what the
// others read at QUORUM, "final-one" what each reads at ONE, "final-list" the
// keyspaces that each node has. A list counts only as a whole, which its
// "-done" says.
func readAll(ctx context.Context, c *common) error {
	var users []*user
	for i, n := range workload.ServingFirst(c.nodes, c.port) {
		if c.workload == "decommission" && n.Name == c.leaver {
			continue // it left, or was asked to: no client goes there
		}
		u := &user{common: c, id: i, at: n}
		defer u.close()
		users = append(users, u)
	}
	for i, u := range users {
		f := "final-copy"
		if i == 0 {
			f = "final-read"
		}
		u.list(ctx, f, gocql.Quorum)
		u.list(ctx, "final-one", gocql.One)
		u.keyspaces(ctx)
	}
	return nil
}

// list reads the whole table, as often as needed until the context ends.
func (u *user) list(ctx context.Context, f string, cons gocql.Consistency) {
	u.whole(ctx, f, func(octx context.Context) ([][2]string, error) {
		var out [][2]string
		it := u.sess.Query("SELECT key, value FROM " + table).Consistency(cons).PageSize(500).WithContext(octx).Iter()
		var k, v string
		for it.Scan(&k, &v) {
			out = append(out, [2]string{k, v})
		}
		return out, it.Close()
	})
}

func (u *user) keyspaces(ctx context.Context) {
	u.whole(ctx, "final-list", func(octx context.Context) ([][2]string, error) {
		var out [][2]string
		it := u.sess.Query("SELECT keyspace_name FROM system_schema.keyspaces").Consistency(gocql.One).WithContext(octx).Iter()
		var k string
		for it.Scan(&k) {
			if !strings.HasPrefix(k, "system") {
				out = append(out, [2]string{k, ""})
			}
		}
		return out, it.Close()
	})
}

func (u *user) whole(ctx context.Context, f string, read func(context.Context) ([][2]string, error)) {
	for {
		err := errors.New("no-connection nobody serves")
		if u.reach(ctx) {
			var rows [][2]string
			octx, cancel := context.WithTimeout(context.Background(), u.tmo)
			rows, err = read(octx)
			cancel()
			if err == nil {
				slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
				for _, r := range rows {
					u.out.Add(model.Operation{Process: u.id, Type: model.OpOK, F: f, Key: r[0], Value: r[1], Node: u.at.Name})
				}
				u.out.Add(model.Operation{Process: u.id, Type: model.OpOK, F: f + "-done", Value: fmt.Sprint(len(rows)), Node: u.at.Name})
				return
			}
		}
		if !admin.Pause(ctx, pauseTime) {
			t, text := failure(err, false)
			u.out.Add(model.Operation{Process: u.id, Type: t, F: f + "-done", Node: u.at.Name, Error: text})
			return
		}
	}
}
