package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// ConfineVerb is the first argument of a program that is to call ConfineMain.
const ConfineVerb = "confine"

// Identity is what a process may do.
type Identity struct {
	UID, GID int
	// Capabilities are all that it has, and all that any program it starts can
	// get; All: root's.
	Capabilities []string
	All          bool
	// Show are folders that it reaches, though others than their owner do not: it
	// has a view of the file system in which what leads there can be passed, and
	// holds nothing else.
	Show []string
	// Passwd is a file that it has as /etc/passwd; "" for none.
	Passwd string
}

// Argv is the command that runs argv so; program calls ConfineMain.
func (id Identity) Argv(program string, argv ...string) []string {
	caps := strings.Join(id.Capabilities, ",")
	if id.All {
		caps = "all"
	}
	return append([]string{program, ConfineVerb, strconv.Itoa(id.UID), strconv.Itoa(id.GID), caps, strings.Join(id.Show, ":"), id.Passwd, "--"}, argv...)
}

// KeepFiles sees to it that no program that this one starts or becomes gets an open file
// that this one was started with, standard input and output apart: a lock of the shell, or
// a secret of root (close_range(2); a kernel before 5.11 leaves them open).
func KeepFiles() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }

// ConfineMain becomes the command of Identity.Argv. It returns only if it cannot,
// with the exit status. Who is not root keeps what rights he has.
func ConfineMain(args []string) int {
	KeepFiles()
	err := confine(args)
	fmt.Fprintln(os.Stderr, "netsplit:", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

func confine(args []string) error {
	if len(args) < 7 || args[5] != "--" {
		return fmt.Errorf("confine: it is started by netsplit only")
	}
	id := Identity{All: args[2] == "all", Passwd: args[4]}
	var err, err2 error
	id.UID, err = strconv.Atoi(args[0])
	id.GID, err2 = strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if !id.All && args[2] != "" {
		id.Capabilities = strings.Split(args[2], ",")
	}
	if args[3] != "" {
		id.Show = strings.Split(args[3], ":")
	}
	argv := args[6:]
	runtime.LockOSThread() // rights are a thread's; exec takes those of the one that calls it
	if os.Geteuid() == 0 {
		if err := id.view(); err != nil {
			return fmt.Errorf("make its view of the file system: %w", err)
		}
		if err := id.take(); err != nil {
			return fmt.Errorf("give up rights: %w", err)
		}
	} else if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

// view lets the process reach what it is shown. Whoever it becomes later, as
// servers do that give up root by themselves, reaches it, too.
func (id Identity) view() error {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	hidden := map[string][]string{} // shown folders by the first folder on the way that others cannot pass
	for _, dir := range id.Show {
		if at := blocked(dir); at != "" && !slices.Contains(hidden[at], dir) {
			hidden[at] = append(hidden[at], dir)
		}
	}
	if len(hidden) == 0 && id.Passwd == "" {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		if len(hidden) == 0 {
			return nil // in a container, say; it has a name less
		}
		return fmt.Errorf("%s cannot be passed by other users, and mount namespaces cannot be had: %w", strings.Join(id.Show, ", "), err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if id.Passwd != "" {
		if err := unix.Mount(id.Passwd, "/etc/passwd", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/etc/passwd: %w", err)
		}
	}
	for at, dirs := range hidden {
		slices.SortFunc(dirs, func(a, b string) int { return len(a) - len(b) })
		var held []int
		for _, dir := range dirs {
			fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			held = append(held, fd)
		}
		if err := unix.Mount("netsplit", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		for i, dir := range dirs {
			if slices.ContainsFunc(dirs[:i], func(d string) bool { return strings.HasPrefix(dir, d+"/") }) {
				continue // it is there with the one around it
			}
			err := os.MkdirAll(dir, 0o755)
			if err == nil {
				err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", held[i]), dir, "", unix.MS_BIND|unix.MS_REC, "")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
	}
	for at := range hidden { // what is written beside what is shown would be lost
		if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if os.Chdir(cwd) != nil || blocked(cwd) != "" {
		return os.Chdir("/")
	}
	return nil
}

// blocked is the first folder on the way to dir that others than its owner cannot
// pass; "" if there is none, or no dir.
func blocked(dir string) string {
	if _, err := os.Stat(dir); err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	at := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(filepath.Dir(filepath.Clean(dir)), "/"), "/") {
		at += "/" + part
		if st, err := os.Stat(at); err == nil && st.Mode().Perm()&0o001 == 0 {
			return at
		}
	}
	return ""
}

// take gives up everything but what the identity has, for good: for the process and
// all that it starts.
func (id Identity) take() error {
	var set uint64
	for _, name := range id.Capabilities {
		n := model.CapabilityNumber(name)
		if n < 0 {
			return fmt.Errorf("no capability %q", name)
		}
		set |= 1 << n
	}
	if !id.All {
		for n := range uintptr(64) {
			if set&(1<<n) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0); errors.Is(err, unix.EINVAL) {
				break // the kernel has no more
			} else if err != nil {
				return fmt.Errorf("bounding set: %w", err)
			}
		}
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, uintptr(id.GID), uintptr(id.GID), uintptr(id.GID)},
		{unix.SYS_SETRESUID, uintptr(id.UID), uintptr(id.UID), uintptr(id.UID)}} {
		if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 { // of this thread alone
			return fmt.Errorf("become user %d: %w", id.UID, e)
		}
	}
	if !id.All {
		if err := setCapabilities(set); err != nil {
			return err
		}
		for n := range uintptr(64) {
			if set&(1<<n) == 0 || id.UID == 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n, 0, 0); err != nil {
				return fmt.Errorf("capability %s: %w", model.Capabilities()[n], err)
			}
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	// A change of the user takes this away (prctl(2)).
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

func setCapabilities(set uint64) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	lo, hi := uint32(set), uint32(set>>32)
	data := [2]unix.CapUserData{{Effective: lo, Permitted: lo, Inheritable: lo}, {Effective: hi, Permitted: hi, Inheritable: hi}}
	if _, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data[0])), 0); e != 0 {
		return fmt.Errorf("capabilities: %w", e)
	}
	return nil
}
