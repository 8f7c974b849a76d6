package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/inference/store"
	"netsplit/model"
)

// TestBackupAndRestore: a copy is of one moment, is restored only if nobody has the store
// open, and what was there is kept, damaged or not.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "netsplit.db"), filepath.Join(dir, "copy")
	s := must(store.Open(path))(t)
	noErr(t, s.PutCampaign(campaign(1)), s.Backup(copied), s.PutCampaign(campaign(2)))
	if err := s.Backup(copied); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a copy over another: %v", err)
	}
	var held *store.HeldError
	if _, err := store.Restore(copied, path); !errors.As(err, &held) {
		t.Errorf("restored under an open store: %v", err)
	}
	if _, _, err := store.Compact(path); !errors.As(err, &held) {
		t.Errorf("compacted under an open store: %v", err)
	}
	noErr(t, s.PutCampaign(campaign(3)), s.Close())
	count := func(path string) int {
		t.Helper()
		s := must(store.Open(path))(t)
		defer s.Close()
		list, _, err := s.ListCampaigns(model.CampaignFilter{}, 0, "")
		noErr(t, err)
		return len(list)
	}
	if n := count(path); n != 3 {
		t.Errorf("%d campaigns after what was refused", n)
	}
	garbage := filepath.Join(dir, "garbage")
	noErr(t, os.WriteFile(garbage, []byte(strings.Repeat("x", 100_000)), 0o600))
	if _, err := store.Restore(garbage, path); err == nil || count(path) != 3 {
		t.Errorf("garbage was restored: %v", err)
	}
	kept, err := store.Restore(copied, path)
	noErr(t, err)
	if n, old := count(path), count(kept); n != 1 || old != 3 {
		t.Errorf("%d campaigns restored, %d kept", n, old)
	}
	noErr(t, os.WriteFile(path, []byte("damaged"), 0o600))
	if _, err := store.Restore(copied, path); err != nil || count(path) != 1 {
		t.Errorf("over a damaged store: %v", err)
	}
	if kept, err := store.Restore(copied, filepath.Join(dir, "new", "netsplit.db")); err != nil || kept != "" || count(filepath.Join(dir, "new", "netsplit.db")) != 1 {
		t.Errorf("where none was: %q, %v", kept, err)
	}
	earlier := old(t, "schema-1-cuts.db.gz")
	if _, err := store.Restore(earlier, path); err != nil {
		t.Errorf("of an older netsplit: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.restored*"))
	noErr(t, err)
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCompact: what was deleted takes no room any more, and the rest is there.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "netsplit.db")
	s := must(store.Open(path))(t)
	for i := range 300 {
		noErr(t, s.PutPartition(model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: strings.Repeat("p", 200) + string(rune('a'+i%26)) + string(rune('a'+i/26))}, Reason: strings.Repeat("r", 4000)}))
	}
	for i := range 300 {
		noErr(t, s.DeletePartition(strings.Repeat("p", 200)+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	noErr(t, s.PutCampaign(campaign(1)), s.Close())
	before, after, err := store.Compact(path)
	if err != nil || after*4 > before {
		t.Errorf("%d bytes, were %d, %v", after, before, err)
	}
	if again, same, err := store.Compact(path); err != nil || same > again || again > after {
		t.Errorf("compacted twice: %d bytes, were %d, %v", same, again, err)
	}
	s = must(store.Open(path))(t)
	defer s.Close()
	if list, _, err := s.ListCampaigns(model.CampaignFilter{}, 0, ""); err != nil || len(list) != 1 {
		t.Errorf("%d campaigns, %v", len(list), err)
	}
	if _, _, err := store.Compact(filepath.Join(t.TempDir(), "none.db")); err == nil {
		t.Error("a store that is not there was compacted")
	}
}
