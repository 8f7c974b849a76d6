package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"netsplit/model"
)

// Backup writes a copy of the store, all of one moment, as a new file with mode 600. Others
// may go on reading and writing.
func (s *Store) Backup(path string) error {
	f, ok := s.kv.(*boltFile)
	if !ok {
		return errors.New("store: a store in memory has no file to copy")
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: %s exists: name a new file", model.ErrConflict, path)
	}
	return f.copyTo(path)
}

// copyTo writes what a View sees as the file at path, which is whole as soon as it is there.
func (f *boltFile) copyTo(path string) error {
	return f.do("copy", func() error {
		return whole(path, func(w *os.File) error {
			return f.db.View(func(tx *bolt.Tx) error { _, err := tx.WriteTo(w); return err })
		})
	})
}

// whole has a file written under another name, synced, and then given its own.
func whole(path string, write func(*os.File) error) error {
	tmp := path + ".new"
	w, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(write(w), w.Sync(), w.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// Restore puts a copy that Backup made in the place of the store at path, which nobody may
// have open. What was there is kept beside it; kept is its name, "" if nothing was there.
func Restore(backup, path string) (kept string, err error) {
	st, err := os.Stat(backup)
	if err != nil {
		return "", fmt.Errorf("store: copy: %w", err)
	}
	if !st.Mode().IsRegular() { // opening it may block, and reading it may never end
		return "", fmt.Errorf("store: %s is no file that store backup made", backup)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("store: make its folder: %w", err)
	}
	next := path + ".restored"
	err = whole(next, func(w *os.File) error {
		from, err := os.Open(backup)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(w, from)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("store: copy %s: %w", backup, err)
	}
	check, err := Open(next) // of this netsplit, and whole
	if err == nil {
		err = check.Close()
	}
	for schema := 1; schema < Schema; schema++ { // the backup is the copy that a migration keeps
		if rerr := os.Remove(besideOf(next, schema)); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s cannot be restored: %w", backup, err), os.Remove(next))
	}
	if _, err := os.Lstat(path); err == nil {
		kept = path + ".before-" + time.Now().UTC().Format("20060102-150405.000")
	}
	return kept, swap(path, kept, next, nil)
}

// Compact writes the store at path anew, without the pages that hold nothing any more. Nobody
// may have it open. It returns its sizes in bytes; one that would not shrink is left as it is.
func Compact(path string) (before, after int64, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, 0, fmt.Errorf("store: %w", err)
	}
	old, err := Open(path)
	if err != nil {
		return 0, 0, err
	}
	if before, err = old.Size(); err != nil {
		return before, 0, errors.Join(err, old.Close())
	}
	next := path + ".compact"
	f := old.kv.(*boltFile)
	err = f.do("compact", func() error {
		if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		db, err := bolt.Open(next, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType})
		if err != nil {
			return err
		}
		return errors.Join(bolt.Compact(db, f.db, 1<<20), db.Sync(), db.Close())
	})
	was, serr := os.Stat(path)
	if err = errors.Join(err, serr, old.Close()); err != nil {
		return before, 0, errors.Join(err, os.RemoveAll(next))
	}
	st, err := os.Stat(next)
	if err != nil {
		return before, 0, fmt.Errorf("store: %w", err)
	}
	if st.Size() >= before { // a small store has pages to spare that a new one has, too
		return before, before, os.Remove(next)
	}
	return before, st.Size(), swap(path, "", next, was)
}

// swap puts the file next in the place of path, which is kept as kept unless that is "". It
// holds the lock of the old store meanwhile: nobody writes to what is put away. was, if not
// nil, is the old file as next has it.
func swap(path, kept, next string, was os.FileInfo) error {
	if _, err := os.Lstat(path); err == nil {
		lock, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		defer lock.Close()
		if err := tryLock(lock); err != nil {
			return errors.Join(heldBy(path), os.Remove(next))
		}
		if is, err := lock.Stat(); was != nil && (err != nil || !is.ModTime().Equal(was.ModTime()) || is.Size() != was.Size()) {
			return errors.Join(fmt.Errorf("store %s: %w: somebody wrote to it meanwhile: repeat it", path, model.ErrConflict), err, os.Remove(next))
		}
		if kept != "" {
			if err := os.Link(path, kept); err != nil {
				return errors.Join(fmt.Errorf("store: keep the old one: %w", err), os.Remove(next))
			}
		}
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncDir(filepath.Dir(path))
}
