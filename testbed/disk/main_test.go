package disk

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"netsplit/model"
	"netsplit/testbed/proc"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == proc.ConfineVerb {
		os.Exit(proc.ConfineMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == dyingArg {
		os.Exit(dying(os.Args[2]))
	}
	code := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// source is a program that knows nothing of the gate. It does what its standard input
// says, a line each, and prints what came of it.
const source = `package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

func number(s string) int { n, err := strconv.Atoi(s); if err != nil { panic(err) }; return n }

func say(n int, err error) {
	if e, ok := err.(syscall.Errno); ok && e != 0 { fmt.Println(n, int(e)); return }
	if err != nil && err != syscall.Errno(0) { fmt.Println(n, err); return }
	fmt.Println(n, "ok")
}

func raw(call uintptr, a ...uintptr) (int, error) {
	for len(a) < 6 { a = append(a, 0) }
	n, _, e := syscall.Syscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 { return -1, e }
	return int(n), nil
}

func main() {
	files := map[string]int{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		w := strings.Fields(in.Text())
		switch w[0] {
		case "open":
			fd, err := syscall.Open(w[2], number(w[3]), 0o644)
			files[w[1]] = fd
			say(0, err)
		case "openat2":
			name, err := syscall.BytePtrFromString(w[2])
			if err != nil { panic(err) }
			how := [3]uint64{uint64(number(w[3]))}
			if number(w[3])&os.O_CREATE != 0 { how[1] = 0o644 }
			at := -100
			fd, err := raw(437, uintptr(at), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), 24)
			files[w[1]] = fd
			say(0, err)
		case "openat": // below an open folder
			fd, err := syscall.Openat(files[w[2]], w[3], number(w[4]), 0o644)
			files[w[1]] = fd
			say(0, err)
		case "write":
			say(syscall.Write(files[w[1]], []byte(w[2])))
		case "pwrite":
			say(syscall.Pwrite(files[w[1]], []byte(w[2]), int64(number(w[3]))))
		case "writev":
			var v []syscall.Iovec
			for _, part := range w[2:] {
				b := []byte(part)
				v = append(v, syscall.Iovec{Base: &b[0], Len: uint64(len(b))})
			}
			say(raw(syscall.SYS_WRITEV, uintptr(files[w[1]]), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v))))
		case "sync":
			say(0, syscall.Fsync(files[w[1]]))
		case "datasync":
			say(0, syscall.Fdatasync(files[w[1]]))
		case "close":
			say(0, syscall.Close(files[w[1]]))
		case "ftruncate":
			say(0, syscall.Ftruncate(files[w[1]], int64(number(w[2]))))
		case "truncate":
			say(0, syscall.Truncate(w[1], int64(number(w[2]))))
		case "fallocate":
			say(0, syscall.Fallocate(files[w[1]], uint32(number(w[2])), 0, int64(number(w[3]))))
		case "rename":
			say(0, syscall.Rename(w[1], w[2]))
		case "unlink":
			say(0, syscall.Unlink(w[1]))
		case "mapped": // text, at the beginning: by memory, and synced so
			m, err := syscall.Mmap(files[w[1]], 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			if err != nil { say(0, err); break }
			copy(m, w[2])
			say(raw(syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&m[0])), 4096, syscall.MS_SYNC))
		case "chdir":
			say(0, syscall.Chdir(w[1]))
		case "copy": // from, to, bytes
			say(syscall.Sendfile(files[w[2]], files[w[1]], nil, number(w[3])))
		case "uring":
			say(raw(425, 8, uintptr(unsafe.Pointer(new([120]byte)))))
		case "threads": // name, how many, how often each
			var all sync.WaitGroup
			var bad sync.Map
			for i := range number(w[2]) {
				all.Add(1)
				go func() {
					defer all.Done()
					for range number(w[3]) {
						if n, err := syscall.Write(files[w[1]], []byte("x")); n != 1 || err != nil { bad.Store(i, err) }
					}
				}()
			}
			all.Wait()
			n := 0
			bad.Range(func(any, any) bool { n++; return true })
			say(n, nil)
		case "sh":
			out, err := exec.Command("sh", "-c", strings.Join(w[1:], " ")).CombinedOutput()
			fmt.Printf("%q %v\n", out, err)
		}
	}
}
`

// program is the static binary of source.
var program = sync.OnceValues(func() (string, error) { return build("program", source) })

// build makes a static binary.
func build(name, source string, env ...string) (string, error) {
	dir, err := programs()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", name, file)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GO111MODULE=off")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, name), nil
}

var programDir string

// programs is where the binaries are, which all users reach.
var programs = sync.OnceValues(func() (string, error) {
	var err error
	if programDir, err = os.MkdirTemp("", "netsplit-disk-"); err != nil {
		return "", err
	}
	return programDir, os.Chmod(programDir, 0o755)
})

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the gate reads the memory of programs and copies their descriptors: run this test as root")
	}
}

// gate is a gate for the test, of host n1.
func gate(t testing.TB, decide func(model.FileOperation) Answer, folders ...string) *Gate {
	t.Helper()
	return remembering(t, nil, decide, folders...)
}

// remembering is one that knows what was not synced.
func remembering(t testing.TB, u *Unsynced, decide func(model.FileOperation) Answer, folders ...string) *Gate {
	t.Helper()
	needRoot(t)
	g, err := New(Config{Host: model.TestbedHost{Name: "n1"}, Process: "p", Folders: folders, Decide: decide, Unsynced: u})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// talk is a conversation with the program of source under a gate.
type talk struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts the program so; its end and that of the gate are the test's.
func start(t testing.TB, g *Gate, wrap func(argv []string) []string) *talk {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{path}
	if wrap != nil {
		argv = wrap(argv)
	}
	argv = g.Argv("/proc/self/exe", argv...)
	argv[0] = self(t)
	k := &talk{t: t, cmd: exec.Command(argv[0], argv[1:]...)}
	k.cmd.Stderr = os.Stderr
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.out = bufio.NewReader(out)
	if err := proc.StartCommand(k.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.in.Close()
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
	})
	return k
}

func self(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// do has the program do lines, and compares what it says; "" is not compared.
func (k *talk) do(lines ...string) {
	k.t.Helper()
	for i := 0; i < len(lines); i += 2 {
		if got := k.ask(lines[i]); lines[i+1] != "" && got != lines[i+1] {
			k.t.Errorf("%s: %q, want %q", lines[i], got, lines[i+1])
		}
	}
}

// ask has the program do a line; "" if it does not answer any more.
func (k *talk) ask(line string) string {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.in, line); err != nil {
		return ""
	}
	got, err := k.out.ReadString('\n')
	if err != nil && err != io.EOF {
		k.t.Fatal(err)
	}
	return strings.TrimSuffix(got, "\n")
}

// killed ends the program.
func (k *talk) killed() {
	k.t.Helper()
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}
