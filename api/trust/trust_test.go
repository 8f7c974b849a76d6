package trust_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsplit/api/trust"
)

const token = "0123456789abcdef0123"

func TestLoadToken(t *testing.T) {
	dir := t.TempDir()
	write := func(name, s string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Setenv(trust.TokenEnv, "")
	if got, err := trust.LoadToken(""); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		if got, err := trust.LoadToken(write("good"+mode.String(), token+"\n", mode)); got != token || err != nil {
			t.Errorf("file of mode %v: %q, %v", mode, got, err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		write("empty", "", 0o600):                      "/dev/urandom",
		write("short", "abc\n", 0o600):                 "3 characters",
		write("two", token+"\n"+token, 0o600):          "cannot carry",
		write("long", strings.Repeat("a", 9e3), 0o600): "too large",
		write("group", token, 0o640):                   "chmod 600",
		write("world", token, 0o604):                   "chmod 600",
		write("worldwrite", token, 0o602):              "chmod 600",
		filepath.Join(dir, "missing"):                  "no such file",
		dir:                                            "no regular file",
		fifo:                                           "no regular file",
	} {
		if _, err := trust.LoadToken(path); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", path, err)
		}
	}
	t.Setenv(trust.TokenEnv, "  "+token)
	if got, err := trust.LoadToken(""); got != token || err != nil {
		t.Errorf("environment: %q, %v", got, err)
	}
	t.Setenv(trust.TokenEnv, "short")
	if _, err := trust.LoadToken(""); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("short: %v", err)
	}
}

func TestSocketIsItsUsersAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "own", "s")
	ln, err := trust.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for p, mode := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", p, st, err)
		}
	}
	accepted := make(chan int)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c.(*trust.Conn).Peer
		_ = c.Close()
	}()
	c, err := trust.Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if peer, ok := <-accepted; !ok || peer != os.Geteuid() {
		t.Errorf("the daemon takes us for user %d", peer)
	}
	if peer := c.(*trust.Conn).Peer; peer != os.Geteuid() {
		t.Errorf("we take the daemon for user %d", peer)
	}
	if _, err := trust.Listen(path); err == nil || !strings.Contains(err.Error(), "another daemon of yours") {
		t.Errorf("a second daemon: %v", err)
	}

	// What a daemon that was killed left is replaced; anything else is not.
	ln.Close()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	if _, err := trust.Dial(context.Background(), path); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody there: %v", err)
	}
	again, err := trust.Listen(path)
	if err != nil {
		t.Fatalf("after a daemon that was killed: %v", err)
	}
	_ = again.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Listen(path); err == nil {
		t.Error("a file of somebody was replaced")
	}
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("%s %v", b, err)
	}
}

func TestSocketWantsAFolderOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o750), os.Mkdir(filepath.Join(dir, "own"), 0o700), os.Symlink("own", link)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{open, link} {
		if ln, err := trust.Listen(filepath.Join(d, "s")); err == nil || !strings.Contains(err.Error(), "mode 700") {
			t.Errorf("%s: %v %v", d, ln, err)
		}
	}
	if _, err := trust.Listen(filepath.Join(dir, "own", strings.Repeat("s", 120))); err == nil || !strings.Contains(err.Error(), "--socket") {
		t.Errorf("a long path: %v", err)
	}
}

func TestPipeEnds(t *testing.T) {
	ln, dial := trust.Pipe()
	_ = ln.Close()
	_ = ln.Close()
	if _, err := dial(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialled: %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted: %v", err)
	}
}
