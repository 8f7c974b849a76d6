package service

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// schemathesisVar names the program: scripts/test.sh installs it.
const schemathesisVar = "NETSPLIT_SCHEMATHESIS"

// shortTarget is a copy of the target lines whose runs are short, and break a promise when
// anything is cut.
func shortTarget(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../targets/lines/target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, change := range [][2]string{{"settle: 5s", "settle: 500ms"}, {"workload: 8s", "workload: 2s"}, {"max_cut: 2s", "max_cut: 500ms"}, {"recover: 3s", "recover: 500ms"},
		{"nodes: [n1]", "nodes: [n1]\nrelations: relations.yaml"}} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("it has not one %s", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"target.yaml": text, "relations.yaml": `checks:
  - name: nothing-is-cut
    class: broken
    quote: "contract_test.go: breaks a promise when anything is cut."
    select: select n from cut
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "target.yaml")
}

// ids are a parameter of a path, and what it is for the paths that begin so, the longest
// beginning first.
type ids []struct{ path, parameter, value string }

// fill has a daemon hold one of each thing that its contract has a path for.
func fill(t *testing.T, d *daemon) ids {
	t.Helper()
	target := d.Upload(shortTarget(t))
	var c, earlier wire.Campaign
	for i, spec := range []wire.CampaignSpec{{Target: target, Strategy: "clean", Clean: 1}, {Target: target, Strategy: "random", Seed: 1, Clean: 1, Runs: 1}} {
		earlier = c
		d.Call("POST", "/v1/campaigns", spec, &c)
		if c = d.until(c.ID, time.Minute, "the campaign ends", ended); c.State != "done" || c.Findings != i {
			t.Fatalf("%+v", c)
		}
	}
	var findings wire.Findings
	d.Call("GET", "/v1/findings", nil, &findings)
	f := findings.Items[0]
	var causes wire.Causes
	d.Call("GET", "/v1/campaigns/"+c.ID+"/causes", nil, &causes)
	var histories wire.FindingHistories
	d.Call("GET", "/v1/finding-histories", nil, &histories)
	var invariant wire.Invariant
	d.Call("POST", "/v1/invariants", wire.InvariantText{Target: "redis-sentinel", Text: "sentinel_master@n1 == sentinel_master@n2"}, &invariant)
	d.Call("PUT", "/v1/schedules/yearly", wire.ScheduleSpec{Cron: "0 0 1 1 *", Campaign: wire.CampaignSpec{Target: target, Strategy: "clean"}}, nil)
	d.partition(wire.PartitionSpec{Name: "cut", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"n1"}, {"c1"}}}})
	d.Heal("cut")
	var logs wire.LogFiles
	d.Call("GET", "/v1/runs/"+f.Run+"/logs", nil, &logs)
	var notes []json.RawMessage
	d.Call("GET", "/v1/annotations", nil, &notes)
	if len(logs.Items) == 0 || len(notes) == 0 {
		t.Fatalf("logs %v, annotations %s", logs, notes)
	}
	return ids{
		{"/v1/campaigns/{id}/comparison", "before", earlier.ID},
		{"/v1/campaigns/{id}/causes/{cause}", "cause", causes.Items[0].ID},
		{"/v1/campaigns/{id}", "id", c.ID},
		{"/v1/runs/{id}/log", "name", logs.Items[0].Name},
		{"/v1/runs/{id}/files/{name}", "name", "report.html"},
		{"/v1/runs/{id}", "id", f.Run},
		{"/v1/findings/{id}", "id", f.ID},
		{"/v1/finding-histories/{id}", "id", histories.Items[0].ID},
		{"/v1/invariants/{id}", "id", invariant.ID},
		{"/v1/schedules/{name}", "name", "yearly"},
		{"/v1/partitions/{name}", "name", "cut"},
		{"/v1/targets/{name}", "name", target},
	}
}

// contract saves the contract of a daemon with examples of what it holds, and returns the
// path.
func contract(t *testing.T, d *daemon, of ids) string {
	t.Helper()
	var spec map[string]any
	partition := map[string]any{"shape": "partial", "groups": [][]string{{"n1"}, {"c1"}}, "for": "1s"}
	bodies := map[string]any{"put /v1/partitions/{name}": partition, "post /v1/partitions": partition}
	d.Call("GET", "/v1/openapi.json", nil, &spec)
	for path, operations := range spec["paths"].(map[string]any) {
		for method, o := range operations.(map[string]any) {
			if body := bodies[method+" "+path]; body != nil {
				content := o.(map[string]any)["requestBody"].(map[string]any)["content"].(map[string]any)
				content["application/json"].(map[string]any)["example"] = body
			}
			parameters, _ := o.(map[string]any)["parameters"].([]any)
			for _, p := range parameters {
				p := p.(map[string]any)
				for _, id := range of {
					if strings.HasPrefix(path, id.path) && p["name"] == id.parameter && method != "delete" { // or others would find nothing
						delete(p, "example")
						p["examples"] = map[string]any{"real": map[string]any{"value": id.value}}
						break
					}
				}
			}
		}
	}
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheContractIsTrue: schemathesis, which makes requests from the contract, right and wrong
// ones, finds no answer of a real daemon that the contract does not have. The daemon holds one
// of each thing, by whose ids it asks; it follows the links of the contract, too. What it makes
// is drawn from a fixed seed.
func TestTheContractIsTrue(t *testing.T) {
	program := os.Getenv(schemathesisVar)
	if program == "" {
		t.Fatalf("needs schemathesis: set %s to its path (scripts/contract-checker.sh FOLDER installs it there)", schemathesisVar)
	}
	harness.LeavesNothing(t)
	b := newBench(t, "n1", "c1")
	dir := t.TempDir()
	token := filepath.Join(dir, "api.token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 24)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serve(t, "--testbed", b.file, "--runs-dir", dir, "--token-file", token)
	b.connect(d.OpenFlow)
	d.Healthy()
	spec := contract(t, d, fill(t, d))
	config, err := filepath.Abs("testdata/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup // one process has one core; they give way to labs of other tests
	for phases, without := range map[string][]string{
		"coverage":                  {"--exclude-path", "/v1/schedules/{name}"}, // it tries all of a campaign's fields with /v1/campaigns
		"examples,fuzzing,stateful": nil,
	} {
		c := exec.Command("nice", program, "--config-file", config, "run", spec, "--url", "http://"+d.API, "-H", "Authorization: Bearer "+strings.Repeat("t", 24),
			"--phases", phases, "--max-examples", "10", "--seed", "1", "--request-timeout", "30", "--continue-on-failure",
			"--exclude-path", "/v1/events", // a stream has no end
			"--exclude-path", "/v1/targets") // it makes no archives
		c.Args = append(c.Args, without...)
		c.Dir = t.TempDir() // it leaves a folder
		c.WaitDelay = time.Second
		both.Go(func() {
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Test cases:") {
				t.Errorf("%s: %v: %s", phases, err, out)
			}
			if i := strings.Index(string(out), "Test cases:"); i >= 0 {
				t.Logf("%s: %s", phases, out[i:])
			}
		})
	}
	both.Wait()
	d.Healthy()
	answered(t, d)
}

// answered fails for operations of the contract that answered no request as they should: what
// they answer was not compared with it.
func answered(t *testing.T, d *daemon) {
	t.Helper()
	needless := map[string]string{
		"post /v1/campaigns/{id}/pause":  "needs a campaign under way",
		"post /v1/campaigns/{id}/resume": "needs one that is paused",
		"get /v1/runs/{id}/live":         "needs a run under way",
		"get /v1/events":                 "is excluded",
		"get /v1/targets":                "is excluded",
		"post /v1/targets":               "is excluded",
		"delete /v1/targets/{name}":      "would delete the only one",
	}
	status, metrics, err := d.Try("GET", "/metrics", nil)
	if err != nil || status != 200 {
		t.Fatalf("%d, %v", status, err)
	}
	var spec struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	d.Call("GET", "/v1/openapi.json", nil, &spec)
	for path, operations := range spec.Paths {
		for method := range operations {
			good := regexp.MustCompile(`netsplit_api_requests_total\{code="2..",method="` + method + `",route="` + regexp.QuoteMeta(path) + `"\}`)
			if !good.Match(metrics) && needless[method+" "+path] == "" {
				t.Errorf("%s %s answered no request as it should", method, path)
			}
		}
	}
}
