package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netsplit/testbed/nft"
)

// maxAtOnce bounds the requests an agent works on at one time; further ones
// wait.
const maxAtOnce = 64

// Serve answers requests from stdin on stdout until stdin ends, which is no
// error, or ctx ends. It is the body of `netsplit agent`.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s := &server{out: json.NewEncoder(stdout), failed: make(chan error, 1), now: time.Now}
	s.capture, s.noCapture = openCapture()
	if s.capture != nil {
		defer s.capture.close()
	}
	defer s.filter.close()
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	s.reply(response{Version: ProtocolVersion})
	read := make(chan error, 1)
	go func() { read <- s.read(ctx, stdin) }()
	select {
	case err := <-read:
		return err
	case err := <-s.failed:
		return fmt.Errorf("agent: cannot answer: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

type server struct {
	capture   *capture // nil if it could not be opened
	noCapture error
	now       func() time.Time
	filter    filtering

	mu     sync.Mutex // one answer at a time
	out    *json.Encoder
	failed chan error

	work sync.WaitGroup
}

func (s *server) read(ctx context.Context, stdin io.Reader) error {
	slots := make(chan struct{}, maxAtOnce)
	dec := json.NewDecoder(bufio.NewReader(stdin))
	for {
		var r request
		if err := dec.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("agent: request: %w", err)
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.work.Go(func() {
			defer func() { <-slots }()
			resp := s.answer(ctx, &r)
			resp.ID = r.ID
			s.reply(resp)
		})
	}
}

func (s *server) answer(ctx context.Context, r *request) (resp response) {
	fail := func(err error) {
		if err != nil {
			resp.Error = err.Error()
		}
	}
	switch {
	case r.Op == opProbe && r.Probe != nil:
		start := time.Now()
		text, err := ask(ctx, r.Probe)
		resp.Text, resp.Took = text, time.Since(start)
		fail(err)
	case r.Op == opClock:
		resp.Now = s.now().UnixNano()
	case r.Op == opLinks:
		var err error
		resp.Links, err = links()
		fail(err)
		if err == nil && s.capture == nil {
			fail(fmt.Errorf("packets cannot be counted here: %w", s.noCapture))
		}
	case r.Op == opEmit && r.Emit != nil:
		var err error
		resp.Sent, err = emit(r.Emit)
		fail(err)
	case r.Op == opArrivals && r.Digests != nil:
		if s.capture == nil {
			fail(fmt.Errorf("packets cannot be counted here: %w", s.noCapture))
			return resp
		}
		got, err := s.capture.arrivals(r.Digests)
		resp.Arrivals = &got
		fail(err)
	case r.Op == opPorts:
		if s.capture == nil {
			fail(fmt.Errorf("packets cannot be counted here: %w", s.noCapture))
			return resp
		}
		got, err := s.capture.portsOf(r.Ports)
		resp.Ports = &got
		fail(err)
	case (r.Op == opCount || r.Op == opFirst) && r.Query != nil:
		if s.capture == nil {
			fail(fmt.Errorf("packets cannot be counted here: %w", s.noCapture))
			return resp
		}
		q := *r.Query
		if r.Op == opFirst {
			q.To = time.Now().UnixNano()
		}
		count, err := s.capture.count(&q)
		if resp.Count, resp.First = &count, count.First; q.Like == nil {
			resp.First = count.first()
		}
		fail(err)
	case r.Op == opFilter && r.Filter != nil, r.Op == opRenew && r.Filter != nil, r.Op == opDropped:
		var err error
		resp.Dropped, err = s.filter.answer(r)
		resp.Expired = errors.Is(err, nft.ErrExpired)
		fail(err)
	default:
		fail(fmt.Errorf("unknown request %q; is the agent's netsplit of another version?", r.Op))
	}
	return resp
}

func (s *server) reply(r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.out.Encode(r); err != nil {
		select {
		case s.failed <- err:
		default:
		}
	}
}
