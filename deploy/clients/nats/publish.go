package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// publishAll publishes through every server. moves says that replicas move.
func publishAll(ctx context.Context, c *common, rate int, within time.Duration, replicas int, moves bool) error {
	if rate < 1 || within <= 0 {
		return fmt.Errorf("--rate %d --within %s: both must be above 0", rate, within)
	}
	var wg sync.WaitGroup
	var holders atomic.Pointer[[]model.NodeID]
	for i, n := range c.nodes {
		p := &publisher{common: c, id: i, node: n, holders: &holders, spare: -1, outage: workload.Outage{Out: c.out, Within: within}}
		if moves {
			p.spare = (replicas - 1) / 2
		}
		wg.Go(func() { p.run(ctx, time.Second*time.Duration(len(c.nodes))/time.Duration(rate)) })
	}
	wg.Wait()
	return nil
}

// publisher publishes through one server. It waits for every acknowledgement and
// never sends a message again that a server may have, so that each is in the
// stream once or not at all.
// After an error it connects anew.
type publisher struct {
	*common
	id      int
	node    workload.Node
	holders *atomic.Pointer[[]model.NodeID] // who holds the stream, as anybody heard last
	spare   int                             // of the servers, whichever hold the stream, so many may be out of reach; -1: holders tell

	conn   *nats.Conn
	js     nats.JetStreamContext
	outage workload.Outage
}

// count notes how an attempt to publish ended.
func (p *publisher) count(err error) {
	if err == nil {
		p.outage.End(model.OpOK, "")
		return
	}
	p.outage.Failed(time.Now(), model.Operation{Process: len(p.nodes) + p.id, Node: p.node.Name, Needs: p.needs()})
}

func (p *publisher) run(ctx context.Context, every time.Duration) {
	defer p.leave()
	defer p.outage.End(model.OpInfo, "stopped")
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.conn == nil && !p.join() {
			continue
		}
		p.publish(fmt.Sprintf("%s-%d-%05d", p.host, p.id, n))
		n++
	}
}

func (p *publisher) leave() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

func (p *publisher) join() bool {
	op := model.Operation{Process: p.id, Type: model.OpInvoke, F: "connect", Node: p.node.Name}
	p.out.Add(op)
	conn, js, err := dial(p.node, p.tmo)
	if err != nil {
		_, op.Error = failure(err)
		op.Type = model.OpFail // a connection changes nothing
		p.out.Add(op)
		p.count(err)
		return false
	}
	p.conn, p.js = conn, js
	if info, err := js.StreamInfo(streamName); err == nil {
		if h := peers(info); len(h) > 0 {
			p.holders.Store(&h)
		}
	}
	op.Type = model.OpOK
	p.out.Add(op)
	return true
}

// needs says that the server is reached, and reaches a majority of the servers
// that hold the stream; nothing while nobody knows who does. Where replicas move, any may.
func (p *publisher) needs() []model.Need {
	if p.spare >= 0 {
		var all []model.NodeID
		for _, n := range p.nodes {
			all = append(all, n.Name)
		}
		return []model.Need{
			{Via: model.NodeID(p.host), From: []model.NodeID{p.node.Name}, Count: 1},
			{Via: p.node.Name, From: all, Count: len(all) - p.spare},
		}
	}
	h := p.holders.Load()
	if h == nil {
		return nil
	}
	return []model.Need{
		{Via: model.NodeID(p.host), From: []model.NodeID{p.node.Name}, Count: 1},
		{Via: p.node.Name, From: *h, Count: len(*h)/2 + 1},
	}
}

// publish publishes one new message. It does not end with the run's context: an
// operation that was begun gets its answer or its timeout. The value of an
// acknowledged one is its sequence in the stream.
func (p *publisher) publish(key string) {
	op := model.Operation{Process: p.id, Type: model.OpInvoke, F: "publish", Key: key, Node: p.node.Name}
	p.out.Add(op)
	// Without responders nobody got it, so asking again is no second message.
	ack, err := p.js.Publish(subjectRoot+p.host+"."+strconv.Itoa(p.id), []byte(key), nats.RetryAttempts(4), nats.RetryWait(250*time.Millisecond))
	if err == nil {
		op.Type, op.Value = model.OpOK, strconv.FormatUint(ack.Sequence, 10)
	} else {
		op.Type, op.Error = failure(err)
	}
	p.out.Add(op)
	p.count(err)
	// No responders: the connection is as good as any other.
	if err != nil && !errors.Is(err, nats.ErrNoStreamResponse) && !errors.Is(err, nats.ErrNoResponders) {
		p.leave()
	}
}
