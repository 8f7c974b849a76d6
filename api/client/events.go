package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"netsplit/model"
)

// longestEvent bounds a line of an event stream.
const longestEvent = 1 << 20

// Events calls f with what happens from now on, until ctx ends, f fails or the connection
// breaks. It returns nil only if ctx ended. begun is called once nothing is missed any more.
func (c *Client) Events(ctx context.Context, begun func(), f func(model.ServiceEvent) error) error {
	res, err := c.open(ctx, http.MethodGet, "/v1/events?new=true", nil, http.Header{"Accept": {"text/event-stream"}})
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
			return fmt.Errorf("client: event: %w", err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("client: the event stream ended: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}
