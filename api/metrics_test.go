package api_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/model"
)

// scrape returns the samples of netsplit's own metrics, name{labels} value.
func scrape(t testing.TB, m *api.Metrics) map[string]string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	out := map[string]string{}
	for _, line := range strings.Split(rec.Body.String(), "\n") {
		if strings.HasPrefix(line, "netsplit_") {
			i := strings.LastIndex(line, " ")
			out[line[:i]] = line[i+1:]
		}
	}
	return out
}

func check(t *testing.T, m *api.Metrics, want map[string]string) {
	t.Helper()
	got := scrape(t, m)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
}

func links(s ...string) (out []model.Link) {
	for i := 0; i < len(s); i += 2 {
		out = append(out, model.Link{Src: model.NodeID(s[i]), Dst: model.NodeID(s[i+1])})
	}
	return out
}

func TestRunningCutGrowsAtEachScrape(t *testing.T) {
	now := t0
	m := api.NewMetrics("v1", func() time.Time { return now })
	m.KnownLinks(links("n1", "n2"))
	const cut = `netsplit_link_cut_seconds_total{dst="n2",src="n1"}`
	check(t, m, map[string]string{
		cut: "0",
		`netsplit_link_packets_total{dst="n2",fate="leaked",src="n1"}`:  "0",
		`netsplit_link_packets_total{dst="n2",fate="wanted",src="n1"}`:  "0",
		`netsplit_link_packets_total{dst="n2",fate="dropped",src="n1"}`: "0",
		`netsplit_cuts_total{shape="complete"}`:                         "0",
		`netsplit_last_cut_timestamp_seconds`:                           "",
		`netsplit_build_info{goversion="`:                               "",
	})
	m.CutStarted(model.Complete, links("n1", "n2", "n2", "n1"))
	now = now.Add(1500 * time.Millisecond)
	check(t, m, map[string]string{cut: "1.5", `netsplit_partitions_active{shape="complete"}`: "1", `netsplit_cuts_total{shape="complete"}`: "1",
		`netsplit_last_cut_timestamp_seconds`: "1.7952624001234567e+09"})
	// Another lab has hosts of the same names: time is not counted twice.
	m.CutStarted(model.Simplex, links("n1", "n2"))
	now = now.Add(time.Second)
	m.CutEnded("new-class", links("n2", "n1", "n1", "n2")) // order of links does not matter
	now = now.Add(time.Second)
	check(t, m, map[string]string{cut: "3.5", `netsplit_link_cut_seconds_total{dst="n1",src="n2"}`: "2.5",
		`netsplit_partitions_active{shape="complete"}`: "0", `netsplit_partitions_active{shape="simplex"}`: "1"})
	m.CutEnded("max-cut", links("n1", "n2"))
	m.CutEnded("stop", links("n1", "n2")) // one too many
	now = now.Add(time.Hour)
	check(t, m, map[string]string{cut: "3.5", `netsplit_partitions_active{shape="simplex"}`: "0",
		`netsplit_heals_total{reason="new-class"}`: "1", `netsplit_heals_total{reason="max-cut"}`: "1"})
}

func TestCountsAndHistograms(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	l := links("n1", "n2")[0]
	m.PacketFate(l, "wanted", 3)
	m.PacketFate(l, "dropped", 3)
	m.PacketFate(l, "lost", 3)
	m.PacketFate(l, "wanted", -1)
	m.GateDelay("port", 70*time.Microsecond)
	m.HealTime(time.Millisecond)
	m.KnownTarget("gossip", model.StrategyCoFI)
	m.RunDone("gossip", model.StrategyCoFI, model.VerdictFail)
	f := model.Finding{ID: "f-1", Target: "gossip", Class: model.Broken, Failure: model.Failure{Check: "lost"}}
	m.Finding(f)
	m.Finding(f)
	m.SwitchConnected(0xabc, true)
	m.SwitchConnected(0xabd, true)
	m.SwitchConnected(0xabd, false)
	m.State(func() model.ServiceState {
		return model.ServiceState{Testbed: "rack", StoreBytes: 4096, FreeBytes: 1 << 30, Queued: 2, Running: 1, Runs: 3, Map: model.MapCount{Never: 5, Met: 4, Failed: 1}, Runners: map[model.RunnerState]int{model.RunnerReady: 2},
			Health: model.Health{Checks: []model.HealthCheck{{Name: "store", OK: true}, {Name: "disk"}}}}
	})
	check(t, m, map[string]string{
		`netsplit_link_packets_total{dst="n2",fate="wanted",src="n1"}`:           "3",
		`netsplit_link_packets_total{dst="n2",fate="leaked",src="n1"}`:           "0",
		`netsplit_gate_delay_seconds_bucket{transport="port",le="5e-05"}`:        "0",
		`netsplit_gate_delay_seconds_bucket{transport="port",le="0.0001"}`:       "1",
		`netsplit_gate_delay_seconds_bucket{transport="port",le="0.2048"}`:       "1",
		`netsplit_heal_seconds_count`:                                            "1",
		`netsplit_runs_total{strategy="cofi",target="gossip",verdict="vacuous"}`: "0",
		`netsplit_runs_total{strategy="cofi",target="gossip",verdict="fail"}`:    "1",
		`netsplit_finding_info{check="lost",finding="f-1",target="gossip"}`:      "1",
		`netsplit_switch_connected{dpid="0000000000000abc"}`:                     "1",
		`netsplit_switch_connected{dpid="0000000000000abd"}`:                     "0",
		`netsplit_findings_total{class="broken",target="gossip"}`:                "1",
		`netsplit_findings_total{class="documented",target="gossip"}`:            "0",
		`netsplit_store_bytes`:                         "4096",
		`netsplit_free_bytes`:                          "1.073741824e+09",
		`netsplit_health{check="store"}`:               "1",
		`netsplit_health{check="disk"}`:                "0",
		`netsplit_testbed_info{testbed="rack"}`:        "1",
		`netsplit_campaigns{state="queued"}`:           "2",
		`netsplit_campaigns{state="running"}`:          "1",
		`netsplit_runs_active`:                         "3",
		`netsplit_runners{state="ready"}`:              "2",
		`netsplit_runners{state="unfit"}`:              "0",
		`netsplit_partition_map_cells{state="never"}`:  "5",
		`netsplit_partition_map_cells{state="met"}`:    "4",
		`netsplit_partition_map_cells{state="failed"}`: "1",
	})
	m.State(func() model.ServiceState { return model.ServiceState{StoreBytes: -1, FreeBytes: -1} })
	check(t, m, map[string]string{`netsplit_store_bytes`: "NaN", `netsplit_free_bytes`: "NaN"})
}

// TestRequestsAreCountedByRoute: an id, a stranger's path or a method of his own is no series.
func TestRequestsAreCountedByRoute(t *testing.T) {
	m := api.NewMetrics("test", nil)
	srv := serve(t, newFake(t), func(c *api.Config) { c.Metrics = m })
	for _, path := range []string{"/v1/campaigns/c-1", "/v1/campaigns/c-none", "/v1/campaigns/c-other", "/v1/nothing", "/healthz"} {
		do(t, srv, "GET", path, "")
	}
	do(t, srv, "BREW", "/v1/campaigns", "")
	check(t, m, map[string]string{
		`netsplit_api_requests_total{code="200",method="get",route="/v1/campaigns/{id}"}`: "1",
		`netsplit_api_requests_total{code="404",method="get",route="/v1/campaigns/{id}"}`: "2",
		`netsplit_api_requests_total{code="404",method="get",route="other"}`:              "1",
		`netsplit_api_requests_total{code="405",method="unknown",route="other"}`:          "1",
		`netsplit_api_request_seconds_count`:                                              "6",
	})
}

// TestTheNumberOfSeriesHasABound: a thousand campaigns later there are no more of them.
func TestTheNumberOfSeriesHasABound(t *testing.T) {
	m := api.NewMetrics("test", nil)
	m.State(func() model.ServiceState { return model.ServiceState{Testbed: "lab"} })
	both := links("n1", "n2", "n2", "n1")
	series := func() int { return len(scrape(t, m)) }
	campaigns := func(from, to int) {
		for i := from; i < to; i++ {
			m.KnownLinks(both)
			m.KnownTarget("gossip", model.StrategyCoFI)
			dpid := model.DatapathID(1000 + i)
			m.SwitchConnected(dpid, true)
			for r := range 3 {
				m.CutStarted(model.Complete, both)
				m.PacketFate(both[0], "dropped", 2)
				m.MessageSeen(fmt.Sprintf("type %d-%d", i, r), "drop")
				m.CutEnded("new-class", both)
				m.RunDone("gossip", model.StrategyCoFI, model.VerdictFail)
			}
			m.Finding(model.Finding{ID: fmt.Sprintf("f-%d", i), Target: "gossip", Class: model.Broken, Failure: model.Failure{Check: "lost"}})
			m.SwitchConnected(dpid, false)
			m.SwitchGone(dpid)
		}
	}
	campaigns(0, 600) // findings have a series each until there are 500
	before := series()
	campaigns(600, 1600)
	if after := series(); after != before || before < 500 {
		t.Errorf("%d series, a thousand campaigns later %d", before, after)
	}
}

// A target that makes up a type per message gets no series per message, and
// what is frequent is shown even if it comes late.
func TestMessageTypesAreBounded(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	const n = 5000
	for i := range n {
		m.MessageSeen(fmt.Sprintf("junk %d", i), "pass")
	}
	for range 3000 {
		m.MessageSeen("resp PING", "pass")
	}
	m.MessageSeen("resp PING", "drop")
	m.MessageSeen("bad \xff\n\"bytes\" "+strings.Repeat("x", 500), "pass")
	types, sum := map[string]bool{}, 0
	var ping string
	for k, v := range scrape(t, m) {
		if strings.HasPrefix(k, "netsplit_messages_total{") {
			types[strings.Split(k, `verdict=`)[0]] = true
			var x float64
			if _, err := fmt.Sscan(v, &x); err != nil {
				t.Fatal(err)
			}
			sum += int(x)
			if strings.Contains(k, "resp PING") && strings.Contains(k, "pass") {
				ping = v
			}
		}
	}
	if len(types) > 51 || sum != n+3002 {
		t.Errorf("%d types, %d messages in all, want at most 51 and %d", len(types), sum, n+3002)
	}
	var x float64
	if _, err := fmt.Sscan(ping, &x); err != nil || x < 2900 {
		t.Errorf("resp PING shown with %q", ping)
	}
}

func TestMessageCountersNeverFall(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	before := map[string]float64{}
	defer func() {
		if len(before) == 0 {
			t.Error("no series counts other types")
		}
	}()
	for round := range 200 {
		for i := range 60 {
			for range 1 + (i*round)%7 {
				m.MessageSeen(fmt.Sprintf("type %d", (i+round)%120), "pass")
			}
		}
		for k, v := range scrape(t, m) {
			if !strings.HasPrefix(k, "netsplit_messages_total{") || !strings.Contains(k, `"other"`) {
				continue
			}
			var x float64
			if _, err := fmt.Sscan(v, &x); err != nil || x < before[k] {
				t.Fatalf("round %d: %s fell from %v to %s", round, k, before[k], v)
			}
			before[k] = x
		}
	}
}

func BenchmarkMessageSeen(b *testing.B) {
	m := api.NewMetrics("v1", nil)
	types := make([]string, 400)
	for i := range types {
		types[i] = fmt.Sprintf("type %d", i)
	}
	for i := 0; b.Loop(); i++ {
		m.MessageSeen(types[i%len(types)], "pass")
	}
}

// TestASwitchThatIsGoneIsNotShown, also where its connection ends late.
func TestASwitchThatIsGoneIsNotShown(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	const series = `netsplit_switch_connected{dpid="0000000000000abc"}`
	m.SwitchConnected(0xabc, true)
	check(t, m, map[string]string{series: "1"})
	m.SwitchConnected(0xabc, false)
	check(t, m, map[string]string{series: "0"})
	m.SwitchConnected(0xabc, true)
	m.SwitchGone(0xabc)
	check(t, m, map[string]string{series: ""})
	m.SwitchConnected(0xabc, false)
	check(t, m, map[string]string{series: ""})
}

// TestHealsOfSecondsAreToldApart: no heal of up to half a minute is beyond the buckets.
func TestHealsOfSecondsAreToldApart(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	for _, d := range []time.Duration{700 * time.Millisecond, 20 * time.Second} {
		m.HealTime(d)
	}
	check(t, m, map[string]string{`netsplit_heal_seconds_bucket{le="0.512"}`: "0", `netsplit_heal_seconds_bucket{le="1.024"}`: "1",
		`netsplit_heal_seconds_bucket{le="16.384"}`: "1", `netsplit_heal_seconds_bucket{le="32.768"}`: "2"})
}

// TestTheLastFindingsAreShown: of many, the first go.
func TestTheLastFindingsAreShown(t *testing.T) {
	m := api.NewMetrics("v1", nil)
	for i := range 501 {
		m.Finding(model.Finding{ID: fmt.Sprintf("f-%d", i), Target: "t", Failure: model.Failure{Check: "c"}})
	}
	series := func(n int) string {
		return fmt.Sprintf(`netsplit_finding_info{check="c",finding="f-%d",target="t"}`, n)
	}
	check(t, m, map[string]string{series(0): "", series(1): "1", series(500): "1"})
}

// TestPartitionsOfRunnersAreCountedToo: netsplit_partitions_active has them, by shape.
func TestPartitionsOfRunnersAreCountedToo(t *testing.T) {
	now := t0
	m := api.NewMetrics("v1", func() time.Time { return now })
	m.State(func() model.ServiceState {
		return model.ServiceState{InForce: map[model.Shape]int{model.Complete: 2, model.Simplex: 1}}
	})
	m.CutStarted(model.Complete, links("n1", "n2", "n2", "n1"))
	now = now.Add(5 * time.Second)
	check(t, m, map[string]string{
		`netsplit_partitions_active{shape="complete"}`: "3",
		`netsplit_partitions_active{shape="simplex"}`:  "1",
		`netsplit_partitions_active{shape="bridge"}`:   "0",
		`netsplit_oldest_partition_seconds`:            "5",
	})
	m.CutEnded(model.ReasonTime, links("n2", "n1", "n1", "n2"))
	check(t, m, map[string]string{`netsplit_partitions_active{shape="complete"}`: "2", `netsplit_oldest_partition_seconds`: "0"})
}
