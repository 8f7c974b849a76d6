package store_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"netsplit/inference/store"
	"netsplit/model"
)

// old puts a store that an older netsplit made into a folder of the test.
func old(t *testing.T, fixture string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", fixture))
	noErr(t, err)
	if strings.HasSuffix(fixture, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		noErr(t, err)
		b, err = io.ReadAll(z)
		noErr(t, err)
	}
	path := filepath.Join(t.TempDir(), "netsplit.db")
	noErr(t, os.WriteFile(path, b, 0o600))
	return path
}

// Every schema that was ever released still opens, and opens again.
func TestOldSchemas(t *testing.T) {
	files, err := filepath.Glob("testdata/schema-?.db*")
	noErr(t, err)
	if len(files) < store.Schema {
		t.Fatalf("%d fixtures for %d schemas", len(files), store.Schema)
	}
	for _, f := range files {
		path := old(t, filepath.Base(f))
		for range 2 {
			s, err := store.Open(path)
			noErr(t, err)
			if r, err := s.GetRun("c-r0001"); err != nil || r.Verdict.Value != model.VerdictPass {
				t.Errorf("%s: %+v, %v", f, r, err)
			}
			if l, _, err := s.ListRuns(model.RunFilter{Campaign: "c"}, 0, ""); err != nil || len(l) == 0 || l[0].Verdict.Value != model.VerdictPass {
				t.Errorf("%s: %+v, %v", f, l, err)
			}
			noErr(t, s.Close())
		}
	}
}

// TestAnOldStoreHasListsAndCuts: a store of schema 1 has, once opened, the rows and
// indexes of schema 2, all that it had, and a copy of what it was beside it.
func TestAnOldStoreHasListsAndCuts(t *testing.T) {
	path := old(t, "schema-1-cuts.db.gz")
	s, err := store.Open(path)
	noErr(t, err)
	defer s.Close()

	list, _, err := s.ListRuns(model.RunFilter{Campaign: "c-2"}, 0, "")
	noErr(t, err)
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s %s %s %d %v", r.Run, r.Strategy, r.Verdict.Value, r.Probes, r.Proof != nil))
	}
	if want := []string{"c-2-r0005 cofi pass 7 true", "c-2-r0004 cofi fail 7 true", "c-2-r0003 cofi pass 7 true", "c-2-r0002 cofi pass 7 true", "c-2-r0001 clean pass 7 false"}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	found, _, err := s.ListFindings("", 0, "")
	if err != nil || len(found) != 2 || found[0].ID != "f-2" || found[0].Seen != 1 || found[0].Runs != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if f := must(s.GetFinding("f-1"))(t); !cmp.Equal(f.Runs, []string{"c-1-r0004"}) || !cmp.Equal(f.Failure.Detail, []string{"write 7"}) {
		t.Errorf("%+v", f)
	}
	got = nil
	parts, _, err := s.ListPartitions(0, "")
	noErr(t, err)
	for _, p := range parts {
		got = append(got, p.Name)
	}
	if want := []string{"p-1", "p-2", "p-3"}; !cmp.Equal(got, want) { // p-1 was made last
		t.Errorf("partitions %v", got)
	}
	cuts, more, err := s.Annotations(t0, t0.Add(90*time.Minute), 100)
	if err != nil || more || len(cuts) != 4+4+3 {
		t.Errorf("%d cuts, more %v, %v", len(cuts), more, err)
	}
	counts := must(s.CountRuns())(t)
	if want := map[store.RunKind]int{{"gossip", "cofi", "pass"}: 6, {"gossip", "cofi", "fail"}: 2, {"gossip", "clean", "pass"}: 2}; !cmp.Equal(counts, want) {
		t.Error(cmp.Diff(want, counts))
	}
	if u := must(s.UnfinishedRuns())(t); len(u) != 1 {
		t.Errorf("%d unfinished", len(u))
	}

	db, err := bolt.Open(path+".schema-1", 0o600, &bolt.Options{ReadOnly: true})
	noErr(t, err)
	noErr(t, db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte("meta")).Get([]byte("meta")); !strings.Contains(string(b), `"schema":1`) {
			t.Errorf("the copy: %s", b)
		}
		return nil
	}), db.Close())
}

// TestAStoreThatCannotBeCopiedIsLeftAsItIs: no copy, no change.
func TestAStoreThatCannotBeCopiedIsLeftAsItIs(t *testing.T) {
	path := old(t, "schema-1-cuts.db.gz")
	noErr(t, os.MkdirAll(filepath.Join(path+".schema-1", "in the way"), 0o700))
	for range 2 {
		_, err := store.Open(path)
		if err == nil || !strings.Contains(err.Error(), "make room for "+path+".schema-1") {
			t.Fatalf("got %v", err)
		}
	}
	noErr(t, os.RemoveAll(path+".schema-1"))
	s, err := store.Open(path)
	noErr(t, err)
	noErr(t, s.Close())
}
