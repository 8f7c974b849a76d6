package sut

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"netsplit/internal/regular"
	"netsplit/model"
)

// Bounds of an upload.
const (
	// UploadMost is how many bytes a target and the files beside it may have.
	UploadMost  = 32 << 20
	uploadFiles = 2000
)

// Bounds of all uploads of a folder together.
var (
	uploadsBytes    = int64(1 << 30)
	uploadsVersions = 1000
)

// Uploads are targets that were sent as content, kept in a folder: each version
// below <name>/<version>/, and its name's newest version in <name>/newest. A version
// is a digest of the files, and what is kept is never changed.
type Uploads struct{ Dir string }

const newestFile = "newest"

// reference is the name of a target as a client gives it: NAME, NAME:VERSION, and
// behind either @RELEASE.
var reference = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9_-]*)(?::([0-9a-f]{12}))?(?:@([A-Za-z0-9][A-Za-z0-9._+-]*))?$`)

// Put keeps a target that comes as a tar archive, which may be compressed by gzip:
// target.yaml and what stands beside it. It returns the target and the name it is
// known by from now on, NAME:VERSION. What is wrong with it is the sender's to mend.
func (u Uploads) Put(archive []byte) (*model.Target, string, error) {
	files, err := unpack(archive)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	b, ok := files[FileName]
	if !ok {
		return nil, "", fmt.Errorf("%w: the archive has no %s at its top, but %s: make it with tar -C FOLDER -c .", model.ErrInvalid, FileName, strings.Join(first(slices.Sorted(maps.Keys(files)), 5), ", "))
	}
	t, err := Parse(FileName, b.text)
	if err == nil {
		err = relations(t, func(name string) ([]byte, error) {
			f, ok := files[filepath.ToSlash(filepath.Clean(name))]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return f.text, nil
		})
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	version := digestOf(files)
	ref := t.Name + ":" + version
	dir := filepath.Join(u.Dir, t.Name, version)
	if _, err := os.Lstat(dir); err == nil {
		return t, ref, u.setNewest(t.Name, version)
	}
	u.sweep()
	if err := u.room(files); err != nil {
		return nil, "", fmt.Errorf("keep target %s: %w", ref, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, "", fmt.Errorf("keep target %s: %w", ref, err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return nil, "", fmt.Errorf("keep target %s: %w", ref, err)
	}
	defer os.RemoveAll(tmp)
	if err := writeAll(tmp, files); err != nil {
		return nil, "", fmt.Errorf("keep target %s: %w", ref, err)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) { // somebody else sent the same
		return nil, "", fmt.Errorf("keep target %s: %w", ref, err)
	}
	return t, ref, u.setNewest(t.Name, version)
}

// Has says whether a target of a campaign is one that was uploaded.
func (u Uploads) Has(ref string) bool {
	m := reference.FindStringSubmatch(ref)
	return m != nil && m[2] != ""
}

// Holds says whether a version, NAME:VERSION, has just the files of an archive.
func Holds(ref string, archive []byte) bool {
	files, err := unpack(archive)
	m := reference.FindStringSubmatch(ref)
	return err == nil && m != nil && m[2] == digestOf(files)
}

// sweep removes what a Put or Delete that was killed left behind. Calls of both come
// one at a time.
func (u Uploads) sweep() {
	for _, pattern := range []string{".new-*", ".gone-*"} {
		left, _ := filepath.Glob(filepath.Join(u.Dir, "*", pattern)) // the pattern is well formed
		for _, dir := range left {
			_ = os.RemoveAll(dir) // what stays counts as what is there
		}
	}
}

// room says whether the bounds of all uploads leave room for more files.
func (u Uploads) room(files map[string]uploaded) error {
	bytes, versions := int64(0), len(u.List())
	for _, f := range files {
		bytes += int64(len(f.text))
	}
	err := filepath.WalkDir(u.Dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err == nil && (bytes > uploadsBytes || versions >= uploadsVersions) {
		err = fmt.Errorf("%w: the uploaded targets would have more than %d MiB or %d versions: delete some (GET /v1/targets lists them, DELETE /v1/targets/NAME:VERSION deletes one)", model.ErrFull, uploadsBytes>>20, uploadsVersions)
	}
	return err
}

// Delete deletes a version that was uploaded, NAME:VERSION. If it was the newest of
// its name, the one uploaded before it is the newest from now on.
func (u Uploads) Delete(ref string) error {
	m := reference.FindStringSubmatch(ref)
	if m == nil || m[2] == "" || m[3] != "" {
		return fmt.Errorf("%w: %q is no uploaded target: give NAME:VERSION as GET /v1/targets lists it", model.ErrInvalid, ref)
	}
	dir := filepath.Join(u.Dir, m[1])
	if _, err := os.Lstat(filepath.Join(dir, m[2])); err != nil {
		return fmt.Errorf("%w: target %s was not uploaded here", model.ErrNotFound, ref)
	}
	// Out of the list first: a half of a version must never be loaded.
	gone, err := os.MkdirTemp(dir, ".gone-*")
	if err == nil {
		err = os.Rename(filepath.Join(dir, m[2]), filepath.Join(gone, m[2]))
	}
	if err == nil {
		err = u.newestIs(m[1], m[2])
	}
	if err == nil {
		err = os.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("delete target %s: %w", ref, err)
	}
	return nil
}

// newestIs sets the newest version of a name anew after one was deleted, or
// deletes the name's folder if no version is left.
func (u Uploads) newestIs(name, deleted string) error {
	dir := filepath.Join(u.Dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var newest string
	var at time.Time
	for _, e := range entries {
		if !e.IsDir() || !reference.MatchString(name+":"+e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if newest == "" || info.ModTime().After(at) {
			newest, at = e.Name(), info.ModTime()
		}
	}
	if newest == "" {
		return os.RemoveAll(dir)
	}
	b, err := regular.Read(u.Dir, filepath.Join(name, newestFile))
	if err != nil || strings.TrimSpace(string(b)) != deleted {
		return err
	}
	return u.setNewest(name, newest)
}

// writeAll writes files below dir, which others may read whatever the umask: the
// target's processes run from there, and the folder of all uploads is shut.
func writeAll(dir string, files map[string]uploaded) error {
	for name, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, f.text, 0o644)); err != nil {
			return err
		}
		if f.runs {
			if err := os.Chmod(to, 0o755); err != nil {
				return err
			}
		}
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		mode := i.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode = 0o755
		}
		return os.Chmod(p, mode)
	})
}

func (u Uploads) setNewest(name, version string) error {
	dir := filepath.Join(u.Dir, name)
	err := renameio.WriteFile(filepath.Join(dir, newestFile), []byte(version+"\n"), 0o600, renameio.WithTempDir(dir))
	if err != nil {
		return fmt.Errorf("keep target %s: %w", name, err)
	}
	return nil
}

// Named says what a client's name of a target stands for: the name of a built-in
// target as it is, that of an upload with its version, so that it means the same
// for ever. Nothing is opened but what was uploaded; what is no name is refused.
func (u Uploads) Named(name string) (string, error) {
	m := reference.FindStringSubmatch(name)
	if m == nil {
		return "", fmt.Errorf("name the target: a daemon opens no path that a client sends. Upload the target's folder first (POST /v1/targets) and use the name in the answer, or let the command line do so: netsplit campaign PATH, netsplit script run FILE")
	}
	if m[2] != "" {
		return name, nil // Load says if it is not there
	}
	builtin := Known()
	if slices.Contains(builtin, m[1]) {
		return name, nil
	}
	b, err := regular.Read(u.Dir, filepath.Join(m[1], newestFile))
	if errors.Is(err, fs.ErrNotExist) {
		own := u.names()
		return "", fmt.Errorf("no target %q%s: the built-in ones are %s, and uploaded were %s", m[1], DidYouMean(m[1], slices.Concat(builtin, own)), strings.Join(builtin, ", "), orNone(own))
	}
	if err != nil {
		return "", fmt.Errorf("read the uploaded target %s: %w", m[1], err)
	}
	return At(m[1]+":"+strings.TrimSpace(string(b)), m[3]), nil
}

// Load is Load for what may be an upload, too, as Named names it.
func (u Uploads) Load(name string) (*model.Target, string, error) {
	m := reference.FindStringSubmatch(name)
	if m == nil || m[2] == "" {
		return Load(name)
	}
	at := filepath.Join(m[1], m[2])
	b, err := regular.Read(u.Dir, filepath.Join(at, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("target %s was not uploaded here: upload it again (netsplit campaign PATH does)", name)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the uploaded target %s: %w", name, err)
	}
	t, err := Parse(FileName, b)
	if err == nil {
		err = relations(t, func(name string) ([]byte, error) { return regular.Read(u.Dir, filepath.Join(at, name)) })
	}
	if err != nil {
		return nil, "", err
	}
	return t, filepath.Join(u.Dir, at), choose(t, m[3])
}

// Upload is a target that was uploaded.
type Upload struct {
	Name   string // NAME:VERSION
	Newest bool   // it is what the bare name stands for
}

// List lists all uploads, by name, the newest version of each first.
func (u Uploads) List() []Upload {
	var out []Upload
	for _, name := range u.names() {
		b, err := regular.Read(u.Dir, filepath.Join(name, newestFile))
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(filepath.Join(u.Dir, name))
		for _, e := range entries {
			if ref := name + ":" + e.Name(); e.IsDir() && reference.MatchString(ref) {
				out = append(out, Upload{Name: ref, Newest: e.Name() == strings.TrimSpace(string(b))})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Upload) int {
		an, _, _ := strings.Cut(a.Name, ":")
		bn, _, _ := strings.Cut(b.Name, ":")
		if c := cmp.Compare(an, bn); c != 0 || a.Newest == b.Newest {
			return c
		}
		if a.Newest {
			return -1
		}
		return 1
	})
	return out
}

func (u Uploads) names() []string {
	entries, _ := os.ReadDir(u.Dir)
	var out []string
	for _, e := range entries {
		if e.IsDir() && nameRE.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}

// uploaded is a file of an archive.
type uploaded struct {
	text []byte
	runs bool // it is executable
}

// unpack reads an archive by path. Only regular files are taken, with a path
// below the archive's top.
func unpack(archive []byte) (map[string]uploaded, error) {
	var r io.Reader = bytes.NewReader(archive)
	if bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("the archive cannot be unpacked: %w", err)
		}
		r = z
	}
	files, left := map[string]uploaded{}, int64(UploadMost)
	for tr := tar.NewReader(io.LimitReader(r, 2*UploadMost)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("send a tar archive of the target's folder (tar -C FOLDER -c .), of at most %d MiB: %w", UploadMost>>20, err)
		}
		name := path.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%s is no regular file: an archive of a target has files and folders only (tar -h puts files in place of links)", model.Excerpt(h.Name))
		case !filepath.IsLocal(name) || len(name) > 255 || strings.ContainsAny(name, "\x00\\"):
			return nil, fmt.Errorf("%s: the paths of an archive are relative, without .. and \\, and have at most 255 bytes", model.Excerpt(h.Name))
		}
		if left -= h.Size; left < 0 {
			return nil, fmt.Errorf("the target and the files beside it have more than %d MiB: put it into a folder of its own", UploadMost>>20)
		}
		if _, dup := files[name]; dup {
			return nil, fmt.Errorf("%s is twice in the archive", model.Excerpt(name))
		}
		if len(files) == uploadFiles {
			return nil, fmt.Errorf("the target's folder has more than %d files: put it into a folder of its own", uploadFiles)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			return nil, fmt.Errorf("read %s of the archive: %w", model.Excerpt(name), err)
		}
		files[name] = uploaded{text: b, runs: h.Mode&0o111 != 0}
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, file := files[dir]; file {
				return nil, fmt.Errorf("%s is a file and a folder in the archive", model.Excerpt(dir))
			}
		}
	}
	return files, nil
}

func digestOf(files map[string]uploaded) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %v %d\n", name, files[name].runs, len(files[name].text))
		h.Write(files[name].text)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func first(list []string, n int) []string { return list[:min(len(list), n)] }
