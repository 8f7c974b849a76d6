package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"netsplit/model"
)

var errReadOnly = errors.New("store: write inside a View")

// boltFile is a kv on a bbolt file. Every access goes through guard, since a
// file that shrinks or rots under its memory map faults instead of failing.
type boltFile struct {
	db      *bolt.DB
	file    *os.File // of db
	path    string
	damaged atomic.Bool
	failed  atomic.Pointer[error] // the last write, if it could not be written
}

// mapSize is the address space set aside for the file, so that a reader never
// holds up a writer whose map must grow. It costs no memory.
const mapSize = 1 << 30

// minSize is two meta pages of the smallest usual page size; a store is
// created whole, so a shorter file was cut.
const minSize = 2 * 4096

// guard runs fn with memory faults and bbolt's own panics turned into an error
// that wraps model.ErrDamaged. Panics of the caller's own code pass through.
func guard(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if c, ok := r.(callerPanic); ok {
			panic(c.value)
		}
		err = damagedError(path, fmt.Sprint(r))
	}()
	return fn()
}

// callerPanic carries a panic of the function given to Update or View.
type callerPanic struct{ value any }

func damagedError(path, why string) error {
	return fmt.Errorf("store %s: %w (%s): restore the file from a backup, or move it aside to start with a new one; "+
		"the run directories are not affected", path, model.ErrDamaged, why)
}

func openBolt(path string, o options) (*boltFile, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("store: open: %w", err)
	}
	if st.IsDir() {
		return nil, fmt.Errorf("store: %s is a folder: name a file", path)
	}
	if st.Size() < minSize {
		return nil, damagedError(path, fmt.Sprintf("%d bytes long, should be %d at least", st.Size(), minSize))
	}
	f := &boltFile{path: path}
	err = guard(path, func() error {
		var err error
		f.db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:         o.timeout,
			InitialMmapSize: mapSize,
			FreelistType:    bolt.FreelistMapType,
			MaxSize:         o.maxSize,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				file, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
				if f.file == nil { // a copy opens the file again
					f.file = file
				}
				return file, err
			},
		})
		if err != nil {
			return err
		}
		return f.checkLength()
	})
	if err != nil {
		if f.db != nil {
			// Closing after a fault could fault again.
			_ = guard(path, f.db.Close)
		}
		if f.file != nil {
			f.unlock()
		}
		return nil, f.openError(err)
	}
	return f, nil
}

// checkLength finds a file that was cut short before a page is missed.
func (f *boltFile) checkLength() error {
	return f.db.View(func(tx *bolt.Tx) error {
		st, err := os.Stat(f.path)
		if err != nil {
			return err
		}
		if st.Size() < tx.Size() {
			return damagedError(f.path, fmt.Sprintf("%d bytes long, should be %d at least", st.Size(), tx.Size()))
		}
		return nil
	})
}

func (f *boltFile) openError(err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return heldBy(f.path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum):
		return damagedError(f.path, err.Error())
	case errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("store %s: made by another version of bbolt: use the netsplit that made it: %w", f.path, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("store: no right to write %s: run as its owner, or name another with --store: %w", f.path, err)
	case errors.Is(err, model.ErrDamaged):
		return err
	}
	return f.wrap("open", err)
}

// wrap gives an error of bbolt or the file system its kind.
func (f *boltFile) wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, bolterrors.ErrMaxSizeReached):
		return fmt.Errorf("store: %s %s: %w: nothing of this write was kept, all before it is; make room on the file system of %s and repeat: %w",
			what, f.path, model.ErrFull, f.path, err)
	}
	return err
}

func (f *boltFile) update(fn func(kvTx) error) error {
	var refused error // by the caller
	err := f.do("write", func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			refused = call(fn, &boltTx{tx: tx})
			return refused
		})
	})
	switch {
	case err == nil:
		f.failed.Store(nil)
	case refused == nil, errors.Is(err, model.ErrFull), errors.Is(err, model.ErrDamaged):
		f.failed.Store(&err)
	}
	return err
}

func (f *boltFile) view(fn func(kvTx) error) error {
	return f.do("read", func() error {
		return f.db.View(func(tx *bolt.Tx) error { return call(fn, &boltTx{tx: tx}) })
	})
}

// call marks panics of fn as the caller's, unless bbolt was at work.
func call(fn func(kvTx) error, tx *boltTx) error {
	defer func() {
		if r := recover(); r != nil {
			if tx.inside {
				panic(r)
			}
			panic(callerPanic{r})
		}
	}()
	return fn(tx)
}

func (f *boltFile) do(what string, fn func() error) error {
	if f.damaged.Load() {
		return damagedError(f.path, "found so before")
	}
	err := guard(f.path, fn)
	if errors.Is(err, model.ErrDamaged) {
		// bbolt may be left with a lock held: no way on with this handle.
		f.damaged.Store(true)
	}
	return f.wrap(what, err)
}

// tryLock takes the lock that bbolt takes on its file, flock(2).
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// unlock lets go of a file that bbolt cannot close any more. Closing it is not
// enough: the memory map that a panic left behind keeps it open and locked.
func (f *boltFile) unlock() {
	_ = syscall.Flock(int(f.file.Fd()), syscall.LOCK_UN) // fails only if closed
	_ = f.file.Close()
}

func (f *boltFile) size() (int64, error) {
	st, err := os.Stat(f.path)
	if err != nil {
		return 0, fmt.Errorf("store: size: %w", err)
	}
	return st.Size(), nil
}

func (f *boltFile) close() error {
	if f.damaged.Load() {
		// bbolt's Close may wait for a transaction that never ends.
		f.unlock()
		return nil
	}
	return guard(f.path, f.db.Close)
}

// boltTx is inside while bbolt's code runs: a panic then is the file's fault.
type boltTx struct {
	tx     *bolt.Tx
	inside bool
}

func (t *boltTx) get(bucket string, key []byte) []byte {
	t.inside = true
	var v []byte
	if b := t.tx.Bucket([]byte(bucket)); b != nil {
		v = b.Get(key)
		touch(v)
	}
	t.inside = false
	return v
}

// touch reads each page of a value: a file that was cut short faults here, not in the caller's
// code.
func touch(v []byte) {
	sum := byte(0)
	for i := 0; i < len(v); i += os.Getpagesize() {
		sum += v[i]
	}
	if len(v) > 0 {
		sum += v[len(v)-1]
	}
	runtime.KeepAlive(sum)
}

func (t *boltTx) put(bucket string, key, value []byte) error {
	if !t.tx.Writable() {
		return errReadOnly
	}
	t.inside = true
	b, err := t.tx.CreateBucketIfNotExists([]byte(bucket))
	if err == nil {
		if appendOnly[bucket] {
			b.FillPercent = 0.9
		}
		err = b.Put(key, value)
	}
	t.inside = false
	return err
}

func (t *boltTx) delete(bucket string, key []byte) error {
	if !t.tx.Writable() {
		return errReadOnly
	}
	t.inside = true
	var err error
	if b := t.tx.Bucket([]byte(bucket)); b != nil {
		err = b.Delete(key)
	}
	t.inside = false
	return err
}

func (t *boltTx) scan(bucket string, prefix, from []byte, reverse bool, fn func(k, v []byte) bool) {
	t.inside = true
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		t.inside = false
		return
	}
	c := b.Cursor()
	var k, v []byte
	step := c.Next
	if !reverse {
		k, v = c.Seek(prefix)
		if from != nil {
			k, v = c.Seek(from)
		}
	} else {
		step = c.Prev
		if from == nil {
			from = afterPrefix(prefix)
		}
		if from == nil {
			k, v = c.Last()
		} else if k, v = c.Seek(from); k == nil {
			k, v = c.Last()
		} else if bytes.Compare(k, from) > 0 || !bytes.HasPrefix(k, prefix) {
			k, v = c.Prev()
		}
	}
	for ; k != nil && bytes.HasPrefix(k, prefix); k, v = step() {
		touch(v)
		t.inside = false
		if !fn(k, v) {
			return
		}
		t.inside = true
	}
	t.inside = false
}

// afterPrefix is the first key after all that begin with the prefix; nil if
// there is no such key.
func afterPrefix(prefix []byte) []byte {
	p := bytes.Clone(prefix)
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xff {
			p[i]++
			return p[:i+1]
		}
	}
	return nil
}
