package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// What a read grants the nodes.
const (
	patience = 5 * time.Second  // an answer
	idle     = 3 * time.Second  // of an empty queue
	goneFor  = 20 * time.Second // of a queue that no node knows
)

// errGone: no node has the queue, with all that was in it.
var errGone = errors.New("no node has the queue")

// readAll prints what is in the queue: "final-read" the messages that a consumer gets,
// which takes none of them away. The read counts only as a whole: "final-read-done" with ok
// says that it is. A queue that every node says for goneFor that nobody has is one
// without messages.
func readAll(ctx context.Context, c *common) error {
	absent := map[model.NodeID]time.Time{}
	err := error(context.DeadlineExceeded)
	for i := 0; ctx.Err() == nil; i++ {
		n := c.nodes[i%len(c.nodes)]
		var keys []string
		if keys, err = readFrom(ctx, n); err == nil {
			for _, k := range keys {
				c.out.Add(model.Operation{Type: model.OpOK, F: "final-read", Key: k, Node: n.Name})
			}
			break
		}
		if saw(absent, n.Name, err, time.Now()); sure(absent, c.nodes, time.Now()) {
			err = nil
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	op := model.Operation{Type: model.OpOK, F: "final-read-done"}
	if err != nil {
		_, op.Error = failure(err)
		op.Type = model.OpInfo
	}
	c.out.Add(op)
	return nil
}

// saw enters what a node answered when it was asked for the queue, and since when it has
// answered that there is none, and nothing else.
func saw(absent map[model.NodeID]time.Time, n model.NodeID, err error, now time.Time) {
	if !errors.Is(err, errGone) {
		delete(absent, n)
	} else if _, is := absent[n]; !is {
		absent[n] = now
	}
}

// sure says whether all nodes have answered so for goneFor.
func sure(absent map[model.NodeID]time.Time, nodes []workload.Node, now time.Time) bool {
	for _, n := range nodes {
		if since, is := absent[n.Name]; !is || now.Sub(since) < goneFor {
			return false
		}
	}
	return true
}

// readFrom gets all messages of the queue through a node. They go back as the connection ends.
func readFrom(ctx context.Context, n workload.Node) (keys []string, err error) {
	l, err := dial(ctx, n, patience)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var q amqp.Queue
	err = l.within(patience, func() (err error) {
		q, err = l.ch.QueueDeclarePassive(queueName, true, false, false, false, nil)
		return err
	})
	var refused *amqp.Error
	switch {
	case errors.As(err, &refused) && refused.Code == amqp.NotFound && strings.Contains(refused.Reason, "no queue"):
		return nil, fmt.Errorf("%w: %w", errGone, err)
	case err != nil:
		return nil, err
	}
	// What another connection got and did not acknowledge comes back a little later.
	for last := time.Now(); ctx.Err() == nil; {
		var m amqp.Delivery
		var ok bool
		if err := l.within(patience, func() (err error) { m, ok, err = l.ch.Get(queueName, false); return err }); err != nil {
			return nil, err
		}
		switch {
		case ok:
			keys, last = append(keys, string(m.Body)), time.Now()
		case time.Since(last) < idle:
			time.Sleep(50 * time.Millisecond)
		case len(keys) < q.Messages:
			return nil, fmt.Errorf("%w: the queue has %d messages and gave %d", context.DeadlineExceeded, q.Messages, len(keys))
		default:
			return keys, nil
		}
	}
	return nil, ctx.Err()
}
