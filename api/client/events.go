package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"netsplit/model"
)

// longestEvent bounds a line of an event stream.
const longestEvent = 1 << 20

// ErrUnreadable is the error of an event that this client cannot read, now or later.
var ErrUnreadable = errors.New("client: an event of the daemon cannot be read")

// Events calls f with what happens from now on, until ctx ends, f fails or the connection
// breaks. It returns nil only if ctx ended, and ErrUnreadable if asking again is of no use. begun is called once nothing is missed any more.
func (c *Client) Events(ctx context.Context, begun func(), f func(model.ServiceEvent) error) error {
	return c.EventsAfter(ctx, model.EventsFromNow, begun, f)
}

// EventsAfter is Events from the one after the given number on: from the first that the daemon
// keeps if that is 0, from now on if it is model.EventsFromNow. If some after that number are not
// kept any more, the first event says so: its kind is "events", its state "missed".
func (c *Client) EventsAfter(ctx context.Context, after uint64, begun func(), f func(model.ServiceEvent) error) error {
	path := "/v1/events?after=" + strconv.FormatUint(after, 10)
	if after == model.EventsFromNow {
		path = "/v1/events?new=true"
	}
	res, err := c.open(ctx, http.MethodGet, path, nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer res.Body.Close()
	begun()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, longestEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")) // an event is one line of data here
		if !ok {
			continue
		}
		var e model.ServiceEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: it is longer than %d bytes", ErrUnreadable, longestEvent)
	}
	return fmt.Errorf("client: the event stream ended: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}
