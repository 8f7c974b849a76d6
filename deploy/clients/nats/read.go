package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// What a read grants the servers: an answer, a hole that may be one of a read
// that came too early, and replicas that catch up.
const (
	patience = 2 * time.Second
	holeFor  = 3 * time.Second
	catchUp  = 10 * time.Second
	goneFor  = 20 * time.Second // of a stream that no server has
	readers  = 8                // requests at a time
)

// readAll waits until the stream has a leader and prints what is in the stream:
// "final-read" the messages that its leader gives, "final-copy" those that each
// replica gives (through a direct get at its server), "final-state" the numbers
// that each replica's server has of it. The value of a message is its sequence. A
// read counts only as a whole: "-done" with ok says that it is. A stream that each
// server says for goneFor that nobody has is one without messages.
func readAll(ctx context.Context, c *common) error {
	info, via, err := settled(ctx, c)
	if err == nil {
		err = c.readFrom(ctx, via, info.State, "final-read", nil)
	}
	if errors.Is(err, errGone) {
		err = nil
	}
	c.done("final-read-done", "", err)
	if info == nil {
		return nil
	}
	until := time.Now().Add(catchUp)
	want := ""
	for _, name := range peers(info) {
		n, err := c.node(string(name))
		if err != nil {
			return err
		}
		var s state
		for {
			s, err = stateOf(ctx, n)
			if err == nil && want == "" {
				want = s.String()
			}
			if err == nil && s.String() == want || time.Now().After(until) || ctx.Err() != nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		if err == nil {
			c.out.Add(model.Operation{Type: model.OpOK, F: "final-state", Key: "numbers", Value: s.String(), Node: n.Name})
		}
		c.done("final-state-done", n.Name, err)
		c.done("final-copy-done", n.Name, c.readFrom(ctx, n, info.State, "final-copy", nats.DirectGet()))
	}
	return nil
}

func (c *common) done(f string, n model.NodeID, err error) {
	op := model.Operation{Type: model.OpOK, F: f, Node: n}
	if err != nil {
		_, op.Error = failure(err)
		op.Type = model.OpInfo
	}
	c.out.Add(op)
}

// errGone: the stream is gone, with all that was in it.
var errGone = errors.New("no server has the stream")

// absence holds since when each server has answered that there is no such stream, and
// nothing else. Who leads all servers answers so, which knows all streams
// (https://docs.nats.io/nats-concepts/jetstream/clustering: the meta group).
type absence map[model.NodeID]time.Time

// saw enters what a server answered when it was asked for the stream.
func (a absence) saw(n model.NodeID, err error, now time.Time) {
	if !errors.Is(err, nats.ErrStreamNotFound) {
		delete(a, n)
	} else if _, is := a[n]; !is {
		a[n] = now
	}
}

// sure says whether all of them have answered so for goneFor.
func (a absence) sure(nodes []workload.Node, now time.Time) bool {
	return !slices.ContainsFunc(nodes, func(n workload.Node) bool {
		since, is := a[n.Name]
		return !is || now.Sub(since) < goneFor
	})
}

// settled waits until the stream names a leader and its state, and says through
// which server.
func settled(ctx context.Context, c *common) (*nats.StreamInfo, workload.Node, error) {
	absent := absence{}
	for i := 0; ; i++ {
		n := c.nodes[i%len(c.nodes)]
		nc, js, err := dial(n, patience)
		if err == nil {
			var info *nats.StreamInfo
			info, err = js.StreamInfo(streamName)
			nc.Close()
			if err == nil && info.Cluster != nil && info.Cluster.Leader != "" {
				return info, n, nil
			}
			if err == nil {
				err = errors.New("the stream names no leader")
			}
		}
		if absent.saw(n.Name, err, time.Now()); absent.sure(c.nodes, time.Now()) {
			return nil, n, errGone
		}
		select {
		case <-ctx.Done():
			return nil, n, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// readFrom prints all messages of the stream, read through a server; with a
// direct get from the replica there.
func (c *common) readFrom(ctx context.Context, n workload.Node, s nats.StreamState, f string, how nats.JSOpt) error {
	nc, js, err := dial(n, patience)
	for err != nil && ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
		nc, js, err = dial(n, patience)
	}
	if err != nil {
		return err
	}
	defer nc.Close()
	var opts []nats.JSOpt
	if how != nil {
		opts = append(opts, how)
	}
	seqs := make(chan uint64)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards failed
	var failed error
	for range readers {
		wg.Go(func() {
			for seq := range seqs {
				m, err := get(ctx, func() (*nats.RawStreamMsg, error) { return js.GetMsg(streamName, seq, opts...) })
				switch {
				case err != nil:
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				case m != nil:
					c.out.Add(model.Operation{Type: model.OpOK, F: f, Key: string(m.Data), Value: fmt.Sprint(seq), Node: n.Name})
				}
			}
		})
	}
	for seq := s.FirstSeq; seq > 0 && seq <= s.LastSeq; seq++ {
		seqs <- seq
	}
	close(seqs)
	wg.Wait()
	return failed
}

// get asks for a message until there is an answer; nil if the answer is, for
// some time, that there is none.
func get(ctx context.Context, ask func() (*nats.RawStreamMsg, error)) (*nats.RawStreamMsg, error) {
	hole := time.Time{}
	for {
		m, err := ask()
		switch {
		case err == nil:
			return m, nil
		case !errors.Is(err, nats.ErrMsgNotFound):
			hole = time.Time{}
		case hole.IsZero():
			hole = time.Now()
		case time.Since(hole) > holeFor:
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// state is what a server says of its replica of the stream.
type state struct {
	Messages uint64 `json:"messages"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
}

// String is the state in words.
func (s state) String() string {
	return fmt.Sprintf("%d messages, %d to %d", s.Messages, s.First, s.Last)
}

// stateOf asks a server for its own replica, by HTTP: no other can answer.
func stateOf(ctx context.Context, n workload.Node) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/jsz?streams=1", n.IP, statusPort), nil)
	if err != nil {
		return state{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return state{}, fmt.Errorf("%w %s: %w", errConnect, n.Name, err)
	}
	defer resp.Body.Close()
	s, err := parseState(resp.Body)
	if err != nil {
		return state{}, fmt.Errorf("answer of %s: %w", n.Name, err)
	}
	return s, nil
}

// parseState finds the stream in a server's answer to /jsz?streams=1.
func parseState(r io.Reader) (state, error) {
	var jsz struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State state  `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := json.NewDecoder(r).Decode(&jsz); err != nil {
		return state{}, err
	}
	for _, a := range jsz.Accounts {
		for _, s := range a.Streams {
			if s.Name == streamName {
				return s.State, nil
			}
		}
	}
	return state{}, errors.New("it has no replica of the stream")
}
