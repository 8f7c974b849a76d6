package disk

import (
	"fmt"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// writing are the flags of an open that is an event.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// gated are the system calls that are held. What their arguments mean is in
// caller.operation.
var gated = []seccomp.NameWithConditions{
	{Name: "open", Conditions: where(1, seccomp.BitsSet, writing)},
	{Name: "openat", Conditions: where(2, seccomp.BitsSet, writing)},
	{Name: "openat2"}, // its flags are in memory
	{Name: "creat"},
	{Name: "write"}, {Name: "pwrite64"}, {Name: "writev"}, {Name: "pwritev"}, {Name: "pwritev2"},
	{Name: "sendfile"}, {Name: "copy_file_range"}, {Name: "splice"},
	{Name: "fsync"}, {Name: "fdatasync"}, {Name: "sync"}, {Name: "syncfs"},
	{Name: "msync", Conditions: where(2, seccomp.BitsSet, unix.MS_SYNC)},
	{Name: "truncate"}, {Name: "ftruncate"}, {Name: "fallocate"},
	{Name: "rename"}, {Name: "renameat"}, {Name: "renameat2"},
	{Name: "unlink"},
	{Name: "unlinkat", Conditions: where(2, seccomp.BitsNotSet, unix.AT_REMOVEDIR)},
}

// denied are the ways to write that no filter sees. A program is told that the kernel
// has none, and takes another.
var denied = []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_submit"}

func where(argument uint32, op seccomp.Operation, value uint64) seccomp.ArgumentConditions {
	return seccomp.ArgumentConditions{{Argument: argument, Operation: op, Value: value}}
}

// assemble makes the filter for this machine.
func assemble() ([]bpf.RawInstruction, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	hold := seccomp.SyscallGroup{Action: seccomp.ActionUserNotify}
	for _, c := range gated {
		if _, ok := machine.SyscallNames[c.Name]; !ok {
			continue // arm64 has no open, only openat
		}
		if c.Conditions == nil {
			hold.Names = append(hold.Names, c.Name)
		} else {
			hold.NamesWithCondtions = append(hold.NamesWithCondtions, c)
		}
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		hold,
		{Names: denied, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	// The library lets programs of another architecture pass; they would go unseen.
	foreign := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4}, // seccomp_data.arch (seccomp(2))
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}
	return bpf.Assemble(slices.Concat(foreign, program))
}

// names of the gated system calls of this machine, by number.
func names() (map[int32]string, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	out := map[int32]string{}
	for _, c := range gated {
		if number, ok := machine.SyscallNames[c.Name]; ok {
			out[int32(number)] = c.Name
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no system call of %s is known", machine.Name)
	}
	return out, nil
}
