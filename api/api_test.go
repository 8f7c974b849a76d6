package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/api"
	"netsplit/model"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// handler is the API of a service. Access is by token.
func handler(t testing.TB, f *fakeService, change ...func(*api.Config)) http.Handler {
	c := api.Config{Service: f, Keys: f, Metrics: api.NewMetrics("test", nil), Version: "v0-test", Log: slog.New(slog.DiscardHandler)}
	for _, fn := range change {
		fn(&c)
	}
	if c.Access == nil {
		c.Access = access(t, t.TempDir(), "http://127.0.0.1:7070")
	}
	return api.New(c)
}

const token = "0123456789abcdef0123"

func access(t testing.TB, dir, url string) *api.Access {
	a, err := api.NewAccess(token, dir, url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve serves to everybody as to the owner.
func serve(t testing.TB, f *fakeService, change ...func(*api.Config)) *httptest.Server {
	return start(t, letIn(handler(t, f, change...)))
}

func start(t testing.TB, h http.Handler) *httptest.Server {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// letIn sends the token with each request that has none.
func letIn(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(w, r)
	})
}

// do sends a request; header is "Name: value" lines. It checks what holds for
// every answer: JSON is JSON, and an error is a problem that says what to do.
func do(t *testing.T, srv *httptest.Server, method, path, body string, header ...string) (*http.Response, map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a stream that should be refused has no end
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		if req.Header.Set(k, v); k == "Host" {
			req.Host = v
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if strings.Contains(res.Header.Get("Content-Type"), "json") && len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	if res.StatusCode >= 400 && method != http.MethodHead && path != "/healthz" && path != "/readyz" {
		if ct := res.Header.Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s %s: %d of type %q: %s", method, path, res.StatusCode, ct, b)
		}
		typ, _ := out["type"].(string)
		detail, _ := out["detail"].(string)
		if !strings.HasPrefix(typ, "urn:netsplit:problem:") || detail == "" || out["status"] != float64(res.StatusCode) {
			t.Errorf("%s %s: %d: not a whole problem: %s", method, path, res.StatusCode, b)
		}
	}
	return res, out
}

func expect(t *testing.T, srv *httptest.Server, status int, method, path, body string, header ...string) map[string]any {
	t.Helper()
	res, out := do(t, srv, method, path, body, header...)
	if res.StatusCode != status {
		t.Fatalf("%s %s %s: %d, want %d: %v", method, path, body, res.StatusCode, status, out)
	}
	return out
}

func TestContractIsTheGoldenOne(t *testing.T) {
	srv := serve(t, newFake(t))
	got, err := json.MarshalIndent(expect(t, srv, 200, "GET", "/v1/openapi.json", ""), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *rewrite {
		if err := os.WriteFile("openapi.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the contract changed: review it, then: go test ./api -run Golden -rewrite\n%s", cmp.Diff(string(want), string(got)))
	}
}

func TestReadEverything(t *testing.T) {
	f := newFake(t)
	f.runPath = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.runPath, "report.html"), []byte("<!doctype html>hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, f)
	for path, want := range map[string]string{
		"/v1/campaigns":               `"budget":"1m30s"`,
		"/v1/campaigns/c-1":           `"created":"2026-11-21T12:00:00.123456789Z"`,
		"/v1/campaigns/c-1/runs":      `"cutAt":"1.5s"`,
		"/v1/campaigns/c-1/causes":    `"id":"cause-2"`,
		"/v1/runs/c-1-r0001":          `"p50":"90µs"`,
		"/v1/runs/c-1-r0001/report":   `<!doctype html>hello`,
		"/v1/findings":                `"replay":"netsplit replay c-1-r0001 -n 10"`,
		"/v1/findings?campaign=c-1":   `"id":"f-1"`,
		"/v1/findings/f-1":            `"firstAfter":2`,
		"/v1/invariants":              `"text":"status[n3]@n1 == status[n3]@n2"`,
		"/v1/invariants?target=none":  `"items":[]`,
		"/v1/switches":                `"cookie":"0x6e73"`,
		"/v1/hosts":                   `"ip":"10.0.0.1"`,
		"/v1/partitions":              `"items":[]`,
		"/v1/version":                 `"version":"v0-test"`,
		"/v1/annotations":             `"tags":"cut,gossip"`,
		"/v1/annotations?from=1&to=9": `"timeEnd":9`,
		"/v1/annotations?limit=1":     `"title":"older cuts are not shown"`,
		"/healthz":                    `"ok":true`,
		"/metrics":                    `netsplit_build_info{`,
		"/":                           `<title>netsplit</title>`,
		"/static/page.js":             `import { ask`,
	} {
		res, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("GET %s: %d, no %s in %s", path, res.StatusCode, want, b)
		}
		if strings.Contains(string(b), ":null") {
			t.Errorf("GET %s: a null in %s", path, b)
		}
		head, err := http.Head(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(head.Body); head.StatusCode != 200 || len(b) != 0 || head.Header.Get("Content-Type") != res.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d, %d bytes, type %q", path, head.StatusCode, len(b), head.Header.Get("Content-Type"))
		}
		_ = head.Body.Close()
	}
}

func TestPagesOfAList(t *testing.T) {
	srv := serve(t, newFake(t))
	var ids []string
	path := "/v1/campaigns/c-1/runs?limit=2"
	for range 3 {
		out := expect(t, srv, 200, "GET", path, "")
		for _, r := range out["items"].([]any) {
			ids = append(ids, r.(map[string]any)["id"].(string))
		}
		next, ok := out["next"].(string)
		if !ok {
			break
		}
		path = "/v1/campaigns/c-1/runs?limit=2&cursor=" + next
	}
	if want := []string{"c-1-r0002", "c-1-r0001", "c-1-r0000"}; !slices.Equal(ids, want) {
		t.Errorf("got %v", ids)
	}
	expect(t, srv, 422, "GET", "/v1/campaigns/c-1/runs?cursor=nonsense", "")
}

func TestWrongRequestsSayWhatIsWrong(t *testing.T) {
	srv := serve(t, newFake(t))
	long := `{"target":"` + strings.Repeat("x", 70_000) + `"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/v2", "", 404, "/v1/openapi.json"},
		{"GET", "//v1/campaigns", "", 404, "openapi"},
		{"GET", "/v1/campaigns/none", "", 404, "none"},
		{"GET", "/v1/campaigns/NONE", "", 422, "path.id"},
		{"GET", "/v1/campaigns/a%2Fb", "", 404, ""},
		{"GET", "/v1/runs/c-1-r0001/report", "", 404, "left no report.html"},
		{"GET", "/v1/runs/c-1-r0001/files/passwd", "", 404, "packets.pcapng"},
		{"GET", "/v1/runs/c-1-r0001/export/dot", "", 422, "shiviz"},
		{"GET", "/v1/runs/c-9-r0001/export/trace", "", 404, "c-9-r0001"},
		{"GET", "/v1/campaigns/c-9/map", "", 404, "c-9"},
		{"GET", "/v1/campaigns?limit=0", "", 422, "query.limit"},
		{"GET", "/v1/campaigns?limits=1", "", 422, "limits"},
		{"GET", "/v1/campaigns?limit=", "", 422, "query.limit"},
		{"GET", "/v1/campaigns?limit=1&limit=2", "", 422, "query.limit"},
		{"POST", "/v1/campaigns", `{"target":"g","bugdet":"1m"}`, 422, "body.bugdet"},
		{"POST", "/v1/campaigns", `{"target":"g","budget":"soon"}`, 422, "body.budget"},
		{"POST", "/v1/campaigns", `{"target":"g","labs":"two","strategy":"luck"}`, 422, "body.strategy"},
		{"POST", "/v1/campaigns", `{}`, 422, "target"},
		{"POST", "/v1/campaigns", `{"target":`, 400, ""},
		{"POST", "/v1/campaigns", `null`, 400, "body is null"}, // huma takes it for a field that is left out
		{"POST", "/v1/campaigns", `{"target":"g","seed":null}`, 400, "body.seed is null"},
		{"POST", "/v1/campaigns", `{"target":"g","scenario":{"steps":[{"do":{"isolate":"n1"},"when":null}]}}`, 400, "body.scenario.steps[0].when is null"},
		{"GET", "/v1/runs?cursor=" + strings.Repeat("x", 100_000), "", 422, "query.cursor"},
		{"POST", "/v1/campaigns", long, 413, "smaller"},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"]]}`, 422, "takes two groups of hosts, not 1"},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n9"]]}`, 422, "n9"},
		{"POST", "/v1/partitions", `{"name":"Ü","shape":"partial","groups":[["n1"],["n2"]]}`, 422, "body.name"},
		// Zero where it would be taken for left out.
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]],"for":"0s"}`, 422, `duration "0s": write a time greater than 0`},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]],"for":"0.0000000001s"}`, 422, "for"},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]],"for":"0.000000001ns"}`, 422, "write a time greater than 0"},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]],"for":"-1s"}`, 422, "body.for"},
		{"POST", "/v1/partitions", `{"shape":"leader-in","size":0}`, 422, "body.size"},
		{"POST", "/v1/partitions", `{"shape":"leader-in","size":-1}`, 422, "body.size"},
		{"POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]],"only":[{"proto":"tcp","port":0}]}`, 422, "body.only[0].port"},
		{"POST", "/v1/campaigns", `{"target":"g","budget":"0s"}`, 422, "write a time greater than 0"},
		{"POST", "/v1/campaigns", `{"target":"g","scenario":{"cut":{"isolate":"n1","atMost":"0m"}}}`, 422, "write a time greater than 0"},
		{"POST", "/v1/campaigns", `{"target":"g","scenario":{"faults":[{"kind":"reorder","match":{"type":"*"},"limit":"0s"}]}}`, 422, "write a time greater than 0"},
		{"PUT", "/v1/invariants/inv-1", `{"status":"great"}`, 422, "body.status"},
		{"PUT", "/v1/invariants/inv-9", `{"status":"pinned"}`, 404, "inv-9"},
		{"GET", "/v1/annotations?from=5&to=4", "", 422, "swap"},
		{"DELETE", "/v1/targets/gossip:0123456789ab", "", 404, "gossip:0123456789ab"},
	} {
		res, out := do(t, srv, c.method, c.path, c.body)
		text := fmt.Sprint(out)
		if res.StatusCode != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s %.60s: %d, want %d and %q in %s", c.method, c.path, c.body, res.StatusCode, c.status, c.says, text)
		}
	}
	expect(t, srv, 422, "POST", "/v1/campaigns", `{"target":"g"}`, "Idempotency-Key: ")
	res, _ := do(t, srv, "POST", "/v1/campaigns", `{"target":"g"}`, "Content-Type: text/plain")
	if res.StatusCode != 415 {
		t.Errorf("text/plain: %d", res.StatusCode)
	}
}

func TestWrongMethodNamesTheRightOnes(t *testing.T) {
	srv := serve(t, newFake(t))
	for path, want := range map[string]string{
		"/v1/campaigns": "GET, HEAD, POST", "/v1/campaigns/c-1": "GET, HEAD, DELETE", "/v1/invariants/inv-1": "GET, HEAD, PUT", "/v1/finding-histories/h-1/note": "PUT", "/v1/reset": "POST", "/metrics": "GET, HEAD", "/": "GET, HEAD",
	} {
		res, _ := do(t, srv, "PATCH", path, "")
		if res.StatusCode != 405 || res.Header.Get("Allow") != want {
			t.Errorf("PATCH %s: %d, Allow %q, want %q", path, res.StatusCode, res.Header.Get("Allow"), want)
		}
	}
}

func TestErrorsOfTheServiceHaveTheirStatus(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	for err, status := range map[error]int{
		model.ErrNotFound: 404, model.ErrInvalid: 422, model.ErrConflict: 409, model.ErrFull: 507, model.ErrUnavailable: 503, errors.New("odd"): 500,
	} {
		f.fail = fmt.Errorf("what failed: %w: do this", err)
		if out := expect(t, srv, status, "GET", "/v1/campaigns/c-1", ""); out["detail"] != f.fail.Error() {
			t.Errorf("got %v", out)
		}
	}
	if out := expect(t, srv, 503, "GET", "/healthz", ""); out["ok"] != false {
		t.Errorf("got %v", out)
	}
}

func TestCampaignIsStartedAndCancelled(t *testing.T) {
	srv := serve(t, newFake(t))
	res, out := do(t, srv, "POST", "/v1/campaigns", `{"target":"gossip","budget":"1m30s","maxLost":0,"args":{"bug":"true"}}`)
	id, _ := out["id"].(string)
	if res.StatusCode != 202 || res.Header.Get("Location") != "/v1/campaigns/"+id || out["state"] != "queued" {
		t.Fatalf("%d %v", res.StatusCode, out)
	}
	spec := out["spec"].(map[string]any)
	if spec["budget"] != "1m30s" || spec["strategy"] != "cofi" || spec["effect"] != "drop" || spec["maxLost"] != 0.0 || spec["maxWindow"] != nil {
		t.Errorf("spec %v", spec)
	}
	if out := expect(t, srv, 200, "DELETE", "/v1/campaigns/"+id, ""); out["state"] != "cancelled" {
		t.Errorf("got %v", out)
	}
	expect(t, srv, 200, "DELETE", "/v1/campaigns/"+id, "")
	expect(t, srv, 404, "DELETE", "/v1/campaigns/none", "")
}

func TestCampaignIsResumed(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	if err := f.PutCampaign(model.Campaign{ID: "c-full", State: model.CampaignFailed, Created: t0}); err != nil {
		t.Fatal(err)
	}
	res, out := do(t, srv, "POST", "/v1/campaigns/c-full/resume", "")
	if res.StatusCode != 202 || out["state"] != "queued" || res.Header.Get("Location") != "/v1/campaigns/c-full" {
		t.Errorf("%d %v", res.StatusCode, out)
	}
	expect(t, srv, 404, "POST", "/v1/campaigns/none/resume", "")
	expect(t, srv, 200, "DELETE", "/v1/campaigns/c-full", "")
	expect(t, srv, 409, "POST", "/v1/campaigns/c-full/resume", "")
}

func TestPartitionByHand(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	const body = `{"name":"p","shape":"simplex","groups":[["n1"],["n2","n3"]],"for":"1.5s"}`
	res, out := do(t, srv, "POST", "/v1/partitions", body)
	if res.StatusCode != 202 || res.Header.Get("Location") != "/v1/partitions/p" || out["state"] != "requested" || out["for"] != "1.5s" || out["effect"] != "drop" {
		t.Fatalf("%d %v", res.StatusCode, out)
	}
	if links := fmt.Sprint(out["links"]); links != "[map[dst:n1 src:n2] map[dst:n1 src:n3]]" {
		t.Errorf("links %s", links)
	}
	if out := expect(t, srv, 200, "GET", "/v1/partitions/p", ""); out["state"] != "in_force" {
		t.Errorf("got %v", out)
	}
	expect(t, srv, 409, "POST", "/v1/partitions", body)
	const spec = `{"shape":"simplex","groups":[["n1"],["n2","n3"]],"for":"1.5s"}`
	if out := expect(t, srv, 200, "PUT", "/v1/partitions/p", spec); out["state"] != "in_force" {
		t.Errorf("the same again: %v", out)
	}
	expect(t, srv, 409, "PUT", "/v1/partitions/p", strings.Replace(spec, "simplex", "complete", 1))
	expect(t, srv, 422, "PUT", "/v1/partitions/q", body)
	if out := expect(t, srv, 200, "PUT", "/v1/partitions/new", spec, "Prefer: wait=10"); out["state"] != "in_force" || out["name"] != "new" {
		t.Errorf("a new one: %v", out)
	}
	expect(t, srv, 200, "DELETE", "/v1/partitions/new", "", "Prefer: wait=10")
	f.delay = 3
	res, out = do(t, srv, "DELETE", "/v1/partitions/p", "")
	if res.StatusCode != 202 || out["state"] != "healing" {
		t.Errorf("%d %v", res.StatusCode, out)
	}
	f.delay = 3
	if out := expect(t, srv, 200, "DELETE", "/v1/partitions/p", "", "Prefer: wait=10"); out["state"] != "healed" {
		t.Errorf("got %v", out)
	}
	expect(t, srv, 404, "DELETE", "/v1/partitions/none", "")
	f.delay = 3
	if out := expect(t, srv, 200, "POST", "/v1/partitions", body, "Prefer: respond-async, wait=10"); out["state"] != "in_force" {
		t.Errorf("got %v", out)
	}
	if out := expect(t, srv, 200, "POST", "/v1/reset", ""); fmt.Sprint(out["healed"]) != "[p]" {
		t.Errorf("got %v", out)
	}
	if out := expect(t, srv, 200, "POST", "/v1/reset", ""); fmt.Sprint(out["healed"]) != "[]" {
		t.Errorf("got %v", out)
	}
}

func TestRepeatedRequestIsDoneOnce(t *testing.T) {
	f := newFake(t)
	srv := serve(t, f)
	const key, body = "Idempotency-Key: k1", `{"target":"gossip"}`
	first := expect(t, srv, 202, "POST", "/v1/campaigns", body, key)
	again := expect(t, srv, 202, "POST", "/v1/campaigns", `{ "target": "gossip" }`, key)
	if !cmp.Equal(first, again) {
		t.Error(cmp.Diff(first, again))
	}
	if other := expect(t, srv, 202, "POST", "/v1/campaigns", body); other["id"] == first["id"] {
		t.Error("without a key the same campaign came back")
	}
	expect(t, srv, 422, "POST", "/v1/campaigns", `{"target":"redis"}`, key)
	expect(t, srv, 422, "POST", "/v1/partitions", `{"shape":"partial","groups":[["n1"],["n2"]]}`, key)
	// A request that failed may be repeated with its key.
	f.fail = model.ErrUnavailable
	expect(t, srv, 503, "POST", "/v1/campaigns", body, "Idempotency-Key: k2")
	f.fail = nil
	expect(t, srv, 202, "POST", "/v1/campaigns", body, "Idempotency-Key: k2")
	// So may one that netsplit itself broke at, and the daemon answers on.
	f.broken = true
	if out := expect(t, srv, 500, "POST", "/v1/campaigns", body, "Idempotency-Key: k4"); !strings.Contains(out["detail"].(string), "index out of range") {
		t.Errorf("got %v", out)
	}
	f.broken = false
	expect(t, srv, 202, "POST", "/v1/campaigns", body, "Idempotency-Key: k4")
	// One that never got its answer is not done again behind the user's back.
	if _, _, _, err := f.ClaimKey("k3", "x", time.Now()); err != nil {
		t.Fatal(err)
	}
	expect(t, srv, 422, "POST", "/v1/campaigns", body, "Idempotency-Key: k3")
}
