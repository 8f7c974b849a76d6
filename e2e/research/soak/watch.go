package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"
)

// watchers look at the daemon as people do: a Prometheus scrapes it, and a browser has its page
// open in so many tabs. The daemon's end ends a page's access, so each kill opens them anew.
type watchers struct {
	d *daemon

	prometheus *exec.Cmd
	at         string // Prometheus

	browser context.Context
	stop    context.CancelFunc
	tabs    []context.Context
	heap    [][]float64 // of each tab, in MB, over time
	read    []int       // looks at which a tab had just read the daemon, of each
	looks   int
}

func startWatchers(ctx context.Context, d *daemon) (*watchers, error) {
	w := &watchers{d: d, stop: func() {}}
	if d.pages == 0 {
		return w, nil
	}
	return w, errors.Join(w.scrape(ctx), w.browse(ctx))
}

func (w *watchers) scrape(ctx context.Context) error {
	token, err := exec.CommandContext(ctx, w.d.binary(), "access", "read-token", "--api", "unix:"+w.d.socket).Output()
	if err != nil {
		return fmt.Errorf("netsplit access read-token: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.at = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	file, config := filepath.Join(w.d.dir, "read.token"), filepath.Join(w.d.dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 5s}\nscrape_configs:\n- job_name: netsplit\n  authorization: {credentials_file: %q}\n  static_configs: [{targets: [%q]}]\n", file, w.d.listen[0])
	if err := errors.Join(os.WriteFile(file, token, 0o600), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return err
	}
	w.prometheus = exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(w.d.dir, "prometheus"), "--web.listen-address="+w.at)
	return w.prometheus.Start()
}

func (w *watchers) browse(ctx context.Context) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("enable-precise-memory-info", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	all, stop := chromedp.NewExecAllocator(ctx, options...)
	w.stop = stop
	w.browser, _ = chromedp.NewContext(all)
	if _, err := chromedp.Run(w.browser, chromedp.Navigate("about:blank")); err != nil {
		return fmt.Errorf("start Chromium: %w", err)
	}
	for range w.d.pages {
		tab, _ := chromedp.NewContext(w.browser)
		if _, err := chromedp.Run(tab, chromedp.Navigate("about:blank")); err != nil { // it lives as long as this context
			return err
		}
		w.tabs = append(w.tabs, tab)
	}
	w.heap, w.read = make([][]float64, w.d.pages), make([]int, w.d.pages)
	return w.open(ctx)
}

// open opens the page in all tabs.
func (w *watchers) open(ctx context.Context) error {
	for _, tab := range w.tabs {
		out, err := exec.CommandContext(ctx, w.d.binary(), "access", "page", "--controls", "--api", "unix:"+w.d.socket).Output()
		if err != nil {
			return fmt.Errorf("netsplit access page: %w", err)
		}
		page := ""
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "http") {
				page = word
			}
		}
		if _, err := within(tab, chromedp.Navigate(page)); err != nil {
			return fmt.Errorf("open the page: %w", err)
		}
	}
	return nil
}

// within bounds what is asked of a tab.
func within[T any](tab context.Context, do chromedp.Action[T]) (T, error) {
	ctx, stop := context.WithTimeout(tab, 30*time.Second)
	defer stop()
	return chromedp.Run(ctx, do)
}

// look notes whether the tabs show what is, and what memory they take.
func (w *watchers) look() {
	if len(w.tabs) == 0 {
		return
	}
	w.looks++
	for i, tab := range w.tabs {
		said, err := within(tab, chromedp.Text("#status"))
		heap, err2 := within(tab, chromedp.Evaluate[float64]("performance.memory.usedJSHeapSize / (1 << 20)"))
		if err != nil || err2 != nil {
			continue // counts as not read
		}
		if strings.HasPrefix(said, "Version ") {
			w.read[i]++
		}
		w.heap[i] = append(w.heap[i], heap)
	}
}

// report says what they saw, and what is wrong with it.
func (w *watchers) report(row func(what, format string, args ...any)) (wrong error) {
	if len(w.tabs) == 0 {
		return nil
	}
	for i := range w.tabs {
		h := w.heap[i]
		row(fmt.Sprintf("page %d: looks, of them up to date; heap", i+1), "%d, %d; first %.1f MB, last %.1f MB, at most %.1f MB", w.looks, w.read[i], quantile(h[:min(1, len(h))], 0), quantile(h[max(len(h)-1, 0):], 0), quantile(h, 1))
		if w.read[i] < w.looks/2 {
			wrong = errors.Join(wrong, fmt.Errorf("page %d did not show the daemon most of the time", i+1))
		}
	}
	scrapes, err := w.ask(`count_over_time(up[2h])`)
	up, err2 := w.ask(`sum_over_time(up[2h])`)
	series, err3 := w.ask(`scrape_samples_scraped and topk(1, up)`)
	most, err4 := w.ask(`max_over_time(scrape_samples_scraped[2h])`)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return errors.Join(wrong, err)
	}
	row("scrapes of Prometheus, of them answered", "%.0f, %.0f", scrapes, up)
	row("series at the end, at most", "%.0f, %.0f", series, most)
	return wrong
}

// ask is the number that a query has for an answer.
func (w *watchers) ask(query string) (float64, error) {
	res, err := http.Get("http://" + w.at + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var a struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return 0, err
	}
	if len(a.Data.Result) != 1 {
		return 0, fmt.Errorf("Prometheus has %d answers to %s", len(a.Data.Result), query)
	}
	var v float64
	_, err = fmt.Sscan(fmt.Sprint(a.Data.Result[0].Value[1]), &v)
	return v, err
}

func (w *watchers) end() error {
	w.stop()
	if w.prometheus == nil || w.prometheus.Process == nil {
		return nil
	}
	err := w.prometheus.Process.Signal(syscall.SIGTERM)
	_ = w.prometheus.Wait()
	return err
}
