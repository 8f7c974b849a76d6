package campaign

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSocketsOfKilledProcessesGo: those of living ones stay.
func TestSocketsOfKilledProcessesGo(t *testing.T) {
	tmp := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{dead.Process.Pid: false, os.Getpid(): true} {
		dir := filepath.Join(tmp, fmt.Sprintf("%s%d-1", controlPrefix, pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		removeDead(tmp)
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("of process %d: there %v, want %v", pid, err == nil, want)
		}
	}
}
