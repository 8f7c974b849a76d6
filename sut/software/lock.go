package software

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// entry is one file of a set: its path from the set's directory, with slashes,
// and its SHA-256 in hex.
type entry struct{ path, sum string }

// lockLine is a line of sha256sum: hash, two spaces (or space and star), name.
var lockLine = regexp.MustCompile(`^([0-9a-f]{64}) [ *](.+)$`)

func parseLock(b []byte) ([]entry, error) {
	var out []entry
	s := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; s.Scan(); n++ {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		m := lockLine.FindStringSubmatch(s.Text())
		if m == nil || !filepath.IsLocal(m[2]) {
			return nil, fmt.Errorf("line %d is not one of sha256sum: delete the file and fetch again", n)
		}
		out = append(out, entry{m[2], m[1]})
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read lines: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no lines: delete it and fetch again")
	}
	return out, nil
}

// formatLock prints entries as sha256sum does, sorted by path.
func formatLock(entries []entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%s  %s\n", e.sum, e.path)
	}
	return b.Bytes()
}

// hashTree hashes every file under dir but the stamp, sorted by path.
func hashTree(dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil || rel == stampName {
			return err
		}
		sum, err := hashFile(p)
		out = append(out, entry{filepath.ToSlash(rel), sum})
		return err
	})
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out, err
}

func hashFile(p string) (string, error) {
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// mismatch is how a set differs from its lock, by path.
type mismatch struct{ wrong, missing, extra []string }

func (m mismatch) ok() bool { return len(m.wrong)+len(m.missing)+len(m.extra) == 0 }

// String names the files, a few of each kind.
func (m mismatch) String() string {
	var parts []string
	for _, k := range []struct {
		what  string
		paths []string
	}{{"wrong hash: ", m.wrong}, {"missing: ", m.missing}, {"not in the list: ", m.extra}} {
		if n := len(k.paths); n > 3 {
			parts = append(parts, fmt.Sprintf("%s%s and %d more", k.what, strings.Join(k.paths[:3], ", "), n-3))
		} else if n > 0 {
			parts = append(parts, k.what+strings.Join(k.paths, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// compare says how the files that are there differ from those of the lock.
func compare(have, lock []entry) mismatch {
	var m mismatch
	want := map[string]string{}
	for _, e := range lock {
		want[e.path] = e.sum
	}
	for _, e := range have {
		switch sum, ok := want[e.path]; {
		case !ok:
			m.extra = append(m.extra, e.path)
		case sum != e.sum:
			m.wrong = append(m.wrong, e.path)
		}
		delete(want, e.path)
	}
	for _, e := range lock {
		if _, left := want[e.path]; left {
			m.missing = append(m.missing, e.path)
		}
	}
	return m
}
