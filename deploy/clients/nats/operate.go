package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// plan says when to ask for a new leader, from the start, and which server. Each
// moment is in the first half of its share of the time, so that an election ends
// before the next one.
func plan(seed uint64, count int, d time.Duration, nodes int) (moments []time.Duration, asks []int) {
	rng := rand.New(rand.NewPCG(seed, 0x57e9d0))
	for i := range count {
		share := d / time.Duration(count)
		moments = append(moments, time.Duration(i)*share+time.Duration(rng.Int64N(int64(share/2)+1)))
		asks = append(asks, rng.IntN(nodes))
	}
	return moments, asks
}

// groups are those whose leader an operator can depose: the stream's replicas,
// and all servers.
var groups = []struct {
	f, subject string
	process    int
	opts       []nats.Option
}{
	{"stepdown", "$JS.API.STREAM.LEADER.STEPDOWN." + streamName, 0, nil},
	{"meta-stepdown", "$JS.API.META.LEADER.STEPDOWN", 1, []nats.Option{nats.UserInfo(operator, operator)}},
}

// operateAll makes leaders step down, so many of each group.
func operateAll(ctx context.Context, c *common, counts ...int) error {
	if slices.Min(counts) < 0 {
		return fmt.Errorf("--stepdowns %d --meta-stepdowns %d: both must be at least 0", counts[0], counts[1])
	}
	var wg sync.WaitGroup
	for i, g := range groups {
		moments, asks := plan(c.seed+uint64(i), counts[i], c.dur, len(c.nodes))
		start := time.Now()
		wg.Go(func() {
			for k, m := range moments {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Until(start.Add(m))):
				}
				n := c.nodes[asks[k]]
				op := model.Operation{Process: g.process, Type: model.OpInvoke, F: g.f, Node: n.Name}
				c.out.Add(op)
				if err := stepDown(n, c.tmo, g.subject, g.opts); err != nil {
					op.Type, op.Error = failure(err)
				} else {
					op.Type = model.OpOK
				}
				c.out.Add(op)
			}
		})
	}
	wg.Wait()
	return nil
}

// stepDown asks a group's leader, through a server, to let another one lead.
func stepDown(n workload.Node, timeout time.Duration, subject string, opts []nats.Option) error {
	nc, _, err := dial(n, timeout, opts...)
	if err != nil {
		return err
	}
	defer nc.Close()
	m, err := nc.Request(subject, nil, timeout)
	if err != nil {
		return err
	}
	var answer struct {
		Error *nats.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("answer %q: %w", m.Data, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
