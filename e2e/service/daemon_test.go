package service

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// gossip is the target of most tests here: its runs are short.
func gossip(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../targets/gossip/target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// daemon is netsplit serve and its API.
type daemon struct {
	*harness.Daemon
	t *testing.T
}

// serve starts a daemon and waits until it listens.
func serve(t *testing.T, args ...string) *daemon {
	t.Helper()
	return &daemon{harness.Serve(t, args...), t}
}

func (d *daemon) campaign(id string) wire.Campaign {
	d.t.Helper()
	var c wire.Campaign
	d.Call("GET", "/v1/campaigns/"+id, nil, &c)
	return c
}

func (d *daemon) runs(id string) []wire.RunRow {
	d.t.Helper()
	var rs wire.Runs
	d.Call("GET", "/v1/campaigns/"+id+"/runs?limit=200", nil, &rs)
	return rs.Items
}

// until waits until a campaign is as said.
func (d *daemon) until(id string, limit time.Duration, what string, ok func(wire.Campaign) bool) wire.Campaign {
	d.t.Helper()
	var c wire.Campaign
	harness.Until(d.t, limit, what, func() error {
		if c = d.campaign(id); !ok(c) {
			return fmt.Errorf("it is %s, %d of %d done, running %v, %s", c.State, c.Done, c.Planned, c.Running, c.Reason)
		}
		return nil
	})
	return c
}

func ended(c wire.Campaign) bool {
	return c.State == "done" || c.State == "failed" || c.State == "cancelled"
}
