package software

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func runPip(ctx context.Context, root string, r Release, dir string, p *printer, again bool) error {
	wheels := filepath.Join(dir, ".wheels")
	if err := os.MkdirAll(wheels, 0o755); err != nil {
		return err
	}
	p.printf("%s: asking pip", r)
	args := []string{"python3", "-m", "pip", "download", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--retries", "2", "-d", wheels}
	if again {
		args = append(args, "--no-cache-dir")
	}
	pip := client{name: "pip", pkg: "python3-pip", args: append(args, r.Pip...)}
	_, err := pip.fetch(ctx, root, r, p)
	if err != nil {
		return condense(err, "ERROR:", "the index and proxy of pip's configuration (pip config list)")
	}
	files, err := filepath.Glob(filepath.Join(wheels, "*.whl"))
	if err != nil {
		return err
	}
	if len(files) < len(r.Pip) {
		return fmt.Errorf("pip: it brought %d wheels for %s: check the catalogue", len(files), strings.Join(r.Pip, ", "))
	}
	for _, f := range files {
		if err := unpack(f, filepath.Join(dir, "files")); err != nil {
			if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: the download is damaged: run the command again", err)
			}
			return fmt.Errorf("unpack %s: %w", filepath.Base(f), err)
		}
	}
	return os.RemoveAll(wheels)
}

// unpack extracts a zip archive. Entries that lead out of dir, and links, are
// errors.
func unpack(file, dir string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("entry %q leads out of the directory", f.Name)
		}
		to := filepath.Join(dir, f.Name)
		switch mode := f.Mode(); {
		case mode.IsDir():
			err = os.MkdirAll(to, 0o755)
		case mode.IsRegular():
			err = unpackFile(f, to)
		default:
			err = fmt.Errorf("entry %q is neither file nor directory", f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(f *zip.File, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
