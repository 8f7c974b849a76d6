package disk

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

const (
	pageSize = 4096
	// maxPages is how many pages an Unsynced remembers: 256 MiB.
	maxPages = 1 << 16
)

// Unsynced saves what the files of one machine held when they were last synced, so that
// PowerCut can undo what came after. The gates of the machine share it. Changes that they do
// not see stay: a disk may always write more than it must. The zero value is ready for use.
type Unsynced struct {
	mu    sync.Mutex
	files map[inode]*unsynced
	pages int
	err   error
}

type inode struct{ device, number uint64 }

// unsynced is a file with changes since its last sync.
type unsynced struct {
	file *os.File
	size int64
	// pages has the old content of changed pages below size, by number.
	pages map[int64][]byte
}

// Loss is what a power cut took from one file.
type Loss struct {
	Path string
	// Size is how long the file was, Kept how long it is now.
	Size, Kept int64
	// Restored counts the bytes below Kept that have their old value again.
	Restored int64
}

// PowerCut restores each file to its last sync and returns what was lost, sorted by path. No
// program of the machine may run meanwhile. Names are not lost, as if every folder were
// synced: a file that was created and never synced is there, but empty; a file that was
// renamed or removed stays so.
func (u *Unsynced) PowerCut() ([]Loss, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return nil, fmt.Errorf("power cut: %w", u.err)
	}
	var losses []Loss
	for at, f := range u.files {
		loss, err := f.restore()
		if err != nil {
			return losses, fmt.Errorf("power cut: %s: %w", f.file.Name(), err)
		}
		if loss != nil {
			losses = append(losses, *loss)
		}
		u.forget(at)
	}
	slices.SortFunc(losses, func(a, b Loss) int { return cmp.Compare(a.Path, b.Path) })
	return losses, nil
}

func (f *unsynced) restore() (*Loss, error) {
	var st unix.Stat_t
	fd := int(f.file.Fd())
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		return nil, err
	}
	path, err := readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, err
	}
	loss := Loss{Path: path, Size: st.Size, Kept: f.size}
	if err := f.file.Truncate(f.size); err != nil {
		return nil, err
	}
	is := make([]byte, pageSize)
	for n, was := range f.pages {
		got, err := f.file.ReadAt(is[:len(was)], n*pageSize)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if bytes.Equal(is[:got], was) {
			continue
		}
		for i := range was {
			if i >= got || is[i] != was[i] {
				loss.Restored++
			}
		}
		if _, err := f.file.WriteAt(was, n*pageSize); err != nil {
			return nil, err
		}
	}
	if loss.Size == loss.Kept && loss.Restored == 0 {
		return nil, nil
	}
	return &loss, nil
}

// Forget forgets what a file held when it was last synced: what is in it now is on disk.
func (u *Unsynced) Forget(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget(inode{uint64(st.Dev), st.Ino})
	return nil
}

// Close forgets all of it.
func (u *Unsynced) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgetAll()
}

func (u *Unsynced) forgetAll() {
	for at := range u.files {
		u.forget(at)
	}
}

func (u *Unsynced) forget(at inode) {
	if f := u.files[at]; f != nil {
		u.pages -= len(f.pages)
		f.file.Close()
		delete(u.files, at)
	}
}

// before saves what an operation is about to change. It ignores an error if the caller no
// longer waits: its process was killed, so the operation changes nothing.
func (u *Unsynced) before(c caller, o *operation, waits func() bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.keep(c, o)
	if err != nil && !waits() {
		return nil
	}
	if err != nil && u.err == nil {
		u.err = fmt.Errorf("cannot save what a power cut must restore: %s %s: %w", o.op, o.path, err)
	}
	return err
}

func (u *Unsynced) keep(c caller, o *operation) error {
	if o.op == model.FileCreate || o.op == model.FileRename || o.op == model.FileUnlink || strings.HasSuffix(o.path, "/") || o.op == model.FileOpen && !o.truncates {
		return nil
	}
	name := c.proc("/root" + o.path)
	if o.fd >= 0 {
		name = c.proc("/fd/" + strconv.Itoa(o.fd))
	}
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return err
	}
	at := inode{st.Dev, st.Ino}
	position, flags, err := c.descriptor(o.fd)
	if err != nil {
		return err
	}
	if o.op == model.FileSync || o.op == model.FileWrite && (flags&unix.O_DSYNC != 0 || o.flags&(unix.RWF_DSYNC|unix.RWF_SYNC) != 0) {
		u.forget(at) // a synced write need sync only its own bytes; a disk may sync more
		return nil
	}
	f := u.files[at]
	if f == nil {
		// Prefer a name in this process's view for Loss.Path: names in the program's mount
		// namespace end with it.
		if ours := (unix.Stat_t{}); unix.Lstat(o.path, &ours) == nil && ours.Dev == st.Dev && ours.Ino == st.Ino {
			name = o.path
		}
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		f = &unsynced{file: file, size: st.Size, pages: map[int64][]byte{}}
		if u.files == nil {
			u.files = map[inode]*unsynced{}
		}
		u.files[at] = f
	}
	begin, end := int64(0), f.size
	switch {
	case o.op == model.FileWrite: // an append changes nothing below size that is not saved already
		begin = o.offset
		if begin < 0 {
			begin = position
		}
		end = begin + o.bytes
	case o.op == model.FileTruncate && !o.within:
		begin = o.bytes
	case o.op == model.FileAllocate:
		end = 0
	}
	return u.save(f, begin, min(end, f.size))
}

// save saves the pages with bytes from begin up to end that are not saved yet.
func (u *Unsynced) save(f *unsynced, begin, end int64) error {
	for n := begin / pageSize; n*pageSize < end; n++ {
		if _, ok := f.pages[n]; ok {
			continue
		}
		if u.pages == maxPages {
			return fmt.Errorf("more than %d pages were overwritten", maxPages)
		}
		page := make([]byte, min(pageSize, f.size-n*pageSize))
		// A file that was truncated reads short; what was cut off was saved then.
		if _, err := f.file.ReadAt(page, n*pageSize); err != nil && err != io.EOF {
			return err
		}
		f.pages[n] = page
		u.pages++
	}
	return nil
}

// synced forgets the files that the caller maps between the addresses (msync(2)).
func (u *Unsynced) synced(c caller, begin, length uint64) error {
	maps, err := os.ReadFile(c.proc("/maps"))
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for line := range strings.Lines(string(maps)) {
		var from, to, number uint64
		var rights, offset, device string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %d", &from, &to, &rights, &offset, &device, &number); n != 6 {
			return fmt.Errorf("unexpected line in %s: %q", c.proc("/maps"), line)
		}
		if from >= begin+length || to <= begin {
			continue
		}
		for at := range u.files {
			if at.number == number { // the device is named otherwise there on some file systems
				u.forget(at)
			}
		}
	}
	return nil
}

// allSynced forgets all (sync(2), syncfs(2)).
func (u *Unsynced) allSynced() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgetAll()
}

// descriptor is the position and the flags of an open file (proc_pid_fdinfo(5)); zero
// for none.
func (c caller) descriptor(fd int) (position int64, flags int, err error) {
	if fd < 0 {
		return 0, 0, nil
	}
	info, err := os.ReadFile(c.proc("/fdinfo/" + strconv.Itoa(fd)))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(info)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		var n int64
		switch key {
		case "pos":
			n, err = strconv.ParseInt(value, 10, 64)
			position = n
		case "flags":
			n, err = strconv.ParseInt(value, 8, 64)
			flags = int(n)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("unexpected fdinfo: %q", info)
		}
	}
	return position, flags, nil
}
