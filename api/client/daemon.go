package client

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"netsplit/api/wire"
	"netsplit/model"
)

// Health says whether the daemon can do its work. What hinders it is in the answer, and no error.
func (c *Client) Health(ctx context.Context) (model.Health, error) {
	var out model.Health
	res, err := c.send(ctx, http.MethodGet, "/healthz", nil, http.Header{})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode == http.StatusServiceUnavailable && t == "application/json" || res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			return out, fmt.Errorf("client: health: answer: %w", err)
		}
		return out, nil
	}
	return out, c.problem(http.MethodGet, "/healthz", res)
}

// Version says what runs.
func (c *Client) Version(ctx context.Context) (wire.Version, error) {
	return get[wire.Version](ctx, c, "/v1/version")
}

// Switches lists the switches that are connected, and those of the testbed that are not, with
// their ports and rules.
func (c *Client) Switches(ctx context.Context) ([]wire.Switch, error) {
	out, err := get[wire.Switches](ctx, c, "/v1/switches")
	return out.Items, err
}

// Hosts lists the hosts of the testbed; without one of its own a daemon has hosts only while a
// campaign has labs.
func (c *Client) Hosts(ctx context.Context) ([]wire.Host, error) {
	out, err := get[wire.Hosts](ctx, c, "/v1/hosts")
	return out.Items, err
}

// Annotations lists the cuts that overlap a span of time, by their start: the last limit of them,
// 0 for 500. If there are more, the first element says so. A zero to is now, a zero from one
// hour before to.
func (c *Client) Annotations(ctx context.Context, from, to time.Time, limit int) ([]wire.Annotation, error) {
	milliseconds := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return get[[]wire.Annotation](ctx, c, query("/v1/annotations", "from", milliseconds(from), "to", milliseconds(to), "limit", num(limit)))
}
