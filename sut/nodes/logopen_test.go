package nodes

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestALogFileIsReadBelowItsHostsFolderOnly: we read as root what a server wrote
// that is not.
func TestALogFileIsReadBelowItsHostsFolderOnly(t *testing.T) {
	dir := t.TempDir()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	try(os.WriteFile(secret, []byte("secret"), 0o600))
	try(os.WriteFile(filepath.Join(dir, "a-1.log"), []byte("ours"), 0o600))
	try(os.Symlink("a-1.log", filepath.Join(dir, "a.log")))
	try(os.Symlink(secret, filepath.Join(dir, "out.log")))
	try(unix.Mkfifo(filepath.Join(dir, "fifo.log"), 0o600))
	for _, name := range []string{"a-1.log", "a.log"} {
		f, _, err := openBelow(dir, name)
		try(err)
		if b, err := io.ReadAll(f); err != nil || string(b) != "ours" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		f.Close()
	}
	for name, why := range map[string]string{"out.log": "escapes", "fifo.log": "no regular file"} {
		if f, _, err := openBelow(dir, name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
