package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDaemon answers requests as told, and remembers them.
type fakeDaemon struct {
	address string
	mu      sync.Mutex
	asked   []string // METHOD PATH?QUERY, and the body
}

// daemonWith is a daemon with these answers, by METHOD PATH; an answer that begins with a status,
// such as "404 {…}", has it. What it has no answer for is not found.
func daemonWith(t *testing.T, answers map[string]string) *fakeDaemon {
	t.Helper()
	d := &fakeDaemon{}
	d.address = listening(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		d.asked = append(d.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(b)))
		d.mu.Unlock()
		answer, ok := answers[r.Method+" "+r.URL.EscapedPath()]
		status := http.StatusOK
		switch {
		case !ok:
			answer, status = `{"status":404,"title":"Not Found","detail":"there is none"}`, http.StatusNotFound
		case strings.HasPrefix(answer, "404 "):
			answer, status = answer[4:], http.StatusNotFound
		case strings.HasPrefix(answer, "503 "):
			answer, status = answer[4:], http.StatusServiceUnavailable
		}
		kind := "application/json"
		if strings.HasPrefix(answer, `{"status":`) {
			kind = "application/problem+json"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	return d
}

// has says whether it was asked something that begins so.
func (d *fakeDaemon) has(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.asked, func(a string) bool { return strings.HasPrefix(a, what) })
}

// TestTheVersionOfADaemonThatHangs is not waited for without end.
func TestTheVersionOfADaemonThatHangs(t *testing.T) {
	was := versionTime
	versionTime = 200 * time.Millisecond
	t.Cleanup(func() { versionTime = was })
	done := make(chan struct{})
	address := listening(t, func(http.ResponseWriter, *http.Request) { <-done })
	defer close(done)
	if code, out, errs := cli(t, "version", "--api", address); code != exitFailed || !strings.HasPrefix(out, "netsplit  "+version) || !strings.Contains(errs, "no answer of the daemon for 200ms") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}

// commandsOf are the commands with which a user reaches each operation of the API.
var commandsOf = map[string]string{
	"get-health": "health", "get-ready": "health", "get-alive": "health", "get-version": "version",
	"access-page": "access page", "access-read-token": "access read-token",
	"list-annotations": "annotations", "stream-events": "events",
	"list-campaigns": "campaign list", "create-campaign": "campaign", "cancel-campaign": "campaign cancel", "get-campaign": "campaign show", "pause-campaign": "campaign pause",
	"resume-campaign": "campaign resume", "get-account": "policy report", "list-causes": "campaign causes", "get-cause": "campaign causes", "compare-campaign": "campaign compare",
	"get-partition-map": "campaign map", "list-mined-pairs": "invariants why", "list-points": "points", "try-policies": "policy try", "list-runs": "runs",
	"examine": "doctor", "list-finding-histories": "findings history", "get-finding-history": "findings history show", "note-finding": "findings note", "list-findings": "findings", "get-finding": "findings show",
	"list-hosts": "testbed hosts", "list-switches": "testbed switches", "list-runners": "cluster runners",
	"list-invariants": "invariants", "get-invariant": "invariants show", "pin-invariant": "invariants pin", "set-invariant": "invariants drop",
	"list-partitions": "partition list", "create-partition": "partition cut", "put-partition": "partition cut", "get-partition": "partition show", "delete-partition": "partition heal", "reset": "partition heal",
	"list-all-runs": "runs", "get-run": "runs show", "export-run": "export", "get-run-file": "runs file", "get-report": "open", "get-campaign-report": "open", "judge-run": "judge", "watch-run": "watch",
	"get-run-log": "logs", "list-run-logs": "logs", "query-run": "query", "query-run-long": "query",
	"list-schedules": "schedule list", "get-schedule": "schedule show", "delete-schedule": "schedule delete", "put-schedule": "campaign schedule",
	"list-scripts": "script list", "backup-store": "store backup", "prune-records": "store prune",
	"list-targets": "target list", "get-target": "target show", "upload-target": "target upload", "delete-target": "target delete",
}

// TestEachOperationHasACommand that asks a daemon and prints for programs, too.
func TestEachOperationHasACommand(t *testing.T) {
	b, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(b, &contract); err != nil {
		t.Fatal(err)
	}
	// What these print is a file, a text or the one thing that was asked for.
	plain := []string{"access read-token", "open", "export", "runs file", "schedule delete", "target delete"}
	n := 0
	for path, methods := range contract.Paths {
		for _, op := range methods {
			n++
			c, rest, err := rootCommand().Find(strings.Fields(commandsOf[op.ID]))
			if commandsOf[op.ID] == "" || err != nil || len(rest) > 0 {
				t.Errorf("%s (%s) has no command: %q, %v", op.ID, path, commandsOf[op.ID], err)
				continue
			}
			if c.Flags().Lookup("api") == nil {
				t.Errorf("%s cannot ask a daemon for %s", c.CommandPath(), op.ID)
			}
			if has := c.Flags().Lookup(outputFlag) != nil; has == slices.Contains(plain, commandsOf[op.ID]) {
				t.Errorf("%s has -o: %v", c.CommandPath(), has)
			}
		}
	}
	if n != len(commandsOf) {
		t.Errorf("%d operations, and commands of %d", n, len(commandsOf))
	}
}

const (
	aSwitch = `{"items":[{"datapath":"0000000000000abc","connected":true,"address":"192.0.2.1:40000","role":"master","hardware":"Open vSwitch","software":"3.1.0","cuts":"meters",
		"ports":[{"number":1,"name":"p1","up":true,"host":"n1"},{"number":2,"name":"p2","up":false,"host":"n2"},{"number":3,"name":"p3","up":true}],
		"flows":[{"table":0,"priority":100,"cookie":"0x1","match":"in_port=1","actions":"drop","packets":7,"bytes":700,"age":"1.6s","hardTimeout":"5s","ours":true},
			{"table":1,"priority":1,"cookie":"0x2","match":"any","actions":"normal","packets":0,"bytes":0,"age":"0s","ours":false}]},
		{"datapath":"0000000000000def","connected":false,"reason":"point it here","ports":[],"flows":[]}]}`
	someHosts = `{"items":[{"name":"n1","ip":"10.0.0.1","mac":"02:00:00:00:00:01","datapath":"0000000000000abc","port":1},
		{"name":"n2","ip":"10.0.0.2","mac":"02:00:00:00:00:02","datapath":"0000000000000abc","port":0,"port_name":"p2"},
		{"name":"n3","ip":"10.0.0.3","mac":"02:00:00:00:00:03","datapath":"","port":0}]}`
	aRun = `{"id":"c-1-r0001","campaign":"c-1","target":"gossip","started":"2026-11-21T12:00:00Z","ended":"2026-11-21T12:00:09Z","verdict":{"value":"fail","reason":"lost 3","failures":[{"check":"lost","class":"broken","severity":"data","summary":"3 writes\nlost"}]},
		"steps":[{"step":1,"text":"isolate n1","by":"message"}],"faults":[{"fault":1,"met":2,"acted":1,"known":true,"checked":1}],"messages":{}}`
	aCause = `{"id":"cause-1","campaign":"c-1","class":"broken","severity":"data","rule":"lost: writes","summary":"3 writes lost","fault":"crash","missing":["json ack"],"runs":["c-1-r0001","c-1-r0002"],"seen":2,"run":"c-1-r0001","steps":["crash n1"]}`
	aPause = `{"id":"c-1","state":"paused","done":4,"spec":{"target":"gossip"}}`
)

// TestWhatADaemonHasIsPrinted, for people and for programs.
func TestWhatADaemonHasIsPrinted(t *testing.T) {
	answers := map[string]string{
		"GET /v1/switches": aSwitch, "GET /v1/hosts": someHosts,
		"GET /v1/annotations": `[{"time":1764417600000,"timeEnd":1764417602000,"title":"cut n1","text":"state\nreached","tags":"cut,gossip"}]`,
		"GET /healthz":        `503 {"ok":false,"checks":[{"name":"store","ok":true,"detail":""},{"name":"switch","ok":false,"detail":"abc is not connected"}]}`,
		"GET /v1/version":     `{"version":"v9","go":"go1.99"}`,
		"GET /v1/runs":        `{"items":[]}`, "GET /v1/runs/c-1-r0001": aRun, "GET /v1/runs/c-1-r0001/files/packets.pcapng": "bytes\x00",
		"GET /v1/runs/c-1-r0001/export/trace": "a trace",
		"GET /v1/campaigns":                   `{"items":[{"id":"c-1","state":"done","spec":{"target":"gossip"}}]}`,
		"GET /v1/campaigns/c-1/causes":        `{"items":[` + aCause + `],"next":"x"}`, "GET /v1/campaigns/c-1/causes/cause-1": aCause,
		"GET /v1/targets":                       `{"items":[{"name":"redis-sentinel","uploaded":false},{"name":"mine:0123456789ab","uploaded":true,"newest":true},{"name":"mine:00","uploaded":true}]}`,
		"GET /v1/targets/mine@1.0":              `{"name":"mine@1.0","title":"My system","release":"1.0","releases":["1.0","2.0"],"settings":[{"name":"rate","default":"9","help":"per second"}],"nodes":["n1","n2"],"clients":[],"scripted":true}`,
		"DELETE /v1/targets/mine:0123456789ab":  "",
		"GET /v1/scripts":                       `{"items":[{"name":"theirs/split","title":"Two lead","target":"theirs","text":"steps: []\n"}]}`,
		"POST /v1/campaigns/c-1/pause":          aPause,
		"DELETE /v1/campaigns/c-1":              aPause,
		"POST /v1/runs/c-1-r0001/judgement":     aRun,
		"POST /v1/store/backup":                 "a store",
		"POST /v1/access/page":                  `{"url":"http://127.0.0.1:7070/access#x","until":"2026-11-21T12:05:00Z"}`,
		"GET /v1/invariants/i-1":                `{"id":"i-1","target":"gossip","text":"x == y","status":"mined"}`,
		"GET /v1/finding-histories/h-1":         `{"id":"h-1","state":"back","check":"lost","target":"gossip","campaigns":["c-1"],"note":"ours","newest":{"run":"c-1-r0001","failure":{"summary":"3 writes lost"}}}`,
		"PUT /v1/invariants/i-1":                `{"id":"i-1","target":"gossip","text":"x == y","status":"dropped"}`,
		"GET /v1/campaigns/c-9/causes":          `{"items":[]}`,
		"GET /v1/campaigns/c-8/causes":          `404 {"status":404,"detail":"there is no campaign c-8"}`,
		"GET /v1/campaigns/c-1/causes/a%2F..":   aCause,
		"POST /v1/campaigns/c-2/pause":          `{"id":"c-2","state":"done","done":4,"spec":{"target":"gossip"}}`,
		"GET /v1/runs/c-1-r0001/files/none.txt": `404 {"status":404,"detail":"A run has no file \"none.txt\""}`,
	}
	d := daemonWith(t, answers)
	dir := t.TempDir()
	there, saved := filepath.Join(dir, "there"), filepath.Join(dir, "saved")
	if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want []string // of what it prints
	}{
		{"testbed switches", exitPass, []string{"0000000000000abc  connected      master  192.0.2.1:40000  -      n1,n2 (port down)  2      meters   Open vSwitch 3.1.0  -\n", "0000000000000def  not connected  -", "point it here\n"}},
		{"testbed switches -o json", exitPass, []string{`"match": "in_port=1"`, `"host": "n2"`}},
		{"testbed switches --rules", exitPass, []string{"0000000000000abc  0      100       netsplit      7        700    2s   5s             in_port=1  drop\n", "another"}},
		{"testbed switches --rules -o jsonl", exitPass, []string{`{"datapath":"0000000000000abc","table":0,"priority":100,`}},
		{"testbed hosts", exitPass, []string{"n1    10.0.0.1  02:00:00:00:00:01  0000000000000abc  1\n", "p2, which the switch does not have\n", "02:00:00:00:00:03  -                 -\n"}},
		{"testbed hosts -o json", exitPass, []string{`"port_name": "p2"`}},
		{"annotations --from 2026-11-29T12:00:00Z --to 2026-11-29T13:00:00+01:00 --limit 7", exitPass, []string{"cut n1  state; reached  cut,gossip\n"}},
		{"annotations -o jsonl", exitPass, []string{`"timeEnd":1764417602000`}},
		{"annotations --from noon", exitUsage, []string{`--from "noon": write a time with its zone`}},
		{"annotations --limit 0", exitUsage, []string{"--limit 0: use 1 or more"}},
		{"health", exitFailed, []string{"store   ok      -\n", "switch  FAILED  abc is not connected\n", "the daemon cannot do its work"}},
		{"health -o json", exitFailed, []string{`"ok": false`}},
		{"version", exitPass, []string{"netsplit  " + version + "  go", "daemon    v9   go1.99\n"}},
		{"version -o jsonl", exitPass, []string{`"daemon":{"version":"v9","go":"go1.99"}`}},
		{"runs show c-1-r0001", exitPass, []string{"c-1-r0001: fail: lost 3\n", "took 9s\n", "  data, lost (broken): 3 writes; lost\n", "  step 1: isolate n1: began at 0.000 s (message)\n", "  fault 1: met 2 message(s), acted on 1; 1 checked", "open c-1-r0001 --api"}},
		{"runs show c-1-r0001 -o json", exitPass, []string{`"summary": "3 writes\nlost"`}},
		{"invariants show i-1", exitPass, []string{"x == y", "gossip"}},
		{"invariants show i-1 -o json", exitPass, []string{`"status": "mined"`}},
		{"invariants show i-9", exitFailed, []string{"there is none"}},
		{"findings history show h-1", exitPass, []string{"h-1", "back", "3 writes lost", "ours"}},
		{"findings history show h-9 -o json", exitFailed, []string{"there is none"}},
		{"runs show c-9-r0001", exitFailed, []string{"there is none"}},
		{"runs file c-1-r0001 packets.pcapng", exitPass, []string{"bytes\x00"}},
		{"runs file c-1-r0001 packets.pcapng --file " + saved, exitPass, nil},
		{"runs file c-1-r0001 packets.pcapng --file " + there, exitUsage, []string{"is there already"}},
		{"runs file c-1-r0001 none.txt", exitFailed, []string{"A run has no file"}},
		{"export c-1-r0001 --format trace", exitPass, []string{"a trace"}},
		{"export c-1-r0001 --format trace --file " + there, exitUsage, []string{"is there already"}},
		{"campaign causes c-1", exitPass, []string{"cause-1  data      broken  lost: writes  crash  2     c-1-r0001  3 writes lost\n", "there are more, which cost less: --all lists them"}},
		{"campaign causes c-1 -o json", exitPass, []string{`"rule": "lost: writes"`}},
		{"campaign causes c-1 cause-1", exitPass, []string{"data (broken): lost: writes\n", "after crash, missing json ack; in 2 runs", "  1) crash n1\n", "  runs: c-1-r0001 c-1-r0002\n"}},
		{"campaign causes c-1 a/..", exitPass, []string{"runs: c-1-r0001"}},
		{"campaign causes c-9", exitPass, []string{"no causes"}},
		{"campaign causes c-8 -o json", exitFailed, []string{`"detail": "there is no campaign c-8"`}},
		{"target list", exitPass, []string{"redis-sentinel     netsplit  -\n", "mine:0123456789ab  upload    yes\n", "mine:00            upload    no\n"}},
		{"target list -o json", exitPass, []string{`"newest": true`}},
		{"target show mine@1.0", exitPass, []string{"mine@1.0: My system\n", "  release       1.0, of 1.0, 2.0\n", "  clients       none\n", "scripts", "  --set rate=9  per second\n"}},
		{"target show mine@1.0 -o jsonl", exitPass, []string{`"settings":[{"name":"rate","default":"9","help":"per second"}]`}},
		{"target delete mine:0123456789ab", exitPass, []string{"upload mine:0123456789ab is deleted\n"}},
		{"target delete redis-sentinel", exitFailed, []string{"there is none"}},
		{"target upload redis-sentinel", exitUsage, []string{"write ./redis-sentinel"}},
		{"script list", exitPass, []string{"theirs/split  theirs  Two lead\n"}},
		{"script list -o json", exitPass, []string{`"text": "steps: []\n"`}},
		{"campaign list --schedule nightly --state done", exitPass, []string{"c-1       done"}},
		{"campaign pause c-1", exitPass, []string{"campaign c-1 is paused after 4 runs\n"}},
		{"campaign pause c-1 -o json", exitPass, []string{`"state": "paused"`}},
		{"campaign pause c-2 -o jsonl", exitFailed, []string{`"state":"done"`, "campaign c-2 is done and not paused"}},
		{"campaign cancel c-1 -o jsonl", exitPass, []string{`"id":"c-1"`}},
		{"judge c-1-r0001", exitFindings, []string{"c-1-r0001: fail: lost 3\n"}},
		{"judge c-1-r0001 -o json", exitFindings, []string{`"value": "fail"`}},
		{"store backup -o json " + filepath.Join(dir, "copy"), exitPass, []string{`"bytes": 7`}},
		{"access page -o json", exitPass, []string{`"url": "http://127.0.0.1:7070/access#x"`}},
		{"invariants drop i-1 -o json", exitPass, []string{`"status": "dropped"`}},
	} {
		code, out, errs := cli(t, append(strings.Fields(c.args), "--api", d.address)...)
		if code != c.code {
			t.Errorf("%s: status %d, want %d: %s%s", c.args, code, c.code, out, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%s:\n%s%s\nwant %q", c.args, out, errs, want)
			}
		}
		if strings.Contains(c.args, "-o json ") || strings.HasSuffix(c.args, "-o json") {
			if !json.Valid([]byte(out)) {
				t.Errorf("%s prints no one document: %q", c.args, out)
			}
		}
	}
	if code, out, errs := cli(t, "version", "--api", "127.0.0.1:1"); code != exitFailed || !strings.HasPrefix(out, "netsplit  "+version) || strings.Contains(out, "daemon") || !strings.Contains(errs, "no netsplit daemon") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"GET /v1/annotations?from=1795953600000&limit=7&to=1795953600000", "GET /v1/annotations?limit=500", "GET /v1/campaigns?schedule=nightly&state=done", "DELETE /v1/targets/mine:0123456789ab", `PUT /v1/invariants/i-1 {"status":"dropped"}`} {
		if !d.has(want) {
			t.Errorf("it was not asked %s: %q", want, d.asked)
		}
	}
	for file, want := range map[string]string{saved: "bytes\x00", there: "kept"} {
		if b, err := os.ReadFile(file); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
}
