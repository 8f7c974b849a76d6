package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// schemathesisVar names the program: scripts/test.sh installs it.
const schemathesisVar = "NETSPLIT_SCHEMATHESIS"

// TestTheContractIsTrue: schemathesis, which makes requests from the contract, right and wrong
// ones, finds no answer of a real daemon that the contract does not have. What it makes is
// drawn from a fixed seed.
func TestTheContractIsTrue(t *testing.T) {
	program := os.Getenv(schemathesisVar)
	if program == "" {
		t.Fatalf("needs schemathesis: set %s to its path (scripts/contract-checker.sh FOLDER installs it there)", schemathesisVar)
	}
	harness.LeavesNothing(t)
	b := newBench(t, "r1", "r2", "r3")
	dir := t.TempDir()
	token := filepath.Join(dir, "api.token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 24)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serve(t, "--testbed", b.file, "--runs-dir", dir, "--token-file", token)
	b.connect(d.OpenFlow)
	d.Healthy()
	config, err := filepath.Abs("testdata/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--config-file", config, "run", "http://"+d.API+"/v1/openapi.json", "-H", "Authorization: Bearer "+strings.Repeat("t", 24),
		"--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--request-timeout", "30", "--continue-on-failure",
		"--exclude-path", "/v1/events", // a stream has no end
		"--exclude-path", "/v1/targets") // it makes no archives
	c.Dir = dir // it leaves a folder
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Test cases:") {
		t.Errorf("%v: %s", err, out)
	}
	if i := strings.Index(string(out), "Test cases:"); i >= 0 {
		t.Logf("%s", out[i:])
	}
	d.Healthy()
}
