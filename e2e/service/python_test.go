package service

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// TestPythonClient runs its tests with pytest on real switches: testdata/test_client.py.
func TestPythonClient(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c", "n1", "c1")
	dir := t.TempDir()
	token := filepath.Join(dir, "api.token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 24)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := serve(t, "--testbed", b.file, "--runs-dir", dir, "--token-file", token)
	b.connect(d.OpenFlow)
	d.Healthy()
	tls := harness.Serve(t, "--runs-dir", t.TempDir(), "--listen", "0.0.0.0:0", "--token-file", token, "--openflow", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(tls.API)
	if err != nil {
		t.Fatal(err)
	}
	print := regexp.MustCompile(`[0-9a-f]{64}`).FindString(tls.Stderr() + tls.Stdout())
	client, err := filepath.Abs("../../deploy/python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/usr/bin/python3", "-m", "pytest", "-v", "-p", "no:cacheprovider", "testdata/test_client.py")
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+client, "NETSPLIT_API=unix:"+d.Socket, "TARGET="+d.Upload(shortTarget(t)),
		"PLAIN_API="+d.API, "TLS_API=https://127.0.0.1:"+port, "TLS_TOKEN="+strings.Repeat("t", 24), "TLS_FINGERPRINT="+print)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v (apt-get install -y python3-pytest, or make setup-test): %s", err, out)
	}
	if n := strings.Count(string(out), " PASSED"); n < 14 {
		t.Errorf("%d tests passed: %s", n, out)
	}
}
