package main

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAServiceManagerThatDoesNotRead: the daemon ends all the same.
func TestAServiceManagerThatDoesNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	fill, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fill)
	for err == nil {
		err = syscall.Sendto(fill, []byte("x"), 0, &syscall.SockaddrUnix{Name: path})
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		stopping(slog.New(slog.DiscardHandler))
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the daemon waits for a service manager that does not read")
	}
	// What still waits to be told fails once the manager is gone.
	if err := manager.Close(); err != nil {
		t.Error(err)
	}
}
