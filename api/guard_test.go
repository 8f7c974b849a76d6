package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/e2e/browser"
	"netsplit/model"
)

const token = "0123456789abcdef0123"

func TestTokenIsAskedOfEveryRequest(t *testing.T) {
	srv := serve(t, newFake(t), func(c *api.Config) { c.Token = token })
	for _, path := range []string{"/v1/campaigns", "/metrics", "/v1/openapi.json", "/v1/events", "/nowhere"} {
		for _, auth := range []string{"", "Bearer", "Bearer x", "Bearer " + token[1:], "Basic " + token, token} {
			h := []string{"Authorization: " + auth}
			if auth == "" {
				h = nil
			}
			res, _ := do(t, srv, "GET", path, "", h...)
			if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("GET %s with %q: %d", path, auth, res.StatusCode)
			}
		}
	}
	expect(t, srv, 200, "GET", "/v1/campaigns", "", "Authorization: Bearer "+token)
	expect(t, srv, 200, "GET", "/v1/campaigns", "", "Authorization: bearer "+token)
	expect(t, srv, 200, "GET", "/", "")
	if out := expect(t, srv, 200, "GET", "/healthz", ""); fmt.Sprint(out["checks"]) != "[]" {
		t.Errorf("health tells a stranger %v", out)
	}
	if out := expect(t, srv, 200, "GET", "/healthz", "", "Authorization: Bearer "+token); fmt.Sprint(out["checks"]) == "[]" {
		t.Errorf("health tells its owner %v", out)
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	srv := serve(t, newFake(t), func(c *api.Config) { c.AllowedHosts = []string{"rack.example"} })
	// A name that was rebound to this address, whatever the path.
	for _, path := range []string{"/v1/campaigns", "/metrics", "/", "/nowhere"} {
		expect(t, srv, 421, "GET", path, "", "Host: evil.example")
		expect(t, srv, 421, "GET", path, "", "Host: evil.example:7070")
		expect(t, srv, 421, "GET", path, "", "Host: 127.0.0.1.evil.example")
	}
	for _, host := range []string{"localhost", "localhost:7070", "LOCALHOST", "127.0.0.1:1", "[::1]:7070", "10.1.2.3", "rack.example:7070"} {
		expect(t, srv, 200, "GET", "/v1/campaigns", "", "Host: "+host)
	}
	expect(t, srv, 403, "POST", "/v1/reset", "", "Sec-Fetch-Site: cross-site")
	expect(t, srv, 403, "DELETE", "/v1/campaigns/c-1", "", "Origin: http://evil.example")
	expect(t, srv, 200, "POST", "/v1/reset", "", "Sec-Fetch-Site: same-origin")
	expect(t, srv, 200, "POST", "/v1/reset", "")
}

func TestReportIsASiteOfItsOwn(t *testing.T) {
	f := newFake(t)
	f.runPath = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.runPath, "report.html"), []byte("<script>fetch('/v1/reset',{method:'POST'})</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, f)
	res, _ := do(t, srv, "GET", "/v1/runs/c-1-r0001/report", "")
	csp := res.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "sandbox") || strings.Contains(csp, "allow-same-origin") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("CSP %q", csp)
	}
	// A sandboxed page sends Origin: null.
	expect(t, srv, 403, "POST", "/v1/reset", "", "Origin: null")
	res, _ = do(t, srv, "GET", "/", "")
	if csp := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
		t.Errorf("CSP of the page %q", csp)
	}
}

func TestListen(t *testing.T) {
	ctx := context.Background()
	ln, err := api.Listen(ctx, "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for addr, want := range map[string][]string{
		ln.Addr().String():  {"in use", "--listen", ln.Addr().String()},
		"0.0.0.0:0":         {"without a token", "--token-file", api.TokenEnv},
		":0":                {"without a token"},
		"[::]:0":            {"without a token"},
		"192.0.2.1:0":       {"without a token"},
		"nonsense":          {"as in 127.0.0.1:7070"},
		"127.0.0.1:notaone": {"as in 127.0.0.1:7070"},
	} {
		l, err := api.Listen(ctx, addr, "")
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: listens", addr)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", addr, err, w)
			}
		}
	}
	if _, err := api.Listen(ctx, "192.0.2.1:0", token); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("an address of another machine: %v", err)
	}
	any, err := api.Listen(ctx, "0.0.0.0:0", token)
	if err != nil {
		t.Fatal(err)
	}
	_ = any.Close()
}

func TestLoadToken(t *testing.T) {
	dir := t.TempDir()
	write := func(name, s string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Setenv(api.TokenEnv, "")
	if got, err := api.LoadToken(""); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	if got, err := api.LoadToken(write("good", token+"\n")); got != token || err != nil {
		t.Errorf("file: %q, %v", got, err)
	}
	for _, bad := range []string{write("empty", ""), write("short", "abc\n"), filepath.Join(dir, "missing")} {
		if _, err := api.LoadToken(bad); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
	t.Setenv(api.TokenEnv, "  "+token)
	if got, err := api.LoadToken(""); got != token || err != nil {
		t.Errorf("environment: %q, %v", got, err)
	}
	t.Setenv(api.TokenEnv, "short")
	if _, err := api.LoadToken(""); err == nil || !strings.Contains(err.Error(), "/dev/urandom") {
		t.Errorf("short: %v", err)
	}
}

// Serve ends with its context, event streams included.
func TestServeEndsWithItsContext(t *testing.T) {
	ln, err := api.Listen(context.Background(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := newFake(t)
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, ln, api.New(api.Config{Service: f, Metrics: api.NewMetrics("test", nil)}))
	}()
	res, err := http.Get("http://" + ln.Addr().String() + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still serving")
	}
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the port is still open")
	}
}

// The page asks nobody else, and puts nothing that a target chose into markup.
func TestPageIsSelfContained(t *testing.T) {
	srv := serve(t, newFake(t))
	for _, path := range []string{"/", "/static/page.js", "/static/page.css"} {
		res, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || len(b) < 500 {
			t.Fatalf("%s: %d, %d bytes, %v", path, res.StatusCode, len(b), err)
		}
		for _, bad := range []string{"http://", "https://", `="//`, "@import", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s contains %s", path, bad)
			}
		}
	}
}

// The page loads without a complaint, says why a campaign failed, links the reports
// that there are, and fits a telephone.
func TestPageInABrowser(t *testing.T) {
	f := newFake(t)
	why := "lab 1 of 1: start the agent on host n1: it speaks version 7"
	if err := f.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignFailed, Reason: why, Created: t0}); err != nil {
		t.Fatal(err)
	}
	done := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0009", Tap: "gate", Started: t0}}
	if err := f.PutRun(done); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("static/page.html")
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle("/", serve(t, f).Config.Handler)
	routes.HandleFunc("/narrow", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, browser.Narrow(string(page))) })
	srv := httptest.NewServer(routes)
	defer srv.Close()
	dom, console := browser.Open(t, srv.URL+"/#c-1", "--dump-dom")
	if console != "" {
		t.Errorf("the browser complains:\n%s", console)
	}
	for _, want := range []string{why, "3 acknowledged writes are missing", "c-1-r0002", "/v1/runs/c-1-r0009/report"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(dom, "/v1/runs/c-1-r0002/report") {
		t.Error("a run that has no record has a link to its report")
	}
	if dom, _ := browser.Open(t, srv.URL+"/narrow", "--dump-dom"); !strings.Contains(dom, `data-width="390"`) {
		t.Errorf("%.200s", dom)
	}
}

// TestWithoutAScriptThePageLinksWhatItShows: every list that its script asks for.
func TestWithoutAScriptThePageLinksWhatItShows(t *testing.T) {
	page, err := os.ReadFile("static/page.html")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("static/page.js")
	if err != nil {
		t.Fatal(err)
	}
	noscript := regexp.MustCompile(`(?s)<noscript>.*</noscript>`).Find(page)
	lists := regexp.MustCompile(`"(/v1/[a-z]+)\?limit=`).FindAllSubmatch(script, -1)
	if len(lists) < 3 {
		t.Fatalf("the script asks for %q", lists)
	}
	for _, l := range lists {
		if link := `<a href="` + string(l[1]) + `">`; !strings.Contains(string(noscript), link) {
			t.Errorf("no %s in %s", link, noscript)
		}
	}
}
