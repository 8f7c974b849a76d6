package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func publishAll(ctx context.Context, c *common, rate int, within time.Duration) error {
	if rate < 1 || within <= 0 {
		return fmt.Errorf("--rate %d --within %s: both must be above 0", rate, within)
	}
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		p := &publisher{common: c, id: i, node: n, outage: workload.Outage{Out: c.out, Within: within}}
		wg.Go(func() { p.run(ctx, time.Second*time.Duration(len(c.nodes))/time.Duration(rate)) })
	}
	wg.Wait()
	return nil
}

// publisher publishes through one node. It waits for every confirmation and never sends a
// message again, so that each is in the queue once or not at all. After an error it
// connects anew.
type publisher struct {
	*common
	id      int
	node    workload.Node
	link    *link
	returns chan amqp.Return
	ended   [2]chan *amqp.Error // the connection, and its channel
	outage  workload.Outage
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
		if p.link == nil && !p.join(ctx) {
			continue
		}
		p.publish(fmt.Sprintf("%s-%d-%05d", p.host, p.id, n))
		n++
	}
}

func (p *publisher) leave() {
	if p.link != nil {
		p.link.close()
		p.link = nil
	}
}

// count notes how an attempt to publish ended.
func (p *publisher) count(err error) {
	if err == nil {
		p.outage.End(model.OpOK, "")
		return
	}
	p.outage.Failed(time.Now(), model.Operation{Process: len(p.nodes) + p.id, Node: p.node.Name, Needs: p.needs()})
}

// needs says that the node is reached, and reaches a majority of the nodes.
func (p *publisher) needs() []model.Need {
	var all []model.NodeID
	for _, n := range p.nodes {
		all = append(all, n.Name)
	}
	return []model.Need{
		{Via: model.NodeID(p.host), From: []model.NodeID{p.node.Name}, Count: 1},
		{Via: p.node.Name, From: all, Count: len(all)/2 + 1},
	}
}

func (p *publisher) join(ctx context.Context) bool {
	op := model.Operation{Process: p.id, Type: model.OpInvoke, F: "connect", Node: p.node.Name}
	p.out.Add(op)
	l, err := dial(ctx, p.node, p.tmo)
	if err == nil {
		if err = l.within(p.tmo, func() error { return l.ch.Confirm(false) }); err != nil {
			l.close()
		}
	}
	if err != nil {
		_, op.Error = failure(err)
		op.Type = model.OpFail // a connection changes nothing
		p.out.Add(op)
		p.count(err)
		return false
	}
	p.link, p.returns = l, l.ch.NotifyReturn(make(chan amqp.Return, 1))
	p.ended = [2]chan *amqp.Error{l.conn.NotifyClose(make(chan *amqp.Error, 1)), l.ch.NotifyClose(make(chan *amqp.Error, 1))}
	op.Type = model.OpOK
	p.out.Add(op)
	return true
}

// publish publishes one new message. It does not end with the run's context: an
// operation that was begun gets its answer or its timeout.
func (p *publisher) publish(key string) {
	op := model.Operation{Process: p.id, Type: model.OpInvoke, F: "publish", Key: key, Node: p.node.Name}
	p.out.Add(op)
	err := p.confirmed(key)
	if op.Type = model.OpOK; err != nil {
		op.Type, op.Error = failure(err)
	}
	p.out.Add(op)
	p.count(err)
	if err != nil {
		p.leave()
	}
}

// confirmed publishes a message and waits for its confirmation. One that no queue takes is
// returned before it is confirmed (https://www.rabbitmq.com/docs/confirms).
func (p *publisher) confirmed(key string) error {
	return p.link.within(p.tmo, func() error {
		c, err := p.link.ch.PublishWithDeferredConfirm("", queueName, true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "text/plain", Body: []byte(key)})
		if err != nil {
			return err
		}
		select {
		case <-c.Done():
		case err := <-p.ended[0]:
			return gone(err)
		case err := <-p.ended[1]:
			return gone(err)
		}
		select {
		case r := <-p.returns:
			return fmt.Errorf("%w %d %s", errReturned, r.ReplyCode, r.ReplyText)
		default:
		}
		if !c.Acked() {
			return fmt.Errorf("%w: the message was not confirmed", errNack)
		}
		return nil
	})
}

// gone is the error of a connection or channel that ended.
func gone(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return err
}
