package sut

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/deploy/targets"
)

// Pack makes the archive of a target that Uploads.Put takes: the file at a path or,
// where that is a folder, its target.yaml, and if that names what is beside it
// (.TargetDir, software, relations), all of its folder that is not hidden and holds no
// records of runs (a store). Links are followed to files.
// It returns the release that is asked for, too.
func Pack(nameOrPath string) (archive []byte, release string, err error) {
	name, release := splitRelease(nameOrPath)
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		name = filepath.Join(name, FileName)
	}
	text, err := read(name)
	if err != nil {
		return nil, "", fmt.Errorf("read target file: %w: check its path and permissions", err)
	}
	t, err := Parse(name, text)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	n, left := 0, int64(UploadMost)
	fits := func(size int64) error {
		n, left = n+1, left-size
		if n > uploadFiles || left < 0 {
			return fmt.Errorf("the folder of the target file has more than %d files or %d MiB: put the target into a folder of its own", uploadFiles, UploadMost>>20)
		}
		return nil
	}
	add := func(name string, b []byte, mode fs.FileMode) error {
		err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Typeflag: tar.TypeReg, Mode: int64(mode.Perm()), Size: int64(len(b))})
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
	if err := errors.Join(fits(int64(len(text))), add(FileName, text, 0o644)); err != nil {
		return nil, "", err
	}
	if bytes.Contains(text, []byte("TargetDir")) || t.Software != nil || t.Relations != "" {
		dir := filepath.Dir(name)
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || file == dir {
				return err
			}
			_, noStore := os.Stat(filepath.Join(file, "netsplit.db"))
			if strings.HasPrefix(d.Name(), ".") || noStore == nil {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			rel, err := filepath.Rel(dir, file)
			if err != nil || rel == FileName {
				return err
			}
			st, err := os.Stat(file)
			if err != nil || !st.Mode().IsRegular() {
				return nil // a folder, or of no use to anybody
			}
			if err := fits(st.Size()); err != nil {
				return err
			}
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return add(rel, b, st.Mode())
		})
		if err != nil {
			return nil, "", fmt.Errorf("pack target %s: %w", t.Name, err)
		}
	}
	err = w.Close() // before the bytes are taken: it ends the archive
	return out.Bytes(), release, err
}

// Known lists the names of the targets that come with netsplit, sorted.
func Known() []string { return Builtin(targets.FS) }

// IsPath says whether a name given to a command is that of a file or folder: it
// looks like a path or one is there, and no built-in target is called so.
func IsPath(nameOrPath string) bool {
	name, _ := splitRelease(nameOrPath)
	if slices.Contains(Known(), name) {
		return false
	}
	if strings.ContainsAny(name, `/\`) {
		return true
	}
	_, err := os.Stat(name)
	return err == nil
}
