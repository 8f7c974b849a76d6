package service

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// TestALabsSwitchIsToldToComeBackSoon, within about a second of the next daemon and not in the
// 8 s that Open vSwitch may wait, if a daemon was given the lab as its testbed. Times are
// logged.
func TestALabsSwitchIsToldToComeBackSoon(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.yaml")
	const openflow = "127.0.0.1:7654"
	if r := harness.Run(t, "lab", "up", "outage", "--hosts", "a,b", "--controller", "tcp:"+openflow, "--testbed", file); r.Code != 0 {
		t.Fatal(r)
	}
	t.Cleanup(func() { harness.Run(t, "lab", "down", "outage") })
	start := func() *daemon {
		return serve(t, "--testbed", file, "--runs-dir", filepath.Join(dir, "runs"), "--openflow", openflow)
	}
	d := start()
	d.Healthy()
	status := harness.Run(t, "lab", "status", "outage").Stdout
	_, db, found := strings.Cut(status, "ovs-vsctl --db=")
	db, _, _ = strings.Cut(db, " ")
	if !found {
		t.Fatal(status)
	}
	harness.Until(t, time.Minute, "the lab's switch is told to come back soon", func() error {
		if got := strings.TrimSpace(harness.Output(t, "ovs-vsctl", "--db="+db, "get", "controller", bridgeOf(status), "max_backoff")); got != "1000" {
			return fmt.Errorf("max_backoff is %s", got)
		}
		return nil
	})
	for range 3 {
		d.Kill()
		d = start()
		began := time.Now()
		d.Healthy()
		t.Logf("well %v after it listens", time.Since(began).Round(10*time.Millisecond))
	}
}

// bridgeOf is the bridge of the only lab that a status lists.
func bridgeOf(status string) string {
	lines := strings.Split(status, "\n")
	at := strings.Index(lines[0], "BRIDGE")
	return strings.Fields(lines[1][at:])[0]
}
