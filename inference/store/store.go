package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"netsplit/model"
)

// Schema is the number of the layout this program writes. A file with a
// greater number is refused.
const Schema = 2

// Store holds what outlives a run. It may be used by several goroutines.
type Store struct {
	kv    kv
	path  string
	sweep []byte // the idempotency key at which a claim looks for expired ones next; guarded by Update
}

// Option changes how Open works.
type Option func(*options)

type options struct {
	timeout time.Duration
	maxSize int // in bytes; a write beyond it fails with model.ErrFull; 0: no bound
	creator string
}

// WithCreator names the program's version; it is kept in the file when that
// is made, and shown when a later program refuses the file.
func WithCreator(version string) Option { return func(o *options) { o.creator = version } }

// meta is the value of the only key of the bucket meta.
type meta struct {
	Schema  int       `json:"schema"`
	Creator string    `json:"creator"`
	Created time.Time `json:"created"`
}

var metaKey = []byte("meta")

// Open opens the store at the path, and makes it (and its folder) if it is
// not there. It waits one second for another holder, then fails with
// *HeldError. Other errors: model.ErrDamaged, model.ErrFull, and a schema
// newer than Schema.
func Open(path string, opts ...Option) (*Store, error) {
	o := options{timeout: time.Second}
	for _, f := range opts {
		f(&o)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(path, o); err != nil {
			return nil, err
		}
	}
	f, err := openBolt(path, o)
	if err != nil {
		return nil, err
	}
	s := &Store{kv: f, path: path}
	schema, err := s.checkSchema()
	if err == nil {
		err = migrate(f, schema)
	}
	if err != nil {
		_ = f.close()
		return nil, err
	}
	if err := writeHolder(path, holder{PID: os.Getpid()}); err != nil && !isFull(err) {
		_ = f.close()
		return nil, err
	}
	return s, nil
}

// create makes an empty store under another name and then gives it its own:
// a file at path is always whole, also after a power loss.
func create(path string, o options) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store: make its folder: %w", err)
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*")
	if err != nil {
		return (&boltFile{path: path}).openError(fmt.Errorf("store: create: %w", err))
	}
	defer os.Remove(tmp.Name())
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("store: create: %w", err)
	}
	wrap := (&boltFile{path: path}).wrap
	db, err := bolt.Open(tmp.Name(), 0o600, &bolt.Options{Timeout: o.timeout, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return wrap("create", fmt.Errorf("store: create %s: %w", path, err))
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucket([]byte(b)); err != nil {
				return err
			}
		}
		b, err := json.Marshal(meta{Schema: Schema, Creator: o.creator, Created: time.Now().UTC()})
		if err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketMeta)).Put(metaKey, b)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return wrap("create", fmt.Errorf("store: create %s: %w", path, err))
	}
	// Link, not rename: it never replaces a store that another process made
	// in the meantime.
	if err := os.Link(tmp.Name(), path); err != nil {
		if _, statErr := os.Stat(path); statErr == nil {
			return nil
		}
		if err := os.Rename(tmp.Name(), path); err != nil {
			return fmt.Errorf("store: create: %w", err)
		}
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("store: sync folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("store: sync folder: %w", err)
	}
	return nil
}

func isFull(err error) bool {
	return errors.Is((&boltFile{}).wrap("", err), model.ErrFull)
}

func (s *Store) checkSchema() (int, error) {
	var m meta
	err := s.kv.view(func(tx kvTx) error {
		b := tx.get(bucketMeta, metaKey)
		if b == nil {
			return fmt.Errorf("store %s: a bbolt file, but not one of netsplit: name another with --store", s.path)
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return damagedError(s.path, "meta: "+err.Error())
		}
		if m.Schema > Schema {
			return fmt.Errorf("store %s: %w: it has schema %d (made by %q), this netsplit knows up to %d: use a newer netsplit, or name another with --runs-dir (serve: or --store)",
				s.path, model.ErrConflict, m.Schema, m.Creator, Schema)
		}
		if m.Schema < 1 {
			return damagedError(s.path, fmt.Sprintf("schema %d", m.Schema))
		}
		return nil
	})
	return m.Schema, err
}

// SetAddress tells a second opener where the API of this process is.
func (s *Store) SetAddress(address string) error {
	return writeHolder(s.path, holder{PID: os.Getpid(), Address: address})
}

// Path is the path of the file.
func (s *Store) Path() string { return s.path }

// Size is the size of the file in bytes.
func (s *Store) Size() (int64, error) { return s.kv.size() }

// WriteError is why the last write failed; nil: it did not.
func (s *Store) WriteError() error {
	if f, ok := s.kv.(*boltFile); ok {
		if err := f.failed.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// Close waits for running transactions and lets go of the file.
func (s *Store) Close() error {
	_ = os.Remove(holderPath(s.path))
	return s.kv.close()
}

// Update runs fn in a transaction that is written as a whole when fn returns
// nil, and not at all otherwise. One Update runs at a time. fn must not call
// methods of the Store.
func (s *Store) Update(fn func(tx *Tx) error) error {
	return s.kv.update(func(t kvTx) error { return fn(&Tx{t: t}) })
}

// View runs fn in a transaction that sees one state of the store. Do not wait
// for anything inside: the file grows while a View is open.
func (s *Store) View(fn func(tx *Tx) error) error {
	return s.kv.view(func(t kvTx) error { return fn(&Tx{t: t}) })
}
