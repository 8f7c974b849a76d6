package testbed

import (
	"fmt"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// daemon is netsplit serve and its API.
type daemon struct {
	*harness.Daemon
	t *testing.T
}

// serve starts a daemon and waits until it listens.
func serve(t *testing.T, args ...string) *daemon {
	t.Helper()
	return &daemon{harness.Serve(t, append([]string{"--listen", "127.0.0.1:0"}, args...)...), t}
}

// try asks the API and returns the status and the body.
func (d *daemon) try(method, path string, in any) (int, []byte) {
	d.t.Helper()
	status, b, err := d.Try(method, path, in)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, b
}

// ended waits until a campaign is over.
func (d *daemon) ended(id string) {
	d.t.Helper()
	harness.Until(d.t, 4*time.Minute, "the campaign ended", func() error {
		var c wire.Campaign
		if d.Call("GET", "/v1/campaigns/"+id, nil, &c); c.State != "done" {
			return fmt.Errorf("it is %s: %s", c.State, c.Reason)
		}
		return nil
	})
}
