package api_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"netsplit/api"
	"netsplit/model"
)

const metricsReference = "../docs/metrics.md"

// TestMetricsReference: the reference lists all metrics as the daemon explains them.
func TestMetricsReference(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	m.State(func() model.ServiceState {
		return model.ServiceState{Testbed: "lab", Health: model.Health{Checks: []model.HealthCheck{{Name: "store", OK: true}}},
			Runners: map[model.RunnerState]int{model.RunnerReady: 1}}
	})
	l := links("n1", "n2")
	m.KnownLinks(l)
	m.KnownTarget("gossip", model.StrategyCoFI)
	m.CutStarted(model.Complete, l)
	m.CutEnded("time", l)
	m.MessageSeen("resp PING", "pass")
	m.HealTime(time.Millisecond)
	m.Finding(model.Finding{ID: "f-1", Target: "gossip", Class: model.Broken, Failure: model.Failure{Check: "lost"}})
	m.SwitchConnected(1, true)
	do(t, serve(t, newFake(t), func(c *api.Config) { c.Metrics = m }), "GET", "/healthz", "")
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\nThe daemon has these metrics at `/metrics`, for [Prometheus](../deploy/prometheus/README.md) and its\n" +
		"[dashboards](../deploy/grafana/README.md), beside those of Go's runtime and of its process (`go_*`, `process_*`).\n\n" +
		"Generated from what the daemon says of them, by `go test ./api -run MetricsReference -rewrite`.\n\n| metric | type | labels | |\n|---|---|---|---|\n")
	n := 0
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if !strings.HasPrefix(name, "netsplit_") {
			continue
		}
		n++
		var labels []string
		for _, p := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+p.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	if n < 20 {
		t.Errorf("only %d metrics", n)
	}
	for _, name := range []string{"metrics.go", "collector.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"(netsplit_\w+)"`).FindAllSubmatch(src, -1) {
			if families[string(m[1])] == nil {
				t.Errorf("%s has a metric %s, and this test gives it no value", name, m[1])
			}
		}
	}
	if *rewrite {
		if err := os.WriteFile(metricsReference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(metricsReference); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the daemon says (%v): run go test ./api -run MetricsReference -rewrite", metricsReference, err)
	}
}
