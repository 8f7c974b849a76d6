package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// caller is the thread whose call is held.
type caller struct {
	tid     int
	folders []string
}

// operation is a call on a file below the folders.
type operation struct {
	op       model.FileOp
	path, to string // absolute
	bytes    int64
	fd       int // -1: the file is named by path
	data     []span
	offset   int64 // -1: where the file stands
	flags    int   // RWF_ of pwritev2
	// truncates: an open that empties the file.
	truncates bool
	// within: a truncate that is not at the end.
	within bool
}

// span is memory of the caller.
type span struct{ at, length uint64 }

// maxCount is how many bytes a call writes at most (MAX_RW_COUNT; write(2), "Notes").
const maxCount = 0x7ffff000

// operation reads the call. It returns nil for one that is no operation on a file or
// folder below the folders.
func (c caller) operation(name string, a [6]uint64) (*operation, error) {
	switch name {
	case "write":
		return c.onFile(operation{op: model.FileWrite, bytes: int64(a[2]), data: []span{{a[1], a[2]}}, offset: -1}, a[0])
	case "pwrite64":
		return c.onFile(operation{op: model.FileWrite, bytes: int64(a[2]), data: []span{{a[1], a[2]}}, offset: int64(a[3])}, a[0])
	case "writev":
		return c.vector(a, -1, 0)
	case "pwritev":
		return c.vector(a, int64(a[3]), 0)
	case "pwritev2":
		return c.vector(a, int64(a[3]), int(a[5]))
	case "sendfile":
		return c.onFile(operation{op: model.FileCopy, bytes: int64(a[3])}, a[0])
	case "copy_file_range", "splice":
		return c.onFile(operation{op: model.FileCopy, bytes: int64(a[4])}, a[2])
	case "fsync", "fdatasync":
		return c.onFile(operation{op: model.FileSync}, a[0])
	case "ftruncate":
		return c.onFile(operation{op: model.FileTruncate, bytes: int64(a[1])}, a[0])
	case "fallocate":
		o := operation{op: model.FileAllocate, bytes: int64(a[3])}
		if a[1]&^unix.FALLOC_FL_KEEP_SIZE != 0 {
			o.op, o.within = model.FileTruncate, true
		}
		return c.onFile(o, a[0])
	case "truncate":
		return c.named(operation{op: model.FileTruncate, bytes: int64(a[1])}, unix.AT_FDCWD, a[0], true)
	case "unlink":
		return c.named(operation{op: model.FileUnlink}, unix.AT_FDCWD, a[0], false)
	case "unlinkat":
		return c.named(operation{op: model.FileUnlink}, int32(a[0]), a[1], false)
	case "rename":
		return c.rename(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1])
	case "renameat", "renameat2":
		return c.rename(int32(a[0]), a[1], int32(a[2]), a[3])
	case "open":
		return c.open(unix.AT_FDCWD, a[0], a[1])
	case "creat":
		return c.open(unix.AT_FDCWD, a[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC)
	case "openat":
		return c.open(int32(a[0]), a[1], a[2])
	case "openat2":
		how, err := c.memory(a[2], 8) // struct open_how begins with the flags (openat2(2))
		if err != nil {
			return nil, err
		}
		return c.open(int32(a[0]), a[1], binary.NativeEndian.Uint64(how))
	case "msync", "sync", "syncfs":
		return nil, nil // no event; see Gate.note
	}
	return nil, fmt.Errorf("system call %s is held, but the gate cannot read it", name)
}

// onFile completes an operation on an open file.
func (c caller) onFile(o operation, fd uint64) (*operation, error) {
	if o.op == model.FileWrite {
		o.bytes = int64(min(uint64(o.bytes), maxCount))
	}
	o.fd = int(int32(fd))
	link := c.proc("/fd/" + strconv.Itoa(o.fd))
	path, err := readlink(link)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // no such descriptor: the kernel says so
	} else if err != nil {
		return nil, err
	}
	if c.folder(path) == "" {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(link, &st); err != nil {
		return nil, err
	}
	if st.Nlink == 0 {
		path = strings.TrimSuffix(path, " (deleted)")
	}
	o.path = path
	return &o, o.typed(st)
}

// vector completes a write from several places.
func (c caller) vector(a [6]uint64, offset int64, flags int) (*operation, error) {
	o, err := c.onFile(operation{op: model.FileWrite, offset: offset, flags: flags}, a[0])
	if o == nil || err != nil {
		return o, err
	}
	const most = 1024 // UIO_MAXIOV (readv(2)); the kernel refuses more
	raw, err := c.memory(a[1], 16*min(a[2], most))
	if err != nil {
		return nil, err
	}
	for ; len(raw) > 0; raw = raw[16:] {
		s := span{binary.NativeEndian.Uint64(raw), binary.NativeEndian.Uint64(raw[8:])}
		o.data = append(o.data, s)
		o.bytes = min(o.bytes+int64(min(s.length, maxCount)), maxCount)
	}
	return o, nil
}

// errNoEvent: the operation is on neither a regular file nor a folder.
var errNoEvent = errors.New("no regular file")

// typed marks a folder, and refuses what is no regular file.
func (o *operation) typed(st unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		o.path += "/"
		return nil
	}
	return errNoEvent
}

func (c caller) open(dir int32, at, flags uint64) (*operation, error) {
	if flags&writing == 0 {
		return nil, nil
	}
	o, err := c.named(operation{op: model.FileOpen, truncates: flags&unix.O_TRUNC != 0}, dir, at, flags&unix.O_NOFOLLOW == 0)
	if err == nil && o != nil && strings.HasSuffix(o.path, "/") && flags&unix.O_TMPFILE == unix.O_TMPFILE {
		o.op = model.FileCreate
	}
	if errors.Is(err, unix.ENOENT) && o != nil {
		if flags&unix.O_CREAT == 0 {
			return nil, nil
		}
		o.op, err = model.FileCreate, nil
	}
	return o, err
}

// named completes an operation on a file that is named. Of a file that does not exist
// it returns the operation and ENOENT.
func (c caller) named(o operation, dir int32, at uint64, follow bool) (*operation, error) {
	path, err := c.path(dir, at, follow)
	if err != nil {
		return nil, err
	}
	if c.folder(path) == "" {
		return nil, nil
	}
	o.path, o.fd = path, -1
	var st unix.Stat_t
	if err := unix.Lstat(c.proc("/root"+path), &st); err != nil {
		return &o, err
	}
	return &o, o.typed(st)
}

func (c caller) rename(dir int32, at uint64, toDir int32, toAt uint64) (*operation, error) {
	o := operation{op: model.FileRename, fd: -1}
	var err, err2 error
	o.path, err = c.path(dir, at, false)
	o.to, err2 = c.path(toDir, toAt, false)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if c.folder(o.path) == "" && c.folder(o.to) == "" {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(c.proc("/root"+o.path), &st); err != nil {
		return &o, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		o.to += "/"
	}
	return &o, o.typed(st)
}

// path is the name at an address, absolute and free of symbolic links, in the caller's
// view of the file system.
func (c caller) path(dir int32, at uint64, follow bool) (string, error) {
	name, err := c.text(at)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", unix.ENOENT
	}
	if !strings.HasPrefix(name, "/") {
		base := c.proc("/cwd")
		if dir != unix.AT_FDCWD {
			base = c.proc("/fd/" + strconv.Itoa(int(dir)))
		}
		from, err := readlink(base)
		if err != nil {
			return "", err
		}
		name = from + "/" + name
	}
	if follow {
		if full, err := c.resolved(name); err == nil {
			return full, nil
		}
	}
	name = strings.TrimRight(name, "/")
	last := name[strings.LastIndexByte(name, '/')+1:]
	if last == "" || last == "." || last == ".." {
		return c.resolved(name + "/")
	}
	parent, err := c.resolved(strings.TrimSuffix(name, last) + "/")
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, last), nil
}

// resolved is the path of what a name leads to.
func (c caller) resolved(name string) (string, error) {
	root, err := unix.Open(c.proc("/root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// folder is the one of the folders in which the path lies, or which it is.
func (c caller) folder(path string) string {
	for _, f := range c.folders {
		if strings.HasPrefix(path, f) && (len(path) == len(f) || path[len(f)] == '/') {
			return f
		}
	}
	return ""
}

func (c caller) proc(what string) string { return "/proc/" + strconv.Itoa(c.tid) + what }

// memory reads memory of the caller.
func (c caller) memory(at, length uint64) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	b := make([]byte, length)
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(c.tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: int(length)}}, 0)
	if err == nil && n < len(b) {
		err = unix.EFAULT
	}
	return b, err
}

// text reads a string that ends with a zero byte. Longer ones than PATH_MAX the kernel
// refuses.
func (c caller) text(at uint64) (string, error) {
	const page, longest = 4096, 4096
	var s []byte
	for len(s) < longest {
		b, err := c.memory(at, page-at%page) // what lies beyond may not be there
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(append(s, b[:end]...)), nil
		}
		s, at = append(s, b...), at+uint64(len(b))
	}
	return "", unix.ENAMETOOLONG
}

// process finds the process and the name of the thread. known holds the processes of
// threads seen before.
func (c caller) process(known map[int]int) (pid int, thread string, err error) {
	if pid, ok := known[c.tid]; ok {
		thread, err := line("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(c.tid) + "/comm")
		if err == nil {
			return pid, thread, nil
		}
	}
	status, err := os.ReadFile(c.proc("/status"))
	if err != nil {
		return 0, "", err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, err = strconv.Atoi(strings.TrimSpace(v))
			break
		}
	}
	if pid == 0 || err != nil {
		return 0, "", fmt.Errorf("/proc/%d/status names no process", c.tid)
	}
	known[c.tid] = pid
	thread, err = line(c.proc("/comm"))
	return pid, thread, err
}

// line reads a file of one short line, as every event does; os.ReadFile makes more
// calls than that needs.
func line(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var b [64]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(b[:n]), "\n"), nil
}

func readlink(path string) (string, error) {
	var b [4097]byte
	n, err := unix.Readlink(path, b[:])
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
