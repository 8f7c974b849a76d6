package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dataNode stores replicas, passes what it gets on along the chain, and tells the
// name node what it has.
type dataNode struct {
	id    string
	name  string            // address of the name node
	peers map[string]string // addresses of the data nodes
	hop   time.Duration     // for one answer
	bug   string
	store *store
	log   io.Writer

	mu      sync.Mutex // guards notices
	notices []message  // for the name node, in order
	kick    chan struct{}
}

func (d *dataNode) serve(ctx context.Context, l net.Listener, every time.Duration) error {
	go d.report(ctx, every)
	return serve(ctx, l, func(c *link) {
		ch := &chain{node: d}
		defer ch.close()
		for {
			m, err := c.receive()
			if err != nil {
				return
			}
			answer := ch.handle(ctx, m)
			if answer.Error != "" {
				fmt.Fprintf(d.log, "pipeline: %s %s: %s\n", m.Type, m.Replica, answer.Error)
			}
			if err := c.send(answer); err != nil {
				return
			}
		}
	})
}

// chain is one connection of a data node: its place in the chain of one block.
type chain struct {
	node   *dataNode
	writer *writer
	rest   []string // data nodes behind this one
	next   *link    // to the first of them
}

func (c *chain) close() {
	if c.next != nil {
		c.next.close()
	}
}

func (c *chain) handle(ctx context.Context, m message) message {
	switch m.Type {
	case "setup", "recover":
		c.close()
		c.writer, c.rest, c.next = nil, m.Nodes, nil
		if len(c.rest) > 0 {
			next, err := dial(ctx, c.node.peers[c.rest[0]], c.node.hop)
			if err != nil {
				return c.failed(m, c.rest[0], err)
			}
			c.next = next
		}
		return c.pass(m)
	case "packet", "close":
		if c.writer == nil {
			return c.failed(m, c.node.id, fmt.Errorf("order: %s before setup", m.Type))
		}
		return c.pass(m)
	case "read", "copy":
		ok := okTo(m)
		var err error
		if m.Type == "copy" {
			err = c.node.copied(m)
		} else {
			var b []byte
			b, err = c.node.store.read(m.Replica)
			ok.Replica, ok.Data = m.Replica, string(b)
		}
		if err != nil {
			return errorTo(m, err)
		}
		return ok
	}
	return errorTo(m, fmt.Errorf("type %.40q", m.Type))
}

// pass hands a request on along the chain and does meanwhile what it says. The
// answer is ok when this node and all behind it have done it.
func (c *chain) pass(m message) message {
	if c.next != nil {
		on := m
		if len(m.Nodes) > 0 {
			on.Nodes = m.Nodes[1:]
		}
		if err := c.next.send(on); err != nil {
			return c.failed(m, c.rest[0], err)
		}
	}
	err := c.apply(m)
	if c.next != nil {
		if _, err := c.next.answer(c.node.hop * time.Duration(len(c.rest))); err != nil {
			if a := asRefusal(err); a != nil {
				return *a
			}
			return c.failed(m, c.rest[0], err)
		}
	}
	if err != nil {
		return c.failed(m, c.node.id, err)
	}
	ok := okTo(m)
	ok.Replica, ok.Offset = m.Replica, m.Offset
	return ok
}

func (c *chain) failed(m message, node string, err error) message {
	out := errorTo(m, err)
	out.Replica, out.Bad = m.Replica, node
	return out
}

// apply does on this node's disk what a request says.
func (c *chain) apply(m message) (err error) {
	s := c.node.store
	switch m.Type {
	case "setup":
		c.writer, err = s.create(m.Replica)
	case "recover":
		c.writer, err = s.recover(m.Replica, m.Length)
	case "packet":
		err = s.write(c.writer, m.Offset, m.Data)
	case "close":
		if err = s.finish(c.writer, m.Length); err == nil {
			c.node.notice("received", held{c.writer.replica, m.Length})
		}
	}
	return err
}

// copied stores a copy of a replica.
func (d *dataNode) copied(m message) error {
	h := held{m.Replica, len(m.Data)}
	if b, err := d.store.read(m.Replica); err != nil || string(b) != m.Data {
		w, err := d.store.create(m.Replica)
		if err != nil {
			return err
		}
		if err := d.store.write(w, 0, m.Data); err != nil {
			return err
		}
		if err := d.store.finish(w, len(m.Data)); err != nil {
			return err
		}
	}
	d.notice("received", h)
	return nil
}

// notice tells the name node something, as soon as it can be told.
func (d *dataNode) notice(what string, h held) {
	d.mu.Lock()
	d.notices = append(d.notices, message{Type: what, From: d.id, Replica: h.Replica, Length: h.Length})
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// report keeps the name node informed, and does what it says.
func (d *dataNode) report(ctx context.Context, every time.Duration) {
	var l *link
	registered := false
	t := time.NewTicker(every)
	defer t.Stop()
	for ctx.Err() == nil {
		var err error
		if l == nil {
			l, err = dial(ctx, d.name, d.hop)
		}
		if err == nil && !registered { // the name node may know this node from before a crash
			err = d.register(l)
			registered = err == nil
		}
		if err == nil {
			err = d.contact(ctx, l)
		}
		if err != nil && l != nil {
			fmt.Fprintln(d.log, "pipeline: name node:", err)
			l.close()
			l = nil
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-d.kick:
		}
	}
}

func (d *dataNode) register(l *link) error {
	_, err := l.ask(message{Type: "register", From: d.id, Replicas: d.store.held()}, d.hop)
	return err
}

// contact tells the name node the news and asks for orders until there are none.
func (d *dataNode) contact(ctx context.Context, l *link) error {
	for {
		if err := d.tell(l); err != nil {
			return err
		}
		order, err := l.ask(message{Type: "heartbeat", From: d.id}, d.hop)
		if err != nil {
			return err
		}
		switch order.Type {
		case "register-order":
			err = d.register(l)
		case "drop-order":
			d.drop(order.Replica)
		case "copy-order":
			go d.copy(ctx, order)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tell sends the notices. One is done with when it was answered.
func (d *dataNode) tell(l *link) error {
	for {
		d.mu.Lock()
		if len(d.notices) == 0 {
			d.mu.Unlock()
			return nil
		}
		m := d.notices[0]
		once := d.bug == oneReport && m.Type == "bad"
		if once {
			d.notices = d.notices[1:]
		}
		d.mu.Unlock()
		// It may have been told to drop meanwhile what it received.
		if m.Type == "bad" || d.store.has(m.Replica) {
			if _, err := l.ask(m, d.hop); err != nil {
				return err
			}
		}
		if !once {
			d.mu.Lock()
			d.notices = d.notices[1:]
			d.mu.Unlock()
		}
	}
}

// copy makes a copy of a replica on another data node. A replica that cannot be
// read is bad: it goes, and the name node is told.
func (d *dataNode) copy(ctx context.Context, order message) {
	b, err := d.store.read(order.Replica)
	if err == nil {
		_, err = askOnce(ctx, d.peers[order.Target], message{Type: "copy", From: d.id, Replica: order.Replica, Data: string(b)}, 2*d.hop)
		if err != nil {
			fmt.Fprintf(d.log, "pipeline: copy of %s to %s: %v\n", order.Replica, order.Target, err)
		}
		return
	}
	fmt.Fprintf(d.log, "pipeline: %s is bad: %v\n", order.Replica, err)
	if length, had := d.drop(order.Replica); had {
		d.notice("bad", held{order.Replica, length})
	}
}

// drop removes a whole replica, and returns its length if there was one.
func (d *dataNode) drop(r replica) (length int, had bool) {
	length, had, err := d.store.drop(r)
	if err != nil {
		fmt.Fprintln(d.log, "pipeline: drop:", err)
	}
	return length, had
}
