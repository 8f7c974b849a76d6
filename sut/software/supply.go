package software

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
)

// SetName is the name of the set's folder in a cache, the same on every machine.
func (r Release) SetName() string { return r.dirName() }

// Missing lists the sets that are not in the cache and that the release runs from: its own,
// and the Java that is fetched where the machine has none.
func Missing(r Release) []Release {
	var out []Release
	root, err := CacheDir()
	if err != nil {
		return nil
	}
	if r.hasDir() {
		dir := r.paths(root).Lib
		if st, err := readStamp(dir); err != nil || st.verify(r, dir) != nil {
			out = append(out, r)
		}
	}
	if r.Java == "" {
		return out
	}
	if _, _, err := findJava(r.Java, r.JavaParts, candidates(), readVersion); err == nil {
		return out
	}
	jdk, ok := pinned(r.Java)
	if ok {
		if _, err := Find(jdk); errors.Is(err, ErrAbsent) {
			out = append(out, jdk)
		}
	}
	return out
}

var setName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// Cached gives the folder of a set of the cache, by its name, and a hash of what is in it.
func Cached(name string) (dir, hash string, err error) {
	if !setName.MatchString(name) {
		return "", "", fmt.Errorf("%q is no name of a set of software", name)
	}
	root, err := CacheDir()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(root, "lib", name)
	st, err := readStamp(dir)
	if err != nil {
		return "", "", fmt.Errorf("set %s is %w: %w", name, ErrAbsent, err)
	}
	entries := []entry{{"recipe", st.Recipe}, {"lock", st.Lock}}
	return dir, digest(slices.Concat(entries, st.built())), nil
}

// Sets are the names of the sets in the cache.
func Sets() []string {
	root, err := CacheDir()
	if err != nil {
		return nil
	}
	stamps, _ := filepath.Glob(filepath.Join(root, "lib", "*", stampName)) // the pattern is well formed
	var out []string
	for _, s := range stamps {
		if name := filepath.Base(filepath.Dir(s)); setName.MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

// Import takes a set from another machine's cache: fill puts its files, with its stamp, into
// a folder. They must be those that the catalogue lists.
func Import(ctx context.Context, r Release, fill func(dir string) error) error {
	root, err := CacheDir()
	if err != nil {
		return err
	}
	return locked(ctx, lockPath(root, r), r.String(), &printer{w: io.Discard}, func() error {
		dir := r.paths(root).Lib
		if verify(r, dir) == nil {
			return nil
		}
		return inTemp(root, r, func(tmp string) error {
			if err := fill(tmp); err != nil {
				return err
			}
			if err := verify(r, tmp); err != nil {
				return fmt.Errorf("%s from another machine's cache: %w", r, err)
			}
			return replace(tmp, dir)
		})
	})
}
