package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

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
		op := model.Operation{Type: model.OpOK, F: "final-role", Node: n.Name}
		op.Value, err = roleOf(n, c.nodes, patience)
		if err != nil {
			op.Type, op.Error = failure(err)
		}
		c.out.Add(op)
		f := "final-copy"
		if n.Name == master.Name {
			f = "final-read"
		}
		for {
			var kv [][2]string
			if kv, err = readNode(n, patience); err == nil {
				for _, p := range kv {
					c.out.Add(model.Operation{Type: model.OpOK, F: f, Key: p[0], Value: p[1], Node: n.Name})
				}
				c.out.Add(model.Operation{Type: model.OpOK, F: f + "-done", Value: fmt.Sprint(len(kv)), Node: n.Name})
			}
			if err == nil || ctx.Err() != nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
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
			m, err := masterBySentinel(s, c.nodes, c.tmo)
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
			r, err := roleOf(m, c.nodes, c.tmo)
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
func readNode(n workload.Node, timeout time.Duration) ([][2]string, error) {
	c, err := dial(n.IP, redisPort, timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out [][2]string
	seen := map[string]bool{} // SCAN may return a key twice
	for cursor := uint64(0); ; {
		got, err := redis.Values(c.Do("SCAN", cursor, "COUNT", 1000))
		var keys []string
		if err == nil {
			_, err = redis.Scan(got, &cursor, &keys)
		}
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			vals, err := redis.Values(c.Do("MGET", redis.Args{}.AddFlat(keys)...))
			if err != nil {
				return nil, err
			}
			for i, k := range keys {
				if v, ok := vals[i].([]byte); ok && !seen[k] {
					seen[k] = true
					out = append(out, [2]string{k, string(v)})
				}
			}
		}
		if cursor == 0 {
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
