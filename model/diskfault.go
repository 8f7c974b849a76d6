package model

import (
	"fmt"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
)

// DiskFaultKind is how a disk fails.
type DiskFaultKind string

// Kinds of disk faults. The first three are of the operation at which the step begins; full
// and gone last as long as the step.
const (
	DiskEIO    DiskFaultKind = "eio"    // it ends with EIO and does nothing
	DiskShort  DiskFaultKind = "short"  // only the first bytes of the write are written
	DiskENOSPC DiskFaultKind = "enospc" // it ends with ENOSPC and does nothing
	DiskFull   DiskFaultKind = "full"   // what needs room ends with ENOSPC
	// Every operation ends with EIO. Reads and opens for reading are none (FileOperation) and succeed.
	DiskGone DiskFaultKind = "gone"
	// The servers are killed, then their files are damaged. They start again as the step ends.
	DiskCorrupt  DiskFaultKind = "corrupt"   // bytes of a file change
	DiskTorn     DiskFaultKind = "torn"      // the end of a file is gone
	DiskPowerCut DiskFaultKind = "power-cut" // what was not synced is lost
)

// DiskFaultKinds lists all kinds.
func DiskFaultKinds() []DiskFaultKind {
	return []DiskFaultKind{DiskEIO, DiskShort, DiskENOSPC, DiskFull, DiskGone, DiskCorrupt, DiskTorn, DiskPowerCut}
}

// DiskFault is what a step does to the disk of a host. The end of the step mends the disk and
// starts the servers that ended since it began.
type DiskFault struct {
	Kind DiskFaultKind `json:"kind"`
	Host NodeID        `json:"host"`
	// Process is the server whose files it is about; "": all of the host's. A power cut has none.
	Process string `json:"process,omitempty"`
	// Bytes is, of short, how many are written (0: half; 64 MiB at most), of corrupt, how many
	// change (0: one), and of torn, how many are gone (0: half of the file).
	Bytes int `json:"bytes,omitempty"`
	// Path is a pattern for the kind of the file that is corrupted or torn, as in FileTrigger. Of
	// several files it is the one that was written last.
	Path string `json:"path,omitempty"`
}

// Once says that it is of one operation, that of the step's When.
func (f *DiskFault) Once() bool {
	return f.Kind == DiskEIO || f.Kind == DiskShort || f.Kind == DiskENOSPC
}

// Kills says that it kills servers.
func (f *DiskFault) Kills() bool { return f.damagesFile() || f.Kind == DiskPowerCut }

// damagesFile says that it damages one file of servers that it kills.
func (f *DiskFault) damagesFile() bool { return f.Kind == DiskCorrupt || f.Kind == DiskTorn }

// Of says whether it is about a server.
func (f *DiskFault) Of(host NodeID, process string) bool {
	return f.Host == host && (f.Process == "" || f.Process == process)
}

// Takes says whether it can be of that operation: a write is cut short if it offers more than
// is to be written of it.
func (f *DiskFault) Takes(o *FileOperation) bool {
	return f.Kind != DiskShort || o.Op == FileWrite && o.Bytes > int64(max(f.Bytes, 1))
}

// maxShort is the most bytes that are written of a write that is cut short: netsplit copies them.
const maxShort = 64 << 20

// Answer is what becomes of an operation that it is of, or of one while it lasts. A full disk
// does not know what is allocated already: a write within a file fails, too.
func (f *DiskFault) Answer(o *FileOperation) FileAnswer {
	switch f.Kind {
	case DiskEIO, DiskGone:
		return FileAnswer{Errno: "EIO"}
	case DiskENOSPC:
		return FileAnswer{Errno: "ENOSPC"}
	case DiskFull:
		if slices.Contains([]FileOp{FileCreate, FileWrite, FileCopy, FileAllocate}, o.Op) {
			return FileAnswer{Errno: "ENOSPC"}
		}
	case DiskShort:
		if f.Bytes == 0 {
			return FileAnswer{Written: min(o.Bytes/2, maxShort)}
		}
		return FileAnswer{Written: int64(f.Bytes)}
	}
	return FileAnswer{}
}

// String is the fault in words.
func (f *DiskFault) String() string {
	of := " on " + string(f.Host)
	if f.Process != "" {
		of = " of " + f.Process + of
	}
	switch f.Kind {
	case DiskEIO, DiskENOSPC:
		return "fail it with " + map[DiskFaultKind]string{DiskEIO: "EIO", DiskENOSPC: "ENOSPC"}[f.Kind] + of
	case DiskShort:
		if f.Bytes > 0 {
			return fmt.Sprintf("write %d bytes only%s", f.Bytes, of)
		}
		return "write half of it" + of
	case DiskCorrupt:
		return fmt.Sprintf("crash, and corrupt %s of %s%s", Count(max(f.Bytes, 1), "byte", "bytes"), f.Path, of)
	case DiskTorn:
		if f.Bytes > 0 {
			return fmt.Sprintf("crash, and cut %s off the end of %s%s", Count(f.Bytes, "byte", "bytes"), f.Path, of)
		}
		return "crash, and cut off the second half of " + f.Path + of
	case DiskPowerCut:
		return "power cut" + of
	}
	return "disk " + string(f.Kind) + of
}

// Validate says what is wrong with the fault of a step, given the hosts it may name.
func (f *DiskFault) Validate(hosts []NodeID, when *Trigger) error {
	t := when.File
	switch {
	case !slices.Contains(DiskFaultKinds(), f.Kind):
		return fmt.Errorf("unknown disk fault %q: there are %v", f.Kind, DiskFaultKinds())
	case f.Once() && t == nil:
		return fmt.Errorf("disk fault %s is of one operation: give when a file", f.Kind)
	case f.Once() && t.Host == "" && f.Host != RoleFileHost:
		return fmt.Errorf("when names no host, so the operation may be of any: leave out the host of disk fault %s, or give the file of when a host", f.Kind)
	case f.Once() && (f.Host != t.Host && f.Host != RoleFileHost || f.Process != t.Process):
		return fmt.Errorf("disk fault %s is of the operation of when: leave host and process out, or name the same there", f.Kind)
	case !slices.Contains(hosts, f.Host):
		return fmt.Errorf("no host %q for the disk fault: there are %v", f.Host, hosts)
	case f.Kind == DiskShort && t.Op != FileWrite:
		return fmt.Errorf("only a write can be short: give the file of when op write")
	case f.Bytes < 0:
		return fmt.Errorf("bytes must not be negative")
	case f.Kind == DiskShort && f.Bytes > maxShort:
		return fmt.Errorf("bytes %d: of a write that is cut short, at most %d are written", f.Bytes, maxShort)
	case f.Bytes > 0 && f.Kind != DiskShort && !f.damagesFile():
		return fmt.Errorf("bytes belongs to short, corrupt or torn: leave it out")
	case f.Kind == DiskPowerCut && f.Process != "":
		return fmt.Errorf("a power cut takes the whole host: leave process out")
	case f.Path != "" && !f.damagesFile():
		return fmt.Errorf("path belongs to corrupt or torn: which operation a step waits for is in when")
	case f.damagesFile() && (f.Path == "" || !doublestar.ValidatePattern(f.Path)):
		return fmt.Errorf("%s needs the path of a file as a pattern: * is anything within a name, ** also folders", f.Kind)
	}
	return nil
}

// validateFiles says what is wrong with the step's file operations and disk fault.
func (s *Step) validateFiles(hosts []NodeID) error {
	for i, t := range []*Trigger{&s.When, &s.Until} {
		of := []string{"when", "until"}[i]
		switch {
		case t.File == nil:
			continue
		case t.State != nil || t.Message != nil || t.Class != nil || t.Unseen != nil || t.Role != nil:
			return fmt.Errorf("%s: a step begins or ends at one moment: leave out the file, or what is beside it", of)
		case s.Do.Message != nil:
			return fmt.Errorf("a message fault selects its messages by match: leave the file out of when and until")
		}
		if err := t.File.Validate(hosts); err != nil {
			return fmt.Errorf("%s: file: %w", of, err)
		}
	}
	if s.Do.Disk != nil {
		return s.Do.Disk.Validate(WithRoles(hosts, s.Do.Roles), &s.When)
	}
	return nil
}

// AboutFiles says whether the step waits for an operation on a file or is about a disk.
func (s *Step) AboutFiles() bool {
	return s.When.File != nil || s.Until.File != nil || s.Do.Disk != nil
}

// HoldsFiles says whether the step needs a server's file operations held.
func (s *Step) HoldsFiles(host NodeID, process string) bool {
	for _, t := range []*FileTrigger{s.When.File, s.Until.File} {
		if t != nil && t.Of(host, process) {
			return true
		}
	}
	f := s.Do.Disk
	if f == nil || f.damagesFile() {
		return false
	}
	return f.Of(host, process) || slices.Contains(s.Do.Roles, string(f.Host)) && f.Of(f.Host, process)
}

// DiskDamage is what was done to the files of a host whose servers were killed.
type DiskDamage struct {
	Kind  DiskFaultKind `json:"kind"` // DiskCorrupt, DiskTorn or DiskPowerCut
	Host  NodeID        `json:"host"`
	Step  int           `json:"step"` // place, from 1
	Files []FileDamage  `json:"files,omitempty"`
}

// FileDamage is what was done to one file.
type FileDamage struct {
	Path string `json:"path"` // below the host's folder
	// Size is how long it was, Kept how long it is, Restored how many bytes below Kept have
	// their value of before again: of a power cut. A torn file has Size and Kept.
	Size     int64 `json:"size,omitempty"`
	Kept     int64 `json:"kept,omitempty"`
	Restored int64 `json:"restored,omitempty"`
	// Changed are the offsets of bytes that were changed, sorted: of corruption.
	Changed []int64 `json:"changed,omitempty"`
}

// String is the damage in words.
func (d *FileDamage) String() string {
	if len(d.Changed) > 0 {
		return fmt.Sprintf("%s: %s changed, from offset %d on", d.Path, Count(len(d.Changed), "byte", "bytes"), d.Changed[0])
	}
	s := fmt.Sprintf("%s: %d of %d bytes are left", d.Path, min(d.Kept, d.Size), d.Size)
	if d.Kept > d.Size {
		s = fmt.Sprintf("%s: it has %d bytes again, not %d", d.Path, d.Kept, d.Size)
	}
	if d.Restored > 0 {
		s += fmt.Sprintf(", %d have their old value", d.Restored)
	}
	return s
}
