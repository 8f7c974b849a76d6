package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// fakeSSH runs what it is told in a session of its own, as sshd does. Who kills it
// ends only the input over there. It fails where a file "broken" is beside it.
const fakeSSH = `#!/bin/sh
shift
[ ! -e "${0%/*}/broken" ] || { echo no route >&2; exit 255; }
exec 3<&0
mkfifo "${0%/*}/in.$$"
cat <&3 >"${0%/*}/in.$$" &
setsid sh -c "$*" <"${0%/*}/in.$$" 3<&- &
wait $!
`

// remote is a host behind the fake ssh, and a folder there that the test makes no
// file in.
func remote(t *testing.T) (host model.TestbedHost, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(fakeSSH), 0o755); err != nil {
		t.Fatal(err)
	}
	return model.TestbedHost{Name: "n1", Exec: []string{filepath.Join(dir, "ssh"), "root@n1"}}, dir
}

// server starts a shell over there that starts a child in a process group of its
// own and prints the numbers of both.
func server(t *testing.T, more func(*Spec)) (p *Proc, session, child int) {
	t.Helper()
	h, dir := remote(t)
	var l lines
	s := Spec{Host: h, Dir: dir, Session: filepath.Join(dir, "s", "1"), Env: []string{"WHAT=it's"}, OnLine: l.add,
		Argv: []string{"sh", "-c", `echo "$WHAT $$ $PWD"; "$0" ` + groupArg + ` & wait`, os.Args[0]}}
	if more != nil {
		more(&s)
	}
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "two lines", func() bool { return strings.Contains(l.String(), "|") })
	first, second, _ := strings.Cut(l.String(), "|")
	if !strings.HasPrefix(first, "it's") { // lines of two streams come in any order
		first, second = second, first
	}
	f := strings.Fields(first)
	if len(f) != 3 || f[0] != "it's" || f[2] != dir {
		t.Fatalf("it said %q", first)
	}
	session, _ = strconv.Atoi(f[1])
	child, _ = strconv.Atoi(second)
	t.Cleanup(func() {
		for _, pid := range []int{session, child} {
			if lives(pid) {
				t.Errorf("process %d is left", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
	return p, session, child
}

func lives(pid int) bool {
	m, err := stat(pid)
	return err == nil && !m.dead
}

func state(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:min(1, len(rest))]
}

// TestSignalsReachARemoteProcess and not the ssh that it runs by; killing it ends
// its whole session there.
func TestSignalsReachARemoteProcess(t *testing.T) {
	p, session, child := server(t, nil)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is stopped", func() bool { return state(session) == "T" })
	if s := state(p.PID()); s == "T" {
		t.Error("so is ssh")
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it goes on", func() bool { return state(session) == "S" })
	x, err := p.Kill()
	if err != nil || x.Code != 137 || x.Lost {
		t.Errorf("%+v, %v", x, err)
	}
	if lives(session) || lives(child) {
		t.Error("something is left")
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, errNotThere) {
		t.Errorf("signal after the end: %v", err)
	}
}

// TestARemoteProcessStops when it is asked to, and what it left in its session ends
// with it. Paused ones do, too.
func TestARemoteProcessStops(t *testing.T) {
	p, session, child := server(t, nil)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x, err := p.Stop(20 * time.Second)
	if err != nil || x.Code != 143 || lives(session) || lives(child) {
		t.Errorf("%+v, %v, left: %v, %v", x, err, lives(session), lives(child))
	}
}

// TestALostConnectionEndsARemoteProcess: the end of ssh, however it comes, is told
// as that and no as the process's; and the process is killed over there.
func TestALostConnectionEndsARemoteProcess(t *testing.T) {
	p, session, child := server(t, nil)
	if err := unix.Kill(-p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if x := p.Status(); !x.Lost {
		t.Errorf("%+v", x)
	}
	waitFor(t, "it ends", func() bool { return !lives(session) && !lives(child) })
	if _, err := p.Kill(); err != nil {
		t.Error(err)
	}
}

// TestARemoteProcessWithInput reads it, sees its end, and is killed when asked for,
// connection or not.
func TestARemoteProcessWithInput(t *testing.T) {
	var said lines
	p, session, child := server(t, func(s *Spec) { s.Input, s.OnStdout = true, nil })
	if err := unix.Kill(-p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Status()
	if _, err := p.Kill(); err != nil || lives(session) || lives(child) {
		t.Errorf("after the connection: %v, left: %v, %v", err, lives(session), lives(child))
	}
	h, dir := remote(t)
	p, err := Start(Spec{Host: h, Dir: dir, Session: filepath.Join(dir, "s", "2"), Input: true, Sweep: true, OnLine: said.add, Argv: []string{"sh", "-c", "cat; echo over; exit 255"}})
	if err != nil {
		t.Fatal(err)
	}
	p.CloseInput()
	<-p.Done() // its output was read, too
	if x := p.Status(); x.Code != 254 || x.Lost || said.String() != "over" {
		t.Errorf("%+v, %q", x, said.String())
	}
	if _, err := p.Kill(); err != nil {
		t.Error(err)
	}
}

// TestWhatARemoteProcessLeaves stays until Kill, or ends with it where that is asked
// for.
func TestWhatARemoteProcessLeaves(t *testing.T) {
	for _, sweep := range []bool{false, true} {
		p, session, child := server(t, func(s *Spec) {
			s.Sweep = sweep
			s.Argv[2] = strings.Replace(s.Argv[2], "& wait", ">&2 & sleep 1", 1)
		})
		if x := p.Status(); x.Code != 0 || x.Lost {
			t.Errorf("%+v", x)
		}
		if lives(session) || lives(child) == sweep {
			t.Errorf("sweep %v: the child lives: %v", sweep, lives(child))
		}
		if _, err := p.Kill(); err != nil || lives(child) {
			t.Errorf("killed: %v, the child lives: %v", err, lives(child))
		}
	}
}

// TestAnUnreachableHostIsTold, and what runs there is not said to be dead.
func TestAnUnreachableHostIsTold(t *testing.T) {
	p, session, child := server(t, nil)
	broken := filepath.Join(p.spec.Dir, "broken")
	if err := os.WriteFile(broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGSTOP); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("%v", err)
	}
	if _, err := p.Kill(); err == nil || !strings.Contains(err.Error(), "may still run there") || !strings.Contains(err.Error(), "no route") {
		t.Errorf("%v", err)
	}
	// Its connection was ours to end.
	waitFor(t, "it ends", func() bool { return !lives(session) && !lives(child) })
	if _, err := Start(Spec{Host: p.spec.Host, Argv: []string{"true"}}); err == nil {
		t.Error("started without a session file")
	}
}

// TestANumberThatIsAStrangersIsLeftAlone: the file names a process that began at
// another time.
func TestANumberThatIsAStrangersIsLeftAlone(t *testing.T) {
	p, session, _ := server(t, nil)
	file := p.spec.Session
	mine, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d 1\n", session), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGKILL); !errors.Is(err, errNotThere) {
		t.Errorf("%v", err)
	}
	if !lives(session) {
		t.Error("the stranger was killed")
	}
	if err := os.WriteFile(file, mine, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kill(); err != nil {
		t.Error(err)
	}
}
