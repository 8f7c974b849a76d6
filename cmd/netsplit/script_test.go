package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCommandThatPlaysAScriptAgainIsTheOneThatDid: on the same switches, by the
// same flags.
func TestTheCommandThatPlaysAScriptAgainIsTheOneThatDid(t *testing.T) {
	for want, args := range map[string][]string{
		"netsplit script run a.yaml":                                            {"-n", "3", "-q"},
		"netsplit script run a.yaml --seed 7 --set mode=x --set rate=2":         {"--set", "rate=2", "--set", "mode=x", "--seed", "7"},
		"netsplit script run a.yaml --role equal --testbed rack.yaml":           {"--testbed", "rack.yaml", "--role", "equal"},
		`netsplit script run a.yaml --openflow \[::1]:6653 --testbed rack.yaml`: {"--testbed", "rack.yaml", "--openflow", "[::1]:6653"},
		"netsplit script run a.yaml --allowed-datapath 1,2 --testbed rack.yaml": {"--testbed", "rack.yaml", "--allowed-datapath", "1,2"},
		"netsplit script run a.yaml --set 'text=a b'":                           {"--set", "text=a b"},
		"netsplit script run a.yaml --target other/target.yaml":                 {"--target", "other/target.yaml"},
		"netsplit script run a.yaml --tls-ca ca.pem --tls-cert c.pem":           {"--tls-cert", "c.pem", "--tls-ca", "ca.pem"},
	} {
		c := scriptRun(&daemonFlags{})
		if err := c.Flags().Parse(args); err != nil {
			t.Fatal(err)
		}
		set, err := c.Flags().GetStringToString("set")
		if err != nil {
			t.Fatal(err)
		}
		if got := repeatOf(c.Flags(), "a.yaml", set); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestADaemonIsAskedToPlay the text of a script, on the target that it names: the daemon checks
// both, as it may have another target of that name.
func TestADaemonIsAskedToPlay(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			if r.URL.Path == "/v1/targets" {
				body = []byte("an archive")
			}
			asked = append(asked, r.URL.Path+" "+string(body))
		}
		switch r.URL.Path {
		case "/v1/targets":
			fmt.Fprint(w, `{"name":"mine:0123456789ab"}`)
		case "/v1/campaigns", "/v1/campaigns/c-1":
			fmt.Fprint(w, `{"id":"c-1","state":"done","spec":{"target":"mine"},"done":1}`)
		case "/v1/campaigns/c-1/runs", "/v1/runs":
			fmt.Fprint(w, `{"items":[{"id":"c-1-r0001","verdict":{"value":"pass"}}]}`)
		case "/v1/schedules/nightly":
			fmt.Fprint(w, `{"name":"nightly","cron":"@daily","campaign":{"target":"mine"}}`)
		default:
			fmt.Fprint(w, `{"items":[]}`)
		}
	}))
	defer srv.Close()
	t.Setenv("NETSPLIT_TOKEN", "sixteen-characters")
	dir := t.TempDir()
	target, err := os.ReadFile("../../e2e/targets/gossip/target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"named.yaml": "name: a\ntarget: my-system\nsteps: []\n", "beside.yaml": "name: a\ntarget: sub/target.yaml\nsteps: []\n", "sub/target.yaml": string(target)} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const named = `"script":{"name":"named.yaml","text":"name: a\ntarget: my-system\nsteps: []\n"},"labs":2,"runs":3`
	for _, c := range []struct {
		args, asked, want string
		code              int
	}{
		{"named.yaml -n 3 --labs 2", `/v1/campaigns {` + named + `}`, "done after 1 runs (1 pass)", 0},
		{"named.yaml -n 3 --labs 2 --target my-system:3f2a91c04b1d", `/v1/campaigns {"target":"my-system:3f2a91c04b1d",` + named + `}`, "", 0},
		{"beside.yaml", "/v1/targets an archive\n" + `/v1/campaigns {"target":"mine:0123456789ab","script":{"name":"beside.yaml","text":"name: a\ntarget: sub/target.yaml\nsteps: []\n"},"runs":1}`, "", 0},
		{"redis-sentinel/partial", `/v1/campaigns {"script":{"name":"redis-sentinel/partial"},"runs":1}`, "", 0},
		{"named.yaml --testbed x", "", "--testbed and --api exclude one another", 2},
		{"named.yaml --labs 0", "", "--labs", 2},
		{"nothing/here", "", "no script", 2},
	} {
		asked = nil
		words := strings.Fields(c.args)
		if strings.HasSuffix(words[0], ".yaml") {
			words[0] = filepath.Join(dir, words[0])
		}
		code, out, errs := cli(t, append(append([]string{"script", "run"}, words...), "--api", srv.URL, "--progress", "none")...)
		if got := strings.Join(asked, "\n"); code != c.code || got != c.asked || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: status %d, asked\n%s\nwant\n%s\n%s%s", c.args, code, got, c.asked, out, errs)
		}
	}
	for _, c := range []struct {
		args, asked, want string
		code              int
	}{
		{"named.yaml --cron @daily -n 3 --labs 2", `/v1/schedules/nightly {"campaign":{` + named + `},"cron":"@daily","overlap":"skip"}`, "@daily", 0},
		{"beside.yaml --cron @daily", "/v1/targets an archive\n" + `/v1/schedules/nightly {"campaign":{"target":"mine:0123456789ab","script":{"name":"beside.yaml","text":"name: a\ntarget: sub/target.yaml\nsteps: []\n"},"runs":1},"cron":"@daily","overlap":"skip"}`, "", 0},
		{"named.yaml", "", "say when", 2},
		{"named.yaml --cron @daily -n 0", "", "--times", 2},
	} {
		asked = nil
		words := strings.Fields(c.args)
		words[0] = filepath.Join(dir, words[0])
		code, out, errs := cli(t, append(append([]string{"script", "schedule", "nightly"}, words...), "--api", srv.URL)...)
		if got := strings.Join(asked, "\n"); code != c.code || got != c.asked || !strings.Contains(out+errs, c.want) {
			t.Errorf("schedule %s: status %d, asked\n%s\nwant\n%s\n%s%s", c.args, code, got, c.asked, out, errs)
		}
	}
	asserts := filepath.Join(dir, "asserts.yaml")
	text := "name: a\ntarget: redis-sentinel\nsteps:\n  - sleep: 1s\n"
	for _, more := range []string{"", "  - assert: {on: c1, call: [get, n1, x], gives: v1}\n"} {
		if err := os.WriteFile(asserts, []byte(text+more), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := cli(t, "script", "check", asserts); code != 0 || strings.Contains(out, "asserts nothing") != (more == "") {
			t.Errorf("check: status %d: %s%s", code, out, errs)
		}
	}
	if code, _, errs := cli(t, "script", "run", filepath.Join(dir, "named.yaml"), "--junit", "x.xml"); code != 2 || !strings.Contains(errs, "--junit is for plays of a daemon") {
		t.Errorf("status %d: %s", code, errs)
	}
}
