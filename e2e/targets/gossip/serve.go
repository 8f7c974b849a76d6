package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// node runs one member: a loop that owns it, fed by its sockets.
type node struct {
	m     *member
	conn  *net.UDPConn
	addrs map[string]*net.UDPAddr
	log   io.Writer

	datagrams chan string
	asks      chan ask
	leavers   []chan string // wait for the end of the decommission
}

// ask is an administrator's request with where the answer goes.
type ask struct {
	verb   string
	answer chan string
}

func (n *node) serve(ctx context.Context, admin net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.datagrams, n.asks = make(chan string, 64), make(chan ask)
	stop := context.AfterFunc(ctx, func() { n.conn.Close(); admin.Close() })
	defer stop()
	failed := make(chan error, 2)
	go func() { failed <- n.readDatagrams(ctx) }()
	go func() { failed <- n.acceptAdmins(ctx, admin) }()
	tick := time.NewTicker(n.m.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-tick.C:
			n.send(n.m.tick(now()))
		case text := <-n.datagrams:
			out, err := n.m.receive(text, now())
			if err != nil {
				fmt.Fprintln(n.log, "gossip: ignored:", err)
			}
			n.send(out)
		case a := <-n.asks:
			n.admin(a)
		}
		n.answerLeavers()
	}
}

func now() int64 { return time.Now().UnixMilli() }

// send writes datagrams; what cannot be sent is lost, as on a network.
func (n *node) send(ds []datagram) {
	for _, d := range ds {
		if _, err := n.conn.WriteToUDP([]byte(d.text), n.addrs[d.to]); err != nil && !errors.Is(err, net.ErrClosed) {
			fmt.Fprintf(n.log, "gossip: to %s: %v\n", d.to, err)
		}
	}
}

func (n *node) readDatagrams(ctx context.Context) error {
	buf := make([]byte, 64<<10)
	for {
		size, _, err := n.conn.ReadFromUDP(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			continue // e.g. a peer's port that is not open yet
		}
		select {
		case n.datagrams <- string(buf[:size]):
		case <-ctx.Done():
			return nil
		}
	}
}

func (n *node) acceptAdmins(ctx context.Context, l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go n.talk(ctx, c)
	}
}

// talk answers the lines of one administrator: each request is one line, each
// answer some lines and a line with a dot.
func (n *node) talk(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		a := ask{strings.TrimSpace(lines.Text()), make(chan string, 1)}
		select {
		case n.asks <- a:
		case <-ctx.Done():
			return
		}
		select {
		case s := <-a.answer:
			if _, err := io.WriteString(c, s+"\n.\n"); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// admin answers STATUS at once and LEAVE when the decommission ended.
func (n *node) admin(a ask) {
	switch strings.ToUpper(a.verb) {
	case "STATUS":
		var b strings.Builder
		for _, w := range strings.Fields(n.m.view(now())) {
			b.WriteString(w + "\n")
		}
		fmt.Fprintf(&b, "met %d", len(n.m.met))
		a.answer <- b.String()
	case "LEAVE":
		n.leavers = append(n.leavers, a.answer)
		n.send(n.m.leave(now()))
	default:
		a.answer <- fmt.Sprintf("ERR unknown request %.40q: use STATUS or LEAVE", a.verb)
	}
}

func (n *node) answerLeavers() {
	var s string
	switch {
	case n.m.gone:
		s = "OK"
	case n.m.refused != "" && len(n.m.waits) == 0:
		s = "ERR " + n.m.refused
	default:
		return
	}
	for _, l := range n.leavers {
		l <- s
	}
	n.leavers = nil
}
