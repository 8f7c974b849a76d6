package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// member is a process as /proc/<pid>/stat shows it.
type member struct {
	pid, group, session int
	dead                bool // a zombie
}

// stat reads a process (proc_pid_stat(5): fields 3 state, 5 pgrp, 6 session).
func stat(pid int) (member, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return member{}, err
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // field 2 may hold anything
	if len(f) < 4 {
		return member{}, fmt.Errorf("unexpected /proc/%d/stat", pid)
	}
	m := member{pid: pid, dead: f[0] == "Z" || f[0] == "X"}
	m.group, _ = strconv.Atoi(f[2])
	m.session, _ = strconv.Atoi(f[3])
	return m, nil
}

// sessionMembers lists the living processes of a session or of the process
// group of the same number.
func sessionMembers(id int) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if m, err := stat(pid); err == nil && !m.dead && (m.session == id || m.group == id) {
			out = append(out, pid)
		}
	}
	return out
}

// killSession kills every member of the session until none is left. The
// session's number cannot be given to another process while it has members,
// and the caller sees to it that it is not given away before.
func killSession(id int) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		// First all of the group at once, so that none sees another die.
		if err := unix.Kill(-id, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill process group %d: %w", id, err)
		}
		left := sessionMembers(id)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not die; they may hang in the kernel, see /proc/<pid>/stack", left)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // gone meanwhile, or caught in the next round
		}
		time.Sleep(2 * time.Millisecond)
	}
}
