package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// order is what an operator asks for.
type order struct {
	f, subject string
	process    int
	opts       []nats.Option
	// body is the request; nil: it is empty.
	body func(js nats.JetStreamContext, pick int) ([]byte, error)
}

// orders are that another server leads the stream's replicas, or all servers, and that another
// server holds a replica of the stream in place of one of those that do.
var orders = []order{
	{"stepdown", "$JS.API.STREAM.LEADER.STEPDOWN." + streamName, 0, nil, nil},
	{"meta-stepdown", "$JS.API.META.LEADER.STEPDOWN", 1, []nats.Option{nats.UserInfo(operator, operator)}, nil},
	{"move", "$JS.API.STREAM.PEER.REMOVE." + streamName, 2, nil, removal},
}

// removal names one of the servers that hold the stream.
func removal(js nats.JetStreamContext, pick int) ([]byte, error) {
	info, err := js.StreamInfo(streamName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, err) // nothing was ordered
	}
	all := peers(info)
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: nobody knows who holds the stream", errConnect)
	}
	return json.Marshal(map[string]any{"peer": all[pick%len(all)]})
}

// operateAll gives so many of each of the orders.
func operateAll(ctx context.Context, c *common, counts ...int) error {
	if slices.Min(counts) < 0 {
		return fmt.Errorf("--stepdowns %d --meta-stepdowns %d --moves %d: all must be at least 0", counts[0], counts[1], counts[2])
	}
	var wg sync.WaitGroup
	for i, g := range orders {
		moments, asks := workload.Plan(c.seed+uint64(i), counts[i], c.dur, len(c.nodes))
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
				if err := g.give(n, c.tmo, asks[k]+k); err != nil {
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

// give gives the order through a server. pick chooses whom it is about.
func (o *order) give(n workload.Node, timeout time.Duration, pick int) error {
	nc, js, err := dial(n, timeout, o.opts...)
	if err != nil {
		return err
	}
	defer nc.Close()
	var body []byte
	if o.body != nil {
		if body, err = o.body(js, pick); err != nil {
			return err
		}
	}
	m, err := nc.Request(o.subject, body, timeout)
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
