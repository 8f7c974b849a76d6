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
		"/v1/campaigns":  `{"items":[{"id":"c-2"},{"id":"c-1"}]}`,
		"/v1/runs":       `{"items":[{"id":"c-2-r0001"}]}`,
		"/v1/findings":   `{"items":[{"id":"f-1"}]}`,
		"/v1/schedules":  `{"items":[{"name":"nightly"}]}`,
		"/v1/partitions": `{"items":[{"name":"p-1"}]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	defer srv.Close()
	t.Setenv(trust.TokenEnv, strings.Repeat("t", 20))
	for words, want := range map[string]string{
		"campaign show": "c-2\nc-1\n", "campaign pause": "c-2\nc-1\n", "campaign resume": "c-2\nc-1\n", "campaign cancel": "c-2\nc-1\n", "campaign compare c-2": "c-2\nc-1\n", "campaign map": "c-2\nc-1\n",
		"replay": "c-2-r0001\n", "shrink": "c-2-r0001\n", "open": "c-2-r0001\n", "logs": "c-2-r0001\n", "findings show": "f-1\n",
		"schedule show": "nightly\n", "schedule pause": "nightly\n", "schedule delete": "nightly\n", "partition show": "p-1\n", "partition heal p-1": "p-1\n",
		"campaign show c-1": "",
	} {
		code, out, errs := cli(t, append(append([]string{"__complete"}, strings.Fields(words)...), "--api", srv.URL, "")...)
		if code != exitPass || !strings.HasPrefix(out, want+":") {
			t.Errorf("%s: status %d, %q, %s; want %q", words, code, out, errs, want)
		}
	}
	code, out, _ := cli(t, "__complete", "campaign", "show", "--api", "127.0.0.1:1", "")
	if code != exitPass || !strings.HasPrefix(out, ":") {
		t.Errorf("without a daemon: status %d, %q", code, out)
	}
}
