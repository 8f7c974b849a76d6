package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Result is what a program that ended left.
type Result struct {
	Stdout, Stderr string
	Code           int // exit status; 128 + number for a signal
}

// String shows all of it, for messages.
func (r Result) String() string {
	return fmt.Sprintf("exit status %d\n--- stdout\n%s\n--- stderr\n%s", r.Code, r.Stdout, r.Stderr)
}

// Process is a program under way.
type Process struct {
	cmd      *exec.Cmd
	out, err buffer
	done     chan struct{}
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Start starts netsplit. It is killed when the test ends, if it still runs.
func Start(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return StartCommand(tb, exec.Command(Bin("netsplit"), args...))
}

// StartCommand starts any command, as Start does.
func StartCommand(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	// Whatever it leaves may hold its pipes open; that is not its own life.
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %v: %v", cmd.Args, err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() && filepath.Dir(cmd.Path) == filepath.Dir(Bin("netsplit")) {
			tb.Logf("%s: %s", strings.Join(cmd.Args, " "), p.result())
		}
	})
	return p
}

// Kill is kill -9; it returns when the process is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Fatalf("signal %v: %v", p.cmd.Args, err)
	}
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdout is what it has printed so far.
func (p *Process) Stdout() string { return p.out.String() }

// Stderr is what it has said so far.
func (p *Process) Stderr() string { return p.err.String() }

func (p *Process) result() Result {
	r := Result{Stdout: p.out.String(), Stderr: p.err.String()}
	if st := p.cmd.ProcessState; st != nil {
		r.Code = st.ExitCode()
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.Code = 128 + int(ws.Signal())
		}
	}
	return r
}

// Wait waits for the end of the process, at most limit.
func (p *Process) Wait(tb testing.TB, limit time.Duration) Result {
	tb.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		// A dump of its goroutines says where it hangs.
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.done:
		case <-time.After(2 * time.Second):
		}
		tb.Fatalf("%v did not end within %v: %s", p.cmd.Args, limit, Result{p.out.String(), p.err.String(), -1})
	}
	return p.result()
}

// Run runs netsplit to its end, at most five minutes.
func Run(tb testing.TB, args ...string) Result {
	tb.Helper()
	return Start(tb, args...).Wait(tb, 5*time.Minute)
}

// RunCommand runs any command to its end.
func RunCommand(tb testing.TB, name string, args ...string) Result {
	tb.Helper()
	return StartCommand(tb, exec.Command(name, args...)).Wait(tb, time.Minute)
}

// Output runs a command that must succeed.
func Output(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	r := RunCommand(tb, name, args...)
	if r.Code != 0 {
		tb.Fatalf("%s %s: %s", name, strings.Join(args, " "), r)
	}
	return r.Stdout
}

// Until polls until what is expected is so. It is not if the first look after limit
// does not find it: a slow machine does not count.
func Until(tb testing.TB, limit time.Duration, what string, ok func() error) {
	tb.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		late := time.Now().After(end)
		err := ok()
		if err == nil {
			return
		}
		if late {
			tb.Fatalf("%s: not within %v: %v", what, limit, err)
		}
	}
}
