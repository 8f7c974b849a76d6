package labtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageVar says how far into the sandbox a process is: unset outside, "init"
// for the first process inside, "in" for the tests.
const stageVar = "NETSPLIT_LABTEST"

// Main is the body of a TestMain: os.Exit(labtest.Main(m.Run)). It runs the
// test binary again, as a child of process 1 in fresh namespaces with an empty /run, and
// returns its exit status. When that process 1 ends, the kernel kills everything left
// inside, daemons included. If the whole package is tested, each test has its own sandbox,
// and -parallel says how many run at once. Tests that -run names share one sandbox.
//
// Without root Main prints a message and returns 1. With -short (make check) it runs no
// tests. The sandbox has no network: what needs one goes into before, which Main calls
// outside, once, before the tests.
func Main(run func() int, before ...func() error) int {
	if slices.Contains(os.Args, "-test.short=true") {
		fmt.Fprintln(os.Stderr, "labtest: -short leaves out tests that make network namespaces: make test runs them")
		return 0
	}
	switch os.Getenv(stageVar) {
	case "in":
		return run()
	case "init":
		return initMain()
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "labtest: these tests make network namespaces and need root; not run")
		return 1
	}
	for _, f := range before {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "labtest:", err)
			return 1
		}
	}
	if code, ok := each(); ok {
		return code
	}
	runtime.LockOSThread() // Pdeathsig is bound to the thread that forks
	return status(outer().Run())
}

// Some is Main for a package of which only some tests make namespaces: with -short the others
// run, outside.
func Some(run func() int, before ...func() error) int {
	if slices.Contains(os.Args, "-test.short=true") {
		return run()
	}
	return Main(run, before...)
}

// Inside says whether this process runs in the sandbox.
func Inside() bool { return os.Getenv(stageVar) == "in" }

func again(stage string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", slices.Concat(os.Args[1:], args)...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVar+"="+stage)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func status(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "labtest:", err)
	return 1
}

// initMain is process 1 of the sandbox: it mounts, starts the tests, and
// collects the dead until the tests end.
func initMain() int {
	for _, m := range []struct {
		source, target, fs string
		flags              uintptr
	}{
		{"", "/", "", unix.MS_PRIVATE | unix.MS_REC},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
		{"sysfs", "/sys", "sysfs", 0},
	} {
		if err := unix.Mount(m.source, m.target, m.fs, m.flags, ""); err != nil {
			fmt.Fprintf(os.Stderr, "labtest: mount %s: %v\n", m.target, err)
			return 1
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "labtest: ip link set lo up: %v: %s\n", err, out)
		return 1
	}
	cmd := again("in")
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "labtest:", err)
		return 1
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "labtest: wait:", err)
			return 1
		case pid == cmd.Process.Pid && ws.Exited():
			return ws.ExitStatus()
		case pid == cmd.Process.Pid && ws.Signaled():
			fmt.Fprintln(os.Stderr, "labtest: tests ended by", ws.Signal())
			return 1
		}
	}
}
