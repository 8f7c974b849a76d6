package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/model"
)

// stream reads events until it has n data lines, and ends the request.
func stream(t *testing.T, url, lastID string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("%d %q", res.StatusCode, ct)
	}
	var lines []string
	for sc := bufio.NewScanner(res.Body); n > 0 && sc.Scan(); {
		lines = append(lines, sc.Text())
		if strings.HasPrefix(sc.Text(), "data: ") {
			n--
		}
	}
	return lines
}

func TestEventStreamResumesWhereItWasCut(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	f.emit("run", "c-1-r0001", "fail")
	f.emit("switch", "0000000000000abc", "connected")
	want := []string{
		": netsplit", "",
		"id: 1", "event: campaign", `data: {"num":1,"at":"2026-11-21T12:00:01.123456789Z","kind":"campaign","id":"c-1","state":"done","text":"campaign c-1 is done"}`, "",
		"id: 2", "event: run", `data: {"num":2,"at":"2026-11-21T12:00:02.123456789Z","kind":"run","id":"c-1-r0001","state":"fail","text":"run c-1-r0001 is fail"}`,
	}
	if got := stream(t, srv.URL+"/v1/events", "", 2); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if got := stream(t, srv.URL+"/v1/events?after=1", "2", 1); got[2] != "id: 3" {
		t.Errorf("resumed with %q", got)
	}
	if got := stream(t, srv.URL+"/v1/events?after=1", "", 1); got[2] != "id: 2" {
		t.Errorf("after=1 began with %q", got)
	}
	// Something new arrives while the stream is open.
	go func() {
		time.Sleep(50 * time.Millisecond)
		f.emit("finding", "f-2", "broken")
	}()
	if got := stream(t, srv.URL+"/v1/events", "3", 1); got[2] != "id: 4" {
		t.Errorf("live: %q", got)
	}
	// Each stream that ended let go of its subscription.
	for range 4 {
		select {
		case <-f.ended:
		case <-time.After(30 * time.Second):
			t.Fatal("a subscription outlived its request")
		}
	}
	expect(t, srv, 422, "GET", "/v1/events", "", "Last-Event-ID: x")
	f.fail = model.ErrUnavailable
	expect(t, srv, 503, "GET", "/v1/events", "")
}

func TestIdleEventStreamIsKeptOpen(t *testing.T) {
	srv := serve(t, newFake(t), func(c *api.Config) { c.KeepAlive = 10 * time.Millisecond })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/v1/events?after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		if sc.Text() == ": alive" {
			return
		}
	}
	t.Error("no comment line")
}
