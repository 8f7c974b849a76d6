package nodes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two processes of a host that share a file start side by side: what one writes, the
// other reads.
func TestASharedFileIsAlwaysWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "conf", "server.opts")
	text := strings.Repeat("-cp lib/*\n", 10_000)
	if err := writeFile(dir, "conf/server.opts", text, asRoot); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		defer close(written)
		for range 200 {
			if err := writeFile(dir, "conf/server.opts", text, asRoot); err != nil {
				written <- err
				return
			}
		}
	}()
	for {
		select {
		case err, failed := <-written:
			if failed {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v: it may be a script", info.Mode(), err)
			}
			return
		default:
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Fatalf("%d of %d bytes were read, %v", len(b), len(text), err)
		}
	}
}

// TestAFileOfAServerIsWrittenBelowItsDirectory: when one is started again, its user
// has had the directory. A link there is replaced, and none is followed out of it.
func TestAFileOfAServerIsWrittenBelowItsDirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	own := filepath.Join(elsewhere, "own")
	if err := errors.Join(os.WriteFile(own, []byte("theirs"), 0o600), os.Symlink(elsewhere, filepath.Join(dir, "conf")), os.Symlink(own, filepath.Join(dir, "own"))); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(dir, "conf/own", "ours", asRoot); err == nil {
		t.Error("a link that leads out was followed")
	}
	if err := writeFile(dir, "own", "ours", asRoot); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(own); err != nil || string(b) != "theirs" {
		t.Errorf("the file elsewhere holds %q, %v", b, err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("elsewhere is %v, %v", left, err)
	}
}
