package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rmemWanted is the receive buffer, in bytes, of the packet sockets through
// which the switch reads its ports. With the usual default of 212,992 a TCP
// burst overflows it and plain forwarding loses packets.
const rmemWanted = 16 << 20

// rmemPath is the setting that a packet socket takes its buffer from at the
// moment it is opened. It can be written in the first network namespace only.
var rmemPath = "/proc/sys/net/core/rmem_default"

func (m *Manager) rmemSaved() string { return filepath.Join(m.RunDir, "rmem_default.saved") }

// raiseRmem raises the default buffer and returns what puts it back, and a
// warning if it could not be raised. The old value is kept in a file, so that
// restoreRmem puts it back even if this process is killed.
func (m *Manager) raiseRmem() (restore func() error, warning string) {
	old, err := readInt(rmemPath)
	if err == nil && old >= rmemWanted {
		return func() error { return nil }, ""
	}
	if err == nil {
		err = os.WriteFile(m.rmemSaved(), []byte(strconv.Itoa(old)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(rmemPath, []byte(strconv.Itoa(rmemWanted)), 0o644)
	}
	if err != nil {
		os.Remove(m.rmemSaved())
		return func() error { return nil }, fmt.Sprintf("receive buffers stay at the default (%v): the switch may lose packets in bursts; "+
			"run the lab in the machine's first network namespace or set net.core.rmem_default=%d there", err, rmemWanted)
	}
	return m.restoreRmem, ""
}

// withRmem does something during which the switch opens ports with large
// receive buffers. That they cannot be had is a warning of the lab.
func (m *Manager) withRmem(s *state, f func() error) error {
	restore, warning := m.raiseRmem()
	if warning != "" && !slices.Contains(s.Warnings, warning) {
		s.Warnings = append(s.Warnings, warning)
	}
	return errors.Join(f(), restore())
}

// restoreRmem puts the default buffer back if a raise is under way.
func (m *Manager) restoreRmem() error {
	data, err := os.ReadFile(m.rmemSaved())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab: cannot read the saved net.core.rmem_default: %w", err)
	}
	if _, err := strconv.Atoi(string(data)); err == nil { // else: killed before the raise
		if now, err := readInt(rmemPath); err == nil && now == rmemWanted {
			if err := os.WriteFile(rmemPath, data, 0o644); err != nil {
				return fmt.Errorf("lab: cannot put net.core.rmem_default back to %s: %w", data, err)
			}
		}
	}
	return os.Remove(m.rmemSaved())
}

func readInt(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}
