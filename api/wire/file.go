package wire

import (
	"cmp"

	"netsplit/model"
)

// FileTrigger is an operation on a file of a server at which a step begins or ends, before the
// operation does anything. Writes to mapped memory (mmap) are not seen, and io_uring is
// refused to servers that are watched.
type FileTrigger struct {
	Op      string `json:"op,omitempty" enum:"create,open,write,copy,sync,truncate,allocate,rename,unlink" doc:"create: a file that does not exist; open: one that exists, for writing; copy: the kernel moves bytes into it (sendfile, copy_file_range); sync: fsync, fdatasync; allocate: fallocate. Absent: any"`
	Path    string `json:"path,omitempty" maxLength:"500" doc:"Path below the host's folder, with # for numbers and hashes; * is anything within a name, ** also folders. Absent: any" example:"appendonlydir/*.incr.aof"`
	Host    string `json:"host,omitempty" maxLength:"63" doc:"Absent: any"`
	Process string `json:"process,omitempty" maxLength:"63" doc:"The server, as the target file names it; absent: any"`
	Thread  string `json:"thread,omitempty" maxLength:"63" doc:"Name of the thread, of which the kernel keeps 15 bytes; * is any text" example:"PacketResponder*"`
	Nth     int    `json:"nth,omitempty" minimum:"0" doc:"The nth that matches, from 1; absent: the first"`
}

// DiskFault is what happens to the disk of a host. The end of the step mends the disk, and
// starts servers that ended since it began.
type DiskFault struct {
	Fault   string `json:"fault" enum:"eio,short,enospc,full,gone,corrupt,torn,power-cut" doc:"eio, enospc: the file operation of when fails with that error; short: only the first bytes of that write are written; full: what needs room fails with ENOSPC; gone: every operation fails with EIO; corrupt: the servers are killed and bytes of a file change; torn: they are killed and the end of a file is gone; power-cut: the servers are killed and what they did not sync is lost"`
	Host    string `json:"host,omitempty" maxLength:"63" doc:"Host, or a role, as in crash; absent: that of the file of when, or file-host if this names none"`
	Process string `json:"process,omitempty" maxLength:"63" doc:"Only this server; absent: all of the host, or that of the file of when"`
	Bytes   int    `json:"bytes,omitempty" minimum:"0" doc:"short: how many are written; absent: half; at most 64 MiB. corrupt: how many change; absent: one. torn: how many are gone; absent: half of the file"`
	Path    string `json:"path,omitempty" maxLength:"500" doc:"corrupt, torn: which file, as in when; of several, the one written last" example:"*.rdb"`
}

func (t *FileTrigger) model() *model.FileTrigger {
	if t == nil {
		return nil
	}
	return &model.FileTrigger{Op: model.FileOp(t.Op), Path: t.Path, Host: model.NodeID(t.Host), Process: t.Process, Thread: t.Thread, Nth: t.Nth}
}

// model fills in what a fault of one operation takes from that.
func (f *DiskFault) model(when *model.FileTrigger) *model.DiskFault {
	if f == nil {
		return nil
	}
	out := &model.DiskFault{Kind: model.DiskFaultKind(f.Fault), Host: model.NodeID(f.Host), Process: f.Process, Bytes: f.Bytes, Path: f.Path}
	if when != nil && out.Host == "" {
		out.Host = cmp.Or(when.Host, model.RoleFileHost)
	}
	if when != nil && out.Once() && out.Process == "" {
		out.Process = when.Process
	}
	return out
}

func fromFileTrigger(t *model.FileTrigger) *FileTrigger {
	if t == nil {
		return nil
	}
	return &FileTrigger{Op: string(t.Op), Path: t.Path, Host: string(t.Host), Process: t.Process, Thread: t.Thread, Nth: t.Nth}
}

func fromDiskFault(f *model.DiskFault) *DiskFault {
	if f == nil {
		return nil
	}
	return &DiskFault{Fault: string(f.Kind), Host: string(f.Host), Process: f.Process, Bytes: f.Bytes, Path: f.Path}
}
