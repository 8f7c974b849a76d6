// Package storetest makes stores for tests.
package storetest

import (
	"path/filepath"

	"netsplit/inference/store"
)

// TB is what it needs of a test.
type TB interface {
	Helper()
	TempDir() string
	Fatal(...any)
	Cleanup(func())
}

// New is an empty store that goes with the test.
func New(t TB) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "netsplit.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
