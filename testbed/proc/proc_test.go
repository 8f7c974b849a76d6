package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/internal/labtest"
	"netsplit/model"
)

// helperArg makes the test binary a parent that is to be killed; groupArg a
// child that leaves its process group but not its session.
const (
	helperArg = "proc-helper"
	groupArg  = "proc-group"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ConfineVerb {
		os.Exit(ConfineMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == helperArg {
		p, err := Start(Spec{Argv: []string{"sleep", "1000"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	if len(os.Args) > 1 && os.Args[1] == groupArg {
		if err := unix.Setpgid(0, 0); err != nil {
			fmt.Println(err)
		}
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour)
	}
	os.Exit(labtest.Main(m.Run))
}

// host makes a network namespace for the test.
func host(t *testing.T) model.TestbedHost {
	t.Helper()
	ns := fmt.Sprintf("proc-%d-%d", os.Getpid(), time.Now().UnixNano()%1e6)
	if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	return model.TestbedHost{Name: "n1", Exec: []string{"nsenter", "--net=/run/netns/" + ns}}
}

type lines struct {
	mu   sync.Mutex
	text []string
	at   []time.Time
}

func (l *lines) add(at time.Time, s string) {
	l.mu.Lock()
	l.text, l.at = append(l.text, s), append(l.at, at)
	l.mu.Unlock()
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "|")
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 500 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("gave up waiting for: %s", what)
}

func alive(pid int) bool {
	m, err := stat(pid)
	return err == nil && !m.dead
}

func TestOutputAndStatus(t *testing.T) {
	h := host(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "n1.log")
	t.Setenv("NETSPLIT_TOKEN", "secret")
	var all lines
	before := time.Now()
	p, err := Start(Spec{
		Host: h, Dir: dir, Env: []string{"A=1 2"}, LogPath: log, OnLine: all.add,
		Argv: []string{"sh", "-c", `pwd; echo "$A $NETSPLIT_TOKEN." >&2; readlink /proc/self/ns/net; cat; printf end; exit 3`},
	})
	if err != nil {
		t.Fatal(err)
	}
	st := p.Status()
	<-p.Done()
	if st.Code != 3 || st.Signal != 0 || st.Success() || st.Stopped || st.At.Before(before) || st.String() != "exit status 3" {
		t.Errorf("status %+v", st)
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	got := all.String()
	if !strings.Contains(got, dir) || !strings.Contains(got, "1 2 .") || !strings.Contains(got, "net:[") || strings.Contains(got, own) || !strings.HasSuffix(got, "|end") {
		t.Errorf("lines %s", got)
	}
	data, _ := os.ReadFile(log)
	if strings.TrimSuffix(string(data), "\n") != strings.ReplaceAll(got, "|", "\n") {
		t.Errorf("log %q, lines %q", data, got)
	}
	if _, err := p.Stop(time.Second); err != nil {
		t.Error("stop after the end:", err)
	}
}

func TestStdoutApart(t *testing.T) {
	var out, rest lines
	p, err := Start(Spec{Host: host(t), Argv: []string{"sh", "-c", "echo one; echo bad >&2; head -c 70000 /dev/zero | tr '\\0' x; echo; echo two"}, OnStdout: out.add, OnLine: rest.add})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if len(out.text) != 4 || out.text[0] != "one" || out.text[3] != "two" || len(out.text[1])+len(out.text[2]) != 70000 || rest.String() != "bad" {
		t.Errorf("stdout %d lines %.20q, rest %q", len(out.text), out.String(), rest.String())
	}
}

func TestInputStaysOpenUntilClosed(t *testing.T) {
	var out lines
	p, err := Start(Spec{Host: host(t), Argv: []string{"sh", "-c", "cat; echo over"}, OnStdout: out.add, Input: true})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
		t.Fatal("input was closed at once")
	case <-time.After(100 * time.Millisecond):
	}
	st, err := p.Stop(10 * time.Second)
	if err != nil || !st.Success() || !st.Stopped || out.String() != "over" {
		t.Errorf("status %v, %v, output %s", st, err, out.String())
	}
}

func TestStopSendsTermThenKill(t *testing.T) {
	h := host(t)
	for _, c := range []struct {
		name, trap string
		want       syscall.Signal
		code       int
	}{
		{"obeys", "trap 'exit 7' TERM", 0, 7},
		{"ignores", "trap '' TERM", unix.SIGKILL, -1},
		{"default", "", unix.SIGTERM, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out lines
			p, err := Start(Spec{Host: h, OnLine: out.add, Argv: []string{"sh", "-c", c.trap + "\necho ready; while :; do sleep 0.05; done"}})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "ready", func() bool { return out.String() == "ready" })
			st, err := p.Stop(300 * time.Millisecond)
			if err != nil || st.Signal != c.want || st.Code != c.code || !st.Stopped {
				t.Errorf("status %+v, %v", st, err)
			}
		})
	}
}

func TestStopKillsChildren(t *testing.T) {
	h := host(t)
	for _, c := range []struct{ name, script string }{
		{"parent waits", "sleep 1000 & echo $!; wait"},
		{"parent has ended", "sleep 1000 & echo $!"},
		{"own process group", os.Args[0] + " " + groupArg + " & wait"},
		{"ignores TERM", "(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 0.1; done) & wait"},
		{"paused", "sleep 1000 & echo $!; kill -STOP $!; kill -STOP $$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out lines
			p, err := Start(Spec{Host: h, OnStdout: out.add, Argv: []string{"sh", "-c", c.script}})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "child", func() bool { return out.String() != "" })
			child, err := strconv.Atoi(out.String())
			if err != nil || !alive(child) {
				t.Fatalf("child %q: %v", out.String(), err)
			}
			if c.name == "parent has ended" {
				<-p.Done()
				if !alive(child) {
					t.Fatal("a child was killed although its parent ended by itself")
				}
			}
			if _, err := p.Stop(200 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if alive(child) {
				t.Error("the child lives on")
			}
		})
	}
}

func TestEscapedChildDoesNotBlockStop(t *testing.T) {
	var out lines
	p, err := Start(Spec{Host: host(t), OnLine: out.add, Argv: []string{"sh", "-c", "setsid sleep 1000 & echo $!; sleep 0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if _, err := p.Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(out.String())
	if !alive(pid) {
		t.Error("a process that left the session was killed: by its number alone?")
	}
	unix.Kill(pid, unix.SIGKILL)
}

func TestDiesWithNetsplit(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, helperArg)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("helper said %q", line)
	}
	cmd.Process.Kill()
	cmd.Wait()
	waitFor(t, "death of the process", func() bool { return !alive(pid) })
}

func TestStartErrors(t *testing.T) {
	h := host(t)
	for _, c := range []struct {
		name string
		spec Spec
		want string
	}{
		{"no command", Spec{Host: h}, "no command"},
		{"no directory", Spec{Host: h, Dir: "/nowhere", Argv: []string{"true"}}, "/nowhere"},
		{"no log", Spec{Host: h, LogPath: "/nowhere/x.log", Argv: []string{"true"}}, "/nowhere/x.log"},
		{"no prefix", Spec{Host: model.TestbedHost{Name: "n9", Exec: []string{"/nowhere/enter"}}, Argv: []string{"true"}}, "n9"},
	} {
		if _, err := Start(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// What the prefix cannot start is an exit, told on standard error.
	var out lines
	p, err := Start(Spec{Host: h, Argv: []string{"/nowhere/redis"}, OnLine: out.add})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.Status().Success() || !strings.Contains(out.String(), "/nowhere/redis") {
		t.Errorf("status %v, %s", p.Status(), out.String())
	}
}

func TestSignalAfterTheEnd(t *testing.T) {
	p, err := Start(Spec{Host: host(t), Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Signal(syscall.SIGTERM); err == nil || errors.Is(err, unix.ESRCH) {
		t.Errorf("signal to a process that has ended: %v", err)
	}
}
