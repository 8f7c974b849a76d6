package service

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/e2e/harness"
	"netsplit/e2e/need"
)

// TestUnits: systemd finds nothing wrong with the units, and the one for somebody's switches
// exposes no more than it did.
func TestUnits(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze", "systemd")
	for name, most := range map[string]float64{"netsplit.service": 2.0, "netsplit-labs.service": 10, "netsplit-runner.service": 10} {
		b, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(b), "/usr/bin/netsplit", harness.Bin("netsplit"))), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", unit).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		out, err = exec.Command(analyze, "security", "--offline=true", unit).CombinedOutput()
		m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if err != nil || m == nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > most {
			t.Errorf("%s: exposure level %s, want %.1f at most: %s", name, m[1], most, out)
		}
		// What the unit runs is a command that takes its flags.
		line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(b))
		args := append(strings.Fields(line[1])[1:], "--help")
		if r := harness.Run(t, args...); r.Code != 0 {
			t.Errorf("%s: %s", name, r)
		}
	}
}

// TestTheConfigurationOfTheUnit: what comes with it is right but for the testbed, which is the
// user's.
func TestTheConfigurationOfTheUnit(t *testing.T) {
	b, err := os.ReadFile("../../deploy/systemd/netsplit.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "/etc/netsplit/testbed.yaml"
	dir := t.TempDir()
	testbed, file := filepath.Join(dir, "testbed.yaml"), filepath.Join(dir, "netsplit.yaml")
	if !strings.Contains(string(b), theirs) {
		t.Fatalf("it names no %s", theirs)
	}
	for path, text := range map[string]string{testbed: "name: rack7\nhosts: [{name: n1, datapath: 0000a1b2c3d4e5f6, port: 1, mac: \"52:54:00:00:00:01\", ip: 192.0.2.1, exec: [ssh, root@n1]}]\n", file: strings.ReplaceAll(string(b), theirs, testbed)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := harness.Run(t, "config", "check", file); r.Code != 0 {
		t.Errorf("%s", r)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if r := harness.Run(t, "serve", "--config", file); r.Code != 2 || !strings.Contains(r.Stderr, "does not exist") {
		t.Errorf("%s", r)
	}
}

// TestTheServiceManagerIsTold: when the daemon answers, that it still does, and that it ends.
func TestTheServiceManagerIsTold(t *testing.T) {
	harness.LeavesNothing(t)
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "300000")
	d := serve(t, "--runs-dir", t.TempDir())
	told := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		_ = manager.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := manager.Read(b)
		for want != "WATCHDOG=1" && err == nil && string(b[:n]) == "WATCHDOG=1" {
			n, err = manager.Read(b)
		}
		if err != nil || string(b[:n]) != want {
			t.Fatalf("told %q, %v, want %s", b[:n], err, want)
		}
	}
	told("READY=1")
	for range 3 {
		told("WATCHDOG=1")
	}
	d.Process.Signal(t, syscall.SIGSTOP) // it hangs
	_ = manager.SetReadDeadline(time.Now().Add(time.Second))
	b, said := make([]byte, 100), 0
	for ; err == nil; said++ {
		_, err = manager.Read(b)
	}
	if said > 2 {
		t.Errorf("a daemon that hangs said %d times that it does not", said)
	}
	d.Process.Signal(t, syscall.SIGCONT)
	d.Process.Signal(t, syscall.SIGTERM)
	told("STOPPING=1")
	if r := d.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
}
