package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/sut"
)

// Daemon is netsplit serve and its API.
type Daemon struct {
	*Process
	API, OpenFlow string // host:port; OpenFlow is "" where hosts drop packets themselves
	Cluster       string // where runners join; "" where the daemon makes the runs
	Socket        string // path of the socket for commands
	// HTTP comes by the socket, whatever host it is asked for.
	HTTP http.Client
	tb   testing.TB
}

var listening = regexp.MustCompile(`API on https?://(\S+) and unix:(\S+?)(?: \(certificate [^)]*\))?, (?:switches on (?:tcp|ssl):(\S+)|hosts that drop packets themselves|runners join at (\S+)),`)

// Serve starts a daemon and waits until it listens: agents are started first.
func Serve(tb testing.TB, args ...string) *Daemon {
	tb.Helper()
	d := &Daemon{tb: tb, Process: Start(tb, append([]string{"serve"}, args...)...)}
	Until(tb, time.Minute, "daemon listens", func() error {
		m := listening.FindStringSubmatch(d.Stderr())
		if m == nil {
			return fmt.Errorf("it said %q", d.Stderr())
		}
		d.API, d.Socket, d.OpenFlow, d.Cluster = m[1], m[2], m[3], m[4]
		return nil
	})
	d.HTTP.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.Socket)
	}}
	return d
}

// Try asks the API as the daemon's own user and returns the status and the body.
func (d *Daemon) Try(method, path string, in any) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+d.API+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	c := d.HTTP
	c.Timeout = time.Minute
	res, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// Call asks the API; the answer must be a success and fit out.
func (d *Daemon) Call(method, path string, in, out any) {
	d.tb.Helper()
	status, b, err := d.Try(method, path, in)
	if err != nil || status >= 300 {
		d.tb.Fatalf("%s %s: %d %s %v", method, path, status, b, err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			d.tb.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
}

// Upload uploads a target by the path of its file or folder, and returns what
// campaigns call it.
func (d *Daemon) Upload(path string) string {
	d.tb.Helper()
	archive, _, err := sut.Pack(path)
	if err != nil {
		d.tb.Fatal(err)
	}
	c, err := client.New(client.Config{API: "unix:" + d.Socket})
	if err != nil {
		d.tb.Fatal(err)
	}
	t, err := c.UploadTarget(d.tb.Context(), archive)
	if err != nil {
		d.tb.Fatal(err)
	}
	return t.Name
}

// Healthy waits until the daemon is.
func (d *Daemon) Healthy() {
	d.tb.Helper()
	Until(d.tb, time.Minute, "the daemon is well", func() error {
		status, b, err := d.Try("GET", "/healthz", nil)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %s %v", status, b, err)
		}
		return nil
	})
}

// State waits until a partition is in a state and returns it.
func (d *Daemon) State(name, state string) wire.PartitionStatus {
	d.tb.Helper()
	var p wire.PartitionStatus
	Until(d.tb, time.Minute, "partition "+name+" is "+state, func() error {
		p = wire.PartitionStatus{}
		d.Call("GET", "/v1/partitions/"+name, nil, &p)
		if p.State != state {
			return fmt.Errorf("it is %s: %s", p.State, p.Reason)
		}
		return nil
	})
	return p
}

// Heal ends a partition and waits until it is healed.
func (d *Daemon) Heal(name string) wire.PartitionStatus {
	d.tb.Helper()
	d.Call("DELETE", "/v1/partitions/"+name, nil, nil)
	return d.State(name, "healed")
}
