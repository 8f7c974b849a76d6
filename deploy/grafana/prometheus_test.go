package grafana_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/e2e/need"
	queries "netsplit/internal/dashboard"
	"netsplit/model"
)

// feed plays a campaign on the hooks, step by step.
func feed(m *api.Metrics, step int) {
	cut := model.Isolate("n1", []model.NodeID{"n1", "n2", "n3"}, model.Drop).Links()
	m.MessageSeen("resp PING", "pass")
	m.MessageSeen("resp PUBLISH __sentinel__:hello", "drop")
	m.GateDelay("port", time.Duration(60+step)*time.Microsecond)
	switch step % 10 {
	case 2:
		m.CutStarted(model.Complete, cut)
	case 4, 5:
		m.PacketFate(cut[0], "wanted", 2)
		m.PacketFate(cut[0], "dropped", 2)
	case 7:
		m.CutEnded("new-class", cut)
		m.HealTime(300 * time.Microsecond)
	case 9:
		m.RunDone("gossip", model.StrategyCoFI, model.VerdictFail)
		m.KnownTarget("gossip", model.StrategyCoFI)
		m.Finding(model.Finding{ID: "f-1", Target: "gossip", Class: model.Broken, Failure: model.Failure{Check: "ghost-node"}})
	}
}

func state() model.ServiceState {
	return model.ServiceState{Testbed: "lab", StoreBytes: 1 << 20, FreeBytes: 1 << 30, Running: 1, Runs: 2, Map: model.MapCount{Never: 5, Met: 3, Failed: 1},
		Health:  model.Health{Checks: []model.HealthCheck{{Name: "store", OK: true}, {Name: "disk"}}},
		Runners: map[model.RunnerState]int{model.RunnerReady: 1}}
}

// prometheus runs a real one that scrapes target every second, and returns
// its address. It is killed at the end of the test, and if the test dies.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	bin := need.Program(t, "prometheus", "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n- job_name: netsplit\n  static_configs: [{targets: [%q]}]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	var log bytes.Buffer
	cmd := exec.Command(bin, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("prometheus said:\n%s", log.String())
		}
	})
	for range 300 {
		if res, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == 200 {
				return addr
			}
		}
		select {
		case <-ended:
			t.Fatal("prometheus ended at once")
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("prometheus is not ready after 30 s")
	return ""
}

// ask returns the numbers that a query answers, NaN left out.
func ask(t *testing.T, addr string, q queries.Query, from, to time.Time) []float64 {
	t.Helper()
	path, v := "query_range", url.Values{"query": {q.Expr}}
	stamp := func(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }
	if q.Instant {
		path = "query"
		v.Set("time", stamp(to))
	} else {
		v.Set("start", stamp(from))
		v.Set("end", stamp(to))
		v.Set("step", "1")
	}
	res, err := http.PostForm("http://"+addr+"/api/v1/"+path, v)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Value  []any
				Values [][]any
			}
		}
	}
	if err := json.Unmarshal(b, &a); err != nil || a.Status != "success" {
		t.Errorf("%s %s: %s: %s %v", q.Panel, q.RefID, q.Expr, a.Error, err)
		return nil
	}
	var out []float64
	for _, r := range a.Data.Result {
		for _, p := range append(r.Values, r.Value) {
			if len(p) == 2 {
				if x, err := strconv.ParseFloat(p[1].(string), 64); err == nil && !math.IsNaN(x) {
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// Every query of the dashboard is answered by a real Prometheus that scrapes
// the real handler, and none is empty: a misspelt metric is no error there.
func TestPrometheusAnswersEveryQuery(t *testing.T) {
	m := api.NewMetrics("test", nil)
	m.State(state)
	m.KnownLinks([]model.Link{{Src: "n1", Dst: "n2"}, {Src: "n2", Dst: "n1"}})
	m.SwitchConnected(1, true)
	srv := httptest.NewServer(m.Handler())
	defer srv.Close()
	requests := api.New(api.Config{Metrics: m})
	feed(m, 9) // labels that exist only once they are counted
	feed(m, 7)
	begin := time.Now()
	addr := prometheus(t, strings.TrimPrefix(srv.URL, "http://"))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for step := 0; ; step++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				feed(m, step)
				requests.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/campaigns", nil)) // refused, but counted
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	qs, err := queries.Queries(map[string]string{"__rate_interval": "3s", "__range": "10s"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	empty := func() (out []string) {
		for _, q := range qs {
			v := ask(t, addr, q, begin, time.Now())
			got[q.Panel+" "+q.RefID] = v
			if len(v) == 0 {
				out = append(out, fmt.Sprintf("%s %s: %s", q.Panel, q.RefID, q.Expr))
			}
		}
		return out
	}
	// One look finds what is wrong; the rest is for a slow machine.
	// The cut is in force half of the time, as soon as some seconds were seen.
	top := func() (top float64) {
		for _, x := range got["Cut links A"] {
			top = max(top, x)
		}
		return top
	}
	var left []string
	for range 12 {
		time.Sleep(2 * time.Second)
		if left = empty(); len(left) == 0 && top() >= 0.2 || t.Failed() {
			break
		}
	}
	for _, l := range left {
		t.Errorf("empty: %s", l)
	}
	if top() < 0.2 || top() > 1.1 {
		t.Errorf("share of time cut: %v", got["Cut links A"])
	}
	for _, x := range got["Packets leaked A"] {
		if x != 0 {
			t.Errorf("leaked %v", x)
		}
	}
	// The check can fail: a metric that does not exist answers nothing.
	if v := ask(t, addr, queries.Query{Panel: "none", Expr: "rate(netsplit_link_cut_second_total[3s])"}, begin, time.Now()); len(v) != 0 {
		t.Errorf("a misspelt metric answers %v", v)
	}
}

// promtool passes the metrics, the scrape configuration and the alert rules.
func TestPromtool(t *testing.T) {
	bin := need.Program(t, "promtool", "prometheus")
	m := api.NewMetrics("test", nil)
	m.State(state)
	m.SwitchConnected(1, true)
	for step := range 10 {
		feed(m, step)
	}
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	var ours []string // the Go collectors' own names are not ours to mend
	for _, line := range strings.Split(rec.Body.String(), "\n") {
		if strings.Contains(line, "netsplit_") {
			ours = append(ours, line)
		}
	}
	if len(ours) < 40 {
		t.Fatalf("only %d lines: promtool passes empty input", len(ours))
	}
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command(bin, args...)
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("netsplit_")) && args[1] == "metrics" {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(strings.Join(ours, "\n")+"\n", "check", "metrics")
	run("", "check", "rules", "../prometheus/netsplit.rules.yml")
	run("", "test", "rules", "../prometheus/netsplit.rules.test.yml")
	// It looks for the files that the configuration names.
	dir := t.TempDir()
	b, err := os.ReadFile("../prometheus/prometheus.yml")
	rules, rerr := os.ReadFile("../prometheus/netsplit.rules.yml")
	const token = "/etc/prometheus/netsplit.token"
	if err != nil || rerr != nil || strings.Count(string(b), token) != 1 {
		t.Fatalf("%v, %v, or no credentials in %s", err, rerr, b)
	}
	for file, text := range map[string]string{"prometheus.yml": strings.Replace(string(b), token, filepath.Join(dir, "token"), 1), "netsplit.rules.yml": string(rules), "token": "x"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("", "check", "config", filepath.Join(dir, "prometheus.yml"))
}
