package service

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// TestWhatStaysBehindHasNoFileOfWhoStartedIt: Open vSwitch and its monitor outlive the
// command that starts them, and a lock that its shell held would with them.
func TestWhatStaysBehindHasNoFileOfWhoStartedIt(t *testing.T) {
	harness.LeavesNothing(t)
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	cmd := exec.Command(harness.Bin("netsplit"), "lab", "up", "openfiles", "--hosts", "a,b")
	cmd.ExtraFiles = []*os.File{lock}
	t.Cleanup(func() { harness.Run(t, "lab", "down", "openfiles") })
	if r := harness.StartCommand(t, cmd).Wait(t, time.Minute); r.Code != 0 {
		t.Fatal(r)
	}
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	ours := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), lock.Fd())
	seen := false
	for _, fd := range open {
		if to, err := os.Readlink(fd); err != nil || to != lock.Name() {
			continue
		}
		if seen = seen || fd == ours; fd != ours {
			t.Errorf("%s is %s", fd, lock.Name())
		}
	}
	if !seen {
		t.Errorf("%s is not seen to be open here", lock.Name())
	}
}
