package relation

import (
	"slices"

	"netsplit/model"
)

// decidedFiles reads what was decided about file operations.
func (b *builder) decidedFiles(d model.Decision) {
	if d.File != nil {
		if b.files == nil {
			b.files = map[uint64]model.FileAnswer{}
		}
		b.files[d.Event] = *d.File
	}
	if d.Verb == model.NodeKill {
		b.kills = append(b.kills, d)
	}
}

// file enters a file operation with what became of it.
func (b *builder) file(e model.Event) {
	o := e.File
	fate, failed := "pass", any(nil)
	switch a := b.files[e.Num]; {
	case a.Errno != "":
		fate, failed = "fail", a.Errno
	case a.Written > 0:
		fate, failed = "short", a.Written
	}
	if slices.ContainsFunc(b.kills, func(d model.Decision) bool { return d.Event == e.Num && b.kill(d, o) }) {
		fate = "kill"
	}
	b.row("file", e.Num, e.At, o.Host, o.Process, nullIfZero(o.Thread), o.Op, o.Path, nullIfZero(o.To), nullIfZero(o.Kind), o.Bytes, fate, failed)
}

// kill says whether a decision to kill servers was of the one that asked for the operation.
func (b *builder) kill(d model.Decision, o *model.FileOperation) bool {
	if d.Step < 1 || d.Step > len(b.scenario.Steps) {
		return false
	}
	switch f := b.scenario.Steps[d.Step-1].Do; {
	case f.Node != nil:
		return b.renaming.Node(f.Node.Host) == o.Host && (f.Node.Process == "" || f.Node.Process == o.Process)
	case f.Disk != nil:
		return b.renaming.Node(f.Disk.Host) == o.Host && (f.Disk.Process == "" || f.Disk.Process == o.Process)
	}
	return false
}

// damaged enters what a power cut or other damage did to files.
func (b *builder) damaged(e model.Event) {
	for _, f := range e.Disk.Files {
		bytes := f.Size - f.Kept + f.Restored + int64(len(f.Changed))
		b.row("file", e.Num, e.At, e.Disk.Host, nil, nil, e.Disk.Kind, f.Path, nil, nil, bytes, "pass", nil)
	}
}
