package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/e2e/browser"
)

// pages are reports to look at, by name, with a selector of what is there when they are ready.
func pages(t *testing.T) map[string][2]string {
	t.Helper()
	var campaign bytes.Buffer
	in := searched(t)
	if err := Campaign(&campaign, in); err != nil {
		t.Fatal(err)
	}
	return map[string][2]string{
		"run":      {write(t, failing(t)), "html[data-ready]"},
		"many":     {write(t, many(300)), "html[data-ready]"},
		"campaign": {campaign.String(), "#facts"},
		"causes":   {pageOf(t, triaged(t, 20)), "#facts"},
	}
}

// TestReportsAreReadOnEveryDevice, in light and in dark: nothing reaches over the edge of a
// telephone, controls are large enough for a finger, words stand out from what is below them,
// and no label of a picture covers another.
func TestReportsAreReadOnEveryDevice(t *testing.T) {
	devices := browser.Devices()
	for page, p := range pages(t) {
		v := devices["light"].Open(t, save(t, "page.html", p[0]), p[1])
		v.Run(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
		for name, device := range devices {
			v.Take(device)
			v.Shoot(page + " " + name)
			seen := v.Look()
			if seen.Width > device.Width || seen.Texts < 50 {
				t.Errorf("%s, %s: %d px wide, with %d texts", page, name, seen.Width, seen.Texts)
			}
			for what, list := range map[string][]string{"too small": seen.Small, "too faint": seen.Faint, "on each other": seen.Met} {
				if len(list) > 0 {
					t.Errorf("%s, %s: %s:\n%s", page, name, what, strings.Join(list, "\n"))
				}
			}
		}
	}
}

// TestReportsAreReadByKeyboard alone: Tab reaches every link and control in order and shows where
// it is; details open, messages are searched and turned over, and what is wider than a telephone
// is scrolled.
func TestReportsAreReadByKeyboard(t *testing.T) {
	for page, p := range pages(t) {
		v := browser.Devices()["light"].Open(t, save(t, "page.html", p[0]), p[1])
		want := v.Controls()
		if got := v.Tabs(); !slices.Equal(got, want) || len(want) < 5 {
			t.Errorf("%s: Tab met\n%q\nof\n%q", page, got, want)
		}
	}
	v := browser.Devices()["telephone"].Open(t, save(t, "page.html", write(t, failing(t))), "html[data-ready]")
	reach := func(name string) {
		t.Helper()
		for range 100 {
			if v.Press("Tab", ""); strings.HasPrefix(v.Focus().Name, name) {
				return
			}
		}
		t.Fatalf("Tab does not reach %s", name)
	}
	says := func(after, script, want string) {
		t.Helper()
		var got string
		if v.Run(script, &got); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
	reach("summary Details")
	v.Press("Space", "")
	says("Space at Details", `String(document.querySelector("#failures details").open)`, "true")
	reach("div.scroll") // the picture
	v.Press("ArrowRight", "")
	says("an arrow in the picture", `new Promise((done) => setTimeout(() => done(String(document.activeElement.scrollLeft > 0)), 400))`, "true")
	reach("pback")
	for range 5 {
		v.Press("Enter", "")
	}
	says("Enter at Earlier", `document.getElementById("page").textContent + ", " + document.activeElement.id`, "page 1 of 8, 177 in all, pback")
	reach("pfwd")
	v.Press("Space", "")
	says("Space at Later", `document.getElementById("page").textContent + ", " + document.activeElement.id`, "page 2 of 8, 177 in all, pfwd")
	reach("#m=977")
	v.Press("Enter", "")
	says("Enter at a message", `document.querySelector("#rows .here a").textContent + ", " + document.activeElement.textContent`, "977, 977")
}

// BenchmarkLoad opens reports in a browser. load-ms is until all messages are listed, by the
// browser's own clock; the budgets are 1 s for 10,000 messages and 2 s for 100,000.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			page := write(b, many(n))
			path := filepath.Join(b.TempDir(), "page.html")
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				b.Fatal(err)
			}
			worst, sum := 0.0, 0.0
			for b.Loop() {
				v := browser.Devices()["light"].Open(b, "file://"+path, "html[data-ready]")
				var ms float64
				v.Run(`new Promise((done) => { const look = () => { const e = performance.getEntriesByType("navigation")[0].loadEventEnd; e ? done(e) : setTimeout(look, 10); }; look(); })`, &ms)
				worst, sum = max(worst, ms), sum+ms
			}
			b.ReportMetric(sum/float64(b.N), "load-ms")
			b.ReportMetric(worst, "worst-ms")
			b.ReportMetric(float64(len(page))/1000, "KB")
		})
	}
}
