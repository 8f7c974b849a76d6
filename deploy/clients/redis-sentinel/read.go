package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// readAll waits until the service answers, reads all keys from every node and
// prints them: "final-read" for the keys of the current master, "final-copy"
// for those of the others, "final-role" for the role of each node. A read
// counts only as a whole: "final-read-done" ok, with the number of keys, says
// that the master was read to the end.
func readAll(ctx context.Context, c *common) error {
	// Keys are read at leisure: a slow answer is still an answer.
	const patience = 2 * time.Second
	master, err := settled(ctx, c)
	if err != nil {
		c.out.Add(model.Operation{Type: model.OpInfo, F: "final-read-done", Error: "unavailable " + err.Error()})
	}
	for _, n := range c.nodes {
		conn := dial(n.IP, redisPort, patience)
		rctx, cancel := context.WithTimeout(context.Background(), patience)
		op := model.Operation{Type: model.OpOK, F: "final-role", Node: n.Name}
		op.Value, err = role(rctx, conn, c.nodes)
		if err != nil {
			op.Type, op.Error = failure(err)
		}
		c.out.Add(op)
		cancel()
		f := "final-copy"
		if n.Name == master.Name {
			f = "final-read"
		}
		for {
			rctx, cancel = context.WithTimeout(context.Background(), 2*patience)
			var kv [][2]string
			if kv, err = readNode(rctx, conn); err == nil {
				for _, p := range kv {
					c.out.Add(model.Operation{Type: model.OpOK, F: f, Key: p[0], Value: p[1], Node: n.Name})
				}
				c.out.Add(model.Operation{Type: model.OpOK, F: f + "-done", Value: fmt.Sprint(len(kv)), Node: n.Name})
			}
			cancel()
			if err == nil || ctx.Err() != nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		conn.Close()
		if err != nil {
			t, text := failure(err)
			c.out.Add(model.Operation{Type: t, F: f + "-done", Node: n.Name, Error: text})
		}
	}
	return nil
}

// settled waits until a majority of the Sentinels names one node that also
// calls itself master.
func settled(ctx context.Context, c *common) (workload.Node, error) {
	for i := 0; ; i++ {
		votes := map[workload.Node]int{}
		var last error
		for _, s := range c.nodes {
			m, err := masterBySentinel(ctx, s, c.nodes, c.tmo)
			if err != nil {
				last = fmt.Errorf("%s: %w", s.Name, err)
				continue
			}
			votes[m]++
		}
		for _, m := range c.nodes {
			if votes[m] <= len(c.nodes)/2 {
				continue
			}
			conn := dial(m.IP, redisPort, c.tmo)
			r, err := role(ctx, conn, c.nodes)
			conn.Close()
			if err == nil && r == "master" {
				return m, nil
			}
			last = fmt.Errorf("the Sentinels name %s, which is %q: %v", m.Name, r, err)
		}
		if last == nil {
			last = fmt.Errorf("no majority of the Sentinels names one master")
		}
		select {
		case <-ctx.Done():
			return workload.Node{}, last
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// readNode returns all keys and values of a Redis, sorted by key.
func readNode(ctx context.Context, c *redis.Client) ([][2]string, error) {
	var out [][2]string
	seen := map[string]bool{} // SCAN may return a key twice
	for cursor := uint64(0); ; {
		keys, next, err := c.Scan(ctx, cursor, "*", 1000).Result()
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			vals, err := c.MGet(ctx, keys...).Result()
			if err != nil {
				return nil, err
			}
			for i, k := range keys {
				if v, ok := vals[i].(string); ok && !seen[k] {
					seen[k] = true
					out = append(out, [2]string{k, v})
				}
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int {
		if a[0] < b[0] {
			return -1
		}
		return 1
	})
	return out, nil
}
