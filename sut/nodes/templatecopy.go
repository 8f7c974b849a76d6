package nodes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// copyKept copies the files and folders below src that match a pattern or lie
// in a folder that does, and returns a digest of names, contents, owners and
// permissions: a server may have given up root, or start only where nobody else
// can read. Folders on the way, src first, become like theirs, too.
func copyKept(src, dst string, patterns []string) (string, error) {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return "", err
	}
	all := sha256.New()
	var folders []string // relative, each before those in it
	var folder func(rel string) error
	folder = func(rel string) error {
		if slices.Contains(folders, rel) {
			return nil
		}
		if rel != "." {
			if err := folder(filepath.Dir(rel)); err != nil {
				return err
			}
		}
		folders = append(folders, rel)
		return os.MkdirAll(filepath.Join(dst, rel), 0o755)
	}
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == src {
			return fs.SkipAll // nothing was kept of this host
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if rel == "." {
			return folder(".")
		}
		kept := slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := doublestar.PathMatch(p, rel)
			under, _ := doublestar.PathMatch(p+"/**", rel)
			return ok || under
		})
		if !kept {
			return nil
		}
		if d.IsDir() {
			return folder(rel)
		}
		if err := folder(filepath.Dir(rel)); err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(all, "l %q\n", link)
			if err := os.Symlink(link, to); err != nil {
				return err
			}
		case !info.Mode().IsRegular():
			return nil // sockets and pipes are made anew
		default:
			fmt.Fprintf(all, "f %d\n", info.Size())
			if err := copyFile(path, to, all); err != nil {
				return err
			}
		}
		return like(info, to, rel, all)
	})
	if err != nil {
		return "", err
	}
	for _, rel := range slices.Backward(folders) { // nothing is written there any more
		info, err := os.Stat(filepath.Join(src, rel))
		if err != nil {
			return "", err
		}
		if err := like(info, filepath.Join(dst, rel), rel, all); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// like gives a copy the owner and the permissions of what it is a copy of, and
// adds them to the digest.
func like(of fs.FileInfo, to, rel string, sum hash.Hash) error {
	was, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: the system does not tell whose it is", to)
	}
	fmt.Fprintf(sum, "%q %v %d %d\n", rel, of.Mode(), was.Uid, was.Gid)
	is, err := os.Lstat(to)
	if err != nil {
		return err
	}
	if now := is.Sys().(*syscall.Stat_t); now.Uid != was.Uid || now.Gid != was.Gid { // who is not root must not say so even of his own
		if err := os.Lchown(to, int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	if of.Mode().Type() == fs.ModeSymlink {
		return nil
	}
	return os.Chmod(to, of.Mode()) // after the owner: a change of owner takes setuid away
}

func copyFile(from, to string, sum hash.Hash) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	return errors.Join(err, out.Close())
}
