package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// diskDecision is what a decision about a disk fault did, to what, and how its row looks.
func diskDecision(in *Input, d *model.Decision) (do []string, what, class string) {
	if d.Disk != "" {
		do = append(do, string(d.Disk))
		if d.Verb == model.NodeStart {
			do = []string{"end of " + string(d.Disk)}
		}
	}
	if d.File != nil {
		do = append(do, d.File.String())
	}
	if o := operation(in, d.Event); o != nil && d.Verb != model.NodeStart {
		what = o.String()
	}
	return do, what, "dropped"
}

// operation is the file operation that an event is of; nil: it is of none.
func operation(in *Input, event uint64) *model.FileOperation {
	i, is := slices.BinarySearchFunc(in.Events, event, func(e model.Event, n uint64) int { return cmp.Compare(e.Num, n) })
	if !is {
		return nil
	}
	return in.Events[i].File
}

// diskResult says what a disk fault did: at which operation, how often, and to which files.
func diskResult(in *Input, r model.StepResult) string {
	var out []string
	if r.Failed > 0 {
		for i := range in.Decisions {
			if d := &in.Decisions[i]; d.Step == r.Step && d.File != nil {
				if o := operation(in, d.Event); o != nil {
					out = append(out, fmt.Sprintf("%s %s", o, d.File))
				}
				break
			}
		}
	}
	if r.Failed > 1 {
		out = append(out, fmt.Sprintf("%d operations failed in all", r.Failed))
	}
	for i := range in.Events {
		d := in.Events[i].Disk
		if d == nil || d.Step != r.Step {
			continue
		}
		if len(d.Files) == 0 {
			out = append(out, "all was synced: no file changed")
		}
		for k := range d.Files {
			if k == maxDamaged {
				out = append(out, fmt.Sprintf("%d more files", len(d.Files)-k))
				break
			}
			out = append(out, d.Files[k].String())
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; " + clean(strings.Join(out, "; "))
}

// damageWords says what a step did to the files of a host whose servers it had killed.
func damageWords(d *model.DiskDamage) string {
	files := model.Count(len(d.Files), "file", "files")
	switch {
	case d.Kind == model.DiskTorn:
		return fmt.Sprintf("cut the end off %s of %s", files, d.Host)
	case d.Kind == model.DiskCorrupt:
		return fmt.Sprintf("changed %s of %s", files, d.Host)
	case len(d.Files) == 0:
		return fmt.Sprintf("cut the power of %s (all was synced)", d.Host)
	}
	return fmt.Sprintf("cut the power of %s (parts of %s were not synced)", d.Host, files)
}

// maxDamaged bounds the damaged files that are told one by one.
const maxDamaged = 6
