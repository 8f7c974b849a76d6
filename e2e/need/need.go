// Package need fails a test if the machine lacks a program or a right that the test needs,
// and says what to do: a test that did not run has shown nothing. With -short, which make
// check sets and make test never does, it skips such tests.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program, and fails the test where there is
// none: pkg is the Debian package it comes in.
func Program(tb testing.TB, name, pkg string) string {
	tb.Helper()
	full(tb)
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("needs %s: apt-get install -y %s (make setup-test installs all that tests need)", name, pkg)
	}
	return path
}

// Root fails the test unless it runs as root: why is what needs it.
func Root(tb testing.TB, why string) {
	tb.Helper()
	full(tb)
	if os.Geteuid() != 0 {
		tb.Fatalf("needs root to %s: run the tests as root", why)
	}
}

func full(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("on real parts: make test runs it")
	}
}
