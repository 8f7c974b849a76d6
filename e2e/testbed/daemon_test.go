package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// daemon is netsplit serve and its API.
type daemon struct {
	*harness.Process
	t              *testing.T
	addr, openflow string
}

var listening = regexp.MustCompile(`API on http://(\S+), switches on tcp:(\S+),`)

// serve starts a daemon and waits until it listens: agents are started first.
func serve(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, Process: harness.Start(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	harness.Until(t, time.Minute, "daemon listens", func() error {
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
func (d *daemon) try(method, path string, in any) (int, []byte) {
	d.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			d.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+d.addr+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	c := http.Client{Timeout: time.Minute}
	res, err := c.Do(req)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, b
}

// call asks the API; the answer must be a success and fit out.
func (d *daemon) call(method, path string, in, out any) {
	d.t.Helper()
	status, b := d.try(method, path, in)
	if status >= 300 {
		d.t.Fatalf("%s %s: %d %s", method, path, status, b)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			d.t.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
}

func (d *daemon) healthy() {
	d.t.Helper()
	harness.Until(d.t, time.Minute, "healthy", func() error {
		if status, b := d.try("GET", "/healthz", nil); status != http.StatusOK {
			return fmt.Errorf("%s", b)
		}
		return nil
	})
}

// state waits until a partition is in a state.
func (d *daemon) state(name, want string) wire.PartitionStatus {
	d.t.Helper()
	var p wire.PartitionStatus
	harness.Until(d.t, time.Minute, "partition "+name+" is "+want, func() error {
		p = wire.PartitionStatus{}
		if d.call("GET", "/v1/partitions/"+name, nil, &p); p.State != want {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	return p
}

func (d *daemon) heal(name string) {
	d.t.Helper()
	d.call("DELETE", "/v1/partitions/"+name, nil, nil)
	d.state(name, "healed")
}

// ended waits until a campaign is over.
func (d *daemon) ended(id string) {
	d.t.Helper()
	harness.Until(d.t, 4*time.Minute, "the campaign ended", func() error {
		var c wire.Campaign
		if d.call("GET", "/v1/campaigns/"+id, nil, &c); c.State != "done" {
			return fmt.Errorf("it is %s: %s", c.State, c.Reason)
		}
		return nil
	})
}
