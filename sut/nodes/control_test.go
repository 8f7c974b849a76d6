package nodes

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netsplit/model"
)

// TestSocketsOfKilledProcessesGo: those of living ones stay, and those that
// are being made.
func TestSocketsOfKilledProcessesGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, err := New(Config{Kit: &Kit{Target: &model.Target{}}}).listen()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), controlPrefix+"1")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	there := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	removeDead(os.TempDir(), time.Minute)
	if !there(dead) {
		t.Error("a folder that is being made is gone")
	}
	removeDead(os.TempDir(), 0)
	if there(dead) || !there(c.path()) {
		t.Errorf("dead: %v, living: %v", there(dead), there(c.path()))
	}
	conn, err := net.Dial("unix", c.path())
	if err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	c.close()
	if there(c.dir) {
		t.Error("the folder stays")
	}
}
