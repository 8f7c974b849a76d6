package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
)

// asking are the commands that may ask a daemon.
var asking = []string{"campaign", "campaign resume", "campaign cancel", "run", "replay", "shrink", "invariants", "invariants pin", "invariants drop", "invariants release", "invariants show", "findings history show",
	"doctor", "partition cut", "partition heal", "partition list", "partition show", "access page", "access read-token", "campaign list", "campaign pause", "store backup", "campaign compare", "campaign map", "findings history", "findings note", "store prune", "open", "campaign schedule", "schedule list", "schedule show", "schedule pause", "schedule resume", "schedule delete", "campaign show", "runs", "findings", "findings show", "logs", "watch", "cluster runners", "judge", "script run", "script schedule", "query", "points", "policy try", "policy report", "invariants why",
	"events", "annotations", "health", "version", "testbed hosts", "testbed switches", "runs show", "runs file", "campaign causes", "export", "script list", "target list", "target show", "target upload", "target delete"}

// TestUnusedFlags: a flag that a command does not use is refused by it, not taken and
// ignored, and what is to be used in its place is told.
func TestUnusedFlags(t *testing.T) {
	used := map[string]bool{}
	for c := range commands(rootCommand()) {
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "netsplit"), " ")
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			if c.Runnable() {
				t.Errorf("%q inherits --%s: give the flag to the commands that use it", name, f.Name)
			}
		})
		for _, flag := range []string{"api", "api-token-file", "api-fingerprint"} {
			if slices.Contains(asking, name) {
				used[name] = c.Flag(flag) != nil
				continue
			}
			if name == "" {
				continue
			}
			args := append(strings.Fields(name), "--"+flag, "127.0.0.1:1")
			if c.DisableFlagParsing {
				t.Errorf("%q takes whatever flag there is", name)
				continue
			}
			var stdout, stderr bytes.Buffer
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // one that takes it does nothing
			code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
			if code != exitUsage || !strings.Contains(stderr.String(), "--"+flag) || !strings.Contains(stderr.String(), "--help") {
				t.Errorf("netsplit %s: exit %d, %q: want it refused", strings.Join(args, " "), code, &stderr)
			}
			if want := map[bool]string{true: "netsplit campaign"}[name != "serve"]; !strings.Contains(stderr.String(), want) {
				t.Errorf("netsplit %s: %q: want the commands that have it", strings.Join(args, " "), &stderr)
			}
		}
	}
	for _, name := range asking {
		if !used[name] {
			t.Errorf("%q does not know which daemon to ask", name)
		}
	}
}

// TestJudgeStaysHere unless it is told which daemon to ask: NETSPLIT_API alone does not send it
// away from the records of --runs-dir.
func TestJudgeStaysHere(t *testing.T) {
	t.Setenv("NETSPLIT_API", "127.0.0.1:1")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"judge", "c-1-r0001", "--runs-dir", t.TempDir()}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "no record of run") {
		t.Errorf("exit %d, %q", code, &stderr)
	}
	for words, want := range map[string]string{"export c-1-r0001": "no record of run", "target list": "", "script list": ""} {
		if code, _, errs := cli(t, strings.Fields(words)...); want == "" && code != exitPass || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q", words, code, errs)
		}
	}
}

// TestWhatExcludes: flags of which one would be ignored are refused together.
func TestWhatExcludes(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"serve --api 127.0.0.1:7099", "--listen"},
		{"serve --api-token-file x", "--token-file"},
		{"campaign gossip --api 127.0.0.1:1 --runs-dir x", "exclude one another"},
		{"replay r1 --api-token-file f --runs-dir x", "exclude one another"},
		{"invariants pin x --api 127.0.0.1:1 --runs-dir x", "exclude one another"},
		{"doctor --testbed x --api-token-file f", "exclude one another"},
		{"judge r1 --api 127.0.0.1:1 --runs-dir x", "exclude one another"},
		{"export r1 --api 127.0.0.1:1 --runs-dir x", "exclude one another"},
		{"judge r1 --api 127.0.0.1:1 --examine", "leave out the flags of a daemon"},
		{"judge r1 --api-token-file f", "needs --api"},
		{"invariants why x --target y", "invariants pin"},
		{"serve --cluster --role equal", "give --gate, --role, --allowed-datapath and --tls-* to netsplit runner"},
		{"campaign gossip --nonsense", "unknown flag: --nonsense; see netsplit campaign --help"},
	} {
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if code := run(ctx, strings.Fields(c.args), strings.NewReader(""), &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("netsplit %s: exit %d, %q: want %q", c.args, code, &stderr, c.want)
		}
	}
}

// TestWhatTheAPIRefusesIsSaidInFlags: with the flag, what it takes, and what may have been meant.
func TestWhatTheAPIRefusesIsSaidInFlags(t *testing.T) {
	c := &cobra.Command{Use: "campaign"}
	c.Flags().String("strategy", "cofy", "")
	c.Flags().StringSlice("kinds", []string{"crash", "isolat"}, "")
	c.Flags().Int("faults", 20, "")
	problem := func(location, message string) *client.Problem {
		p := &client.Problem{Status: http.StatusUnprocessableEntity, Detail: "The request does not match the contract"}
		p.Errors = append(p.Errors, struct {
			Message  string `json:"message"`
			Location string `json:"location"`
		}{message, location})
		return p
	}
	for _, x := range []struct {
		err  error
		want string
		code int // 0: as it was
	}{
		{problem("body.strategy", `expected value to be one of "cofi, random"`), `--strategy: want one of cofi, random (did you mean "cofi"?); see campaign --help`, exitUsage},
		{problem("body.faults[1]", `expected value to be one of "crash, isolate"`), `--kinds: want one of crash, isolate (did you mean "isolate"?); see campaign --help`, exitUsage},
		{problem("body.runs", "expected number <= 5"), "--faults: expected number <= 5; see campaign --help", exitUsage},
		{problem("body.unheardOf", "bad"), "The request does not match the contract\n  body.unheardOf: bad", 0},
		{errors.New("disk full"), "disk full", 0},
	} {
		got := inFlags(c, x.err)
		var exit *exitError
		if got.Error() != x.want || (x.code != 0) != errors.As(got, &exit) || exit != nil && exit.code != x.code {
			t.Errorf("%v: %v, want %s", x.err, got, x.want)
		}
	}
}
