package labtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// whole are the flags with which all tests of a package are asked for, and nothing
// but their outcome.
var whole = []string{"test.count", "test.failfast", "test.paniconexit0", "test.parallel", "test.testlogfile", "test.timeout", "test.v"}

// each runs every test in a sandbox of its own, as many at once as -parallel says,
// if the whole package is to be run; ok says whether it is.
func each() (code int, ok bool) {
	flag.Parse()
	ok = true
	flag.Visit(func(f *flag.Flag) { ok = ok && slices.Contains(whole, f.Name) })
	if !ok {
		return 0, false
	}
	list := exec.Command("/proc/self/exe", "-test.list=^(Test|Fuzz|Example)")
	list.Args[0], list.Env = os.Args[0], append(os.Environ(), stageVar+"=in")
	names, err := list.Output()
	if err != nil {
		fmt.Fprintf(os.Stderr, "labtest: list the tests: %v\n%s", err, names)
		return 1, true
	}
	atOnce, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		atOnce = 1
	}
	verbose := flag.Lookup("test.v").Value.String() != "false"
	queue := make(chan string)
	var said sync.Mutex
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			runtime.LockOSThread() // Pdeathsig is bound to the thread that forks
			for name := range queue {
				out, one := alone(name)
				said.Lock()
				if one != 0 || verbose {
					os.Stdout.Write(out)
				}
				code = max(code, one)
				said.Unlock()
			}
		})
	}
	for _, name := range strings.Fields(string(names)) {
		queue <- name
	}
	close(queue)
	workers.Wait()
	return code, true
}

func alone(name string) ([]byte, int) {
	cmd := outer("-test.run=^" + regexp.QuoteMeta(name) + "$")
	// Of several processes none can tell the go command which files the tests read.
	cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, &out, &out
	code := status(cmd.Run())
	return out.Bytes(), code
}

// outer is process 1 of a fresh sandbox, with more arguments for the tests.
func outer(args ...string) *exec.Cmd {
	cmd := again("init", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd
}
