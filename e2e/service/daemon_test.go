package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
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
	*harness.Process
	t              *testing.T
	addr, openflow string
}

var listening = regexp.MustCompile(`API on http://(\S+), switches on (?:tcp|ssl):(\S+),`)

// serve starts a daemon and waits until it listens.
func serve(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, Process: harness.Start(t, append([]string{"serve"}, args...)...)}
	harness.Until(t, 20*time.Second, "daemon listens", func() error {
		m := listening.FindStringSubmatch(d.Stderr())
		if m == nil {
			return fmt.Errorf("it said %q", d.Stderr())
		}
		d.addr, d.openflow = m[1], m[2]
		return nil
	})
	return d
}

// try asks the API and returns the status and the body.
func (d *daemon) try(method, path string, in any) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+d.addr+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	c := http.Client{Timeout: 30 * time.Second}
	res, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// call asks the API; the answer must be a success and fit out.
func (d *daemon) call(method, path string, in, out any) {
	d.t.Helper()
	status, b, err := d.try(method, path, in)
	if err != nil || status >= 300 {
		d.t.Fatalf("%s %s: %d %s %v", method, path, status, b, err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			d.t.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
}

func (d *daemon) campaign(id string) wire.Campaign {
	d.t.Helper()
	var c wire.Campaign
	d.call("GET", "/v1/campaigns/"+id, nil, &c)
	return c
}

func (d *daemon) runs(id string) []wire.Run {
	d.t.Helper()
	var rs wire.Runs
	d.call("GET", "/v1/campaigns/"+id+"/runs?limit=200", nil, &rs)
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
