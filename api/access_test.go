package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/api/client"
	"netsplit/api/trust"
	"netsplit/model"
)

func operations(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(b, &contract); err != nil {
		t.Fatal(err)
	}
	var out []string
	for path, methods := range contract.Paths {
		for method, op := range methods {
			if op.OperationID != "" {
				out = append(out, strings.ToUpper(method)+" "+strings.NewReplacer("{id}", "c-1", "{name}", "report.html").Replace(path))
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("the contract has %v", out)
	}
	return out
}

// Nobody gets anything without credentials, whatever was configured.
func TestNobodyIsLetInWithoutCredentials(t *testing.T) {
	f := newFake(t)
	for name, h := range map[string]http.Handler{
		"nothing configured": api.New(api.Config{Service: f, Keys: f, Metrics: api.NewMetrics("test", nil)}),
		"a token":            handler(t, f),
	} {
		srv := start(t, h)
		for _, op := range append(operations(t), "GET /", "GET /static/page.js", "GET /static/page.css", "GET /metrics", "GET /v1/openapi.json", "GET /v1/campaigns/c-1/report.html", "GET /v1/campaigns/c-1/c-1-r0001/report.html", "GET /nowhere",
			"HEAD /metrics", "HEAD /v1/events", "OPTIONS /v1/campaigns", "GET /access", "GET /access?code=", "GET /access?code=x", "POST /access", "GET //v1/campaigns", "GET /healthz/") {
			method, path, _ := strings.Cut(op, " ")
			for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer x", "Bearer " + token[1:], "Basic " + token, token} {
				probe := path == "/healthz" || path == "/readyz" || path == "/livez"
				if auth == "" && probe {
					continue
				}
				h := []string{"Authorization: " + auth, "Cookie: netsplit-0=x; netsplit=; netsplit-" + srv.URL[strings.LastIndex(srv.URL, ":")+1:] + "=x"}
				if auth == "" {
					h = h[1:]
				}
				res, _ := do(t, srv, method, path, "", h...)
				if res.StatusCode != 401 && (!probe || res.StatusCode != 200) || res.StatusCode == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s: %s with %q: %d", name, op, auth, res.StatusCode)
				}
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if out := expect(t, srv, 200, "GET", path, ""); fmt.Sprint(out["checks"]) != "[]" {
				t.Errorf("%s tells a stranger %v", path, out)
			}
		}
	}
	if list, _, err := f.ListCampaigns(model.CampaignFilter{}, 0, ""); err != nil || len(list) != 1 {
		t.Errorf("%d campaigns, %v", len(list), err)
	}
	srv := start(t, handler(t, f))
	expect(t, srv, 200, "GET", "/v1/campaigns", "", "Authorization: Bearer "+token)
	expect(t, srv, 200, "POST", "/v1/reset", "", "Authorization: bearer "+token)
	if out := expect(t, srv, 200, "GET", "/healthz", "", "Authorization: Bearer "+token); fmt.Sprint(out["checks"]) == "[]" {
		t.Errorf("health tells its owner %v", out)
	}
}

// TestAPageMayOperate what runs, or also start campaigns, once its address was opened, and
// nothing else.
func TestAPageMayOperate(t *testing.T) {
	for _, may := range []string{"controls", "start"} {
		t.Run(may, func(t *testing.T) { pageMay(t, may) })
	}
}

func pageMay(t *testing.T, may string) {
	f := newFake(t)
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	now := t0
	acc.Now = func() time.Time { return now }
	routes.Handle("/", handler(t, f, func(c *api.Config) { c.Access = acc }))
	page := func(query string) (address, credential string) {
		url, _ := expect(t, srv, 200, "POST", "/v1/access/page"+query, "", "Authorization: Bearer "+token)["url"].(string)
		address, credential, _ = strings.Cut(strings.TrimPrefix(url, srv.URL), "#"+may+"=")
		return address, credential
	}
	if _, credential := page(""); credential != "" {
		t.Error("an address that is to read alone has a credential to operate")
	}
	address, credential := page("?" + may + "=true")
	bearer := "Authorization: Bearer " + credential
	expect(t, srv, 401, "POST", "/v1/reset", "", bearer) // the address was not opened yet
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(srv.URL + address)
	if err != nil || res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Fatalf("%+v, %v", res, err)
	}
	res.Body.Close()
	cookie := res.Cookies()[0]
	if strings.Contains(cookie.Value, credential) {
		t.Error("the credential is in a cookie, which goes to all ports of the host")
	}
	expect(t, srv, 401, "GET", address, "")
	if _, err := f.CreateCampaign(t.Context(), model.CampaignSpec{Target: "gossip"}); err != nil {
		t.Fatal(err)
	}
	for _, op := range operations(t) {
		method, path, _ := strings.Cut(op, " ")
		mine := strings.HasSuffix(path, "/pause") || strings.HasSuffix(path, "/resume") || method == "DELETE" && (strings.HasPrefix(path, "/v1/campaigns/") || strings.HasPrefix(path, "/v1/partitions/")) || path == "/v1/reset" || strings.HasSuffix(path, "/note")
		if may == "start" {
			mine = mine || op == "POST /v1/campaigns" || strings.HasSuffix(path, "/points") || strings.HasPrefix(path, "/v1/schedules/")
		}
		if path == "/v1/events" {
			continue
		}
		res, body := do(t, srv, method, strings.ReplaceAll(path, "report.html", "none"), "", bearer)
		if refused := res.StatusCode == 403; refused == (mine || method == "GET" || strings.HasSuffix(path, "/query")) {
			t.Errorf("%s: %d %s", op, res.StatusCode, body)
		}
		if res, _ := do(t, srv, method, path, "", "Cookie: "+cookie.Name+"="+cookie.Value); mine && method != "GET" && res.StatusCode != 403 {
			t.Errorf("%s with the cookie alone: %d", op, res.StatusCode)
		}
	}
	if may == "start" { // nothing bounds the memory of a program
		for policies, want := range map[string]int{`{"name":"p.yaml","text":"policy: [prioritised]"}`: 200, `{"name":"p.star","text":"x"}`: 403, `{"name":"p.yaml","text":"x","files":{"a":"x"}}`: 403} {
			spec := `{"target":"gossip","strategy":"sequences","policies":` + policies + `}`
			for request, ok := range map[[3]string]int{
				{"POST", "/v1/campaigns/c-1/points", `{"policies":` + policies + `}`}:                               200,
				{"POST", "/v1/campaigns", spec}:                                                                     202,
				{"PUT", "/v1/schedules/s" + fmt.Sprint(len(policies)), `{"cron":"@daily","campaign":` + spec + `}`}: 201,
			} {
				if want == 403 {
					expect(t, srv, 403, request[0], request[1], request[2], bearer)
					ok = 0
				}
				who := bearer
				if ok == 0 {
					who = "Authorization: Bearer " + token
				}
				if res, body := do(t, srv, request[0], request[1], request[2], who); res.StatusCode == 403 || ok > 0 && res.StatusCode != ok {
					t.Errorf("%v: %d %s", request, res.StatusCode, body)
				}
			}
		}
	}
	now = now.Add(13 * time.Hour)
	expect(t, srv, 401, "POST", "/v1/reset", "", bearer)
}

// from is a listener whose peers are of that user, as the kernel would say.
type from struct {
	net.Listener
	user int
}

func (l from) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &trust.Conn{Conn: c, Peer: l.user}, err
}

func serveOn(t *testing.T, h http.Handler, ln net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, h, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The kernel says who comes by a socket: the daemon's user and root need nothing
// else, and others are refused whatever they have.
func TestWhoComesByASocket(t *testing.T) {
	h := handler(t, newFake(t))
	for user, want := range map[int]int{os.Geteuid(): 200, 0: 200, 64999: 403} {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		serveOn(t, h, from{ln, user})
		c := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
		for _, header := range []string{"", "Bearer " + token} {
			for _, method := range []string{"GET", "POST"} {
				req, err := http.NewRequest(method, "http://localhost/v1/reset", nil)
				if method == "GET" {
					req, err = http.NewRequest(method, "http://localhost/v1/campaigns", nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", header)
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s by user %d with %q: %d, want %d", method, user, header, res.StatusCode, want)
				}
			}
		}
		c.CloseIdleConnections()
	}
}

// A command finds its own daemon by the socket, and a daemon within it by nothing.
func TestCommandsNeedNoToken(t *testing.T) {
	h := handler(t, newFake(t))
	path := filepath.Join(t.TempDir(), "own", "s")
	ln, err := trust.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, h, ln)
	c, err := client.New(client.Config{API: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reset(context.Background()); err != nil {
		t.Error(err)
	}
	within, dial := trust.Pipe()
	serveOn(t, h, within)
	if _, err := client.Over(dial).Reset(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestReadTokenMayRead(t *testing.T) {
	dir := t.TempDir()
	acc := access(t, dir, "")
	srv := start(t, handler(t, newFake(t), func(c *api.Config) { c.Access = acc }))
	full := "Authorization: Bearer " + token
	made, _ := expect(t, srv, 200, "POST", "/v1/access/read-token", "", full)["token"].(string)
	if again := expect(t, srv, 200, "POST", "/v1/access/read-token", "", full)["token"]; len(made) < 20 || again != made {
		t.Errorf("made %q, then %q", made, again)
	}
	st, err := os.Stat(filepath.Join(dir, "read-token"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	may := func(srv *httptest.Server) {
		t.Helper()
		read := "Authorization: Bearer " + made
		for _, path := range []string{"/metrics", "/v1/campaigns", "/", "/v1/openapi.json"} {
			expect(t, srv, 200, "GET", path, "", read)
		}
		expect(t, srv, 200, "HEAD", "/metrics", "", read)
		for _, op := range operations(t) {
			if method, path, _ := strings.Cut(op, " "); method != "GET" && !strings.HasSuffix(path, "/query") {
				expect(t, srv, 403, method, path, "", read)
			}
		}
	}
	may(srv)
	// It outlives the daemon.
	after := start(t, handler(t, newFake(t), func(c *api.Config) { c.Access = access(t, dir, "") }))
	may(after)
	other := expect(t, after, 200, "POST", "/v1/access/read-token?new=true", "", full)["token"]
	expect(t, after, 401, "GET", "/metrics", "", "Authorization: Bearer "+made)
	expect(t, after, 200, "GET", "/metrics", "", fmt.Sprint("Authorization: Bearer ", other))
	// What others could read is not taken up.
	if err := os.Chmod(filepath.Join(dir, "read-token"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := api.NewAccess("", dir, ""); err == nil || !strings.Contains(err.Error(), "mode 640") {
		t.Errorf("a token that others can read: %v", err)
	}
}

// The page opens by an address that works once, in a browser that may then read.
func TestPageByOneTimeAddress(t *testing.T) {
	now := t0
	var acc *api.Access
	h := http.NewServeMux()
	srv := start(t, h)
	acc = access(t, t.TempDir(), srv.URL)
	acc.Now = func() time.Time { return now }
	h.Handle("/", handler(t, newFake(t), func(c *api.Config) { c.Access = acc }))
	address := func() string {
		t.Helper()
		out := expect(t, srv, 200, "POST", "/v1/access/page", "", "Authorization: Bearer "+token)
		url, _ := out["url"].(string)
		path, ok := strings.CutPrefix(url, srv.URL)
		if !ok {
			t.Fatalf("address %v", out)
		}
		return path
	}
	old := address()
	now = now.Add(6 * time.Minute)
	expect(t, srv, 401, "GET", old, "")

	path := address()
	expect(t, srv, 401, "HEAD", path, "") // whoever previews it does not use it up
	res, _ := do(t, srv, "GET", path, "")
	set := res.Header.Get("Set-Cookie")
	if res.StatusCode != 303 || res.Header.Get("Location") != "/" {
		t.Fatalf("%d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(set, want) {
			t.Errorf("cookie %q is not %s", set, want)
		}
	}
	if strings.Contains(set, "Secure") {
		t.Errorf("cookie %q could not come back by plain HTTP", set)
	}
	expect(t, srv, 401, "GET", path, "")

	cookie, _, _ := strings.Cut(set, ";")
	for _, p := range []string{"/", "/static/page.js", "/v1/campaigns", "/metrics"} {
		expect(t, srv, 200, "GET", p, "", "Cookie: "+cookie)
	}
	if got := streamAs(t, srv.URL+"/v1/events", "Cookie: "+cookie); !strings.Contains(got, "id: 1") {
		t.Errorf("events: %q", got)
	}
	expect(t, srv, 403, "POST", "/v1/reset", "", "Cookie: "+cookie)
	expect(t, srv, 403, "POST", "/v1/access/read-token", "", "Cookie: "+cookie)
	expect(t, srv, 401, "GET", "/v1/campaigns", "", "Cookie: "+cookie+"x")
	now = now.Add(12 * time.Hour)
	expect(t, srv, 401, "GET", "/v1/campaigns", "", "Cookie: "+cookie)
}

// By TLS the cookie never goes by plain HTTP.
func TestCookieIsSecureByTLS(t *testing.T) {
	h := http.NewServeMux()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	acc := access(t, t.TempDir(), srv.URL)
	h.Handle("/", handler(t, newFake(t), func(c *api.Config) { c.Access = acc }))
	c := srv.Client()
	c.Jar, _ = cookiejar.New(nil)
	ask := func(method, url string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if method == "POST" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	var page struct{ URL string }
	if err := json.NewDecoder(ask("POST", srv.URL+"/v1/access/page").Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	res := ask("GET", page.URL) // goes on to the page
	if set := res.Request.Response.Header.Get("Set-Cookie"); res.StatusCode != 200 || !strings.Contains(set, "; Secure") {
		t.Errorf("%d, cookie %q", res.StatusCode, set)
	}
}

// streamAs reads the first event of a stream.
func streamAs(t *testing.T, url string, header string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, v, _ := strings.Cut(header, ": ")
	req.Header.Set(k, v)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 0, 1000)
	for !strings.Contains(string(b), "data: ") && len(b) < cap(b) {
		n, err := res.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			break
		}
	}
	return string(b)
}

// What was sent in the wrong place is not sent back.
func TestProblemsDoNotEchoSecrets(t *testing.T) {
	const secret = "hunter2-hunter2-hunter2"
	srv := serve(t, newFake(t))
	raw := start(t, handler(t, newFake(t)))
	for _, c := range []struct {
		srv    *httptest.Server
		op     string
		header []string
	}{
		{raw, "GET /v1/campaigns", []string{"Authorization: Bearer " + secret}},
		{raw, "GET /v1/campaigns?token=" + secret, nil},
		{raw, "GET /access?code=" + secret, nil},
		{raw, "GET /v1/campaigns", []string{"Cookie: netsplit-1=" + secret}},
		{srv, "GET /v1/campaigns?token=" + secret, nil},
		{srv, "GET /v1/campaigns?limit=" + secret, nil},
		{srv, "GET /v1/campaigns?cursor=a&cursor=" + secret, nil},
		{srv, "GET /v1/events", []string{"Last-Event-ID: " + secret[:18]}},
		{srv, "POST /v1/campaigns", []string{"Idempotency-Key: " + secret + "/"}},
	} {
		method, path, _ := strings.Cut(c.op, " ")
		body := ""
		if method == "POST" {
			body = `{"target":"gossip","token":"` + secret + `","labs":"` + secret + `"}`
		}
		res, out := do(t, c.srv, method, path, body, c.header...)
		if res.StatusCode < 400 || strings.Contains(fmt.Sprint(out), secret[:18]) {
			t.Errorf("%s %v: %d %v", c.op, c.header, res.StatusCode, out)
		}
	}
}
