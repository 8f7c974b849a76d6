package main

import (
	"os"
	"strings"
	"testing"
)

// TestAnInvitationThatTheDaemonCannotRead is not made: the daemon runs as another user.
func TestAnInvitationThatTheDaemonCannotRead(t *testing.T) {
	dir, owner := "/", "root"
	if os.Geteuid() == 0 {
		dir, owner = t.TempDir(), "#12345"
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	code, _, errs := cli(t, "cluster", "invite", "m1", "--runs-dir", dir, "--address", "127.0.0.1:7072")
	if code != exitUsage || !strings.Contains(errs, "belongs to "+owner) || !strings.Contains(errs, "runuser -u "+owner) {
		t.Errorf("status %d: %s", code, errs)
	}
	if left, err := os.ReadDir(dir); dir != "/" && (err != nil || len(left) > 0) {
		t.Errorf("it left %v, %v", left, err)
	}
}
