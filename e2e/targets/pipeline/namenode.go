package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// nameNode serves metadata to writers, data nodes and administrators.
type nameNode struct {
	log io.Writer

	mu   sync.Mutex // guards meta
	meta *metadata
}

func newNameNode(dir string, l limits, bug string, log io.Writer) (*nameNode, error) {
	name := filepath.Join(dir, "blocks.json")
	var im image
	switch b, err := os.ReadFile(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, &im); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	save := func(im image) error {
		b, err := json.Marshal(im)
		if err != nil {
			return err
		}
		return replace(name, b)
	}
	return &nameNode{log: log, meta: newMetadata(l, bug, im, save, time.Now())}, nil
}

func (n *nameNode) serve(ctx context.Context, l net.Listener, every time.Duration) error {
	go func() {
		for sleep(ctx, every) {
			n.mu.Lock()
			err := n.meta.tick(time.Now())
			n.mu.Unlock()
			if err != nil {
				fmt.Fprintln(n.log, "pipeline: tick:", err)
			}
		}
	}()
	return serve(ctx, l, func(c *link) {
		for {
			m, err := c.receive()
			if err != nil {
				return
			}
			answer := n.handle(m)
			if answer.Error != "" {
				fmt.Fprintf(n.log, "pipeline: %s %s%s: %s\n", m.Type, m.Block, m.Replica, answer.Error)
			}
			if err := c.send(answer); err != nil {
				return
			}
		}
	})
}

func (n *nameNode) handle(m message) message {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, ok := time.Now(), okTo(m)
	h := held{m.Replica, m.Length}
	switch m.Type {
	case "allocate":
		if !validName(m.Block) {
			return errorTo(m, fmt.Errorf("name of a block: %.40q", m.Block))
		}
		f, err := n.meta.allocate(m.Block, m.Exclude, now)
		if err != nil {
			return errorTo(m, err)
		}
		ok.Replica, ok.Nodes = f.Replica, f.nodes
	case "abandon":
		n.meta.abandon(m.Replica)
	case "bump":
		r, err := n.meta.bump(m.Replica, now)
		if err != nil {
			return errorTo(m, err)
		}
		ok.Replica = r
	case "complete":
		if err := n.meta.complete(h, now); err != nil {
			return errorTo(m, err)
		}
		ok.Replica = m.Replica
	case "register":
		n.meta.register(m.From, m.Replicas, now)
	case "received":
		n.meta.received(m.From, h)
	case "bad":
		n.meta.bad(m.From, h)
	case "heartbeat":
		return n.meta.heartbeat(m.From, now)
	case "list":
		ok.Replicas = n.meta.list()
	case "status":
		ok.Status = n.meta.status()
	default:
		return errorTo(m, fmt.Errorf("type %.40q", m.Type))
	}
	return ok
}
