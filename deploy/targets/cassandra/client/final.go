package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gocql/gocql"

	"netsplit/model"
)

const pauseTime = 500 * time.Millisecond

// readAll reads everything through every node that serves, after recovery:
// "final-read" is what the first node reads at QUORUM, "final-copy" what the
// others read at QUORUM, "final-one" what each reads at ONE, "final-list" the
// keyspaces that each node has. A list counts only as a whole, which its
// "-done" says.
func readAll(ctx context.Context, c *common) error {
	var users []*user
	for i, n := range c.nodes {
		if c.workload == "decommission" && n.name == c.leaver {
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

// keyspaces lists the user's keyspaces as the coordinator has them.
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
					u.out.add(model.Operation{Process: u.id, Type: model.OpOK, F: f, Key: r[0], Value: r[1], Node: u.at.name})
				}
				u.out.add(model.Operation{Process: u.id, Type: model.OpOK, F: f + "-done", Value: fmt.Sprint(len(rows)), Node: u.at.name})
				return
			}
		}
		if !pause(ctx, pauseTime) {
			t, text := failure(err, false)
			u.out.add(model.Operation{Process: u.id, Type: t, F: f + "-done", Node: u.at.name, Error: text})
			return
		}
	}
}

// finalState reports, once, what this node thinks when recovery is over: its
// view of the ring, the schema version and the keyspaces. A node that was
// taken out is not asked for what it would have in common with the others.
func finalState(ctx context.Context, c *common) error {
	j := &jolokia{base: c.jolokia}
	for {
		octx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		var r ring
		err := j.read(octx, ringAttributes, &r)
		cancel()
		if err == nil {
			add := func(f, key, value string) {
				c.out.add(model.Operation{Type: model.OpOK, F: f, Key: key, Value: value, Node: c.self})
			}
			add("final-status", "", c.members(&r))
			add("final-mode", "", r.OperationMode)
			if r.OperationMode == "NORMAL" {
				slices.Sort(r.Keyspaces)
				add("final-state", "ring", c.members(&r))
				add("final-state", "schema", r.SchemaVersion)
				add("final-state", "keyspaces", strings.Join(r.Keyspaces, " "))
				add("final-state-done", "", "3")
			}
			return nil
		}
		if !pause(ctx, pauseTime) {
			c.out.add(model.Operation{Type: model.OpFail, F: "final-status", Node: c.self, Error: "jolokia " + err.Error()})
			return nil
		}
	}
}
