package disk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCorrupt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	whole := []byte(strings.Repeat("0123456789", 10))
	damaged := func(c Corruption) ([]Change, []byte) {
		t.Helper()
		c.Path = path
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		changes, err := Corrupt(c)
		if err != nil {
			t.Fatal(err)
		}
		return changes, []byte(content(t, path))
	}
	seen := map[int64]bool{}
	for seed := range uint64(40) {
		changes, got := damaged(Corruption{Offset: 20, Length: 10, Bytes: 3, Seed: seed})
		want := slices.Clone(whole)
		for _, c := range changes {
			if c.Was == c.Is || want[c.Offset] != c.Was || c.Offset < 20 || c.Offset >= 30 {
				t.Fatalf("%+v", changes)
			}
			want[c.Offset] = c.Is
			seen[c.Offset] = true
		}
		if len(changes) != 3 || !slices.Equal(got, want) {
			t.Fatalf("%+v make %q", changes, got)
		}
		if again, _ := damaged(Corruption{Offset: 20, Length: 10, Bytes: 3, Seed: seed}); !cmp.Equal(again, changes) {
			t.Fatalf("seed %d: %+v, then %+v", seed, changes, again)
		}
	}
	if len(seen) != 10 {
		t.Errorf("40 seeds change bytes %v only", seen)
	}
	if changes, _ := damaged(Corruption{Offset: -1, Length: 1, Bytes: 1}); len(changes) != 1 || changes[0].Offset != 99 {
		t.Errorf("the last byte: %+v", changes)
	}
	if err := os.Symlink(path, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Corruption{
		"no such file":            {Path: dir + "/none", Length: 1, Bytes: 1},
		"no regular file":         {Path: dir + "/link", Length: 1, Bytes: 1},
		"0 of 0 bytes":            {Path: path},
		"2 of 1 bytes":            {Path: path, Length: 1, Bytes: 2},
		"100 bytes: no 2 from 99": {Path: path, Offset: 99, Length: 2, Bytes: 1},
		"no 1 from -101":          {Path: path, Offset: -101, Length: 1, Bytes: 1},
	} {
		if _, err := Corrupt(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
