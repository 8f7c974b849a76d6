package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"netsplit/model"
)

// session is a client session that says which server it is at. It prefers one
// server and goes on to the next when that one does not serve it, as
// ZooKeeper's clients do.
type session struct {
	*common
	process int
	conn    *zk.Conn
	dead    atomic.Bool // no connection any more: the servers will expire it
	lost    func()      // called when the connection is lost

	mu  sync.Mutex // guards raw
	raw net.Conn
}

// open begins a session at c.nodes[first]; only pins it to that server.
func open(c *common, process, first int, only bool, lost func()) (*session, error) {
	s := &session{common: c, process: process, lost: lost}
	var addrs []string
	for i := range c.nodes {
		addrs = append(addrs, c.nodes[(first+i)%len(c.nodes)].addr)
	}
	if only {
		addrs = addrs[:1]
	}
	var err error
	s.conn, _, err = zk.Connect(addrs, c.session, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithHostProvider(&inOrder{}), zk.WithDialer(s.dial), zk.WithEventCallback(s.event))
	return s, err
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// inOrder offers the servers in the order given, the one that served first.
type inOrder struct {
	servers      []string
	next, failed int
}

func (h *inOrder) Init(servers []string) error { h.servers = servers; return nil }
func (h *inOrder) Len() int                    { return len(h.servers) }
func (h *inOrder) Connected()                  { h.failed = 0 }
func (h *inOrder) Next() (string, bool) {
	s := h.servers[h.next%len(h.servers)]
	h.next++
	h.failed++
	return s, h.failed > len(h.servers)
}

// dial connects. The library waits ten times its limit for the answer to a
// connect; a server that was cut off would hold the client that long.
func (s *session) dial(network, addr string, limit time.Duration) (net.Conn, error) {
	if s.dead.Load() {
		return nil, errors.New("given up")
	}
	c, err := net.DialTimeout(network, addr, limit)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.raw = c
	s.mu.Unlock()
	return bounded{c, s.session}, nil
}

type bounded struct {
	net.Conn
	most time.Duration
}

func (b bounded) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(b.most); !t.IsZero() && t.After(most) {
		t = most
	}
	return b.Conn.SetReadDeadline(t)
}

func (s *session) event(e zk.Event) {
	if e.Type == zk.EventSession && (e.State == zk.StateDisconnected || e.State == zk.StateExpired) && s.lost != nil {
		s.lost()
	}
}

// abandon loses the session without closing it: what a crashed client does.
func (s *session) abandon() {
	s.dead.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw != nil {
		s.raw.Close()
	}
}

func (s *session) server() model.NodeID {
	at := s.conn.Server()
	for _, n := range s.nodes {
		if n.addr == at {
			return n.name
		}
	}
	return ""
}

// ready waits until the session is served, and says whether it is.
func (s *session) ready(ctx context.Context) bool {
	for s.conn.State() != zk.StateHasSession {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// begin prints an invocation at the server that the session is at: it needs
// the client to reach that server and the server to reach a majority.
func (s *session) begin(f, key, value string) model.Operation {
	at := s.server()
	op := model.Operation{Process: s.process, Type: model.OpInvoke, F: f, Key: key, Value: value, Node: at, Needs: s.needs(at)}
	s.out.Add(op)
	op.Needs = nil
	return op
}

// end prints the answer. What changes something and has no answer may have
// happened.
func (s *session) end(op model.Operation, err error, changes bool) {
	op.Type = model.OpOK
	if s.server() != op.Node {
		op.Node = "" // it may have been either
	}
	if err != nil {
		op.Type = model.OpFail
		var definite bool
		op.Error, definite = errorText(err)
		if changes && !definite {
			op.Type = model.OpInfo
		}
	}
	s.out.Add(op)
}

func (c *common) needs(at model.NodeID) []model.Need {
	var all []model.NodeID
	for _, n := range c.nodes {
		all = append(all, n.name)
	}
	if at == "" || c.host == "" {
		return nil
	}
	return []model.Need{{Via: c.host, From: []model.NodeID{at}, Count: 1}, {Via: at, From: all, Count: len(all)/2 + 1}}
}

// errorText is an error as a history has it; definite errors are answers of a
// server: the operation did not happen.
func errorText(err error) (text string, definite bool) {
	for e, word := range map[error]string{
		zk.ErrNodeExists: "nodeexists", zk.ErrNoNode: "nonode", zk.ErrBadVersion: "badversion", zk.ErrNotEmpty: "notempty",
		zk.ErrNoAuth: "noauth", zk.ErrInvalidACL: "invalidacl", zk.ErrBadArguments: "badarguments", zk.ErrNoChildrenForEphemerals: "ephemeral",
	} {
		if errors.Is(err, e) {
			return word, true
		}
	}
	for e, word := range map[error]string{
		zk.ErrConnectionClosed: "connection-closed", zk.ErrSessionExpired: "session-expired", zk.ErrNoServer: "no-server",
		zk.ErrClosing: "closing", zk.ErrSessionMoved: "session-moved",
	} {
		if errors.Is(err, e) {
			return word, false
		}
	}
	return "other " + strings.Join(strings.Fields(fmt.Sprint(err)), " "), false
}
