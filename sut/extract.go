package sut

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"netsplit/sut/software"
)

// extract copies the files of a built-in target into the cache, since its
// scripts need a path, and returns the directory: targets/<name>-<hash of the
// files>. Go sources and texts for people are not of use there. A target
// without other files than its target.yaml has no directory: "".
func extract(builtin fs.FS, name string) (string, error) {
	files, err := targetFiles(builtin, name)
	if err != nil {
		return "", fmt.Errorf("read the files of built-in target %s: %w", name, err)
	}
	if len(files) < 2 {
		return "", nil
	}
	h := sha256.New()
	names := slices.Sorted(maps.Keys(files))
	for _, f := range names {
		fmt.Fprintf(h, "%s %d\n%s", f, len(files[f]), files[f])
	}
	dir, err := software.CacheDir()
	if err == nil {
		dir = filepath.Join(dir, "targets", name+"-"+hex.EncodeToString(h.Sum(nil))[:12])
		for _, f := range names {
			if err = place(filepath.Join(dir, filepath.FromSlash(f)), files[f]); err != nil {
				break
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("write the files of built-in target %s: %w: its scripts are run from the cache; set NETSPLIT_CACHE to a directory of yours", name, err)
	}
	return dir, nil
}

func targetFiles(builtin fs.FS, name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(builtin, name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p == path.Join(name, "scripts") {
			return fs.SkipDir // scripted tests are no part of what runs
		}
		if err != nil || d.IsDir() || path.Ext(p) == ".go" || path.Ext(p) == ".md" {
			return err
		}
		b, err := fs.ReadFile(builtin, p)
		out[strings.TrimPrefix(p, name+"/")] = b
		return err
	})
	return out, err
}

// place writes a file that is not there, or is another one, at once: somebody
// else may do the same now. Scripts become executable.
func place(file string, b []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if bytes.HasPrefix(b, []byte("#!")) || strings.HasSuffix(file, ".sh") {
		mode = 0o755
	}
	tmp, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithPermissions(mode), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer tmp.Cleanup()
	if _, err := tmp.Write(b); err != nil {
		return err
	}
	return tmp.CloseAtomicallyReplace()
}
