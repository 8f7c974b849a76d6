package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netsplit/e2e/browser"
)

// save writes a page and returns its address.
func save(t *testing.T, name, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// requested lists the addresses that a page made the browser ask for, by the
// browser's network log. What a browser asks for by itself (updates, time)
// has no origin; it is kept from leaving by browse.
func requested(t *testing.T, log string) []string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`"initiator":"([^"]*)".*"url":"([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		if m[1] != "not an origin" {
			out = append(out, m[2])
		}
	}
	return out
}

// The check that no request leaves a page sees one that does.
func TestRequestsAreSeen(t *testing.T) {
	log := filepath.Join(t.TempDir(), "net.json")
	browser.Open(t, save(t, "page.html", `<img src="http://away.invalid/x">`), "--dump-dom", "--log-net-log="+log)
	if got := requested(t, log); !slices.Contains(got, "http://away.invalid/x") {
		t.Errorf("a page that asks for an image was seen to ask for %q", got)
	}
}

func TestPagesLoadCleanlyInABrowser(t *testing.T) {
	var campaign bytes.Buffer
	if err := Campaign(&campaign, hostileCampaign(t)); err != nil {
		t.Fatal(err)
	}
	big := many(10000)
	for _, c := range []struct {
		name, page string
		ready      int // items the script must report; 0: no script
	}{
		{"failing", write(t, failing(t)), countItems(failing(t))},
		{"hostile", write(t, hostile(t)), countItems(hostile(t))},
		{"many", write(t, big), 10000},
		{"empty", write(t, Input{}), 0},
		{"campaign", campaign.String(), 0},
		{"causes", pageOf(t, triaged(t, 2000)), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := save(t, "page.html", c.page)
			log := filepath.Join(t.TempDir(), "net.json")
			dom, console := browser.Open(t, path, "--dump-dom", "--log-net-log="+log)
			if console != "" {
				t.Errorf("the browser complains:\n%s", console)
			}
			if c.ready > 0 && !strings.Contains(dom, fmt.Sprintf(`data-ready="%d"`, c.ready)) {
				t.Errorf("the script did not get to its end with %d items", c.ready)
			}
			if strings.Contains(dom, "<img") {
				t.Error("a payload became an element")
			}
			for _, url := range requested(t, log) {
				t.Errorf("the page asked for %s", url)
			}
		})
	}
}

func countItems(in Input) int { return len(newTimeline(&in).items) }

func TestLinkOpensOneMessage(t *testing.T) {
	dom, console := browser.Open(t, save(t, "page.html", write(t, failing(t)))+"#m=1051", "--dump-dom")
	if console != "" {
		t.Errorf("the browser complains:\n%s", console)
	}
	row := regexp.MustCompile(`<tr class="here">.*?</tr>`).FindString(dom)
	wants(t, "row", row, ">1051</a>", "<td>c1</td><td>n1</td><td>resp SET</td>", "healed the cut, then passed", "arg1=w1-00081")
}

// The controls, driven by a script that the page's policy would refuse: here
// the policy is taken out.
func TestControls(t *testing.T) {
	page := write(t, failing(t))
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	page = strings.Replace(page, "</body>", `<script>
const $ = id => document.getElementById(id), out = {};
const row = k => [...$("rows").rows[k].cells].map(c => c.textContent);
const search = (q, then) => { $("q").value = q; $("q").dispatchEvent(new Event("input")); setTimeout(then, 300); };
out.start = $("rows").rows.length && $("page").textContent; out.rows = $("rows").rows.length;
$("pback").click(); out.moved = $("page").textContent;
search("n2 dropped", () => {
  out.dropped = $("hits").textContent; out.first = row(0);
  search("w1-00081 repl", () => {
    out.text = $("hits").textContent; out.found = row(0);
    search("nowhere to be found", () => {
      out.nothing = $("hits").textContent; out.none = $("rows").rows.length; $("pfwd").click(); out.off = $("pback").ariaDisabled === "true" && $("pfwd").ariaDisabled === "true" && $("page").textContent.startsWith("page 1 ");
      location.hash = "#m=1051";
      setTimeout(() => { out.hash = [...document.querySelector("#rows .here").cells].map(c => c.textContent); document.documentElement.dataset.result = JSON.stringify(out); }, 100);
    });
  });
});
</script></body>`, 1)
	dom, console := browser.Open(t, save(t, "page.html", page), "--dump-dom")
	if console != "" {
		t.Errorf("the browser complains:\n%s", console)
	}
	m := regexp.MustCompile(`data-result="([^"]*)"`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatal("the driving script did not end")
	}
	var got struct {
		Dropped, Text, Nothing, Start, Moved string
		First, Found, Hash                   []string
		Off                                  bool
		Rows, None                           int
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, got, want string }{
		{"opens at the cut", got.Start, "page 4 of 8"}, {"earlier", got.Moved, "page 3 of 8, 177 in all"},
		{"search for dropped", got.Dropped, "2 found"}, {"search in fields", got.Text, "1 found"}, {"no hit", got.Nothing, "nothing found"},
		{"first dropped", strings.Join(got.First, "|"), "dropped at the cut"}, {"found", strings.Join(got.Found, "|"), "resp repl SET"},
		{"hash", strings.Join(got.Hash, "|"), "1051"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if got.Rows != 25 || got.None != 0 || !got.Off {
		t.Errorf("a page has %d rows, a search without hits %d, buttons off %v", got.Rows, got.None, got.Off)
	}
}

// A page fits a telephone; tables and pictures that are wider scroll in themselves.
func TestPagesFitATelephone(t *testing.T) {
	var campaign bytes.Buffer
	if err := Campaign(&campaign, hostileCampaign(t)); err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string]string{"run": write(t, failing(t)), "campaign": campaign.String()} {
		page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
		if dom, _ := browser.Open(t, save(t, "page.html", browser.Narrow(page)), "--dump-dom"); !strings.Contains(dom, `data-width="390"`) {
			t.Errorf("%s: %.200s", name, dom)
		}
	}
}

// The page follows the reader's colour scheme.
func TestLightAndDark(t *testing.T) {
	path := save(t, "page.html", write(t, failing(t)))
	var ground [2]uint32
	for i, scheme := range []string{"1", "0"} { // blink: 0 dark, 1 light
		shot := filepath.Join(t.TempDir(), "shot.png")
		browser.Open(t, path, "--screenshot="+shot, "--blink-settings=preferredColorScheme="+scheme)
		f, err := os.Open(shot)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ground[i], _, _, _ = img.At(3, 3).RGBA()
	}
	if ground[0] < 0xf000 || ground[1] > 0x3000 {
		t.Errorf("ground is %#x in light and %#x in dark", ground[0], ground[1])
	}
}
