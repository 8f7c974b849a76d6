package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// replica names what a data node stores of a block: the block with its generation
// stamp, "b1@7". Of two replicas of a block the one with the lower stamp is stale.
type replica struct {
	block string
	stamp int64
}

func (r replica) String() string { return r.block + "@" + strconv.FormatInt(r.stamp, 10) }

func (r replica) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *replica) UnmarshalText(b []byte) error {
	block, stamp, ok := strings.Cut(string(b), "@")
	n, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || !validName(block) || err != nil || n <= 0 {
		return fmt.Errorf("replica %.40q: want block@stamp, such as b1@7", b)
	}
	*r = replica{block, n}
	return nil
}

// validName says whether a block may have this name: it is part of a file name.
func validName(block string) bool {
	return block != "" && len(block) < 100 && !strings.ContainsAny(block, "/\\._@ ")
}

// held is a whole replica and the length of its data.
type held struct {
	Replica replica `json:"replica"`
	Length  int     `json:"length"`
}

// message is a JSON object; on the wire there is nothing between two of them. The
// answer to a request of type X has type X-ok or X-error, but for heartbeat: its
// answer may be an order.
type message struct {
	Type     string   `json:"type"`
	From     string   `json:"from,omitempty"`     // data node that says it
	Block    string   `json:"block,omitempty"`    // allocate
	Exclude  []string `json:"exclude,omitempty"`  // allocate: data nodes that failed
	Replica  replica  `json:"replica,omitzero"`   //
	Nodes    []string `json:"nodes,omitempty"`    // setup, recover: the rest of the chain; allocate-ok: all of it
	Target   string   `json:"target,omitempty"`   // copy-order
	Offset   int      `json:"offset,omitempty"`   // packet: bytes before it
	Length   int      `json:"length,omitempty"`   // recover: bytes that all have; close, complete, received: all bytes
	Data     string   `json:"data,omitempty"`     // packet, copy, read-ok
	Replicas []held   `json:"replicas,omitempty"` // register, list-ok
	Status   *status  `json:"status,omitempty"`   // status-ok
	Bad      string   `json:"bad,omitempty"`      // X-error of a chain: the data node that failed
	Error    string   `json:"error,omitempty"`    // X-error: a stable word, then the reason
}

// status is what the name node tells its administrator.
type status struct {
	Live  int `json:"live"`  // data nodes
	Open  int `json:"open"`  // leases on blocks that are being written
	Under int `json:"under"` // replicas that have to be made
	Extra int `json:"extra"` // replicas that have to go
	Files int `json:"files"` // blocks that are complete
}

// refusal is an error that the other side answered.
type refusal struct{ answer message }

func (r *refusal) Error() string { return r.answer.Error }

// asRefusal is the answer that an error is; nil if there was no answer.
func asRefusal(err error) *message {
	var r *refusal
	if errors.As(err, &r) {
		return &r.answer
	}
	return nil
}

// link is a connection on which requests are answered in order.
type link struct {
	conn net.Conn
	in   *json.Decoder
}

func newLink(c net.Conn) *link { return &link{c, json.NewDecoder(c)} }

func dial(ctx context.Context, addr string, limit time.Duration) (*link, error) {
	d := net.Dialer{Timeout: limit}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return newLink(c), nil
}

func (l *link) close() { l.conn.Close() }

func (l *link) send(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = l.conn.Write(b)
	return err
}

func (l *link) receive() (m message, err error) {
	err = l.in.Decode(&m)
	return m, err
}

// answer receives an answer; one of type X-error is a refusal.
func (l *link) answer(limit time.Duration) (message, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return message{}, err
	}
	m, err := l.receive()
	if err == nil && strings.HasSuffix(m.Type, "-error") {
		err = &refusal{m}
	}
	return m, err
}

func (l *link) ask(m message, limit time.Duration) (message, error) {
	if err := l.conn.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return message{}, err
	}
	if err := l.send(m); err != nil {
		return message{}, err
	}
	return l.answer(limit)
}

// askOnce asks on a connection of its own.
func askOnce(ctx context.Context, addr string, m message, limit time.Duration) (message, error) {
	l, err := dial(ctx, addr, limit)
	if err != nil {
		return message{}, err
	}
	defer l.close()
	return l.ask(m, limit)
}

func okTo(m message) message { return message{Type: m.Type + "-ok"} }

func errorTo(m message, err error) message {
	return message{Type: m.Type + "-error", Error: err.Error()}
}

// serve runs talk for each connection until ctx ends, and closes what is open then.
func serve(ctx context.Context, l net.Listener, talk func(*link)) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			talk(newLink(c))
		}()
	}
}
