package api_test

import (
	"encoding/json"
	"errors"
	"testing"

	"netsplit/model"
)

// TestETags: who has an answer gets none again, and nobody overwrites a schedule that
// somebody else changed meanwhile.
func TestETags(t *testing.T) {
	srv := serve(t, newFake(t))
	res, body := do(t, srv, "GET", "/v1/campaigns/c-1", "")
	tag := res.Header.Get("ETag")
	if res.StatusCode != 200 || len(tag) < 10 || body["id"] != "c-1" {
		t.Fatalf("%d, ETag %q: %v", res.StatusCode, tag, body)
	}
	for _, have := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if res, body := do(t, srv, "GET", "/v1/campaigns/c-1", "", "If-None-Match: "+have); res.StatusCode != 304 || len(body) != 0 || res.ContentLength > 0 || res.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %v", have, res.StatusCode, body)
		}
	}
	if res, _ := do(t, srv, "GET", "/v1/campaigns/c-1", "", `If-None-Match: "other"`); res.StatusCode != 200 {
		t.Errorf("another ETag: %d", res.StatusCode)
	}
	if res, _ := do(t, srv, "HEAD", "/v1/campaigns/c-1", ""); res.Header.Get("ETag") != tag {
		t.Errorf("HEAD has ETag %q", res.Header.Get("ETag"))
	}
	if res, _ := do(t, srv, "GET", "/v1/campaigns/none", "", "If-None-Match: *"); res.StatusCode != 404 || res.Header.Get("ETag") != "" {
		t.Errorf("what is not there: %d", res.StatusCode)
	}

	const path = "/v1/schedules/nightly"
	spec := func(cron string) string { return `{"campaign":{"target":"gossip"},"cron":"` + cron + `"}` }
	if res, body := do(t, srv, "PUT", path, spec("0 3 * * *"), `If-Match: *`); res.StatusCode != 412 {
		t.Errorf("a schedule that is to exist, and does not: %d %v", res.StatusCode, body)
	}
	if res, body := do(t, srv, "PUT", path, spec("0 3 * * *")); res.StatusCode != 201 {
		t.Fatalf("%d %v", res.StatusCode, body)
	}
	res, _ = do(t, srv, "GET", path, "")
	mine := res.Header.Get("ETag")
	if res, body := do(t, srv, "PUT", path, spec("0 4 * * *"), "If-Match: "+mine); res.StatusCode != 200 {
		t.Errorf("what I saw: %d %v", res.StatusCode, body)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		if res, body := do(t, srv, method, path, map[string]string{"PUT": spec("0 5 * * *")}[method], "If-Match: "+mine); res.StatusCode != 412 {
			t.Errorf("%s of what somebody else changed: %d %v", method, res.StatusCode, body)
		}
	}
	if _, body := do(t, srv, "GET", path, ""); body["cron"] != "0 4 * * *" {
		t.Errorf("it was overwritten: %v", body)
	}
	if res, _ := do(t, srv, "DELETE", path, "", "If-Match: *"); res.StatusCode != 204 {
		t.Errorf("delete whatever it is: %d", res.StatusCode)
	}
}

// TestNobodyOverwrites an invariant, a note or an upload that somebody else changed meanwhile.
func TestNobodyOverwrites(t *testing.T) {
	f := newFake(t)
	f.targets = []model.KnownTarget{{Name: "gossip"}}
	srv := serve(t, f)
	var all struct{ Items []struct{ ID, Target string } }
	if res, body := do(t, srv, "GET", "/v1/invariants", ""); res.StatusCode != 200 {
		t.Fatalf("%v", body)
	} else if b, err := json.Marshal(body); err != nil || json.Unmarshal(b, &all) != nil || len(all.Items) == 0 {
		t.Fatalf("no invariant: %v", body)
	}
	invariant := "/v1/invariants/" + all.Items[0].ID
	for _, c := range []struct {
		get, method, path, body, other string
	}{
		{invariant, "PUT", invariant, `{"status":"pinned"}`, `{"status":"dropped"}`},
		{"/v1/finding-histories/h-1", "PUT", "/v1/finding-histories/h-1/note", `{"text":"mine"}`, `{"text":"theirs"}`},
		{"/v1/targets/gossip", "DELETE", "/v1/targets/gossip", "", ""},
	} {
		res, body := do(t, srv, "GET", c.get, "")
		saw := res.Header.Get("ETag")
		if res.StatusCode != 200 || saw == "" {
			t.Fatalf("%s: %d, ETag %q: %v", c.get, res.StatusCode, saw, body)
		}
		if res, _ := do(t, srv, c.method, c.path, c.body, `If-Match: "another"`); res.StatusCode != 412 {
			t.Errorf("%s %s of another one: %d", c.method, c.path, res.StatusCode)
		}
		if c.other != "" { // somebody else is first
			if res, body := do(t, srv, c.method, c.path, c.other); res.StatusCode != 200 {
				t.Fatalf("%s %s: %d %v", c.method, c.path, res.StatusCode, body)
			}
			if res, _ := do(t, srv, c.method, c.path, c.body, "If-Match: "+saw); res.StatusCode != 412 {
				t.Errorf("%s %s of what has changed: %d", c.method, c.path, res.StatusCode)
			}
			res, _ = do(t, srv, "GET", c.get, "")
			saw = res.Header.Get("ETag")
		}
		if res, body := do(t, srv, c.method, c.path, c.body, "If-Match: "+saw); res.StatusCode/100 != 2 {
			t.Errorf("%s %s of what I saw: %d %v", c.method, c.path, res.StatusCode, body)
		}
	}
	for _, path := range []string{"/v1/invariants/none", "/v1/finding-histories/none"} {
		if res, _ := do(t, srv, "GET", path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// TestReadyAndAlive: a daemon that cannot work is alive, and not ready.
func TestReadyAndAlive(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if res, body := do(t, srv, "GET", path, ""); res.StatusCode != 200 || body["ok"] != true {
			t.Errorf("%s: %d %v", path, res.StatusCode, body)
		}
	}
	f.fail = errors.New("no switch")
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/healthz": 503} {
		if res, body := do(t, srv, "GET", path, ""); res.StatusCode != want {
			t.Errorf("%s of a daemon that cannot work: %d %v", path, res.StatusCode, body)
		}
	}
}
