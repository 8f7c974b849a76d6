package store_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"netsplit/e2e/need"
	"netsplit/inference/store"
	"netsplit/model"
)

// child is set in a copy of this test binary that plays another process.
const child = "NETSPLIT_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch path := os.Getenv("NETSPLIT_STORE_TEST_PATH"); os.Getenv(child) {
	case "write":
		childWrite(path)
	case "hold":
		childHold(path)
	default:
		os.Exit(m.Run())
	}
}

// childWrite commits run after run and says which are committed.
func childWrite(path string) {
	s, err := store.Open(path)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	have, err := s.Inputs("c")
	for i := len(have); err == nil; i++ {
		if err = s.StartRun(run("c", i).RunMeta); err != nil {
			break
		}
		err = s.Update(func(tx *store.Tx) error {
			return errors.Join(tx.PutRun(run("c", i)), tx.AppendInput("c", json.RawMessage(strconv.Itoa(i))))
		})
		fmt.Println("done", i)
	}
	fmt.Println("error", err)
	os.Exit(1)
}

func childHold(path string) {
	s, err := store.Open(path)
	if err == nil {
		err = s.SetAddress("http://127.0.0.1:7777")
	}
	fmt.Println("held", err)
	if err != nil {
		os.Exit(1)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent is gone
}

func start(t *testing.T, what, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+what, "NETSPLIT_STORE_TEST_PATH="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	noErr(t, err, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// What was committed is there after kill -9 at any moment, the moment of
// creation included, and what belongs together is there together.
func TestKillNine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "netsplit.db")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	last, crashes := -1, 0
	for round := range 25 {
		cmd, lines := start(t, "write", path)
		timer := time.AfterFunc(time.Duration(rng.IntN(120))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		for lines.Scan() {
			n, ok := strings.CutPrefix(lines.Text(), "done ")
			if !ok {
				t.Fatalf("round %d: %s", round, lines.Text())
			}
			last, _ = strconv.Atoi(n)
		}
		timer.Stop()
		_ = cmd.Wait()
		s, err := store.Open(path)
		noErr(t, err)
		inputs := must(s.Inputs("c"))(t)
		if len(inputs) < last+1 {
			t.Fatalf("round %d: %d committed, %d found", round, last+1, len(inputs))
		}
		var rows []model.RunRow
		for cursor := ""; ; {
			list, next, err := s.ListRuns(model.RunFilter{Campaign: "c"}, store.MaxLimit, cursor)
			noErr(t, err)
			rows = append(rows, list...)
			if cursor = next; next == "" {
				break
			}
		}
		runs := 0
		for _, r := range slices.Backward(rows) {
			if r.Run != run("c", runs).Run {
				t.Fatalf("round %d: run %d is %s", round, runs, r.Run)
			}
			runs++
		}
		if runs != len(inputs) {
			t.Fatalf("round %d: %d runs but %d inputs: an Update was torn", round, runs, len(inputs))
		}
		unfinished := must(s.UnfinishedRuns())(t)
		if len(unfinished) > 1 || (len(unfinished) == 1 && unfinished[0].Run != run("c", runs).Run) {
			t.Fatalf("round %d: %d runs, unfinished %+v", round, runs, unfinished)
		}
		crashes += len(unfinished)
		noErr(t, s.Close())
	}
	if last < 10 {
		t.Errorf("only %d commits in all rounds: the test did not test", last+1)
	}
	t.Logf("%d commits, %d rounds ended inside a run", last+1, crashes)
}

func TestSecondOpenerIsToldWhoHoldsTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "netsplit.db")
	cmd, lines := start(t, "hold", path)
	if !lines.Scan() || lines.Text() != "held <nil>" {
		t.Fatal(lines.Text())
	}
	begin := time.Now()
	_, err := store.Open(path)
	var held *store.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	if held.PID != cmd.Process.Pid || held.Address != "http://127.0.0.1:7777" {
		t.Errorf("held by %+v, want pid %d", held, cmd.Process.Pid)
	}
	for _, part := range []string{path, strconv.Itoa(cmd.Process.Pid), "http://127.0.0.1:7777", "stop it", "--store"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if d := time.Since(begin); d < 900*time.Millisecond {
		t.Errorf("gave up after %v: a daemon that is just stopping was not waited for", d)
	}
	noErr(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s, err := store.Open(path)
	noErr(t, err)
	// The side file of the killed holder must not speak for this process.
	_, err = store.Open(path)
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Address != "" {
		t.Errorf("got %v", err)
	}
	noErr(t, s.Close())
}

func fill(t *testing.T, path string, n int) {
	t.Helper()
	s, err := store.Open(path)
	noErr(t, err)
	noErr(t, s.Update(func(tx *store.Tx) error {
		for i := range n {
			if err := tx.PutRun(run("c", i)); err != nil {
				return err
			}
		}
		return nil
	}), s.Close())
}

// Cut short at any length, or with a page overwritten, the file is reported as
// damaged; the process lives and the lock is let go.
func TestDamagedFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.db")
	fill(t, whole, 400)
	data, err := os.ReadFile(whole)
	noErr(t, err)
	db, err := bolt.Open(whole, 0o600, nil)
	noErr(t, err)
	noErr(t, db.View(func(tx *bolt.Tx) error { data = data[:tx.Size()]; return nil }), db.Close())
	noErr(t, os.Truncate(whole, int64(len(data))))
	readAll := func(path string) error {
		s, err := store.Open(path)
		if err != nil {
			return err
		}
		_, _, err = s.ListRuns(model.RunFilter{Campaign: "c"}, store.MaxLimit, "")
		return errors.Join(err, s.Close())
	}
	noErr(t, readAll(whole))
	cuts := []int{0, 1, 100, 4096, 8192, 8200, 3 * 4096, len(data) / 2, len(data) - 1}
	for _, n := range cuts {
		path := filepath.Join(t.TempDir(), "cut.db")
		noErr(t, os.WriteFile(path, data[:n], 0o600))
		err := readAll(path)
		if !errors.Is(err, model.ErrDamaged) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(data), err)
			continue
		}
		if !strings.Contains(err.Error(), "backup") {
			t.Errorf("cut to %d: %q does not say what to do", n, err)
		}
		if st, _ := os.Stat(path); st.Size() != int64(n) {
			t.Errorf("cut to %d: opening changed the file", n)
		}
		// The lock is free: a whole file put in its place opens.
		noErr(t, os.WriteFile(path, data, 0o600), readAll(path))
	}
	// Garbage in every page after the two meta pages.
	for page := 2; page < len(data)/4096; page++ {
		path := filepath.Join(t.TempDir(), "rot.db")
		bad := append([]byte{}, data...)
		for i := page * 4096; i < (page+1)*4096; i++ {
			bad[i] = 0xff
		}
		noErr(t, os.WriteFile(path, bad, 0o600))
		if err := readAll(path); err != nil && !errors.Is(err, model.ErrDamaged) {
			t.Errorf("page %d overwritten: %v", page, err)
		}
	}
}

func TestFileCutShortWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "netsplit.db")
	fill(t, path, 400)
	s, err := store.Open(path)
	noErr(t, err)
	noErr(t, os.Truncate(path, 8192))
	if _, _, err := s.ListRuns(model.RunFilter{Campaign: "c"}, store.MaxLimit, ""); !errors.Is(err, model.ErrDamaged) {
		t.Errorf("read: %v", err)
	}
	if err := s.PutRun(run("c", 1)); !errors.Is(err, model.ErrDamaged) {
		t.Errorf("write: %v", err)
	}
	noErr(t, s.Close())
}

// TestALongValueCutShortWhileOpen: its last pages are gone, those of the tree are there.
func TestALongValueCutShortWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "netsplit.db")
	s, err := store.Open(path)
	noErr(t, err)
	long := model.RunMeta{Campaign: "c", Run: "c-r0001", Target: strings.Repeat("x", 64<<10)}
	noErr(t, s.StartRun(long), s.Close())
	damaged := 0
	for size := int64(8192); size < 40*4096; size += 4096 {
		cut := filepath.Join(t.TempDir(), "cut.db")
		data, err := os.ReadFile(path)
		noErr(t, err, os.WriteFile(cut, data, 0o600))
		s, err := store.Open(cut)
		noErr(t, err, os.Truncate(cut, size))
		_, err = s.UnfinishedRuns()
		if errors.Is(err, model.ErrDamaged) {
			damaged++
		} else if err != nil {
			t.Errorf("cut to %d: %v", size, err)
		}
		noErr(t, s.Close())
	}
	if damaged < 16 {
		t.Errorf("%d of 38 were found damaged, fewer than the value has pages", damaged)
	}
}

func TestForeignAndNewerFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	noErr(t, os.WriteFile(text, []byte(strings.Repeat("this is no store\n", 1000)), 0o600))
	if _, err := store.Open(text); !errors.Is(err, model.ErrDamaged) {
		t.Errorf("text file: %v", err)
	}
	if _, err := store.Open(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("folder: %v", err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	db, err := bolt.Open(foreign, 0o600, nil)
	noErr(t, err, db.Close())
	if _, err := store.Open(foreign); err == nil || !strings.Contains(err.Error(), "not one of netsplit") {
		t.Errorf("foreign bbolt file: %v", err)
	}
	newer := filepath.Join(dir, "newer.db")
	fill(t, newer, 1)
	db, err = bolt.Open(newer, 0o600, nil)
	noErr(t, err)
	noErr(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("meta"), []byte(`{"schema":99,"creator":"v9.1"}`))
	}), db.Close())
	_, err = store.Open(newer)
	if err == nil || !strings.Contains(err.Error(), "schema 99") || !strings.Contains(err.Error(), "v9.1") || !strings.Contains(err.Error(), fmt.Sprintf("up to %d", store.Schema)) {
		t.Errorf("newer schema: %v", err)
	}
}

// On a full disk a write fails with what to do, nothing recorded is lost,
// reads go on, and once there is room so do writes.
func TestFullDisk(t *testing.T) {
	need.Root(t, "mount a small tmpfs")
	dir := t.TempDir()
	if err := syscall.Mount("netsplit-store-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	filler := filepath.Join(dir, "filler")
	noErr(t, os.WriteFile(filler, make([]byte, 1<<20), 0o600))
	path := filepath.Join(dir, "netsplit.db")
	s, err := store.Open(path)
	noErr(t, err)
	defer s.Close()
	blob := json.RawMessage(`"` + strings.Repeat("x", 20_000) + `"`)
	kept := 0
	for ; kept < 500; kept++ {
		if err = s.AppendInput("c", blob); err != nil {
			break
		}
	}
	if !errors.Is(err, model.ErrFull) || !strings.Contains(err.Error(), "make room") || !strings.Contains(err.Error(), path) {
		t.Fatalf("after %d writes: %v", kept, err)
	}
	check := func(want int) {
		t.Helper()
		if got := must(s.Inputs("c"))(t); len(got) != want {
			t.Errorf("%d inputs, want %d", len(got), want)
		}
	}
	check(kept)
	_ = s.Update(func(*store.Tx) error { return errors.New("a caller's") })
	if got := s.WriteError(); !errors.Is(got, model.ErrFull) {
		t.Errorf("the last write failed: %v", got)
	}
	noErr(t, os.Remove(filler))
	noErr(t, s.AppendInput("c", blob))
	noErr(t, s.WriteError())
	_ = s.Update(func(*store.Tx) error { return errors.New("a caller's") })
	noErr(t, s.WriteError())
	check(kept + 1)
	noErr(t, s.Close())
	s, err = store.Open(path)
	noErr(t, err)
	check(kept + 1)
	noErr(t, s.Close())
	// A store that cannot be made leaves nothing behind.
	noErr(t, os.WriteFile(filler, nil, 0o600))
	f, err := os.OpenFile(filler, os.O_WRONLY, 0)
	noErr(t, err)
	for err = nil; err == nil; {
		_, err = f.Write(make([]byte, 4096))
	}
	noErr(t, f.Close())
	if _, err := store.Open(filepath.Join(dir, "second.db")); !errors.Is(err, model.ErrFull) {
		t.Errorf("make a store on a full disk: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*second*"))
	noErr(t, err)
	hidden, err := filepath.Glob(filepath.Join(dir, ".*second*"))
	noErr(t, err)
	if len(left)+len(hidden) > 0 {
		t.Errorf("left behind: %v %v", left, hidden)
	}
}

func TestMaxSize(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "netsplit.db"), store.WithMaxSize(1<<20))
	noErr(t, err)
	defer s.Close()
	blob := json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
	n := 0
	for ; n < 100 && err == nil; n++ {
		err = s.AppendInput("c", blob)
	}
	if !errors.Is(err, model.ErrFull) {
		t.Errorf("after %d writes: %v", n, err)
	}
	if got := must(s.Inputs("c"))(t); len(got) != n-1 {
		t.Errorf("%d inputs, want %d", len(got), n-1)
	}
}
