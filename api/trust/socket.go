package trust

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is a connection within this machine. Peer is the user at its other end,
// as the kernel says.
type Conn struct {
	net.Conn
	Peer int
}

// Own says whether a user may do what this process's user may: it is the same, or root.
func Own(uid int) bool { return uid == os.Geteuid() || uid == 0 }

// folders are where the sockets of this user's daemons are, the first one for
// new ones. They depend on the user alone: XDG_RUNTIME_DIR and TMPDIR differ
// between a login, sudo and a service, and a command must find the daemon that
// any of them started.
func folders() []string {
	uid := os.Geteuid()
	if uid == 0 {
		return []string{"/run/netsplit-api"}
	}
	tmp := fmt.Sprintf("/tmp/netsplit-api-%d", uid)
	session := fmt.Sprintf("/run/user/%d", uid)
	if st, err := os.Lstat(session); err == nil && st.IsDir() && ownerOf(st) == uid {
		return []string{filepath.Join(session, "netsplit-api"), tmp}
	}
	return []string{tmp}
}

func socketName(port int) string { return fmt.Sprintf("%d.sock", port) }

// Path is where the daemon of this user that listens on the port has its socket.
func Path(port int) string { return filepath.Join(folders()[0], socketName(port)) }

// Find returns the socket of this user's daemon for the port; where there is
// none, found is false and the path is where it would be.
func Find(port int) (path string, found bool) {
	for _, dir := range folders() {
		path := filepath.Join(dir, socketName(port))
		if _, err := os.Lstat(path); err == nil {
			return path, true
		}
	}
	return Path(port), false
}

// maxPath is what the kernel takes as the path of a socket, unix(7).
const maxPath = 107

// Listen opens a socket in a folder that is closed to other users. A socket that a
// dead daemon left is replaced.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket %s: its path has %d characters, the kernel takes %d: choose a shorter one with --socket", path, len(path), maxPath)
	}
	if err := Private(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("socket for commands: %w; --socket chooses another", err)
	}
	old, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = old.Close()
		return nil, fmt.Errorf("another daemon of yours serves the socket %s: stop it, or choose another port with --listen, or another socket with --socket", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if st, err := os.Lstat(path); err != nil || st.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("socket %s: there is something else at that path: choose another with --socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of a daemon that died: %w", err)
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the socket for commands: %w: choose another with --socket", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("close the socket to others: %w", err)
	}
	return listener{ln}, nil
}

// Private makes a folder that is closed to other users, or checks that it is.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || ownerOf(st) != os.Geteuid() || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s must be a folder of user %d with mode 700, so that no other user reaches what is in it: it is %v of user %d",
			dir, os.Geteuid(), st.Mode(), ownerOf(st))
	}
	return nil
}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peer, err := peerOf(c); err == nil {
			return &Conn{Conn: c, Peer: peer}, nil
		}
		_ = c.Close() // it is gone already
	}
}

func peerOf(c net.Conn) (int, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is no Unix socket", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, fmt.Errorf("peer of a socket: %w", failed)
	}
	return int(cred.Uid), nil
}

// ErrStranger says that another user serves a socket.
var ErrStranger = errors.New("another user serves it")

// Dial connects to a daemon's socket, if it is served by this user or by root.
// Root may name the socket of another user: the owner of its folder then must
// be who serves it.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	trusted := Own(peer)
	if os.Geteuid() == 0 && !trusted {
		st, err := os.Stat(filepath.Dir(path))
		trusted = err == nil && ownerOf(st) == peer && st.Mode().Perm()&0o022 == 0
	}
	if !trusted {
		_ = c.Close()
		return nil, fmt.Errorf("socket %s: %w: user %d, and not user %d or root; nothing was sent", path, ErrStranger, peer, os.Geteuid())
	}
	return &Conn{Conn: c, Peer: peer}, nil
}
