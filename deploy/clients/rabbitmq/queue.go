package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// queueName is that of the target file.
const queueName = "work"

// amqpPort is that of the target file; a variable, since a test needs one that nobody
// listens on.
var amqpPort = 5672

var (
	// errConnect: there is no connection, so nothing was asked.
	errConnect = errors.New("connect")
	// errReturned: no queue took the message (basic.return).
	errReturned = errors.New("returned")
	// errNack: the server could not do what it was asked (basic.nack); some node may have it.
	errNack = errors.New("nack")
)

// link is a connection with one channel. One that breaks is gone.
type link struct {
	raw  net.Conn
	conn *amqp.Connection
	ch   *amqp.Channel
}

// dial connects to one node. A node that does not answer in time is not waited for.
func dial(ctx context.Context, n workload.Node, timeout time.Duration) (*link, error) {
	l := &link{}
	conn, err := amqp.DialConfig(fmt.Sprintf("amqp://guest:guest@%s:%d/", n.IP, amqpPort), amqp.Config{
		Heartbeat: time.Hour, // a cut shall not end a connection that TCP keeps
		Dial: func(network, addr string) (net.Conn, error) {
			raw, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			l.raw = raw
			return raw, raw.SetDeadline(time.Now().Add(timeout)) // of the handshake; then the library's own
		}})
	if err == nil {
		l.conn = conn
		err = l.within(timeout, func() error { l.ch, err = conn.Channel(); return err })
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("%w %s: %w", errConnect, n.Name, err)
	}
	return l, nil
}

// close ends the connection without asking the node.
func (l *link) close() {
	if l.raw != nil {
		l.raw.Close()
	}
}

// within runs a call of the library, which waits for its answer for ever; a connection whose
// answer is late is ended.
func (l *link) within(timeout time.Duration, call func() error) error {
	late := time.AfterFunc(timeout, l.close)
	err := call()
	if !late.Stop() && err != nil {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// createQueue makes the queue through the first node that takes it.
func createQueue(ctx context.Context, c *common, kind string) error {
	args := amqp.Table{amqp.QueueTypeArg: kind}
	switch kind {
	case amqp.QueueTypeQuorum:
		args["x-quorum-initial-group-size"] = len(c.nodes)
	case amqp.QueueTypeClassic:
	default:
		return fmt.Errorf("--type %q: use quorum or classic", kind)
	}
	for i := 0; ; i++ {
		err := func() error {
			l, err := dial(ctx, c.nodes[i%len(c.nodes)], c.tmo)
			if err != nil {
				return err
			}
			defer l.close()
			return l.within(c.tmo, func() error {
				_, err := l.ch.QueueDeclare(queueName, true, false, false, false, args)
				return err
			})
		}()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("make queue %s: %w", queueName, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// failure says whether an error means that the operation did not happen (fail)
// or that nobody knows (info), and gives it a stable first word.
func failure(err error) (model.OpType, string) {
	switch {
	case errors.Is(err, errConnect):
		return model.OpFail, err.Error()
	case errors.Is(err, errReturned):
		return model.OpFail, err.Error()
	case errors.Is(err, errNack):
		return model.OpInfo, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return model.OpInfo, "timeout " + err.Error()
	case errors.Is(err, context.Canceled):
		return model.OpInfo, "stopped " + err.Error()
	}
	return model.OpInfo, "closed " + err.Error()
}
