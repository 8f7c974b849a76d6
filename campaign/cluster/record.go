package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"netsplit/model"
	"netsplit/record/rundir"
)

// bounds are those of a folder that another machine sends.
type bounds struct {
	files int
	bytes int64
}

var (
	ofRecord   = bounds{files: 100_000, bytes: 4 << 30}
	ofSoftware = bounds{files: 100_000, bytes: 16 << 30}
)

// maxWindow bounds what zstd takes of the memory, in bytes.
const maxWindow = 64 << 20

// pack writes the regular files below dir as a tar archive, compressed by zstd. What else is
// there, links among it, is left out.
func pack(dir string, to io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(st.Mode().Perm()), Size: st.Size(), ModTime: st.ModTime()}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err = io.CopyN(w, f, st.Size()); errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s became shorter while it was read", name)
		}
		return err
	})
	return errors.Join(err, w.Close(), z.Close())
}

// Permissions of what is unpacked: a record is its owner's, while processes of targets run
// from software as other users. Executable files stay so.
const (
	forOwner fs.FileMode = 0o700
	forAll   fs.FileMode = 0o755
)

// unpack makes the files of such an archive below dir, which must exist. Names that lead out
// of dir are refused.
func unpack(from io.Reader, dir string, mode fs.FileMode, most bounds) error {
	left := most.bytes
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	r := tar.NewReader(z)
	for n := 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive cannot be read: %w", err)
		}
		left -= h.Size
		switch {
		case h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name):
			return fmt.Errorf("the archive has %q, which is no regular file below its folder", h.Name)
		case n >= most.files || left < 0:
			return fmt.Errorf("the archive has more than %d files or %d bytes", most.files, most.bytes)
		}
		if err := unpackFile(root, h, r, mode); err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, h *tar.Header, r io.Reader, mode fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(h.Name), mode); err != nil {
		return err
	}
	if h.Mode&0o100 == 0 {
		mode &^= 0o111
	}
	f, err := root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = root.Chtimes(h.Name, h.ModTime, h.ModTime)
	}
	return err
}

var errVersion = errors.New("another version")

// isOf says whether the record in a folder is of a run, made by a version.
func isOf(w model.WorkItem, version, dir string) error {
	// An older form of a scenario becomes another one when it is read: once by the runner, and
	// once with the record.
	sc := w.Scenario
	for range 2 {
		b, err := json.Marshal(sc)
		if err != nil {
			return err
		}
		sc = model.Scenario{}
		if err := json.Unmarshal(b, &sc); err != nil {
			return err
		}
	}
	asked, err := json.Marshal(sc)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, rundir.MetaFile)
	st, err := os.Lstat(file)
	if err != nil {
		return err
	}
	// It has the scenario, indented, and little beside it: what is longer is not read.
	if most := int64(8*len(asked) + 1<<20); st.Size() > most {
		return fmt.Errorf("%s has %d bytes: with the scenario that was asked for it has %d at most", rundir.MetaFile, st.Size(), most)
	}
	var meta model.RunMeta
	if err := rundir.ReadJSON(file, &meta); err != nil {
		return err
	}
	made, err := json.Marshal(meta.Scenario)
	if err != nil {
		return err
	}
	switch {
	case meta.Campaign != w.Campaign || meta.Run != w.Run || meta.ReplayOf != w.ReplayOf:
		return fmt.Errorf("it is of run %s of campaign %s, and run %s of campaign %s was asked for", meta.Run, meta.Campaign, w.Run, w.Campaign)
	case !bytes.Equal(asked, made):
		return errors.New("it is of another scenario than the one that was asked for")
	case meta.Version != version:
		return fmt.Errorf("%w: it was made by netsplit %s, and this is %s", errVersion, meta.Version, version)
	}
	return nil
}
