package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"netsplit/api/trust"
)

// TestNamesAreCompleted by the daemon that the command would ask; if it does not answer, there
// is nothing, and no complaint.
func TestNamesAreCompleted(t *testing.T) {
	answers := map[string]string{
		"/v1/campaigns":         `{"items":[{"id":"c-2"},{"id":"c-1"}]}`,
		"/v1/runs":              `{"items":[{"id":"c-2-r0001"}]}`,
		"/v1/findings":          `{"items":[{"id":"f-1"}]}`,
		"/v1/finding-histories": `{"items":[{"id":"h-1"}]}`,
		"/v1/schedules":         `{"items":[{"name":"nightly"}]}`,
		"/v1/partitions":        `{"items":[{"name":"p-1"}]}`,
		"/v1/hosts":             `{"items":[{"name":"n1"}]}`,
		"/v1/targets":           `{"items":[{"name":"gossip"},{"name":"mine:01","uploaded":true}]}`,
		"/v1/invariants":        `{"items":[{"id":"i-1","status":"mined","text":"a ==\nb"},{"id":"i-2","status":"pinned","text":"c"}]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	defer srv.Close()
	t.Setenv(trust.TokenEnv, strings.Repeat("t", 20))
	const known = "gossip\nmine:01\n"
	for words, want := range map[string]string{
		"campaign show": "c-2\nc-1\n", "campaign pause": "c-2\nc-1\n", "campaign resume": "c-2\nc-1\n", "campaign cancel": "c-2\nc-1\n", "campaign compare c-2": "c-2\nc-1\n", "campaign map": "c-2\nc-1\n", "campaign causes": "c-2\nc-1\n",
		"replay": "c-2-r0001\n", "shrink": "c-2-r0001\n", "open": "c-2\nc-1\nc-2-r0001\n", "logs": "c-2-r0001\n", "findings show": "f-1\n",
		"schedule show": "nightly\n", "schedule pause": "nightly\n", "schedule delete": "nightly\n", "partition show": "p-1\n", "partition heal p-1": "p-1\n",
		"campaign show c-1": "",
		"judge":             "c-2-r0001\n", "export": "c-2-r0001\n", "query": "c-2-r0001\n", "runs show": "c-2-r0001\n", "runs file": "c-2-r0001\n", "judge c-2-r0001": "",
		"points": "c-2\nc-1\n" + known, "policy report": "c-2\nc-1\n", "invariants why": "c-2\nc-1\n", "findings note": "h-1\n", "findings note h-1": "",
		"invariants pin": "i-1\ta ==; b\n", "invariants drop": "i-1\ta ==; b\ni-2\tc\n", "invariants release": "i-2\tc\n", "invariants show": "i-1\ta ==; b\ni-2\tc\n", "findings history show": "h-1\n",
		"run": known, "campaign schedule": "", "campaign schedule nightly": known, "target show": known, "target delete": "mine:01\n", "partition cut isolate": "n1\n",
		"runs --campaign": "c-2\nc-1\n", "findings --campaign": "c-2\nc-1\n", "runs --target": known, "campaign list --schedule": "nightly\n", "invariants --target": known, "policy try --on": "c-2\nc-1\n" + known, "runs -o": "table\njson\njsonl\n",
	} {
		args := append([]string{"__complete"}, strings.Fields(words)...)
		last := args[len(args)-1]
		if strings.HasPrefix(last, "-") { // its value is completed
			args = append(args[:len(args)-1], "--api", srv.URL, last, "")
		} else {
			args = append(args, "--api", srv.URL, "")
		}
		code, out, errs := cli(t, args...)
		if code != exitPass || !strings.HasPrefix(out, want+":") {
			t.Errorf("%s: status %d, %q, %s; want %q", words, code, out, errs, want)
		}
	}
	// Where a path is taken, too, a shell offers files beside.
	for words, files := range map[string]bool{"judge": true, "campaign show": false} {
		_, out, _ := cli(t, append(append([]string{"__complete"}, strings.Fields(words)...), "--api", srv.URL, "")...)
		if want := map[bool]string{true: ":32\n", false: ":36\n"}[files]; !strings.Contains(out, want) {
			t.Errorf("%s: %q, want directive %s", words, out, want)
		}
	}
	code, out, _ := cli(t, "__complete", "campaign", "show", "--api", "127.0.0.1:1", "")
	if code != exitPass || !strings.HasPrefix(out, ":") {
		t.Errorf("without a daemon: status %d, %q", code, out)
	}
	for _, words := range []string{"run --api 127.0.0.1:1", "target get", "target check"} { // there are those of this program
		if code, out, _ := cli(t, append(append([]string{"__complete"}, strings.Fields(words)...), "")...); code != exitPass || !strings.Contains(out, "redis-sentinel\n") {
			t.Errorf("%s: status %d, %q", words, code, out)
		}
	}
	if code, out, _ := cli(t, "__complete", "script", "check", ""); code != exitPass || !strings.Contains(out, "redis-sentinel/split-brain\n") {
		t.Errorf("scripts: status %d, %q", code, out)
	}
}

// TestInvitedRunnersAreCompleted from the folder that revoke would change.
func TestInvitedRunnersAreCompleted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m1", "m2"} {
		if code, _, errs := cli(t, "cluster", "invite", name, "--runs-dir", dir, "--address", "127.0.0.1:7072"); code != exitPass {
			t.Fatalf("status %d: %s", code, errs)
		}
	}
	if _, out, _ := cli(t, "__complete", "cluster", "revoke", "--runs-dir", dir, ""); !strings.HasPrefix(out, "m1\nm2\n:") {
		t.Errorf("%q", out)
	}
}
