package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"netsplit/api/wire"
)

// maxEvent bounds one line of the stream.
const maxEvent = 1 << 20

// Events calls fn for each event after the given number, in order, and
// reconnects when the stream breaks. Where the daemon keeps some no more, fn gets
// an event of kind "events" and state "missed" in their place. It returns when ctx ends, when
// fn returns an error, when the daemon refuses, or when it is gone for longer
// than patience.
func (c *Client) Events(ctx context.Context, after uint64, patience time.Duration, fn func(wire.Event) error) error {
	lost := time.Time{} // since when no event stream could be had
	for {
		begun, err := c.follow(ctx, &after, fn)
		var p *Problem
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &p):
			return err
		case errors.Is(err, errStopped):
			return errors.Unwrap(err)
		case begun || lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > patience:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// errStopped marks an error of the caller's function.
var errStopped = errors.New("stopped")

type stoppedError struct{ error }

func (e stoppedError) Unwrap() error        { return e.error }
func (e stoppedError) Is(target error) bool { return target == errStopped }

// follow reads one stream; begun says that the daemon answered.
func (c *Client) follow(ctx context.Context, after *uint64, fn func(wire.Event) error) (begun bool, err error) {
	header := http.Header{}
	if *after > 0 {
		header.Set("Last-Event-ID", strconv.FormatUint(*after, 10))
	}
	res, err := c.open(ctx, http.MethodGet, "/v1/events", nil, header)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	sc := bufio.NewScanner(res.Body)
	sc.Buffer(nil, maxEvent)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue // id and event are in the data too
		}
		var e wire.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return true, fmt.Errorf("client: event: %w", err)
		}
		if err := fn(e); err != nil {
			return true, stoppedError{err}
		}
		*after = e.Num
	}
	if err := sc.Err(); err != nil {
		return true, fmt.Errorf("client: events: %w", err)
	}
	return true, nil
}
