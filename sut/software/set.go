package software

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Set is a release in the cache, ready to run.
type Set struct {
	// Lib is the directory of the jars (class path Lib/*) and of programs built from Go. Files,
	// inside Lib but not on the class path, has Java agents under Maven's names, and unpacked
	// wheels.
	Lib, Files string
	// Java is the program to run it with and JavaHome that runtime's directory;
	// "" for a release that needs none.
	Java, JavaHome string
	// Count and Bytes are the files of the set and their size.
	Count int
	Bytes int64
}

// ErrAbsent says that a set is not in the cache, not whole, or not the one that
// the catalogue describes today: Get fetches it again.
var ErrAbsent = errors.New("not in the cache")

// CacheDir is the root of the cache: $NETSPLIT_CACHE, or netsplit in the user's
// cache directory. It holds lib/ (the sets), m2/ (Maven's repository), work/
// (what targets keep between runs), targets/ (built-in targets' files), log/
// (output of clients that failed) and lock/.
func CacheDir() (string, error) {
	if d := os.Getenv("NETSPLIT_CACHE"); d != "" {
		return filepath.Abs(d)
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the cache: %w: set NETSPLIT_CACHE to a directory with 2 GB of space", err)
	}
	return filepath.Join(d, "netsplit"), nil
}

// Find returns a release that is in the cache. It looks at sizes and times of
// the files against the stamp that a full verification left, which takes
// milliseconds. An error wraps ErrAbsent where Get would help; others name what
// the machine lacks.
func Find(r Release) (Set, error) {
	root, err := CacheDir()
	if err != nil {
		return Set{}, err
	}
	if err := r.installed(); err != nil {
		return Set{}, err
	}
	s := r.paths(root)
	if r.hasDir() {
		st, err := readStamp(s.Lib)
		if err == nil {
			err = st.verify(r, s.Lib)
		}
		if err != nil {
			return Set{}, fmt.Errorf("%s is %w (%s: %v): fetch it with: %s", r, ErrAbsent, s.Lib, err, r.GetCommand())
		}
		s.Count, s.Bytes = st.size()
	}
	switch {
	case r.JavaHome != "":
		s.JavaHome = filepath.Join(s.Files, r.JavaHome)
		s.Java = filepath.Join(s.JavaHome, "bin", "java")
	case r.Java != "":
		s.Java, s.JavaHome, err = findJava(r.Java, r.JavaParts, candidates(), readVersion)
		if err == nil {
			return s, nil
		}
		jdk, ok := pinned(r.Java)
		if !ok {
			return Set{}, fmt.Errorf("%s: %w", r, err)
		}
		j, jerr := Find(jdk)
		if jerr != nil {
			return Set{}, fmt.Errorf("%s runs on Java %s: %w", r, r.Java, jerr)
		}
		s.Java, s.JavaHome = j.Java, j.JavaHome
	}
	return s, nil
}

// hasDir says whether the release has a directory of its own in the cache.
func (r Release) hasDir() bool { return r.fetches() || len(r.Link) > 0 }

func (r Release) paths(root string) Set {
	lib := filepath.Join(root, "lib", r.dirName())
	return Set{Lib: lib, Files: filepath.Join(lib, "files")}
}

// installed looks for what Debian packages must bring.
func (r Release) installed() error {
	var missing, packages []string
	for _, p := range slices.Sorted(maps.Keys(r.Debian)) {
		var err error
		if filepath.IsAbs(p) {
			_, err = os.Stat(p)
		} else {
			_, err = exec.LookPath(p)
		}
		if err != nil {
			missing = append(missing, p)
			if pkg := r.Debian[p]; !slices.Contains(packages, pkg) {
				packages = append(packages, pkg)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s needs what is not installed: %s; install it with: apt-get install %s", r, strings.Join(missing, ", "), strings.Join(packages, " "))
}

// stampName is the file in a set's directory that says it was verified.
const stampName = ".netsplit-set.json"

// stamp is written last: a set without one is not whole.
type stamp struct {
	Recipe string      `json:"recipe"`
	Lock   string      `json:"lock"` // SHA-256 of the sorted list of hashes
	Files  []stampFile `json:"files"`
}

type stampFile struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"`         // Unix nanoseconds
	Sum   string `json:"sum,omitempty"` // SHA-256 of a program that was built here, which no list has
}

func (s stamp) size() (n int, bytes int64) {
	for _, f := range s.Files {
		bytes += f.Size
	}
	return len(s.Files), bytes
}

// digest names a list of hashes whatever its order.
func digest(entries []entry) string {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	sum := sha256.Sum256(formatLock(entries))
	return hex.EncodeToString(sum[:])
}

// writeStamp records the verified files of a set.
func writeStamp(r Release, dir string, entries []entry) error {
	listed, _ := r.split(entries)
	st := stamp{Recipe: r.recipe, Lock: digest(listed)}
	for _, e := range entries {
		i, err := os.Stat(filepath.Join(dir, filepath.FromSlash(e.path)))
		if err != nil {
			return err
		}
		f := stampFile{Path: e.path, Size: i.Size(), MTime: i.ModTime().UnixNano()}
		if r.builtHere(e.path) {
			f.Sum = e.sum
		}
		st.Files = append(st.Files, f)
	}
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, stampName), b, 0o644, renameio.WithTempDir(dir))
}

func readStamp(dir string) (stamp, error) {
	b, err := os.ReadFile(filepath.Join(dir, stampName))
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, errors.New("there is no verified set")
	}
	if err != nil {
		return stamp{}, err
	}
	var st stamp
	if err := json.Unmarshal(b, &st); err != nil || len(st.Files) == 0 {
		return stamp{}, errors.New("its stamp cannot be read")
	}
	return st, nil
}

// verify returns what differs from what was verified.
func (s stamp) verify(r Release, dir string) error {
	if s.Recipe != r.recipe {
		return errors.New("the catalogue describes another set now")
	}
	if r.lock != nil {
		lock, err := parseLock(r.lock)
		if err != nil {
			return err
		}
		if digest(lock) != s.Lock {
			return errors.New("it was verified against other hashes")
		}
	}
	for _, f := range s.Files {
		i, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return fmt.Errorf("%s is missing", f.Path)
		}
		if i.Size() != f.Size || i.ModTime().UnixNano() != f.MTime {
			return fmt.Errorf("%s was changed", f.Path)
		}
	}
	// What was added counts too: the class path takes every jar.
	n := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != stampName {
			n++
		}
		return err
	})
	if err == nil && n != len(s.Files) {
		err = fmt.Errorf("it has %d files instead of %d", n, len(s.Files))
	}
	return err
}

// pinned returns the release of product jdk that brings a Java of this major
// version.
func pinned(major string) (Release, bool) {
	r, err := Load("jdk", major, "")
	return r, err == nil && r.JavaHome != ""
}

// ensureJava finds a Java for the release. If the machine has none, it downloads the pinned one.
func ensureJava(ctx context.Context, r Release, p *printer) error {
	if r.Java == "" {
		return nil
	}
	_, _, err := findJava(r.Java, r.JavaParts, candidates(), func(home, program string) (string, error) { return runVersion(ctx, program) })
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	jdk, ok := pinned(r.Java)
	if !ok {
		return fmt.Errorf("%s: %w", r, err)
	}
	p.printf("no Java %s for it on this machine: fetching %s for %s", r.Java, jdk, r)
	_, err = get(ctx, jdk, p)
	return err
}
