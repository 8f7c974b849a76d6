package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"netsplit/inference/store"
	"netsplit/model"
)

// withStore changes the store of a runs directory, and returns the ids of its campaigns.
func withStore(t *testing.T, runsDir string, put ...string) (campaigns string) {
	t.Helper()
	s, err := store.Open(storePath(runsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range put {
		err = errors.Join(err, s.PutCampaign(model.Campaign{ID: id, State: model.CampaignDone, Spec: model.CampaignSpec{Target: "gossip"}}))
	}
	list, _, lerr := s.ListCampaigns(model.CampaignFilter{}, 0, "")
	if err = errors.Join(err, lerr, s.Close()); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

// aDaemon serves a runs directory until stop is called. It makes no runs.
func aDaemon(t *testing.T, runsDir string) (api string, stop func()) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "api", "s")
	ctx, cancel := context.WithCancel(context.Background())
	var stdout, stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--runs-dir", runsDir, "--listen", "127.0.0.1:0", "--socket", socket, "--cluster-address", "127.0.0.1:0"}, strings.NewReader(""), &stdout, &stderr)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != exitPass {
			t.Errorf("the daemon ended with %d: %s", code, &stderr)
		}
	})
	t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if code, _, _ := cli(t, "campaign", "list", "--api", "unix:"+socket); code == exitPass {
			return "unix:" + socket, stop
		}
		if time.Now().After(end) {
			t.Fatal("the daemon does not answer")
		}
	}
}

// expects runs a command, which must end with a status and say something.
func expects(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	got, out, errs := cli(t, args...)
	if got != code || !strings.Contains(out+errs, says) {
		t.Errorf("netsplit %s: exit %d, %s%s: want %d and %q", strings.Join(args, " "), got, out, errs, code, says)
	}
}

// TestStoreCommands: a copy is made beside the daemon and alone, and restored alone; the store
// is compacted alone. What was there is kept.
func TestStoreCommands(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	withStore(t, dir, "c-1")
	api, stop := aDaemon(t, dir)
	first, second := filepath.Join(copies, "first"), filepath.Join(copies, "second")
	expects(t, exitPass, first+": ", "store", "backup", first, "--api", api)
	if st, err := os.Stat(first); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	expects(t, exitUsage, first+" is there already: name a new file", "store", "backup", first, "--api", api)
	expects(t, exitFailed, "no such file", "store", "backup", filepath.Join(copies, "none", "x"), "--api", api)
	for _, args := range [][]string{{"restore", first}, {"compact"}, {"backup", second}} {
		expects(t, exitFailed, "in use by another netsplit", append(append([]string{"store"}, args...), "--runs-dir", dir)...)
		expects(t, exitFailed, "use that one (--api "+api+")", append(append([]string{"store"}, args...), "--runs-dir", dir)...)
	}
	stop()
	if all := withStore(t, dir, "c-2"); all != "c-2 c-1" {
		t.Errorf("after what was refused the store has %s", all)
	}
	expects(t, exitPass, second+": ", "store", "backup", second, "--runs-dir", dir)
	expects(t, exitUsage, "is there already", "store", "backup", second, "--runs-dir", dir)
	expects(t, exitPass, storePath(dir)+" is restored from "+first, "store", "restore", first, "--runs-dir", dir)
	if all := withStore(t, dir); all != "c-1" {
		t.Errorf("the first copy has %s", all)
	}
	kept, err := filepath.Glob(storePath(dir) + ".before-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	expects(t, exitPass, "the store before is "+storePath(dir)+".before-", "store", "restore", kept[0], "--runs-dir", dir)
	if all := withStore(t, dir); all != "c-2 c-1" {
		t.Errorf("what was kept has %s", all)
	}
	elsewhere := filepath.Join(t.TempDir(), "new", "runs")
	expects(t, exitPass, "is restored", "store", "restore", second, "--runs-dir", elsewhere)
	if all := withStore(t, elsewhere); all != "c-2 c-1" {
		t.Errorf("the second copy has %s", all)
	}
	expects(t, exitPass, storePath(dir)+": ", "store", "compact", "--runs-dir", dir)
	if all := withStore(t, dir); all != "c-2 c-1" {
		t.Errorf("compacted, the store has %s", all)
	}
}

// TestStoreCommandsOnWrongFiles change nothing, and say what is wrong.
func TestStoreCommandsOnWrongFiles(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	withStore(t, dir, "c-1")
	before, err := os.ReadFile(storePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(files, name) }
	other, err := bolt.Open(at("other"), 0o600, nil)
	if err == nil {
		err = other.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("of another program")); return err })
	}
	err = errors.Join(err, other.Close(), os.WriteFile(at("garbage"), bytes.Repeat([]byte("x"), 100_000), 0o600), os.WriteFile(at("empty"), nil, 0o600),
		os.WriteFile(at("half"), before[:len(before)/2], 0o600), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"none": "no such file", "garbage": "cannot be restored", "empty": "cannot be restored", "half": "cannot be restored",
		"other": "cannot be restored", "folder": "no file that store backup made", "fifo": "no file that store backup made"} {
		expects(t, exitFailed, says, "store", "restore", at(name), "--runs-dir", dir)
		if now, err := os.ReadFile(storePath(dir)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("%s: the store was changed: %v", name, err)
		}
	}
	mistyped := filepath.Join(t.TempDir(), "mistyped")
	expects(t, exitFailed, "no such file", "store", "restore", at("none"), "--runs-dir", mistyped)
	expects(t, exitUsage, "no store in --runs-dir", "store", "compact", "--runs-dir", mistyped)
	expects(t, exitUsage, "no store in --runs-dir", "store", "backup", at("copy"), "--runs-dir", mistyped)
	for _, path := range []string{mistyped, at("copy")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	if err := os.WriteFile(storePath(dir), bytes.Repeat([]byte("x"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	expects(t, exitFailed, "damaged", "store", "compact", "--runs-dir", dir)
	expects(t, exitFailed, "damaged", "store", "backup", at("copy"), "--runs-dir", dir)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.Contains(f, ".restored") || strings.Contains(f, ".compact") || strings.Contains(f, ".new") {
			t.Errorf("%s stays: %s", f, fmt.Sprint(left))
		}
	}
}
