package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/deploy/clients/cassandra/admin"
	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// readAll reads everything through every node that serves, after recovery:
// "final-read" is what the first node that serves reads at QUORUM, "final-copy" what the
// others read at QUORUM, "final-one" what each reads at ONE, "final-list" the
// column families that each node has. A list counts only as a whole, which its
// "-done" says.
func readAll(ctx context.Context, c *common) {
	first := true
	for i, n := range workload.ServingFirst(c.nodes, c.port) {
		if c.workload == "decommission" && n.Name == c.leaver {
			continue // it left, or was asked to: no client goes there
		}
		u := &user{common: c, id: i, at: n}
		f := "final-copy"
		if first {
			f, first = "final-read", false
		}
		u.whole(ctx, f, func(octx context.Context) ([][2]string, error) { return u.conn.rows(octx, items, quorum) })
		u.whole(ctx, "final-one", func(octx context.Context) ([][2]string, error) { return u.conn.rows(octx, items, one) })
		u.whole(ctx, "final-list", func(octx context.Context) ([][2]string, error) {
			names, err := u.conn.families(octx, keyspace)
			var out [][2]string
			for _, n := range names {
				out = append(out, [2]string{n, ""})
			}
			return out, err
		})
		u.close()
	}
}

// whole reads a list, as often as needed until the context ends.
func (u *user) whole(ctx context.Context, f string, read func(context.Context) ([][2]string, error)) {
	for {
		err := errors.New("no-connection nobody serves")
		if u.reach(ctx) {
			var rows [][2]string
			octx, cancel := context.WithTimeout(context.Background(), u.tmo)
			if err = u.conn.setKeyspace(octx, keyspace); err == nil {
				rows, err = read(octx)
			}
			cancel()
			if err == nil {
				slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
				for _, r := range rows {
					u.out.Add(model.Operation{Process: u.id, Type: model.OpOK, F: f, Key: r[0], Value: r[1], Node: u.at.Name})
				}
				u.out.Add(model.Operation{Process: u.id, Type: model.OpOK, F: f + "-done", Value: fmt.Sprint(len(rows)), Node: u.at.Name})
				return
			}
			u.close() // whatever it was, the next try is a new connection
		}
		if !admin.Pause(ctx, 500*time.Millisecond) {
			_, text, _ := failure(err, false)
			u.out.Add(model.Operation{Process: u.id, Type: model.OpFail, F: f + "-done", Node: u.at.Name, Error: text})
			return
		}
	}
}
