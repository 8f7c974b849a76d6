package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Err says that something is there and is not opened.
var Err = errors.New("not a regular file below its folder")

// Open opens the file name, a path relative to dir, for reading. No link is
// followed on the way from dir to the file (openat2(2)). Where there is a link, or
// what is there is no regular file, the error wraps Err; a file that is not there
// is fs.ErrNotExist.
func Open(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: err} }
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(d)
	// O_PATH finds the file without opening it: nothing blocks and nothing happens.
	at, err := unix.Openat2(d, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ELOOP):
		return fail(fmt.Errorf("%w: it is a link, or below one", Err))
	case errors.Is(err, unix.EXDEV):
		return fail(fmt.Errorf("%w: it is outside of %s", Err, dir))
	case err != nil:
		return fail(err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fail(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fail(fmt.Errorf("%w: it is a %s", Err, kind(st.Mode)))
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "folder"
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

// Read reads the file name below dir, as Open opens it.
func Read(dir, name string) ([]byte, error) {
	f, err := Open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
