package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
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

// Serve ends with its context, event streams included.
func TestServeEndsWithItsContext(t *testing.T) {
	ln, err := api.Listen(context.Background(), api.ListenConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := letIn(handler(t, newFake(t)))
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, h, ln)
	}()
	res, err := http.Get(ln.URL + "/v1/events")
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
	for _, path := range []string{"/", "/static/page.css", "/static/page.js", "/static/ask.js", "/static/live.js", "/static/start.js"} {
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
			if text := strings.ReplaceAll(string(b), `"http://www.w3.org/2000/svg"`, ""); strings.Contains(text, bad) {
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
	if err := f.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignFailed, Reason: why, Created: t0, Spec: model.CampaignSpec{Target: "redis", Args: map[string]string{"quorum": "1", "acks": "all"}}}); err != nil {
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
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, func(c *api.Config) { c.Access = acc }))
	once := func() string {
		page, _ := expect(t, srv, 200, "POST", "/v1/access/page", "", "Authorization: Bearer "+token)["url"].(string)
		return page
	}
	open := http.NewServeMux() // an inner page has no cookie
	open.Handle("/", letIn(handler(t, f)))
	open.HandleFunc("/narrow", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, browser.Narrow(string(page))) })
	dom, console := browser.Open(t, once()+"#c-1", "--dump-dom")
	if console != "" {
		t.Errorf("the browser complains:\n%s", console)
	}
	for _, want := range []string{why, "redis (acks=all quorum=1)", "3 acknowledged writes are missing", "c-1-r0002", "/v1/runs/c-1-r0009/report", "/v1/campaigns/c-1/report"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(dom, "/v1/runs/c-1-r0002/report") || strings.Contains(dom, "/v1/campaigns/c-2/report") {
		t.Error("a run without a record, or a campaign without a run, has a link to its report")
	}
	if dom, _ := browser.Open(t, srv.URL+"/", "--dump-dom"); strings.Contains(dom, "c-1") || !strings.Contains(dom, "netsplit access page") {
		t.Errorf("a browser that nobody let in is shown %s", dom)
	}
	if dom, _ := browser.Open(t, start(t, open).URL+"/narrow", "--dump-dom"); !strings.Contains(dom, `data-width="390"`) {
		t.Errorf("%.200s", dom)
	}
}

// scripted opens the page in a browser that came by an address of access page, has a script act
// on it, and gives its elements.
func scripted(t *testing.T, f *fakeService, query, script string, change ...func(*api.Config)) string {
	t.Helper()
	page, err := os.ReadFile("static/page.html")
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, append(change, func(c *api.Config) { c.Access = acc })...))
	url, _ := expect(t, srv, 200, "POST", "/v1/access/page"+query, "", "Authorization: Bearer "+token)["url"].(string)
	enter, credential, _ := strings.Cut(strings.TrimPrefix(url, srv.URL), "#")
	const tag = `<script type="module" src="/static/page.js"></script>`
	if !strings.Contains(string(page), tag) {
		t.Fatalf("the page has no %s", tag)
	}
	routes.HandleFunc("/scripted", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Replace(string(page), tag, `<script>fetch("`+enter+`").then(() => {
			const s = document.createElement("script");
			s.type = "module";
			s.src = "/static/page.js";
			document.body.append(s);
			`+script+`
		})</script>`, 1))
	})
	dom, _ := browser.Open(t, srv.URL+"/scripted#"+credential, "--dump-dom", "--virtual-time-budget=8000")
	return dom
}

// TestThePageOperates: a click pauses a campaign; where the address was without controls,
// there is nothing to click at.
func TestThePageOperates(t *testing.T) {
	f := newFake(t)
	if err := f.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignQueued, Created: t0}); err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, func(c *api.Config) { c.Access = acc }))
	open := func(query string) string {
		url, _ := expect(t, srv, 200, "POST", "/v1/access/page"+query, "", "Authorization: Bearer "+token)["url"].(string)
		dom, console := browser.Open(t, url, "--dump-dom")
		if console != "" {
			t.Errorf("the browser complains:\n%s", console)
		}
		return dom
	}
	if dom := open(""); strings.Contains(dom, "aria-label=\"Pause") || strings.Contains(dom, "Heal everything") || !strings.Contains(dom, `<section id="start" aria-labelledby="h-start" hidden="">`) || !strings.Contains(dom, "c-2") {
		t.Errorf("a page that may read alone: %s", dom)
	}
	if dom := open("?controls=true"); !strings.Contains(dom, `aria-label="Cancel c-2"`) || strings.Contains(dom, `aria-label="Pause c-1"`) || !strings.Contains(dom, "Heal everything</button>") {
		t.Errorf("a page with controls: %s", dom)
	}
	dom := scripted(t, f, "?controls=true", `setTimeout(() => document.querySelector('button[aria-label="Pause c-2"]').click(), 1500);`)
	if c, err := f.GetCampaign("c-2"); err != nil || c.State != model.CampaignPaused || !strings.Contains(dom, `aria-label="Resume c-2"`) {
		t.Errorf("after a click it is %s, %v: %s", c.State, err, dom)
	}
}

// changing is a service in which a campaign has another row with each look.
type changing struct {
	*fakeService
	looks int
}

func (c *changing) Campaigns(ctx context.Context, of model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	c.mu.Lock()
	c.looks++
	done := c.looks
	c.mu.Unlock()
	if err := c.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignQueued, Created: t0, Done: done}); err != nil {
		return nil, "", err
	}
	return c.fakeService.Campaigns(ctx, of, limit, cursor)
}

// TestThePageKeepsTheFocus of the keyboard where it is while rows change.
func TestThePageKeepsTheFocus(t *testing.T) {
	f := newFake(t)
	dom := scripted(t, f, "?controls=true", `let button;
			setTimeout(() => { button = document.querySelector('button[aria-label="Cancel c-2"]'); button.focus(); }, 1000);
			setTimeout(() => { document.title = (button.isConnected ? "same row, " : "another row, ") + document.activeElement.getAttribute("aria-label"); }, 4500);`, func(c *api.Config) { c.Service = &changing{fakeService: f} })
	if !strings.Contains(dom, "<title>another row, Cancel c-2</title>") {
		t.Errorf("the focus is lost: %.300s", dom)
	}
}

// TestThePageStartsCampaigns: a page that may start campaigns has a form, made of the
// target's settings, and what it asks for is started.
func TestThePageStartsCampaigns(t *testing.T) {
	f := newFake(t)
	f.targets = []model.KnownTarget{{Name: "gossip"}}
	dom := scripted(t, f, "?start=true", `setTimeout(() => {
				const form = document.getElementById("start-form").elements;
				form.namedItem("strategy").value = "random";
				form.namedItem("runs").value = "7";
				form.namedItem("setting rate").value = "90";
				form.namedItem("go").click();
			}, 1500);`)
	for _, want := range []string{"Gossip &lt;three&gt; nodes", "writes per second", `placeholder="70"`, `<option value="1.0">`, "Started c-new-1"} {
		if !strings.Contains(dom, want) {
			t.Errorf("no %s in %s", want, dom)
		}
	}
	c, err := f.GetCampaign("c-new-1")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Spec; s.Target != "gossip@1.1" || s.Strategy != model.StrategyRandom || s.Runs != 7 || s.Args["rate"] != "90" {
		t.Errorf("started %+v", s)
	}
}

// TestThePagePlaysScripts: of those that come with netsplit, on the chosen target; what belongs to
// a search is not shown then, and not asked for.
func TestThePagePlaysScripts(t *testing.T) {
	f := newFake(t)
	f.targets = []model.KnownTarget{{Name: "gossip"}}
	dom := scripted(t, f, "?start=true", `setTimeout(() => {
				const form = document.getElementById("start-form").elements;
				form.namedItem("clean").value = "0"; // no valid one
				form.namedItem("script").value = "gossip/split";
				form.namedItem("script").dispatchEvent(new Event("change"));
				form.namedItem("runs").value = "3";
				form.namedItem("go").click();
			}, 1500);`)
	for _, want := range []string{"gossip/split: two sides</option>", `<label hidden="">Strategy`, `<label hidden="">Clean runs`, `<span id="start-runs">Plays</span>`, "Started c-new-1"} {
		if !strings.Contains(dom, want) {
			t.Errorf("no %s in %s", want, dom)
		}
	}
	c, err := f.GetCampaign("c-new-1")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Spec; s.Target != "gossip@1.1" || s.Script == nil || s.Script.Name != "gossip/split" || s.Clean != 0 || s.Runs != 3 {
		t.Errorf("started %+v", s)
	}
}

// TestThePageShowsWhatRuns: the run that is under way has a picture and a matrix, in which
// nothing of the system under test is markup.
func TestThePageShowsWhatRuns(t *testing.T) {
	f := newFake(t)
	if err := f.PutCampaign(model.Campaign{ID: "c-live", State: model.CampaignRunning, Created: t0, Running: []string{"c-live-r0001", "c-live-r0002"}}); err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, func(c *api.Config) { c.Access = acc }))
	url, _ := expect(t, srv, 200, "POST", "/v1/access/page", "", "Authorization: Bearer "+token)["url"].(string)
	dom, console := browser.Open(t, url, "--dump-dom")
	for _, want := range []string{"c-live-r0001 on gossip: workload", `<g class="message" data-action="drop">`, "cut now: complete n1 | n2", `<td class="cut" title="n1 to n2: step 1">cut</td>`,
		"&lt;b&gt;JOIN&lt;/b&gt;", "server: n2 kill server", `<rect class="cut"`,
		`<li data-state="acts"><span>isolate n1; when &lt;b&gt;JOIN&lt;/b&gt; comes</span> <b>since 4.0 s</b></li>`, `<li data-state="waits">`, "could not begin: leader was nobody", "1.0 s to 3.0 s", "another controller is &lt;b&gt;master&lt;/b&gt;", "it has not connected"} {
		if !strings.Contains(dom, want) {
			t.Errorf("no %s in %s", want, dom)
		}
	}
	if strings.Contains(dom, "c-live-r0002 on") || strings.Contains(console, "TypeError") {
		t.Errorf("a run that has ended has a picture, or the page fails: %s", console)
	}
}

// crowded is a service whose run has much at once.
type crowded struct{ *fakeService }

func (c crowded) LiveState(ctx context.Context, run string, after uint64) (model.LiveState, error) {
	l, err := c.fakeService.LiveState(ctx, run, after)
	l.Events = nil
	for i := range uint64(60) {
		at := l.At - 8*time.Second + time.Duration(i)*100*time.Millisecond
		l.Events = append(l.Events, model.LiveEvent{Num: after + i + 1, At: at, Kind: model.LiveMessage, From: "n2", To: []model.NodeID{"n1", "c1"}[i%2], Type: "cluster HEARTBEAT MESSAGE", Action: model.Pass})
		if i%30 == 3 {
			l.Events = append(l.Events, model.LiveEvent{Num: after + i + 1, At: at, Kind: model.LiveServer, Host: "n2", Text: "kill server"},
				model.LiveEvent{Num: after + i + 1, At: at, Kind: model.LiveCutDone, Name: "step 1", Text: "cut complete n1 | n2"})
		}
	}
	l.Last = after + 60
	return l, err
}

// TestLabelsOfThePictureDoNotCollide: what happens to a server has its words, and messages make
// room for it.
func TestLabelsOfThePictureDoNotCollide(t *testing.T) {
	f := newFake(t)
	if err := f.PutCampaign(model.Campaign{ID: "c-live", State: model.CampaignRunning, Created: t0, Running: []string{"c-live-r0001"}}); err != nil {
		t.Fatal(err)
	}
	dom := scripted(t, f, "", `setTimeout(() => {
				const labels = [...document.querySelectorAll(".live svg svg g g > text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
				let hits = 0;
				for (const [i, [, a]] of labels.entries()) for (const [, b] of labels.slice(0, i))
					if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) hits++;
				document.title = hits + " collide, of them killed " + (labels.filter(([t]) => t === "kill server").length > 1) + ", messages " + (labels.filter(([t]) => t.includes("HEARTBEAT")).length > 1);
			}, 5000);`, func(c *api.Config) { c.Service = crowded{f} })
	if want := "<title>0 collide, of them killed true, messages true</title>"; !strings.Contains(dom, want) {
		t.Errorf("no %s in %.400s", want, dom)
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
