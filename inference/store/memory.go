package store

import (
	"bytes"
	"slices"
	"sync"
)

// memory is the in-memory twin of the bbolt file.
type memory struct {
	mu   sync.RWMutex
	data map[string]map[string][]byte
}

func newMemory() *memory {
	m := &memory{data: map[string]map[string][]byte{}}
	for _, b := range buckets {
		m.data[b] = map[string][]byte{}
	}
	return m
}

type undo struct {
	bucket, key string
	old         []byte // nil: was absent
}

type memoryTx struct {
	m        *memory
	writable bool
	undo     []undo
}

func (m *memory) update(fn func(kvTx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{m: m, writable: true}
	done := false
	defer func() {
		if done {
			return
		}
		for _, u := range slices.Backward(tx.undo) {
			if u.old == nil {
				delete(m.data[u.bucket], u.key)
			} else {
				m.data[u.bucket][u.key] = u.old
			}
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	return nil
}

func (m *memory) view(fn func(kvTx) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return fn(&memoryTx{m: m})
}

func (m *memory) size() (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var n int64
	for _, b := range m.data {
		for k, v := range b {
			n += int64(len(k) + len(v))
		}
	}
	return n, nil
}

func (m *memory) close() error { return nil }

func (t *memoryTx) get(bucket string, key []byte) []byte { return t.m.data[bucket][string(key)] }

func (t *memoryTx) put(bucket string, key, value []byte) error {
	if !t.writable {
		return errReadOnly
	}
	old := t.m.data[bucket][string(key)]
	t.undo = append(t.undo, undo{bucket, string(key), old})
	t.m.data[bucket][string(key)] = append([]byte{}, value...)
	return nil
}

func (t *memoryTx) delete(bucket string, key []byte) error {
	if !t.writable {
		return errReadOnly
	}
	if old, ok := t.m.data[bucket][string(key)]; ok {
		t.undo = append(t.undo, undo{bucket, string(key), old})
		delete(t.m.data[bucket], string(key))
	}
	return nil
}

func (t *memoryTx) scan(bucket string, prefix, from []byte, reverse bool, fn func(k, v []byte) bool) {
	var keys []string
	for k := range t.m.data[bucket] {
		b := []byte(k)
		if !bytes.HasPrefix(b, prefix) {
			continue
		}
		if from != nil {
			if c := bytes.Compare(b, from); (!reverse && c < 0) || (reverse && c > 0) {
				continue
			}
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if !fn([]byte(k), t.m.data[bucket][k]) {
			return
		}
	}
}
