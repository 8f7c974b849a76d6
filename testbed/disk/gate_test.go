package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
	"netsplit/testbed/proc"
)

// heard collects the events of a gate.
type heard struct {
	mu     sync.Mutex
	events []model.FileOperation
}

func (h *heard) add(e model.FileOperation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) strings() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, e := range h.events {
		b.WriteString(strings.TrimPrefix(e.String(), "n1 p: ") + "\n")
	}
	return b.String()
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func closed(t testing.TB, g *Gate) {
	t.Helper()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestEveryOperationIsHeldOnce, with its file as the program names it: absolute, below
// its working folder, below an open folder, through a symbolic link. Reading, other
// folders, pipes, devices and what does not exist are no events.
func TestEveryOperationIsHeldOnce(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Symlink(filepath.Join(dir, "sub"), filepath.Join(other, "link")),
		os.Symlink("sub", filepath.Join(dir, "near")), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var h heard
	g := gate(t, func(e model.FileOperation) Answer { h.add(e); return Pass() }, dir)
	k := start(t, g, nil)
	create, rdwr := fmt.Sprint(os.O_CREATE|os.O_RDWR), fmt.Sprint(os.O_RDWR)
	k.do("chdir "+dir, "0 ok",
		"open a "+dir+"/log.1 "+create, "0 ok",
		"open b sub/log.2 "+create, "0 ok",
		"open d "+dir+"/sub 0", "0 ok",
		"openat c d log.3 "+create, "0 ok",
		"openat e d ../near/log.3 "+rdwr, "0 ok",
		"open f "+other+"/link/log.4 "+create, "0 ok",
		"open r log.1 0", "0 ok",
		"openat2 r2 log.1 0", "0 ok",
		"openat2 w2 log.1 "+rdwr, "0 ok",
		"open x "+other+"/log.5 "+create, "0 ok",
		"open none "+dir+"/none "+rdwr, "0 2",
		"open null /dev/null "+rdwr, "0 ok",
		"open fifo fifo "+rdwr, "0 ok",
		"write a hello", "5 ok",
		"pwrite a HE 0", "2 ok",
		"writev a and all", "6 ok",
		"write x away", "4 ok",
		"write null gone", "4 ok",
		"write fifo gone", "4 ok",
		"copy r b 4", "4 ok",
		"sync a", "0 ok",
		"datasync a", "0 ok",
		"sync d", "0 ok",
		"ftruncate a 9", "0 ok",
		"truncate log.1 8", "0 ok",
		"fallocate c 0 4096", "0 ok",
		"fallocate c 3 4096", "0 ok",
		"sh cat log.1", `"HElloand" <nil>`,
		"rename log.1 "+other+"/old.1", "0 ok",
		"rename "+other+"/old.1 log.6", "0 ok",
		"rename sub under", "0 ok",
		"unlink under/log.2", "0 ok",
		"unlink none", "0 2",
		"write a still", "5 ok",
		"rename log.6 log.7", "0 ok", "open z log.7 "+rdwr, "0 ok", "unlink log.7", "0 ok", "write a more", "4 ok")
	k.in.Close()
	if err := k.cmd.Wait(); err != nil {
		t.Error(err)
	}
	closed(t, g)
	want := `create log.#
create sub/log.#
create sub/log.#
open sub/log.#
create sub/log.#
open log.#
write 5 bytes to log.#
write 2 bytes to log.#
write 6 bytes to log.#
copy 4 bytes to sub/log.#
sync log.#
sync log.#
sync sub/
truncate 9 bytes of log.#
truncate 8 bytes of log.#
allocate 4096 bytes of sub/log.#
truncate 4096 bytes of sub/log.#
rename log.# to ` + other + `/old.1
rename ` + other + `/old.1 to log.#
rename sub/ to under/
unlink under/log.#
write 5 bytes to log.#
rename log.# to log.#
open log.#
unlink log.#
write 4 bytes to log.#
`
	if got := h.strings(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, e := range h.events {
		if e.PID != k.cmd.Process.Pid || e.Thread != "program" || !strings.HasPrefix(e.Path, "/") {
			t.Errorf("%+v: not of process %d, or of thread %q", e, k.cmd.Process.Pid, e.Thread)
		}
	}
}

// counter counts the operations of a trigger.
type counter struct {
	model.FileTrigger
	seen int
}

// fires counts the operation if it matches, and says whether it is the nth.
func (c *counter) fires(e model.FileOperation) bool {
	if !c.Matches(&e) {
		return false
	}
	c.seen++
	return c.seen == c.Nth
}

// answer is that of a disk in that state.
func answer(k model.DiskFaultKind, e model.FileOperation) Answer {
	return Answered((&model.DiskFault{Kind: k}).Answer(&e))
}

// at answers so when the trigger fires, and lets all else pass.
func at(tr model.FileTrigger, a Answer) func(model.FileOperation) Answer {
	c := counter{FileTrigger: tr}
	return func(e model.FileOperation) Answer {
		if c.fires(e) {
			return a
		}
		return Pass()
	}
}

// TestTheNthOperationFails and no other; it leaves nothing behind.
func TestTheNthOperationFails(t *testing.T) {
	dir := t.TempDir()
	g := gate(t, at(model.FileTrigger{Op: model.FileWrite, Path: "wal.#", Nth: 2}, Fail(unix.EIO)), dir)
	k := start(t, g, nil)
	k.do("open o "+dir+"/other "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok",
		"open w "+dir+"/wal.7 "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok",
		"write w a", "1 ok", "write o a", "1 ok", "write o a", "1 ok", "write w b", fmt.Sprintf("-1 %d", unix.EIO), "write w c", "1 ok")
	if got := content(t, dir+"/wal.7"); got != "ac" {
		t.Errorf("the file holds %q", got)
	}
	closed(t, g)
}

// TestAShortWriteWritesWhatItSays at the place where the program's own would: at the
// file's position, at its end, or where pwrite says; across the parts of a vector.
func TestAShortWriteWritesWhatItSays(t *testing.T) {
	dir := t.TempDir()
	g := gate(t, func(e model.FileOperation) Answer {
		if e.Op == model.FileWrite && e.Bytes > 4 {
			return Short(4)
		}
		return Pass()
	}, dir)
	k := start(t, g, nil)
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_RDWR), "0 ok",
		"write f abcdefgh", "4 ok", "write f ef", "2 ok",
		"pwrite f ABCDEFGH 1", "4 ok", "write f gh", "2 ok",
		"writev f 12 345 6", "4 ok",
		"open g "+dir+"/f "+fmt.Sprint(os.O_WRONLY|os.O_APPEND), "0 ok",
		"write g uvwxyz", "4 ok")
	if got := content(t, dir+"/f"); got != "aABCDfgh1234uvwx" {
		t.Errorf("the file holds %q", got)
	}
	closed(t, g)
}

// TestAKillComesBeforeTheOperation, and a program that is started again under the same
// gate is held as the first was.
func TestAKillComesBeforeTheOperation(t *testing.T) {
	dir := t.TempDir()
	fourth := counter{FileTrigger: model.FileTrigger{Op: model.FileWrite, Thread: "prog*", Nth: 4}}
	g := gate(t, func(e model.FileOperation) Answer {
		if fourth.fires(e) {
			return killed(t, e)
		}
		return Pass()
	}, dir)
	k := start(t, g, nil)
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY|os.O_APPEND), "0 ok",
		"write f a", "1 ok", "write f b", "1 ok", "write f c", "1 ok", "write f d", "")
	_ = k.cmd.Wait()
	if ws := k.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", k.cmd.ProcessState)
	}
	if got := content(t, dir+"/f"); got != "abc" {
		t.Errorf("the file holds %q", got)
	}
	k = start(t, g, nil)
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_WRONLY|os.O_APPEND), "0 ok", "write f e", "1 ok")
	if got := content(t, dir+"/f"); got != "abce" {
		t.Errorf("the file holds %q", got)
	}
	closed(t, g)
}

// TestASignalDoesNotRepeatAnEvent: the call is not interrupted by it, so it is not
// begun again. Go sends such signals to its own threads.
func TestASignalDoesNotRepeatAnEvent(t *testing.T) {
	dir := t.TempDir()
	var h heard
	g := gate(t, func(e model.FileOperation) Answer {
		h.add(e)
		if err := unix.Tgkill(e.PID, e.TID, unix.SIGURG); err != nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond) // in which it would be interrupted
		return Pass()
	}, dir)
	k := start(t, g, nil)
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok", "write f abc", "3 ok", "write f de", "2 ok", "sync f", "0 ok")
	if got, want := h.strings(), "create f\nwrite 3 bytes to f\nwrite 2 bytes to f\nsync f\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	closed(t, g)
}

// TestThreadsAndChildrenAreHeld, each event once.
func TestThreadsAndChildrenAreHeld(t *testing.T) {
	dir := t.TempDir()
	var h heard
	g := gate(t, func(e model.FileOperation) Answer { h.add(e); return Pass() }, dir)
	k := start(t, g, nil)
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY|os.O_APPEND), "0 ok",
		"threads f 8 200", "0 ok",
		"sh echo child > "+dir+"/child", `"" <nil>`)
	closed(t, g)
	writes, child := 0, 0
	threads := map[int]bool{}
	for _, e := range h.events {
		switch {
		case e.Op == model.FileWrite && e.Kind == "f":
			writes++
			threads[e.TID] = true
			if e.PID != k.cmd.Process.Pid {
				t.Errorf("%+v: not of process %d", e, k.cmd.Process.Pid)
			}
		case e.Kind == "child" && e.Thread == "sh":
			child++
		}
	}
	if size := len(content(t, dir+"/f")); writes != 1600 || size != 1600 {
		t.Errorf("%d writes of 1600 were held, and the file has %d bytes", writes, size)
	}
	if len(threads) < 2 {
		t.Errorf("all writes came from one thread")
	}
	if child != 2 {
		t.Errorf("%d events of the child, want create and write: %s", child, h.strings())
	}
}

// TestIOUringIsDenied, so that programs take calls that the gate sees.
func TestIOUringIsDenied(t *testing.T) {
	g := gate(t, func(model.FileOperation) Answer { return Pass() }, t.TempDir())
	start(t, g, nil).do("uring", fmt.Sprintf("-1 %d", unix.ENOSYS))
	closed(t, g)
}

// TestA32BitProgramIsKilled, for its calls have other numbers.
func TestA32BitProgramIsKilled(t *testing.T) {
	bin, err := build("foreign", `package main

func main() { println("it runs") }
`, "GOARCH=386")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin).CombinedOutput(); err != nil {
		t.Fatalf("the kernel runs no 32-bit programs: %v: %s", err, out)
	}
	g := gate(t, func(model.FileOperation) Answer { return Pass() }, t.TempDir())
	cmd := exec.Command(self(t), g.Argv("", bin)[1:]...)
	out, _ := cmd.CombinedOutput()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGSYS || len(out) > 0 {
		t.Errorf("it ended with %v: %s", cmd.ProcessState, out)
	}
	closed(t, g)
}

// TestTheDeadAskNothing: a call is no event if its process was killed before it was
// decided.
func TestTheDeadAskNothing(t *testing.T) {
	dir := t.TempDir()
	var h heard
	var second *talk
	g := gate(t, func(e model.FileOperation) Answer {
		h.add(e)
		if e.Op == model.FileWrite {
			if _, err := fmt.Fprintln(second.in, "write f never"); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond) // in which that call waits its turn
			second.killed()
		}
		return Pass()
	}, dir)
	first := start(t, g, nil)
	second = start(t, g, nil)
	create := fmt.Sprint(os.O_CREATE | os.O_WRONLY)
	second.do("open f "+dir+"/f "+create, "0 ok")
	first.do("open g "+dir+"/g "+create, "0 ok", "write g abc", "3 ok", "sync g", "0 ok")
	if got, want := h.strings(), "create f\ncreate g\nwrite 3 bytes to g\nsync g\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	closed(t, g)
}

// TestAFullDisk refuses what needs room, and lets go of what it holds.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	full := false
	g := gate(t, func(e model.FileOperation) Answer {
		if e.Op == model.FileUnlink {
			full = false
			return Pass()
		}
		if full {
			return answer(model.DiskFull, e)
		}
		full = e.Op == model.FileSync
		return Pass()
	}, dir)
	k := start(t, g, nil)
	enospc := fmt.Sprint(" ", int(unix.ENOSPC))
	create := fmt.Sprint(os.O_CREATE | os.O_WRONLY)
	k.do("open f "+dir+"/f "+create, "0 ok", "write f abc", "3 ok", "sync f", "0 ok",
		"write f d", "-1"+enospc, "open g "+dir+"/g "+create, "0"+enospc, "fallocate f 0 100", "0"+enospc,
		"open f "+dir+"/f "+create, "0 ok", "sync f", "0 ok", "rename "+dir+"/f "+dir+"/h", "0 ok", "write f e", "-1"+enospc,
		"unlink "+dir+"/h", "0 ok", "write f f", "1 ok", "open g "+dir+"/g "+create, "0 ok")
	closed(t, g)
}

// TestASmallFileSystem of a program's own is full by itself: the gate sees files that
// only the program sees, and lets the kernel's errors through.
func TestASmallFileSystem(t *testing.T) {
	dir := t.TempDir()
	var h heard
	g := gate(t, func(e model.FileOperation) Answer { h.add(e); return Pass() }, dir)
	k := start(t, g, func(argv []string) []string {
		return append([]string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=8k none "$0" && echo x > "$0/f" && exec "$@"`, dir}, argv...)
	})
	k.do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok", "write f abc", "3 ok",
		"pwrite f abcd 8190", "2 ok", "pwrite f abcd 8192", fmt.Sprintf("-1 %d", unix.ENOSPC))
	if got, want := h.strings(), "create f\nwrite 2 bytes to f\nopen f\nwrite 3 bytes to f\nwrite 4 bytes to f\nwrite 4 bytes to f\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	closed(t, g)
}

// TestADiskThatIsGone fails everything, also after the program was started again.
func TestADiskThatIsGone(t *testing.T) {
	dir := t.TempDir()
	gone := false
	g := gate(t, func(e model.FileOperation) Answer {
		if gone = gone || e.Op == model.FileSync; gone {
			return answer(model.DiskGone, e)
		}
		return Pass()
	}, dir)
	eio := fmt.Sprint(" ", int(unix.EIO))
	create := fmt.Sprint(os.O_CREATE | os.O_WRONLY)
	k := start(t, g, nil)
	k.do("open f "+dir+"/f "+create, "0 ok", "write f abc", "3 ok", "sync f", "0"+eio, "sync f", "0"+eio, "write f d", "-1"+eio,
		"ftruncate f 0", "0"+eio, "rename "+dir+"/f "+dir+"/g", "0"+eio, "unlink "+dir+"/f", "0"+eio)
	k = start(t, g, nil)
	k.do("open f "+dir+"/f "+create, "0"+eio, "open r "+dir+"/f 0", "0 ok")
	if got := content(t, dir+"/f"); got != "abc" {
		t.Errorf("the file holds %q", got)
	}
	closed(t, g)
}

// TestTheEndOfTheGateIsLoud: what outlives it neither hangs nor goes on.
func TestTheEndOfTheGateIsLoud(t *testing.T) {
	dir := t.TempDir()
	g := gate(t, func(model.FileOperation) Answer { return Pass() }, dir)
	ready := make(chan string, 1)
	p, err := proc.Start(proc.Spec{Host: model.TestbedHost{Name: "n1"}, Input: true, OnStdout: func(_ time.Time, line string) { ready <- line },
		Argv: g.Argv(self(t), "sh", "-c", `echo ready; read go; echo no > "$0" || exit 7`, dir+"/f")})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	closed(t, g)
	p.CloseInput()
	if st := p.Status(); st.Code != 7 {
		t.Errorf("it ended with %v, want 7", st)
	}
	if _, err := os.Stat(dir + "/f"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it went on without the gate: %v", err)
	}
}

// TestADeadSupervisorIsLoud: the call that it held fails with ENOSYS, and so do all
// that come.
func TestADeadSupervisorIsLoud(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	cmd := exec.Command(self(t), dyingArg, dir)
	out, err := cmd.CombinedOutput()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	for _, left := range []string{"first", "second"} { // sh makes them when its writes failed
		for {
			if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, f := range []string{"f", "g"} {
		if _, err := os.Stat(filepath.Join(dir, f)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was made without the gate: %v", f, err)
		}
	}
}

// dyingArg makes this program a supervisor that dies over its first event.
const dyingArg = "dying"

func dying(dir string) int {
	g, err := New(Config{Host: model.TestbedHost{Name: "n1"}, Process: "p", Folders: []string{dir}, Decide: func(model.FileOperation) Answer {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}})
	if err == nil {
		argv := g.Argv("/proc/self/exe", "sh", "-c", `echo no > "$0/f" || mkdir "$0/first"; echo no > "$0/g" || mkdir "$0/second"`, dir)
		err = exec.Command(argv[0], argv[1:]...).Run()
	}
	fmt.Println(err)
	return 1
}

// TestWhatCannotBeHeld is refused, or leaves the run unknown.
func TestWhatCannotBeHeld(t *testing.T) {
	dir := t.TempDir()
	n1 := model.TestbedHost{Name: "n1"}
	for want, cfg := range map[string]Config{
		"another machine":        {Host: model.TestbedHost{Name: "n1", Exec: []string{"ssh", "n1"}}, Folders: []string{dir}},
		"no folder is named":     {Host: n1},
		"every file of the host": {Host: n1, Folders: []string{"/"}},
		"no such file or dire":   {Host: n1, Folders: []string{dir + "/none"}},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	for want, a := range map[string]Answer{"none": {}, "without an errno": Fail(0), "write 1 bytes only": Short(1), "write 0 bytes only": Short(0)} {
		g := gate(t, func(model.FileOperation) Answer { return a }, dir)
		start(t, g, nil).do("open f "+dir+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok", "write f a", "1 ok")
		if err := g.Close(); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errAnswer) {
			t.Errorf("%v: want %q", err, want)
		}
		if err := os.Remove(dir + "/f"); err != nil {
			t.Error(err)
		}
	}
	g := gate(t, func(model.FileOperation) Answer { return Pass() }, dir)
	out, err := exec.Command(self(t), g.Argv("", "/none/such")[1:]...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 127 || !strings.Contains(string(out), "/none/such") {
		t.Errorf("%v, %s", err, out)
	}
	closed(t, g)
}

// TestAConfinedProgramIsHeld: one that gave up root and sees other folders, with a
// change of both after the gate was installed.
func TestAConfinedProgramIsHeld(t *testing.T) {
	shut := filepath.Join(t.TempDir(), "shut")
	work := filepath.Join(shut, "work")
	if err := errors.Join(os.MkdirAll(work, 0o755), os.Chmod(shut, 0o700), os.Chown(work, 76653, 76653)); err != nil {
		t.Fatal(err)
	}
	var h heard
	g := gate(t, func(e model.FileOperation) Answer {
		h.add(e)
		if e.Bytes == 3 {
			return Short(2)
		}
		return Pass()
	}, work)
	id := proc.Identity{UID: 76653, GID: 76653, Show: []string{work}}
	k := start(t, g, func(argv []string) []string { return id.Argv(self(t), argv...) })
	k.do("sh id -u", `"76653\n" <nil>`,
		"open f "+work+"/f "+fmt.Sprint(os.O_CREATE|os.O_WRONLY), "0 ok", "write f abc", "2 ok", "write f c", "1 ok")
	if got, want := h.strings(), "create f\nwrite 3 bytes to f\nwrite 1 bytes to f\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := content(t, work+"/f"); got != "abc" {
		t.Errorf("the file holds %q", got)
	}
	closed(t, g)
}
