package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyARegularFileBelowItsFolderIsOpened: none of the others may block.
func TestOnlyARegularFileBelowItsFolderIsOpened(t *testing.T) {
	dir := t.TempDir()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	try(os.WriteFile(secret, []byte("secret"), 0o600))
	at := func(name string) string { return filepath.Join(dir, name) }
	try(os.Mkdir(at("run"), 0o700))
	try(os.WriteFile(at("run/file"), []byte("ours"), 0o600))
	try(os.Symlink(secret, at("link")))
	try(os.Symlink("run/file", at("inside")))
	try(os.Symlink("run", at("folder")))
	try(os.Symlink("/dev/null", at("null")))
	try(unix.Mkfifo(at("fifo"), 0o600))
	try(unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0))

	if b, err := Read(dir, "run/file"); err != nil || string(b) != "ours" {
		t.Errorf("a regular file: %q, %v", b, err)
	}
	if _, err := Open(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, name := range []string{"link", "inside", "folder/file", "null", "fifo", "socket", "run", "../secret", secret, "run/../../x"} {
		if f, err := Open(dir, name); !errors.Is(err, Err) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if f, err := Open("/dev", "null"); !errors.Is(err, Err) {
		t.Errorf("a device: %v, %v", f, err)
	}
}
