package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// FileOp is what a program asks of a file.
type FileOp string

// The file operations. Each stands for the system calls behind it.
const (
	FileCreate   FileOp = "create"   // open, openat, openat2, creat of a file that does not exist
	FileOpen     FileOp = "open"     // the same of a file that exists, for writing
	FileWrite    FileOp = "write"    // write, pwrite64, writev, pwritev, pwritev2
	FileCopy     FileOp = "copy"     // sendfile, copy_file_range, splice: the kernel moves bytes into the file
	FileSync     FileOp = "sync"     // fsync, fdatasync
	FileTruncate FileOp = "truncate" // truncate, ftruncate; fallocate that takes content away
	FileAllocate FileOp = "allocate" // fallocate that asks for room
	FileRename   FileOp = "rename"   // rename, renameat, renameat2
	FileUnlink   FileOp = "unlink"   // unlink, unlinkat
)

// FileOps lists all file operations.
func FileOps() []FileOp {
	return []FileOp{FileCreate, FileOpen, FileWrite, FileCopy, FileSync, FileTruncate, FileAllocate, FileRename, FileUnlink}
}

// FileOperation is one operation that a program has asked for and that has not begun.
type FileOperation struct {
	// Host and Process say who was started, as the target file names it. A program that
	// it forked has the same.
	Host    NodeID `json:"host"`
	Process string `json:"process"`
	// PID and TID are the process and the thread that ask.
	PID int `json:"pid"`
	TID int `json:"tid"`
	// Thread is the thread's name, at most 15 bytes (proc_pid_comm(5)). HotSpot names its
	// threads as Java does.
	Thread string `json:"thread,omitempty"`
	Op     FileOp `json:"op"`
	// Path is free of symbolic links; To is the new path of a rename. That of a folder ends
	// with "/". The disk gate has absolute ones. In the events of a run, those below the
	// host's folder are relative to it.
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
	// Kind and ToKind are Path and To below their folder with "#" for numbers and hashes
	// (testbed/disk.Kind); "" for a path that lies below none.
	Kind   string `json:"kind,omitempty"`
	ToKind string `json:"toKind,omitempty"`
	// Bytes is how many a write or copy offers and an allocation asks for; of a truncate the
	// new length, or what is taken away within the file.
	Bytes int64 `json:"bytes,omitempty"`
}

// String is the operation on one line, e.g. "n1 redis: write 23 bytes to appendonly.aof.#.incr.aof".
func (o FileOperation) String() string {
	s := string(o.Host) + " " + o.Process + ": " + string(o.Op) + " "
	switch o.Op {
	case FileWrite, FileCopy:
		s += fmt.Sprintf("%d bytes to ", o.Bytes)
	case FileTruncate, FileAllocate:
		s += fmt.Sprintf("%d bytes of ", o.Bytes)
	}
	name := func(kind, path string) string {
		if kind == "" {
			return path
		}
		return kind
	}
	s += name(o.Kind, o.Path)
	if o.Op == FileRename {
		s += " to " + name(o.ToKind, o.To)
	}
	return s
}

// Point is the operation as the type of a point names it, as in "rename blk_#"; "" for a path
// that lies below no folder.
func (o *FileOperation) Point() string {
	if o.Kind == "" {
		return ""
	}
	return string(o.Op) + " " + o.Kind
}

// FileAt is the trigger of the operations that Point names so on a host.
func FileAt(point string, host NodeID, nth int) FileTrigger {
	op, kind, _ := strings.Cut(point, " ")
	return FileTrigger{Op: FileOp(op), Path: literal.Replace(kind), Host: host, Nth: nth}
}

// literal takes from a path what a pattern means by it.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`)

// FileAnswer is what becomes of a file operation that a disk fault hits. The zero value: it
// goes on.
type FileAnswer struct {
	// Errno is the name of the error with which it ends before it does anything: EIO, ENOSPC.
	Errno string `json:"errno,omitempty"`
	// Written is how many bytes are written of a write that is cut short.
	Written int64 `json:"written,omitempty"`
}

// String is the answer in words.
func (a FileAnswer) String() string {
	switch {
	case a.Errno != "":
		return "fails with " + a.Errno
	case a.Written > 0:
		return fmt.Sprintf("writes %d bytes only", a.Written)
	}
	return "passes"
}

// FileTrigger is the nth operation (0: the first) of a kind on a kind of file. An empty field
// matches everything.
type FileTrigger struct {
	Op FileOp `json:"op,omitempty"`
	// Path is a pattern for FileOperation.Kind or ToKind: "*" for anything within a name,
	// "**" for folders, too, as in "**/*.log".
	Path    string `json:"path,omitempty"`
	Host    NodeID `json:"host,omitempty"`
	Process string `json:"process,omitempty"`
	// Thread is a pattern for FileOperation.Thread: "*" for anything. It is compared with the
	// first 15 bytes, all that the kernel keeps.
	Thread string `json:"thread,omitempty"`
	Nth    int    `json:"nth,omitempty"`
}

// Validate says what is wrong with the trigger, given the hosts it may name.
func (t *FileTrigger) Validate(hosts []NodeID) error {
	switch {
	case t.Op != "" && !slices.Contains(FileOps(), t.Op):
		return fmt.Errorf("no file operation %q: there are %v", t.Op, FileOps())
	case !doublestar.ValidatePattern(t.Path):
		return fmt.Errorf("path: %q is no pattern: * is anything within a name, ** also folders", t.Path)
	case len(strings.ReplaceAll(t.Thread, "*", "")) > 15:
		return fmt.Errorf("thread: %q can never match: the kernel keeps 15 bytes of a thread's name", t.Thread)
	case t.Nth < 0:
		return fmt.Errorf("nth must not be negative")
	case t.Host != "" && !slices.Contains(hosts, t.Host):
		return fmt.Errorf("no host %q: there are %v", t.Host, hosts)
	}
	return nil
}

// Matches says whether the operation is one that the trigger counts.
func (t *FileTrigger) Matches(o *FileOperation) bool {
	return (t.Op == "" || t.Op == o.Op) && t.Of(o.Host, o.Process) &&
		(t.Path == "" || MatchesFile(t.Path, o.Kind) || MatchesFile(t.Path, o.ToKind)) &&
		(t.Thread == "" || MatchType(t.Thread, o.Thread))
}

// Of says whether it may count operations of a process.
func (t *FileTrigger) Of(host NodeID, process string) bool {
	return (t.Host == "" || t.Host == host) && (t.Process == "" || t.Process == process)
}

// MatchesFile says whether a valid pattern matches a kind of file.
func MatchesFile(pattern, kind string) bool {
	return kind != "" && doublestar.MatchUnvalidated(pattern, kind)
}

// String is the trigger in words.
func (t *FileTrigger) String() string {
	s := "file operation"
	if t.Op != "" {
		s = string(t.Op)
	}
	if t.Path != "" {
		s += " of " + t.Path
	}
	if t.Thread != "" {
		s += " by thread " + t.Thread
	}
	if t.Process != "" {
		s += " by " + t.Process
	}
	if t.Host != "" {
		s += " on " + string(t.Host)
	}
	return fmt.Sprintf("%s, number %d", s, max(t.Nth, 1))
}
