package software

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Get returns a release, after fetching what is missing: its Java if the
// machine has none that fits, then its artifacts. What is in the cache is
// hashed again, all of it. progress gets lines of text. An error is one line
// that says what to do; the cache then holds no part of the set. Calls at the
// same time, also of other processes, wait for one another.
//
// The first set of a catalogue of the user's own writes its lock beside the
// catalogue.
func Get(ctx context.Context, r Release, progress io.Writer) (Set, error) {
	return get(ctx, r, &printer{w: progress})
}

func get(ctx context.Context, r Release, p *printer) (Set, error) {
	root, err := CacheDir()
	if err != nil {
		return Set{}, err
	}
	if err := r.installed(); err != nil {
		return Set{}, err
	}
	if err := ensureJava(ctx, r, p); err != nil {
		return Set{}, err
	}
	if r.hasDir() {
		if err := fetchSet(ctx, root, r, p); err != nil {
			if ctx.Err() != nil {
				return Set{}, fmt.Errorf("get %s: interrupted, nothing is kept: %w", r, ctx.Err())
			}
			return Set{}, fmt.Errorf("get %s: %w", r, explain(err, root))
		}
	}
	s, err := Find(r)
	if err == nil && r.JavaHome != "" {
		if _, err := runVersion(ctx, s.Java); err != nil {
			return Set{}, fmt.Errorf("%s was fetched and %s %w: it is made for another kind of machine; install a Java %s and set JAVA_HOME to it", r, s.Java, err, r.Version)
		}
	}
	return s, err
}

// Pin fetches a release afresh and returns the lock of what came, in the form
// of sha256sum. It takes and changes no set of the cache.
func Pin(ctx context.Context, r Release, progress io.Writer) ([]byte, error) {
	root, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if !r.fetches() {
		return nil, fmt.Errorf("%s has nothing to pin: its files come from Debian packages", r)
	}
	p := &printer{w: progress}
	var entries []entry
	err = locked(ctx, lockPath(root, r), r.String(), p, func() error {
		return inTemp(root, r, func(dir string) error {
			entries, err = build(ctx, root, r, dir, p, false)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("pin %s: %w", r, explain(err, root))
	}
	listed, _ := r.split(entries)
	return formatLock(listed), nil
}

func fetchSet(ctx context.Context, root string, r Release, p *printer) error {
	if r.fetches() && r.lock == nil && r.lockFile == "" {
		return errors.New("netsplit has no hashes of it: take a release that has")
	}
	return locked(ctx, lockPath(root, r), r.String(), p, func() error {
		dir := r.paths(root).Lib
		if why := verify(r, dir); why == nil {
			return nil
		} else if _, err := os.Stat(dir); err == nil {
			p.printf("%s: the set in the cache is not used (%v): fetching it again", r, why)
		}
		return inTemp(root, r, func(tmp string) error {
			entries, err := build(ctx, root, r, tmp, p, true)
			if err != nil {
				return err
			}
			if err := writeStamp(r, tmp, entries); err != nil {
				return err
			}
			if r.lock == nil && r.fetches() {
				listed, _ := r.split(entries)
				if err := os.WriteFile(r.lockFile, formatLock(listed), 0o644); err != nil {
					return fmt.Errorf("write the hashes of a set that had none: %w: make the directory writable, or make the file yourself with --write-lock", err)
				}
				p.printf("%s had no hashes: wrote those of the fetched files to %s; keep that file with the catalogue", r, r.lockFile)
			}
			return replace(tmp, dir)
		})
	})
}

func replace(by, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(by, dir)
}

// verify hashes a set that is there; nil if it is whole and stamped.
func verify(r Release, dir string) error {
	st, err := readStamp(dir)
	if err != nil {
		return err
	}
	have, err := hashTree(dir)
	if err != nil {
		return err
	}
	listed, built := r.split(have)
	if r.lock != nil {
		lock, err := parseLock(r.lock)
		if err != nil {
			return err
		}
		if m := compare(listed, lock); !m.ok() {
			return errors.New(m.String())
		}
	} else if digest(listed) != st.Lock {
		return errors.New("its files were changed")
	}
	if m := compare(built, st.built()); !m.ok() {
		return errors.New(m.String())
	}
	if st.verify(r, dir) != nil { // same bytes, other times: a copied cache
		if st.Recipe != r.recipe {
			return errors.New("the catalogue describes another set now")
		}
		return writeStamp(r, dir, have)
	}
	return nil
}

// inTemp runs f with a fresh directory beside the sets and removes what is left
// of it, and of those that a killed process left. The caller holds the lock.
func inTemp(root string, r Release, f func(dir string) error) error {
	parent := filepath.Join(root, "lib")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	prefix := ".new-" + r.dirName() + "-"
	old, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, d := range old {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return f(dir)
}

// build fetches the release into dir and returns the hashes of what is there.
// With check, they must be those of the lock; a file that is not is dropped
// from the clients' caches and asked for once more. That goes on while it
// changes what is wrong: behind a damaged pom there may be a damaged jar.
func build(ctx context.Context, root string, r Release, dir string, p *printer, check bool) ([]entry, error) {
	var lock []entry
	if check && r.lock != nil {
		var err error
		if lock, err = parseLock(r.lock); err != nil {
			return nil, err
		}
	}
	const rounds = 4
	before := ""
	for round := 1; ; round++ {
		if err := clear(dir); err != nil {
			return nil, err
		}
		bad, err := fill(ctx, root, r, dir, p, round > 1)
		if err != nil {
			return nil, err
		}
		entries, err := hashTree(dir)
		if err != nil {
			return nil, err
		}
		m := mismatch{}
		listed, _ := r.split(entries)
		switch {
		case lock != nil:
			m = compare(listed, lock)
		case r.fetches():
			m.wrong = unreadable(dir, entries)
		}
		if m.ok() {
			return entries, nil
		}
		if round == rounds || m.String() == before {
			why := "netsplit's list"
			if r.lockFile != "" {
				why = r.lockFile
			}
			if lock == nil {
				return nil, fmt.Errorf("the fetched file is not an archive: %s: check the Maven mirror or proxy (~/.m2/settings.xml)", m)
			}
			return nil, fmt.Errorf("the fetched files are not the expected ones: %s; nothing is kept. The hashes are those of %s: check the mirror of Maven, pip or Go, or, if you changed the catalogue, make the list again with: %s --write-lock", m, why, r.GetCommand())
		}
		before = m.String()
		p.printf("%s: damaged files (%s): fetching them once more", r, m)
		if err := evict(filepath.Join(root, "m2"), append(m.wrong, bad...)); err != nil {
			return nil, err
		}
	}
}

// fill runs the clients. bad names files of Maven's repository that looked
// damaged to Maven.
func fill(ctx context.Context, root string, r Release, dir string, p *printer, again bool) (bad []string, err error) {
	if len(r.Maven)+len(r.Files) > 0 {
		if bad, err = runMaven(ctx, root, r, dir, p); err != nil {
			return nil, err
		}
	}
	if len(r.Pip) > 0 {
		if err := runPip(ctx, root, r, dir, p, again); err != nil {
			return nil, err
		}
	}
	if len(r.Go) > 0 {
		if err := runGo(ctx, root, r, dir, p); err != nil {
			return nil, err
		}
	}
	for _, pattern := range r.Executable {
		files, err := filepath.Glob(filepath.Join(dir, "files", pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("executable %q of the catalogue matches no file", pattern)
		}
		for _, f := range files {
			if err := os.Chmod(f, 0o755); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range r.Link {
		if err := os.Symlink(f, filepath.Join(dir, filepath.Base(f))); err != nil {
			return nil, err
		}
	}
	return bad, nil
}

func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// unreadable lists the jars of a set that are no archives, as half a download
// is not.
func unreadable(dir string, entries []entry) []string {
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.path, ".jar") {
			continue
		}
		z, err := zip.OpenReader(filepath.Join(dir, filepath.FromSlash(e.path)))
		if err != nil {
			out = append(out, e.path)
			continue
		}
		z.Close()
	}
	return out
}

// locked runs f while no other process works on what name says; path is the
// file that is locked.
func locked(ctx context.Context, path, name string, p *printer, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // and with it the lock
	for waited := false; ; waited = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if !waited {
			p.printf("%s: waiting for another netsplit that is fetching", name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func lockPath(root string, r Release) string { return filepath.Join(root, "lock", r.dirName()) }

func explain(err error, root string) error {
	var made *os.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of the cache is full (%w): free some space at %s, or set NETSPLIT_CACHE to another disk", err, root)
	case errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) || errors.As(err, &made) && made.Op == "mkdir":
		return fmt.Errorf("the cache cannot be written (%w): set NETSPLIT_CACHE to a directory of yours", err)
	}
	return err
}

// printer writes lines for people. A nil writer drops them.
type printer struct{ w io.Writer }

func (p *printer) printf(format string, args ...any) {
	if p.w != nil {
		fmt.Fprintf(p.w, format+"\n", args...)
	}
}
