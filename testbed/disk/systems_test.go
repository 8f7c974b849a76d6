package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
	"netsplit/testbed/proc"
)

// served is a Redis under a gate that keeps an append-only file.
func served(t *testing.T, decide func(model.FileOperation) Answer, fsync string) (cli func(args ...string) string, ended func() (proc.Status, string), aof string) {
	t.Helper()
	return servedIn(t, t.TempDir(), nil, decide, fsync)
}

// servedIn is one in a folder, with what it did not sync.
func servedIn(t *testing.T, dir string, u *Unsynced, decide func(model.FileOperation) Answer, fsync string) (cli func(args ...string) string, ended func() (proc.Status, string), aof string) {
	t.Helper()
	for _, p := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%v: install it, see make setup", err)
		}
	}
	data, socket, log := filepath.Join(dir, "data"), filepath.Join(dir, "s"), filepath.Join(dir, "log")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	g := remembering(t, u, decide, data)
	p, err := proc.Start(proc.Spec{Host: model.TestbedHost{Name: "n1"}, LogPath: log,
		Argv: g.Argv(self(t), "redis-server", "--port", "0", "--unixsocket", socket, "--dir", data, "--save", "", "--appendonly", "yes", "--appendfsync", fsync)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Kill(); err != nil {
			t.Error(err)
		}
		closed(t, g)
	})
	cli = func(args ...string) string {
		out, _ := exec.Command("redis-cli", append([]string{"-s", socket}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	for cli("ping") != "PONG" {
		select {
		case <-p.Done():
			t.Fatalf("redis-server ended with %v: %s", p.Status(), content(t, log))
		case <-time.After(10 * time.Millisecond):
		}
	}
	ended = func() (proc.Status, string) {
		<-p.Done()
		return p.Status(), content(t, log)
	}
	return cli, ended, filepath.Join(data, "appendonlydir", "appendonly.aof.1.incr.aof")
}

// TestRedisAndTheThirdSync: Redis promises with appendfsync always that what it
// acknowledged is on disk, so it does not acknowledge the third write, and ends.
func TestRedisAndTheThirdSync(t *testing.T) {
	cli, ended, _ := served(t, at(model.FileTrigger{Op: model.FileSync, Path: "appendonlydir/*.incr.aof", Nth: 3}, Fail(unix.EIO)), "always")
	for _, want := range []string{"OK", "OK", ""} {
		if got := cli("set", "k", "v"); got != want && (want != "" || got == "OK") {
			t.Errorf("set: %q, want %q", got, want)
		}
	}
	if st, log := ended(); st.Code != 1 || !strings.Contains(log, "Input/output error") || !strings.Contains(log, "fsync") {
		t.Errorf("it ended with %v: %s", st, log)
	}
}

// TestRedisAndAShortWrite: a disk takes the first bytes of a write and has no room for
// the rest. Redis cuts what it wrote off its file, and writes all again a second later.
func TestRedisAndAShortWrite(t *testing.T) {
	var h heard
	write := model.FileTrigger{Op: model.FileWrite, Path: "appendonlydir/*.incr.aof", Nth: 2}
	first, rest := counter{FileTrigger: write}, counter{FileTrigger: write}
	rest.Nth = 3
	cli, _, aof := served(t, func(e model.FileOperation) Answer {
		h.add(e)
		isFirst, isRest := first.fires(e), rest.fires(e)
		switch {
		case isFirst:
			return Short(7)
		case isRest:
			return Fail(unix.ENOSPC)
		}
		return Pass()
	}, "everysec")
	if got := cli("set", "k", "1"); got != "OK" {
		t.Fatal(got)
	}
	before := content(t, aof)
	cli("set", "k", "2")
	want := "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\n2\r\n"
	for !strings.HasSuffix(content(t, aof), want) {
		time.Sleep(10 * time.Millisecond)
	}
	if got := content(t, aof); got != before+want {
		t.Errorf("the file holds %q", got)
	}
	const path = "appendonlydir/appendonly.aof.#.incr.aof\n"
	if got, want := h.strings(), "write 27 bytes to "+path+"write 20 bytes to "+path+fmt.Sprintf("truncate %d bytes of ", len(before))+path+"write 27 bytes to "+path; !strings.Contains(got, want) {
		t.Errorf("%s\nwant in it\n%s", got, want)
	}
}

const javaSource = `import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
public class Committer {
	static void commit(FileChannel f, String s) {
		try {
			System.out.println(f.write(ByteBuffer.wrap(s.getBytes())));
			f.force(false);
			System.out.println("committed " + s);
		} catch (java.io.IOException e) {
			System.out.println(e);
		}
	}
	public static void main(String[] a) throws Exception {
		Thread t = new Thread(() -> {
			try (FileChannel f = FileChannel.open(Path.of(a[0], "log.1"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
				commit(f, "one"); commit(f, "two"); commit(f, "three"); commit(f, "four");
			} catch (java.io.IOException e) {
				System.out.println(e);
			}
		}, "Committer: log of n1");
		t.start(); t.join();
	}
}
`

// TestAJVMIsHeld: its threads have Java's names, its exceptions the errors.
func TestAJVMIsHeld(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Fatalf("%v: install it, see make setup-java", err)
	}
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "Committer.java")
	if err := os.WriteFile(file, []byte(javaSource), 0o600); err != nil {
		t.Fatal(err)
	}
	var h heard
	sync, write := counter{FileTrigger: model.FileTrigger{Op: model.FileSync, Thread: "Committer*", Nth: 2}}, counter{FileTrigger: model.FileTrigger{Op: model.FileWrite, Path: "log.#", Nth: 3}}
	kill := counter{FileTrigger: model.FileTrigger{Op: model.FileWrite, Thread: "Committer: log ", Nth: 4}}
	g := gate(t, func(e model.FileOperation) Answer {
		h.add(e)
		switch {
		case sync.fires(e):
			return Fail(unix.EIO)
		case write.fires(e):
			kill.fires(e)
			return Short(3)
		case kill.fires(e):
			return killed(t, e)
		}
		return Pass()
	}, dir)
	cmd := exec.Command(self(t), g.Argv("", "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", file, dir)[1:]...)
	out, err := cmd.Output()
	if want := "3\ncommitted one\n3\njava.io.IOException: Input/output error\n3\ncommitted three\n"; string(out) != want || err == nil || err.Error() != "signal: killed" {
		t.Errorf("%v: %q, want killed after %q", err, out, want)
	}
	if got := content(t, dir+"/log.1"); got != "onetwothr" {
		t.Errorf("the file holds %q", got)
	}
	want := "create log.#\nwrite 3 bytes to log.#\nsync log.#\nwrite 3 bytes to log.#\nsync log.#\nwrite 5 bytes to log.#\nsync log.#\nwrite 4 bytes to log.#\n"
	if got := h.strings(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	closed(t, g)
}

// TestRedisAndAPowerCut: what Redis acknowledged it still has if it syncs always, and
// not if it leaves that to the kernel.
func TestRedisAndAPowerCut(t *testing.T) {
	for fsync, want := range map[string]string{"always": "3", "no": ""} {
		dir := t.TempDir()
		var u Unsynced
		cut := counter{FileTrigger: model.FileTrigger{Op: model.FileWrite, Path: "appendonlydir/*.incr.aof", Nth: 4}}
		cli, ended, aof := servedIn(t, dir, &u, func(e model.FileOperation) Answer {
			if cut.fires(e) {
				return killed(t, e)
			}
			return Pass()
		}, fsync)
		for _, v := range []string{"1", "2", "3"} {
			if got := cli("set", "k", v); got != "OK" {
				t.Fatal(got)
			}
		}
		cli("set", "k", "4")
		if st, log := ended(); st.Signal != unix.SIGKILL {
			t.Fatalf("it ended with %v: %s", st, log)
		}
		losses, err := u.PowerCut()
		if err != nil {
			t.Fatal(err)
		}
		if lost := len(losses) == 1 && losses[0].Path == aof && losses[0].Kept == 0 && losses[0].Size > 0; lost != (fsync == "no") || len(losses) > 1 {
			t.Errorf("%s: lost %+v", fsync, losses)
		}
		cli, _, _ = servedIn(t, dir, &u, func(model.FileOperation) Answer { return Pass() }, fsync)
		if got := cli("get", "k"); got != want {
			t.Errorf("%s: afterwards it has %q, want %q", fsync, got, want)
		}
		u.Close()
	}
}
