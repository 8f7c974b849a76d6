package service

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/internal/dashboard"
)

// prometheus starts a real one that scrapes the daemon, with its read-only token.
func prometheus(t *testing.T, d *daemon) string {
	t.Helper()
	dir := t.TempDir()
	config, token := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "netsplit.token")
	made := harness.Run(t, "access", "read-token", "--api", d.API)
	if made.Code != 0 || os.WriteFile(token, []byte(made.Stdout), 0o600) != nil {
		t.Fatalf("no token: %s", made)
	}
	text := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n- job_name: netsplit\n  authorization: {credentials_file: %q}\n  static_configs: [{targets: [%q]}]\n", token, d.API)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const addr = "127.0.0.1:9090" // the sandbox has a loopback of its own
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Dir = dir
	p := harness.StartCommand(t, cmd)
	harness.Until(t, time.Minute, "prometheus is ready", func() error {
		res, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return fmt.Errorf("%w: %s", err, p.Stderr())
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			return fmt.Errorf("%s", res.Status)
		}
		return nil
	})
	return addr
}

// ask returns the numbers that a query of the dashboard answers, NaN left out.
func ask(addr string, q dashboard.Query, from, to time.Time) ([]float64, error) {
	stamp := func(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }
	path, v := "query_range", url.Values{"query": {q.Expr}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {"1"}}
	if q.Instant {
		path, v = "query", url.Values{"query": {q.Expr}, "time": {stamp(to)}}
	}
	res, err := http.PostForm("http://"+addr+"/api/v1/"+path, v)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var a struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Value  []any
				Values [][]any
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || a.Status != "success" {
		return nil, fmt.Errorf("%s %v", a.Error, err)
	}
	var out []float64
	for _, r := range a.Data.Result {
		for _, p := range append(r.Values, r.Value) {
			if len(p) != 2 {
				continue
			}
			if s, ok := p[1].(string); ok {
				if x, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(x) {
					out = append(out, x)
				}
			}
		}
	}
	return out, nil
}

// TestPrometheusDuringACampaign has a real Prometheus scrape a daemon while it
// runs a real campaign with cuts: every query of the dashboard answers.
func TestPrometheusDuringACampaign(t *testing.T) {
	harness.LeavesNothing(t)
	d := serve(t, "--runs-dir", t.TempDir())
	addr := prometheus(t, d)
	began := time.Now()
	var made wire.Campaign
	// Redis loses acknowledged writes at every failover, so there is a finding.
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: "redis-sentinel", Strategy: "random", Seed: 11, Clean: 1, Runs: 1}, &made)
	c := d.until(made.ID, 3*time.Minute, "the campaign ends", ended)
	runs := d.runs(made.ID)
	i := slices.IndexFunc(runs, func(r wire.RunRow) bool { return r.Proof != nil })
	if c.State != "done" || c.Findings == 0 || i < 0 {
		t.Fatalf("a campaign with a cut and a finding is needed: %+v %+v", c, runs)
	}
	proof := runs[i].Proof
	qs, err := dashboard.Queries(map[string]string{"__rate_interval": "5s", "__range": "5m"})
	if err != nil {
		t.Fatal(err)
	}
	if len(qs) < 10 {
		t.Errorf("only %d queries", len(qs))
	}
	harness.Until(t, time.Minute, "every query of the dashboard answers", func() error {
		var empty []string
		for _, q := range qs {
			got, err := ask(addr, q, began, time.Now())
			ofCluster := strings.Contains(q.Expr, "netsplit_runners") // this daemon is of none
			if err != nil || len(got) == 0 != ofCluster {
				empty = append(empty, fmt.Sprintf("%s %s: %s: %v", q.Panel, q.RefID, q.Expr, err))
			}
		}
		if len(empty) > 0 {
			return fmt.Errorf("%d of %d have no answer:\n%s", len(empty), len(qs), strings.Join(empty, "\n"))
		}
		return nil
	})
	// And what it counts is what the run's proof says.
	for _, fate := range []struct {
		name string
		want int
	}{{"wanted", proof.Wanted}, {"dropped", proof.Dropped}, {"leaked", 0}} {
		q := dashboard.Query{Expr: fmt.Sprintf("sum(netsplit_link_packets_total{fate=%q})", fate.name), Instant: true}
		if got, err := ask(addr, q, began, time.Now()); err != nil || len(got) != 1 || got[0] != float64(fate.want) {
			t.Errorf("%s: Prometheus has %v (%v), the proof %d", fate.name, got, err, fate.want)
		}
	}
}
