package nodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two processes of a host that share a file start side by side: what one writes, the
// other reads.
func TestASharedFileIsAlwaysWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf", "server.opts")
	text := strings.Repeat("-cp lib/*\n", 10_000)
	if err := writeFile(path, text); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		defer close(written)
		for range 200 {
			if err := writeFile(path, text); err != nil {
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
