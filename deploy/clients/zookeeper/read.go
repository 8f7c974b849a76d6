package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"netsplit/model"
)

// readAll reads the whole tree from every server, each after a sync and when
// no lock is queued for any more, and prints: "final-role" of each server,
// "final-list" for the keys and list elements that it has, "final-status" for
// what is left of the queue, "final-state" for each node of its tree. A list
// counts only as a whole: "final-list-done" and "final-state-done" say so. A server
// that is down takes no time from the others.
func readAll(ctx context.Context, c *common) error {
	var all sync.WaitGroup
	errs := make([]error, len(c.nodes))
	for i, n := range c.nodes {
		all.Go(func() {
			op := model.Operation{Process: i, Type: model.OpOK, F: "final-role", Node: n.name}
			var err error
			for op.Value, err = mode(n); err != nil && sleep(ctx, 200*time.Millisecond); {
				op.Value, err = mode(n)
			}
			if err != nil {
				op.Type, op.Error = model.OpFail, "unavailable "+err.Error()
			}
			c.out.Add(op)
			s, err := open(c, i, i, true, nil)
			if errs[i] = err; err != nil {
				return
			}
			t, err := readTree(ctx, s)
			s.conn.Close()
			t.print(c, i, n.name, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// tree is what one server has.
type tree struct {
	state [][2]string // path, and data and Stat, of every node
	keys  []string    // keys and elements that are there
	queue []string
}

// readTree reads the tree of a session's server. It waits, within the
// context, until the queue is empty, since sessions that fell silent expire,
// and until two readings agree: a reading takes many requests, and what changes
// between them (a node that goes after its parent was read) is not one state.
func readTree(ctx context.Context, s *session) (tree, error) {
	var last *tree
	for {
		if !s.ready(ctx) {
			return tree{}, fmt.Errorf("unavailable: no session")
		}
		var t tree
		_, err := s.conn.Sync("/")
		if err == nil {
			err = t.walk(s.conn, "/")
		}
		// The one before was read between two looks at the same versions.
		settled := err == nil && last != nil && slices.Equal(last.state, t.state)
		over := ctx.Err() != nil
		switch {
		case settled && (len(last.queue) == 0 || over):
			return *last, nil
		case err != nil && over:
			return t, err
		case over:
			return t, errors.New("unavailable: it changes while it is read")
		}
		last = nil
		if err == nil {
			last = &t
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

func (t *tree) walk(conn *zk.Conn, at string) error {
	data, st, err := conn.Get(at)
	var children []string
	if err == nil {
		children, _, err = conn.Children(at)
	}
	if errors.Is(err, zk.ErrNoNode) && at != "/" {
		return nil // gone since its parent was read
	}
	if err != nil {
		return err
	}
	if at != "/" {
		t.state = append(t.state, [2]string{at, fmt.Sprintf("%q czxid=%#x mzxid=%#x pzxid=%#x version=%d cversion=%d aversion=%d owner=%#x ctime=%d mtime=%d",
			data, st.Czxid, st.Mzxid, st.Pzxid, st.Version, st.Cversion, st.Aversion, st.EphemeralOwner, st.Ctime, st.Mtime)})
	}
	switch {
	case at == listPath:
		t.keys = append(t.keys, strings.Fields(string(data))...)
	case path.Dir(at) == keysPath:
		t.keys = append(t.keys, path.Base(at))
	case path.Dir(at) == lockPath:
		t.queue = append(t.queue, path.Base(at))
	}
	slices.Sort(children)
	for _, name := range children {
		child := path.Join(at, name)
		if child == "/zookeeper" { // the servers' own
			continue
		}
		if err := t.walk(conn, child); err != nil {
			return err
		}
	}
	return nil
}

// print adds the tree to the history; with an error, that it is not known.
func (t *tree) print(c *common, process int, at model.NodeID, err error) {
	add := func(f, key, value string) {
		c.out.Add(model.Operation{Process: process, Type: model.OpOK, F: f, Key: key, Value: value, Node: at})
	}
	if err != nil {
		text, _ := errorText(err)
		for _, f := range []string{"final-list-done", "final-state-done"} {
			c.out.Add(model.Operation{Process: process, Type: model.OpInfo, F: f, Node: at, Error: text})
		}
		return
	}
	for _, k := range t.keys {
		add("final-list", k, "")
	}
	add("final-list-done", "", fmt.Sprint(len(t.keys)))
	for _, s := range t.state {
		add("final-state", s[0], s[1])
	}
	add("final-state-done", "", fmt.Sprint(len(t.state)))
	c.out.Add(status("final-status", process, at, t.queue))
}
