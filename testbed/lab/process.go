package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process names one process for good: a pid alone is used again later.
type process struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (proc_pid_stat(5),
	// field 22).
	Start uint64 `json:"start,omitempty"`
}

func (p process) String() string { return fmt.Sprintf("%d:%d", p.PID, p.Start) }

func parseProcess(s string) (process, error) {
	a, b, ok := strings.Cut(s, ":")
	pid, err1 := strconv.Atoi(a)
	start, err2 := strconv.ParseUint(b, 10, 64)
	if !ok || err1 != nil || err2 != nil || pid < 0 {
		return process{}, fmt.Errorf("process %q: want pid:start", s)
	}
	return process{PID: pid, Start: start}, nil
}

func findProcess(pid int) (process, error) {
	fields, err := procStat(pid)
	if err != nil {
		return process{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("process %d: start time %q", pid, fields[19])
	}
	return process{PID: pid, Start: start}, nil
}

// alive says whether the process still runs. A zombie does not.
func (p process) alive() bool {
	q, err := findProcess(p.PID)
	return err == nil && q == p
}

// ended says whether the kernel has closed all that the process had open: a zombie whose other
// threads end still has files.
func (p process) ended() bool {
	if p.alive() {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil || !bytes.HasPrefix(data[bytes.LastIndexByte(data, ')')+1:], []byte(" Z")) {
		return true
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
	return len(tasks) <= 1
}

// procStat returns the fields of /proc/<pid>/stat from field 3 (state) on, at
// least 20 of them, of a process that is not a zombie.
func procStat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	// Field 2 is the name in parentheses and may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("process %d: unexpected /proc/%d/stat", pid, pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return nil, fmt.Errorf("process %d is dead", pid)
	}
	return fields, nil
}

func pids() []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// pidsInNetns lists the processes in the network namespaces, given as links
// such as "net:[4026532233]", other than this one.
func pidsInNetns(links map[string]bool) []int {
	var out []int
	for _, pid := range pids() {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil && links[link] && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// Sweep kills every process on the lab's hosts, except those given: what a
// system under test left running that is in nobody's session any more.
func (l *Lab) Sweep(except ...int) error {
	links := map[string]bool{}
	for _, h := range l.st.Hosts {
		if link, ok := netnsLink(netnsPath(h.Netns)); ok {
			links[link] = true
		}
	}
	return killInNetns(links, except...)
}

// killInNetns kills every process in the namespaces but those excepted, again
// and again until none is left: one that forks meanwhile is caught in the next
// round.
func killInNetns(links map[string]bool, except ...int) error {
	if len(links) == 0 {
		return nil
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		left := slices.DeleteFunc(pidsInNetns(links), func(pid int) bool { return slices.Contains(except, pid) })
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not die; they may hang in the kernel, see /proc/<pid>/stack", left)
		}
		for _, pid := range left {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("cannot kill process %d: %w", pid, err)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}
