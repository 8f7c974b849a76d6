package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/api"
	"netsplit/e2e/browser"
	"netsplit/model"
)

// reported is a service whose campaign and runs have reports, which try scripts.
func reported(t *testing.T) *fakeService {
	t.Helper()
	f := newFake(t)
	f.runPath = t.TempDir()
	const script = `<script>document.documentElement.dataset.ran = "yes"</script>`
	for name, text := range map[string]string{
		"c-1.html":    `<h1>campaign</h1><a id="run" href="c-1-r0001/report.html">r0001</a> <a id="other" href="../c-0/report.html">c-0</a>`,
		"c-0.html":    `<h1>other</h1><a id="back" href="../c-1/report.html">c-1</a>`,
		"report.html": `<h1>run</h1>`,
	} {
		if err := os.WriteFile(filepath.Join(f.runPath, name), []byte("<!doctype html>"+text+script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.PutCampaign(model.Campaign{ID: "c-0", State: model.CampaignDone, Created: t0, Done: 1}); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestReportsOfCampaigns have addresses under which their links, those of the file on the disk,
// lead to reports; and no other file has one.
func TestReportsOfCampaigns(t *testing.T) {
	f := reported(t)
	srv := serve(t, f)
	for path, want := range map[string]string{
		"/v1/campaigns/c-1/report": "campaign", "/v1/campaigns/c-1/report.html": "campaign",
		"/v1/campaigns/c-1/c-1-r0001/report.html": "run",
	} {
		res, _ := do(t, srv, "GET", path, "")
		csp := res.Header.Get("Content-Security-Policy")
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(csp, "sandbox") {
			t.Errorf("%s: %d, %v", path, res.StatusCode, res.Header)
		}
		// A page of this site may run no script, and one that may is no page of this site.
		if scripts, same := strings.Contains(csp, "allow-scripts"), strings.Contains(csp, "allow-same-origin"); scripts == same || same != (want == "campaign") || same && !strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: CSP %q", path, csp)
		}
	}
	for path, says := range map[string]string{
		"/v1/campaigns/c-9/report":                                       "c-9",
		"/v1/campaigns/c-9/report.html":                                  "c-9",
		"/v1/campaigns/c-0/c-1-r0001/report.html":                        "of campaign c-1: get /v1/runs/c-1-r0001/report",
		"/v1/campaigns/c-1/c-1-r0099/report.html":                        "c-1-r0099",
		"/v1/campaigns/c-1/c-1-r0001/packets.pcapng":                     "openapi",
		"/v1/campaigns/c-1/../c-1/report":                                "openapi",
		"/v1/campaigns/c-1/%2e%2e/report.html":                           "",
		"/v1/campaigns/c-1/..%2fc-1-r0001/report.html":                   "",
		"/v1/campaigns/%2e%2e/report":                                    "",
		"/v1/campaigns/c-1/C-1-r0001/report.html":                        "path.run",
		"/v1/campaigns/c-1/" + strings.Repeat("r", 200) + "/report.html": "path.run",
	} {
		res, out := do(t, srv, "GET", path, "")
		detail, _ := out["detail"].(string)
		errs := ""
		for _, e := range asList(out["errors"]) {
			location, _ := e.(map[string]any)["location"].(string)
			errs += location
		}
		if res.StatusCode != 404 && res.StatusCode != 422 || !strings.Contains(detail+errs, says) {
			t.Errorf("%s: %d %v", path, res.StatusCode, out)
		}
	}
	if err := os.Remove(filepath.Join(f.runPath, "c-1.html")); err != nil {
		t.Fatal(err)
	}
	expect(t, srv, 404, "GET", "/v1/campaigns/c-1/report", "")
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// TestTheReportOfACampaignInABrowser that the page's address let in: a link of the page opens
// it, its script does not run, and its links open a run's report, whose script runs, and that
// of another campaign. Browsers send the page's cookie only with links of the same site.
func TestTheReportOfACampaignInABrowser(t *testing.T) {
	f := reported(t)
	routes := http.NewServeMux()
	srv := start(t, routes)
	acc := access(t, t.TempDir(), srv.URL)
	routes.Handle("/", handler(t, f, func(c *api.Config) { c.Access = acc }))
	follow := func(selectors ...string) string {
		url, _ := expect(t, srv, 200, "POST", "/v1/access/page", "", "Authorization: Bearer "+token)["url"].(string)
		return browser.Follow(t, url, append([]string{`#campaigns a[href="/v1/campaigns/c-1/report"]`}, selectors...)...)
	}
	if dom := follow("#run"); strings.Contains(dom, `data-ran="yes"`) || !strings.Contains(dom, "<h1>campaign</h1>") {
		t.Errorf("the report of a campaign ran a script: %s", dom)
	}
	if dom := follow("#other", "#back", "#run", `html[data-ran="yes"]`); !strings.Contains(dom, "<h1>run</h1>") {
		t.Errorf("its links lead to %s", dom)
	}
}
