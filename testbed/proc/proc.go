package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// Spec says what to run, where, and where its output goes.
type Spec struct {
	Host model.TestbedHost
	// Dir is the working directory; "" for ours.
	Dir string
	// Env is added to the environment, as "NAME=value". Other variables that
	// begin with NETSPLIT_ are not passed on: they may hold our secrets.
	Env  []string
	Argv []string
	// LogPath is a file to which every line of standard error and standard
	// output is appended as it is; "" for none.
	LogPath string
	// OnLine is called for every such line, without its end, with the time at
	// which it was read; one call at a time.
	OnLine func(at time.Time, line string)
	// OnStdout, if set, gets the lines of standard output, which then go
	// neither to the log nor to OnLine; one call at a time.
	OnStdout func(at time.Time, line string)
	// Input keeps standard input open until CloseInput or Stop. Without it the
	// process reads end of file at once.
	Input bool
	// Session is, for a remote host, a file there that says what session the
	// process is; no other process has the same. Its folder is made.
	Session string
	// Sweep: on a remote host, what the process leaves behind ends with it.
	// Elsewhere Stop and Kill see to that.
	Sweep bool
}

// Status says how a process ended.
type Status struct {
	At time.Time
	// Code is the exit status; -1 if a signal ended it.
	Code   int
	Signal syscall.Signal // 0 if none ended it
	// Stopped: Stop or Kill was called before it ended.
	Stopped bool
	// Lost: what ended is the connection to a remote host. What became of the
	// process there nobody knows.
	Lost bool
}

// Success says whether it ended by itself with status 0.
func (s Status) Success() bool { return s.Code == 0 && s.Signal == 0 }

// String tells it in words, e.g. "exit status 1".
func (s Status) String() string {
	if s.Lost {
		return "a connection that broke"
	}
	if s.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(s.Signal), s.Signal)
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// drainLimit is how long output is waited for after a process ended: children
// of it may hold its output open for ever.
const drainLimit = time.Second

// Proc is a process that was started.
type Proc struct {
	spec  Spec
	cmd   *exec.Cmd
	out   *output
	input *os.File // nil if Spec.Input is false
	line  *os.File // of a remote process without input: it is killed there when this is closed

	exited  chan struct{} // closed once status is set
	drained chan struct{} // closed once all output was read
	done    chan struct{}
	status  Status

	mu      sync.Mutex // guards what follows
	stopped bool
	reaped  bool
	gone    bool // from the remote host, as that says
}

// Start starts a process on its host. Its output is read until the last
// process that holds it has ended.
func Start(spec Spec) (*Proc, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, fmt.Errorf("host %s: no command to start", spec.Host.Name)
	}
	argv := spec.Host.Argv(spec.Argv...)
	if spec.Host.Remote() {
		var err error
		if argv, err = spec.launched(); err != nil {
			return nil, fmt.Errorf("host %s: cannot start %s: %w", spec.Host.Name, spec.Argv[0], err)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = environment(spec.Env)
	p := &Proc{spec: spec, cmd: cmd, exited: make(chan struct{}), drained: make(chan struct{}), done: make(chan struct{})}
	fail := func(err error) (*Proc, error) {
		return nil, fmt.Errorf("host %s: cannot start %s: %w", spec.Host.Name, spec.Argv[0], err)
	}
	if spec.Dir != "" {
		if fi, err := os.Stat(spec.Dir); err != nil {
			return fail(err)
		} else if !fi.IsDir() {
			return fail(fmt.Errorf("working directory %s is no directory", spec.Dir))
		}
	}
	var err error
	if p.out, err = newOutput(spec); err != nil {
		return fail(err)
	}
	cmd.Stdout, cmd.Stderr = p.out.stdout, p.out.stderr
	var theirs *os.File
	if spec.Input || spec.Host.Remote() {
		var ours *os.File
		if theirs, ours, err = os.Pipe(); err != nil {
			p.out.abandon()
			return fail(err)
		}
		cmd.Stdin = theirs
		if p.input = ours; !spec.Input {
			p.input, p.line = nil, ours
		}
	}
	err = StartCommand(cmd)
	if theirs != nil {
		theirs.Close()
	}
	if err != nil {
		p.CloseInput()
		p.letGo()
		p.out.abandon()
		return fail(err)
	}
	go func() {
		p.out.read()
		close(p.drained)
	}()
	go p.wait()
	return p, nil
}

func environment(add []string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NETSPLIT_") {
			env = append(env, v)
		}
	}
	return append(env, add...)
}

// wait collects the process. It stays a zombie, and thus keeps its number,
// until that is recorded.
func (p *Proc) wait() {
	defer close(p.done)
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	at := time.Now()
	p.mu.Lock()
	_ = p.cmd.Wait() // the status is read below
	p.reaped = true
	p.status = Status{At: at, Code: p.cmd.ProcessState.ExitCode(), Stopped: p.stopped}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.status.Signal = ws.Signal()
	}
	p.status.Lost = p.spec.Host.Remote() && !p.gone && (p.status.Code == brokenSSH || p.status.Signal != 0)
	p.mu.Unlock()
	close(p.exited)
	select {
	case <-p.drained:
	case <-time.After(drainLimit):
	}
}

// PID is the process's number, also that of its session and process group.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and its output was read. Children
// of it may still run; while they hold its output, that is read further.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Status says how the process ended. It waits for that.
func (p *Proc) Status() Status {
	<-p.exited
	return p.status
}

// CloseInput ends the process's standard input.
func (p *Proc) CloseInput() {
	if p.input != nil {
		p.input.Close()
	}
}

// letGo ends what a remote process without input lives by.
func (p *Proc) letGo() {
	if p.line != nil {
		p.line.Close()
	}
}

// Signal sends a signal to the process and its group, e.g. SIGSTOP, and returns
// when it was sent, on a remote host too.
func (p *Proc) Signal(sig syscall.Signal) error {
	if p.spec.Host.Remote() {
		return p.signalThere(signalName(sig))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped && !p.ours() {
		return fmt.Errorf("process %d on %s has ended", p.PID(), p.spec.Host.Name)
	}
	return unix.Kill(-p.PID(), sig)
}

// ours says whether the session number is still that of our process's
// children. It is while any of them lives; otherwise it may be free, or the
// number of a stranger, who then has a process of just that number. p.mu is
// held.
func (p *Proc) ours() bool {
	_, err := stat(p.PID())
	return err != nil && len(sessionMembers(p.PID())) > 0
}

// Stop ends the process and everything left in its session: it closes the
// input, if that was open, and waits for half of limit; sends SIGTERM and
// waits for the rest of it; then sends SIGKILL. It returns when all of that is
// dead and its output was read. Called on a process that has ended, it ends
// what that left behind.
func (p *Proc) Stop(limit time.Duration) (Status, error) {
	p.mark()
	end := time.After(limit)
	if p.input != nil {
		p.CloseInput()
		select {
		case <-p.exited:
		case <-time.After(limit / 2):
		}
	}
	if p.askToEnd(limit) {
		select {
		case <-p.exited:
		case <-end:
		}
	}
	return p.Kill()
}

func (p *Proc) askToEnd(limit time.Duration) bool {
	if !p.spec.Host.Remote() {
		err := p.Signal(syscall.SIGTERM)
		_ = p.Signal(syscall.SIGCONT)
		return err == nil
	}
	select {
	case <-p.exited:
		return false
	default: // a login for nothing where nobody waits
		return limit > 0 && p.signalThere(signalName(syscall.SIGTERM), signalName(syscall.SIGCONT)) == nil
	}
}

// signalName is a signal as kill(1) takes it.
func signalName(sig syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(sig), "SIG") }

// Kill ends the process and everything left in its session with SIGKILL. An error
// says that some of it may still run.
func (p *Proc) Kill() (Status, error) {
	p.mark()
	p.CloseInput()
	var err error
	if p.spec.Host.Remote() {
		err = p.endThere()
		p.letGo()
	}
	p.mu.Lock()
	if !p.reaped || p.ours() {
		err = errors.Join(err, killSession(p.PID()))
	}
	p.mu.Unlock()
	if err != nil {
		return Status{}, fmt.Errorf("host %s: %s: %w", p.spec.Host.Name, p.spec.Argv[0], err)
	}
	<-p.done
	p.out.giveUp() // one that left the session may hold the output; it dies with its lab
	<-p.drained
	return p.status, nil
}

func (p *Proc) mark() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
}
