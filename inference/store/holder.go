package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// HeldError says that another process has the store open.
type HeldError struct {
	Path string
	// PID of the holder, 0 if the kernel's table of locks does not say.
	PID int
	// Address at which the holder serves its API, "" if it said none.
	Address string
}

// Error names the holder and the way out.
func (e *HeldError) Error() string {
	s := "store " + e.Path + " is in use by another netsplit"
	if e.PID != 0 {
		s += fmt.Sprintf(" (pid %d)", e.PID)
	}
	if e.Address != "" {
		return s + fmt.Sprintf(", which serves %s: use that one (--api %s), or stop it, or name another with --runs-dir (serve: or --store)", e.Address, e.Address)
	}
	return s + ": wait for it or stop it, or name another with --runs-dir (serve: or --store)"
}

// holder is the side file, <store>.holder: who has the store open.
type holder struct {
	PID     int    `json:"pid"`
	Address string `json:"address,omitempty"`
}

func holderPath(path string) string { return path + ".holder" }

// writeHolder puts the side file down by rename: no reader sees half of it.
func writeHolder(path string, h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(holderPath(path), append(b, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("store: say who holds it: %w", err)
	}
	return nil
}

func heldBy(path string) error {
	e := &HeldError{Path: path, PID: lockHolder(path)}
	var h holder
	if b, err := os.ReadFile(holderPath(path)); err == nil && json.Unmarshal(b, &h) == nil {
		// A side file left by a dead process says nothing about this one.
		if e.PID == 0 || e.PID == h.PID {
			e.PID, e.Address = h.PID, h.Address
		}
	}
	return e
}

// lockHolder reads the pid that holds a flock on the file out of the kernel's
// table, proc(5) /proc/locks:
//
//	1: FLOCK  ADVISORY  WRITE 1234 08:01:567890 0 EOF
//
// It is 0 where the table does not show it (other pid namespace, btrfs, whose
// device numbers differ from what stat reports).
func lockHolder(path string) int {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		path = r
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	major := (st.Dev>>8)&0xfff | (st.Dev>>32)&^uint64(0xfff)
	minor := st.Dev&0xff | (st.Dev>>12)&^uint64(0xff)
	want := fmt.Sprintf("%02x:%02x:%d", major, minor, st.Ino)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		w := strings.Fields(sc.Text())
		// A waiter's line has "->" as its second word and is no holder.
		if len(w) >= 6 && w[1] == "FLOCK" && w[5] == want {
			if pid, err := strconv.Atoi(w[4]); err == nil && pid > 0 {
				return pid
			}
		}
	}
	return 0
}
