package service

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/browser"
	"netsplit/e2e/harness"
)

// campaignReport tries the report of a campaign that has ended: from the page of a browser that
// was let in, over a link to that of a run, whose script runs; by the command; and when it and a
// record are gone, until another run is judged again.
func campaignReport(t *testing.T, d *daemon, dir, campaign, run string) {
	t.Helper()
	var page wire.AccessPage
	d.Call("POST", "/v1/access/page", nil, &page)
	dom := browser.Follow(t, page.URL, `#campaigns a[href="/v1/campaigns/`+campaign+`/report"]`, `a[href="`+run+`/report.html"]`, "html[data-ready]")
	if !strings.Contains(dom, "<h1>"+run+"</h1>") {
		t.Errorf("the link to %s leads to %s", run, dom)
	}
	save := filepath.Join(t.TempDir(), "report.html")
	if r := harness.Run(t, "open", campaign, "--save", save, "--api", "unix:"+d.Socket); r.Code != 0 || r.Stdout != save+"\n" {
		t.Errorf("open: %s", r)
	}
	if b, err := os.ReadFile(save); err != nil || !strings.Contains(string(b), "<h1>"+campaign+"</h1>") || strings.Contains(string(b), "<a ") {
		t.Errorf("open saved %s, %v", b, err)
	}
	folder := filepath.Join(dir, campaign)
	if err := errors.Join(os.RemoveAll(filepath.Join(folder, run)), os.Remove(filepath.Join(folder, "report.html"))); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{"/report": "somebody deleted it", "/" + run + "/report.html": "is there no more"} {
		if status, body, err := d.Try("GET", "/v1/campaigns/"+campaign+path, nil); status != 404 || !strings.Contains(string(body), why) {
			t.Errorf("%s without the file: %d %s %v", path, status, body, err)
		}
	}
	for _, r := range d.runs(campaign) {
		if r.ID != run {
			d.Call("POST", "/v1/runs/"+r.ID+"/judgement", nil, nil)
		}
	}
	if status, body, err := d.Try("GET", "/v1/campaigns/"+campaign+"/report", nil); status != 200 || strings.Contains(string(body), run+"/report.html") {
		t.Errorf("the report after another run was judged again: %d %s %v", status, body, err)
	}

	d.Signal(t, syscall.SIGTERM)
	if r := d.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("SIGTERM: %s", r)
	}
	// Without a daemon, the report is where it is.
	if r := harness.Run(t, "open", campaign, "--runs-dir", dir); r.Code != 0 || !strings.HasSuffix(r.Stdout, "/"+filepath.Join(dir, campaign, "report.html")+"\n") {
		t.Errorf("open without a daemon: %s", r)
	}
}
