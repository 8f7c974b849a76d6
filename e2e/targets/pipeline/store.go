package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	mostData = 1 << 20 // bytes of a block
	trailer  = 8       // a file ends with the checksum of its data, in hex
)

// store is the disk of a data node. A block grows in a temporary file, b1_7.tmp; a
// whole replica is b1_7, synced before it got that name. One writer at a time has
// a block: another with a newer stamp takes it over.
type store struct {
	dir          string
	ignoreErrors bool // of write and fsync: the bug ignored-error

	mu       sync.Mutex // guards what follows, and the files
	replicas map[replica]int
	writers  map[string]*writer
}

// writer is a replica that grows.
type writer struct {
	replica replica
	file    *os.File
	size    int
	sum     uint32
}

func (s *store) name(r replica) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s_%d", r.block, r.stamp))
}

func (s *store) temp(r replica) string { return s.name(r) + ".tmp" }

// openStore recovers what is on the disk: whole replicas count, what did not get
// its name before a crash was never acknowledged and goes.
func openStore(dir string, ignoreErrors bool, log io.Writer) (*store, error) {
	s := &store{dir: dir, ignoreErrors: ignoreErrors, replicas: map[replica]int{}, writers: map[string]*writer{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		r, data, err := s.loadNamed(f.Name())
		if err != nil {
			fmt.Fprintf(log, "pipeline: %s goes: %v\n", f.Name(), err)
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				fmt.Fprintln(log, "pipeline:", err)
			}
			continue
		}
		s.replicas[r] = len(data)
	}
	return s, nil
}

// loadNamed reads the replica that a file name stands for.
func (s *store) loadNamed(name string) (r replica, data []byte, err error) {
	if strings.HasSuffix(name, ".tmp") {
		return r, nil, errors.New("it is not whole")
	}
	if err := r.UnmarshalText([]byte(strings.Replace(name, "_", "@", 1))); err != nil {
		return r, nil, err
	}
	data, err = s.load(r)
	return r, data, err
}

// load reads the file of a replica and checks it.
func (s *store) load(r replica) ([]byte, error) {
	f, err := os.Open(s.name(r))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostData+trailer+1))
	if err != nil {
		return nil, err
	}
	n := len(b) - trailer
	if n < 0 || string(b[n:]) != fmt.Sprintf("%08x", crc32.ChecksumIEEE(b[:n])) {
		return nil, errors.New("damaged: the checksum is wrong")
	}
	return b[:n], nil
}

// held is the whole replicas, sorted.
func (s *store) held() []held {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []held
	for r, n := range s.replicas {
		out = append(out, held{r, n})
	}
	slices.SortFunc(out, func(a, b held) int { return strings.Compare(a.Replica.String(), b.Replica.String()) })
	return out
}

func (s *store) has(r replica) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.replicas[r]
	return ok
}

// stale says whether the disk has this replica or a newer one of the block.
func (s *store) stale(r replica) bool {
	w := s.writers[r.block]
	newer := func(o replica) bool { return o.block == r.block && o.stamp >= r.stamp }
	return w != nil && w.replica.stamp > r.stamp || slices.ContainsFunc(slices.Collect(maps.Keys(s.replicas)), newer)
}

// create begins a replica.
func (s *store) create(r replica) (*writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale(r) {
		return nil, errors.New("stale replica")
	}
	s.discard(s.writers[r.block])
	f, err := os.Create(s.temp(r))
	if err != nil {
		return nil, err
	}
	w := &writer{replica: r, file: f}
	s.writers[r.block] = w
	return w, nil
}

// recover goes on with what there is of a block, whole or not, as replica r that has
// this much of it.
func (s *store) recover(r replica, size int) (*writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale(r) {
		return nil, errors.New("stale replica")
	}
	have, old, from := -1, "", replica{}
	w := s.writers[r.block]
	if w != nil {
		have, old = w.size, s.temp(w.replica)
	} else {
		for o, n := range s.replicas {
			if o.block == r.block && o.stamp > from.stamp {
				have, old, from = n, s.name(o), o
			}
		}
	}
	if have < size {
		return nil, fmt.Errorf("short replica: %d of %d bytes", have, size)
	}
	if w != nil {
		w.file.Close()
		delete(s.writers, r.block)
	}
	delete(s.replicas, from)
	if err := os.Rename(old, s.temp(r)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.temp(r), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	w = &writer{replica: r, file: f}
	s.writers[r.block] = w
	b := make([]byte, size)
	if _, err = io.ReadFull(f, b); err == nil {
		err = f.Truncate(int64(size))
	}
	if err != nil {
		s.discard(w)
		return nil, err
	}
	w.size, w.sum = size, crc32.ChecksumIEEE(b)
	return w, nil
}

// discard ends a writer, if there is one, and removes its file.
func (s *store) discard(w *writer) {
	if w == nil {
		return
	}
	w.file.Close()
	delete(s.writers, w.replica.block)
	_ = os.Remove(s.temp(w.replica)) // else the next start removes it
}

// failed is the error that a disk operation of a writer counts as.
func (s *store) failed(err error) error {
	if s.ignoreErrors {
		return nil
	}
	return err
}

// write adds data at an offset.
func (s *store) write(w *writer, offset int, data string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writers[w.replica.block] != w:
		return errors.New("stale writer")
	case offset != w.size || w.size+len(data) > mostData:
		return fmt.Errorf("offset %d of data, %d bytes are there", offset, w.size)
	}
	_, err := w.file.WriteString(data)
	if err = s.failed(err); err != nil {
		s.discard(w)
		return err
	}
	w.size += len(data)
	w.sum = crc32.Update(w.sum, crc32.IEEETable, []byte(data))
	return nil
}

// finish makes a whole replica of what was written.
func (s *store) finish(w *writer, length int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writers[w.replica.block] != w:
		return errors.New("stale writer")
	case length != w.size:
		return fmt.Errorf("length %d, %d bytes are there", length, w.size)
	}
	_, err := fmt.Fprintf(w.file, "%08x", w.sum)
	if err = s.failed(err); err == nil {
		err = s.failed(w.file.Sync())
	}
	if err == nil {
		err = publish(s.temp(w.replica), s.name(w.replica))
	}
	if err != nil {
		s.discard(w)
		return err
	}
	w.file.Close()
	delete(s.writers, w.replica.block)
	s.replicas[w.replica] = length
	return nil
}

// read returns the data of a whole replica.
func (s *store) read(r replica) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.replicas[r]; !ok {
		return nil, errors.New("unknown replica")
	}
	return s.load(r)
}

// drop removes a whole replica, and returns its length if there was one.
func (s *store) drop(r replica) (length int, had bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if length, had = s.replicas[r]; had {
		delete(s.replicas, r)
		err = os.Remove(s.name(r))
	}
	return length, had, err
}
