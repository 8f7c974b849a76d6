package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/model"
)

const (
	root     = "/t"                   // directory of all files
	pause    = 120 * time.Millisecond // between a user's operations
	patience = 25 * time.Second       // longest operation: the client retries by itself
)

// user is one user of the file system; users have directories of their own.
type user struct {
	*cluster
	sh       *shell
	id, life int
	patience time.Duration
	rng      *rand.Rand
	files    map[string]string // path by name, of those that were acknowledged
	known    []string          // names of files
	dirs     []string
	n        int
}

// content of a file: what it must be follows from the run's seed and its name.
func content(seed uint64, name string) []byte {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	b := make([]byte, 1+r.IntN(150_000)) // up to three blocks of 64 KiB
	const letters = "abcdefghijklmnopqrstuvwxyz012345"
	for i := range b {
		b[i] = letters[r.Uint32()&31]
	}
	return append([]byte(name+"\n"), b...)
}

// users has n users work side by side until the context ends.
func users(ctx context.Context, c *cluster, sh *shell, n int) {
	var wg sync.WaitGroup
	for i := range n {
		u := &user{cluster: c, sh: sh, id: i, patience: patience, rng: rand.New(rand.NewPCG(c.seed, uint64(i))), files: map[string]string{}}
		wg.Go(func() { u.live(ctx) })
	}
	wg.Wait()
}

func (u *user) live(ctx context.Context) {
	home := fmt.Sprintf("%s/u%d", root, u.id)
	for u.mkdir(home) != nil {
		if !wait(ctx, pause) {
			return
		}
	}
	u.dirs = []string{home}
	served := u.active.Load()
	// First a directory, then files in it, then all kinds of operations.
	for step := 0; ctx.Err() == nil; step++ {
		// Wait while a failover is under way. After it, check first the file that was
		// written last before it.
		for u.active.Load() == nil && wait(ctx, 50*time.Millisecond) {
		}
		if now := u.active.Load(); now != nil && now != served && len(u.known) > 0 {
			served = now
			u.checksumOf(u.known[len(u.known)-1])
		}
		kind := u.rng.IntN(10)
		switch {
		case step == 1 || kind == 0:
			d := fmt.Sprintf("%s/d%d", home, u.n)
			u.n++
			if u.mkdir(d) == nil {
				u.dirs = append(u.dirs, d)
			}
		case step < 3 || kind < 4 || len(u.known) == 0:
			u.write()
		case kind < 6:
			u.read()
		case kind < 8:
			u.checksum()
		case kind == 8:
			u.move()
		default:
			u.moveDir(home)
		}
		wait(ctx, max(pause, u.pause))
	}
}

// wait is false if the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (u *user) op(f, key string, needs []model.Need, do func() (string, error)) error {
	return u.out.do(model.Operation{Process: u.id, F: f, Key: key, Needs: needs}, do)
}

func (u *user) mkdir(dir string) error {
	return u.op("mkdir", dir, u.names(), func() (string, error) { return u.sh.runQuiet(u, "-mkdir", "-p", dir) })
}

func (u *user) write() {
	name := fmt.Sprintf("f%d-%03d", u.id, u.n)
	u.n++
	u.writeAs("write", name, path.Join(u.dirs[u.rng.IntN(len(u.dirs))], name))
}

func (u *user) writeAs(f, name, to string) {
	local := filepath.Join(u.dir, name)
	if err := os.WriteFile(local, content(u.seed, name), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "write a file to upload:", err)
		return
	}
	defer os.Remove(local)
	if u.op(f, name, u.data(), func() (string, error) { return u.sh.runQuiet(u, "-put", local, to) }) == nil {
		u.files[name] = to
		u.known = append(u.known, name)
	}
}

func (u *user) any() (name, path string) {
	name = u.known[u.rng.IntN(len(u.known))]
	return name, u.files[name]
}

func (u *user) read() {
	name, _ := u.any()
	_ = u.readOf(name)
}

func (u *user) readOf(name string) error {
	path := u.files[name]
	return u.op("read", name, u.data(), func() (string, error) {
		got, err := u.sh.run(u, "-cat", path)
		if err == nil && got != string(content(u.seed, name)) {
			err = fmt.Errorf("changed: %s has other contents than were written (%d bytes)", path, len(got))
		}
		return "", err
	})
}

func (u *user) checksum() {
	name, _ := u.any()
	u.checksumOf(name)
}

// extraProcess is added to a user's id: the process of his operations that may overlap his
// others.
const extraProcess = 1000

// noReplica begins the error of a checksum for which the DataNodes that the
// NameNode named did not answer, or for which it named none.
const noReplica = "Fail-to-get"

// checksumOf requests a checksum. If HDFS finds no replica, it reads the whole file. If that
// succeeds, a replica existed, and the error has no excuse: it is recorded once more, as an
// operation "checksum-of-readable" from the request of the checksum on, which needs a link to
// every DataNode.
func (u *user) checksumOf(name string) {
	began := time.Now()
	err := u.op("checksum", name, u.data(), func() (string, error) { return u.sh.runQuiet(u, "-checksum", u.files[name]) })
	if err == nil || !strings.HasPrefix(err.Error(), noReplica) || u.readOf(name) != nil {
		return
	}
	u.out.did(began, model.Operation{Process: u.id + extraProcess, F: "checksum-of-readable", Key: name, Needs: u.here()}, err)
}

func (u *user) move() {
	name, from := u.any()
	to := path.Join(u.dirs[u.rng.IntN(len(u.dirs))], name)
	if to == from {
		return
	}
	err := u.op("move", name, u.names(), func() (string, error) { return u.sh.runQuiet(u, "-mv", from, to) })
	if err != nil { // it may be in either place: leave it to the final read
		u.forget(name)
		return
	}
	u.files[name] = to
}

func (u *user) moveDir(home string) {
	if len(u.dirs) < 2 {
		return
	}
	i := 1 + u.rng.IntN(len(u.dirs)-1)
	from, to := u.dirs[i], fmt.Sprintf("%s/d%d", home, u.n)
	u.n++
	err := u.op("move", to, u.names(), func() (string, error) { return u.sh.runQuiet(u, "-mv", from, to) })
	u.dirs = slices.Delete(u.dirs, i, i+1)
	if err == nil {
		u.dirs = append(u.dirs, to)
	}
	for _, name := range slices.Clone(u.known) {
		switch p := u.files[name]; {
		case path.Dir(p) != from:
		case err == nil:
			u.files[name] = path.Join(to, name)
		default:
			u.forget(name)
		}
	}
}

func (u *user) forget(name string) {
	delete(u.files, name)
	u.known = slices.DeleteFunc(u.known, func(s string) bool { return s == name })
}

// runQuiet is run for commands whose output does not matter.
func (s *shell) runQuiet(u *user, words ...string) (string, error) {
	_, err := s.run(u, words...)
	return "", err
}

func workAll(ctx context.Context, c *cluster, workload string, n int) error {
	a := &admin{cluster: c, rng: rand.New(rand.NewPCG(c.seed, 1<<32))}
	var act func(context.Context)
	switch workload {
	case "files":
		act = func(context.Context) {}
	case "failover":
		act = a.failovers
	case "datanode":
		act = a.datanode
	case "shutdown":
		act = a.shutdown
	default:
		return fmt.Errorf("workload %q: use files, failover, datanode or shutdown", workload)
	}
	if workload == "shutdown" && c.newcomer == "" {
		return errors.New("workload shutdown: there is no DataNode to add; use the target hdfs")
	}
	if workload == "failover" && len(c.nns) != 2 {
		return errors.New("workload failover: there is no second NameNode; use the target hdfs-ha")
	}
	c.active.Store(&c.nns[0])
	sh, err := startShell(c)
	if err != nil {
		return err
	}
	defer sh.stop()
	select {
	case <-sh.ready:
	case <-sh.gone:
		return errors.New("the JVM of the file system shell ended at its start")
	case <-ctx.Done():
		return errors.New("the JVM of the file system shell was not ready in time")
	}
	switch workload {
	case "shutdown": // as in the bug report: no users
		n = 0
	case "failover": // the change of leader is what the run is about
		c.pause = 3 * pause
	}
	busy, done := ctx, func() {}
	switch workload { // the users go on until the administrator is ready
	case "datanode":
		busy, done = context.WithTimeout(context.WithoutCancel(ctx), c.dur+goneFor+backFor)
	case "failover":
		busy, done = context.WithTimeout(context.WithoutCancel(ctx), c.dur+repairFor)
	}
	var wg sync.WaitGroup
	wg.Go(func() { users(busy, c, sh, n) })
	act(ctx)
	done()
	wg.Wait()
	return nil
}
