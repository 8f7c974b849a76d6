package nodes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ties lists the files of a template below dir, a folder for each host, that
// name the folder of the run in which they were made: where a server wrote down
// where its data are, all runs that start from copies would work in that one
// folder, which is none of theirs. What processes have written anew before they
// start (their files) is no tie.
func (p *Processes) ties(dir string) ([]string, error) {
	work, err := filepath.Abs(p.work())
	if err != nil {
		return nil, err
	}
	names := [][]byte{[]byte(work)}
	if real, err := filepath.EvalSymlinks(work); err == nil && real != work {
		names = append(names, []byte(real))
	}
	var out []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || p.rewritten(rel) {
			return err
		}
		tied := false
		switch {
		case d.Type() == fs.ModeSymlink:
			var to string
			if to, err = os.Readlink(path); err == nil {
				tied, err = occur(bytes.NewReader([]byte(to)), names)
			}
		case d.Type().IsRegular():
			var f *os.File
			if f, err = os.Open(path); err == nil {
				tied, err = occur(f, names)
				f.Close()
			}
		}
		if tied {
			out = append(out, rel)
		}
		return err
	})
	return out, err
}

// rewritten says whether a file, <host>/<name>, is one that a process of every run
// finds written anew.
func (p *Processes) rewritten(file string) bool {
	for host, plan := range p.plans {
		for _, pr := range plan.Processes {
			if pr.Once || !slices.Contains(pr.Hosts, host) {
				continue
			}
			for name := range pr.Files {
				if filepath.Join(string(host), name) == file {
					return true
				}
			}
		}
	}
	return false
}

func occur(r io.Reader, names [][]byte) (bool, error) {
	longest := 0
	for _, n := range names {
		longest = max(longest, len(n))
	}
	buf, kept := make([]byte, 256<<10+longest), 0
	for {
		n, err := io.ReadFull(r, buf[kept:])
		have := buf[:kept+n]
		if slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(have, name) }) {
			return true, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buf, have[len(have)-longest:]) // a name may stand across two parts
	}
}

// untied is an error if a template names the folder of the run that made it.
func (p *Processes) untied(dir string) error {
	tied, err := p.ties(dir)
	if err != nil || len(tied) == 0 {
		return err
	}
	more := ""
	if len(tied) > 3 {
		more = fmt.Sprintf(" and %d more", len(tied)-3)
	}
	return fmt.Errorf("the servers wrote the name of their folder into files that the template keeps (%s%s), so all runs would work in the folder of the first; keep less, or give the folder one name in all runs, by a mount of each process's own (docs/target-reference.md, template)",
		joined(tied[:min(len(tied), 3)]), more)
}
