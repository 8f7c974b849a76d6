package campaign

import (
	"fmt"
	"slices"

	"netsplit/model"
)

// holdsFiles says why the service cannot do what a step asks of files; nil: it can, or the step
// asks for nothing of them.
func (s *Service) holdsFiles(st *model.Step) error {
	if !st.AboutFiles() {
		return nil
	}
	return s.hasDiskGates()
}

// hasDiskGates says why file operations are not held on the service's testbed.
func (s *Service) hasDiskGates() error {
	tb := s.cfg.Testbed
	if tb == nil {
		return nil
	}
	for _, h := range tb.Hosts {
		if !h.Remote() {
			continue
		}
		return fmt.Errorf("file operations are held, and disks fail, only on this machine, and host %s of testbed %s is another one: use a lab (no --testbed)", h.Name, tb.Name)
	}
	if tb.Hooks.Start != "" {
		return fmt.Errorf("file operations are held, and disks fail, only of servers that netsplit starts, and on testbed %s hooks do: use a lab (no --testbed)", tb.Name)
	}
	return fmt.Errorf("file operations are held, and disks fail, in labs only, and testbed %s is somebody else's: use a lab (no --testbed)", tb.Name)
}

// ofServers says why a step waits for operations, or is about the disk, of a server that the
// target does not have; nil: it has it.
func ofServers(st *model.Step, t *model.Target) error {
	has := func(host model.NodeID, process string) bool {
		for _, p := range t.Processes {
			for _, h := range p.Hosts {
				if !p.Once && (host == "" || host == h) && (process == "" || process == p.Name) {
					return true
				}
			}
		}
		return false
	}
	for _, f := range []*model.FileTrigger{st.When.File, st.Until.File} {
		if f != nil && !has(f.Host, f.Process) {
			return fmt.Errorf("%s: target %s has no such server there", f, t.Name)
		}
	}
	if f := st.Do.Disk; f != nil && !has(f.Host, f.Process) && !(slices.Contains(st.Do.Roles, string(f.Host)) && has("", f.Process)) {
		return fmt.Errorf("%s: target %s has no such server there", f, t.Name)
	}
	return nil
}
