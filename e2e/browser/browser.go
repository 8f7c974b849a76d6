// Package browser opens pages in a headless Chromium, for tests of what they show.
package browser

import (
	"bytes"
	"context"
	"errors"
	"html"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/e2e/need"
)

// chromium is the browser that pages are tried in.
func chromium(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return need.Program(tb, "chromium", "chromium")
}

// Open opens a page, with more flags, and gives what the browser printed: the
// page's elements on stdout, its console on stderr. It reaches nothing but this
// machine. Chromium crashes now and then, with the same pages that it shows at
// other times: one that dies by SIGSEGV is started again, three times at most.
func Open(tb testing.TB, url string, flags ...string) (dom, console string) {
	tb.Helper()
	browser := chromium(tb)
	var out, errs string
	for try := 1; ; try++ {
		var err error
		if out, errs, err = start(tb, browser, slices.Concat(flags, []string{url})); err == nil {
			break
		}
		var exit *exec.ExitError
		if crashed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV; !crashed || try == 3 {
			tb.Fatalf("%s: %v\n%s", browser, err, errs)
		}
		tb.Logf("%s crashed and is started again", browser)
	}
	var lines []string
	for _, l := range strings.Split(errs, "\n") {
		if strings.Contains(l, "CONSOLE") {
			lines = append(lines, l)
		}
	}
	return out, strings.Join(lines, "\n")
}

// flags of a browser with a profile of its own that reaches nothing but this machine.
func flags(profile string) []string {
	return []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + profile, "--window-size=1400,1000"}
}

func start(tb testing.TB, browser string, more []string) (stdout, stderr string, err error) {
	tb.Helper()
	// Not TempDir: a helper process may still write when the browser is gone.
	profile, err := os.MkdirTemp("", "netsplit-browser-")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(profile)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, slices.Concat(flags(profile), []string{"--enable-logging=stderr", "--virtual-time-budget=4000"}, more)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// Narrow is a page that shows another one as a telephone does, 390 pixels wide, which
// no window of the browser is. After two seconds its data-width is how wide that
// one is: "390" where nothing reaches over the edge.
func Narrow(page string) string {
	return `<!doctype html><iframe style="width:390px;height:800px;border:0" srcdoc="` + html.EscapeString(page) + `"></iframe>
<script>setTimeout(() => {
  document.documentElement.dataset.width = document.querySelector("iframe").contentDocument.documentElement.scrollWidth;
}, 2000);</script>`
}
