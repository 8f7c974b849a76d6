package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api/trust"
)

// TestAReportIsOpened of a campaign with the reports of runs that it links to, as far as there
// are some. No other link is left, which would lead nowhere.
func TestAReportIsOpened(t *testing.T) {
	const page = `<a href="c-1-r0001/report.html">r0001</a> <a href="c-1-r0002/report.html">r0002</a> <a href="c-1-r0001/report.html">again</a> ` +
		`<a href="../c-0/report.html">c-0</a> <a href="../../x/report.html">out</a> <a href="https://away.invalid/report.html">away</a>`
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		switch r.URL.Path {
		case "/v1/version":
			fmt.Fprint(w, `{}`)
		case "/v1/campaigns/c-1/report":
			fmt.Fprint(w, page)
		case "/v1/runs/c-1-r0001/report":
			fmt.Fprint(w, "run 1")
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"status":404,"detail":"it has no report yet"}`)
		}
	}))
	defer srv.Close()
	cache := t.TempDir()
	for name, value := range map[string]string{trust.TokenEnv: strings.Repeat("t", 20), "XDG_CACHE_HOME": cache, "DISPLAY": "", "WAYLAND_DISPLAY": ""} {
		t.Setenv(name, value)
	}
	file := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	opened := func(args ...string) (path, errs string) {
		t.Helper()
		code, out, errs := cli(t, append([]string{"open", "--api", srv.URL}, args...)...)
		if code != exitPass {
			t.Errorf("%v: status %d: %s", args, code, errs)
		}
		return strings.TrimSpace(out), errs
	}

	path, _ := opened("c-1-r0001")
	if got := file(path); got != "run 1" {
		t.Errorf("%s has %q", path, got)
	}
	asked = map[string]int{}
	path, errs := opened("c-1")
	if want := `<a href="c-1-r0001/report.html">r0001</a> r0002 <a href="c-1-r0001/report.html">again</a> c-0 out away`; file(path) != want || !strings.Contains(errs, "no link in this report: 1 run;") {
		t.Errorf("%s has %q: %s", path, file(path), errs)
	}
	if run := filepath.Join(filepath.Dir(path), "c-1-r0001", "report.html"); file(run) != "run 1" || !strings.HasPrefix(run, cache) || asked["/v1/runs/c-1-r0001/report"] != 1 {
		t.Errorf("%s has %q, asked %v", run, file(run), asked)
	}
	save := filepath.Join(t.TempDir(), "x.html")
	if path, _ := opened("c-1", "--save", save); path != save || file(save) != "r0001 r0002 again c-0 out away" {
		t.Errorf("%s has %q", path, file(save))
	}
	if asked["/v1/runs/c-1-r0001/report"] != 1 {
		t.Errorf("--save asked for runs: %v", asked)
	}
	// What was opened long ago makes room, and nothing else does.
	pages := filepath.Dir(filepath.Dir(path))
	for i := range 20 {
		old := filepath.Join(pages, fmt.Sprintf("c-0-r%04d.html", i))
		if i%2 == 0 {
			old = filepath.Join(pages, fmt.Sprintf("c-0%d", i))
			if err := os.MkdirAll(filepath.Join(old, "run"), 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-time.Duration(i+1) * time.Hour)
		if err := os.Chtimes(old, when, when); err != nil {
			t.Fatal(err)
		}
	}
	opened("c-1-r0001")
	opened("c-1")
	var left []string
	entries, err := os.ReadDir(pages)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := "c-0-r0001.html c-0-r0003.html c-0-r0005.html c-0-r0007.html c-00 c-02 c-04 c-06 c-1 c-1-r0001.html"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("%v are left, want %s, %v", left, want, err)
	}
	for _, id := range []string{"c-2", "c-2-r0001"} {
		if code, _, errs := cli(t, "open", id, "--api", srv.URL); code == exitPass || !strings.Contains(errs, "it has no report yet") {
			t.Errorf("%s: status %d: %s", id, code, errs)
		}
	}
}
