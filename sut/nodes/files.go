package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/testbed/disk"
)

// Files says which servers are started under a disk gate, and who decides their file
// operations.
type Files struct {
	// Holds says whether a server's operations on files of its host's directory are held.
	Holds func(h model.NodeID, process string) bool
	// CutsPower says whether the host may lose what it did not sync (Processes.PowerCut). All
	// of its servers are held then.
	CutsPower func(h model.NodeID) bool
	// Decide is called as disk.Config.Decide is, with paths below the host's directory.
	Decide func(model.FileOperation) model.FileAnswer
}

// gates are the disk gates of a run, guarded by Processes.mu.
type gates struct {
	byServer map[string]*disk.Gate
	unsynced map[model.NodeID]*disk.Unsynced
}

// gated is the command of a server, under its gate if it has one. A server that starts again
// comes under the same.
func (p *Processes) gated(host model.TestbedHost, name string, argv []string) ([]string, error) {
	f := p.c.Files
	if f == nil || p.building || !f.Holds(host.Name, name) {
		return argv, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := gateKey(host.Name, name)
	g := p.gates.byServer[key]
	if g == nil {
		dir := p.realDir(host.Name)
		c := disk.Config{Host: host, Process: name, Folders: []string{dir}, Decide: func(o model.FileOperation) disk.Answer {
			o.Path, o.To = below(dir, o.Path), below(dir, o.To)
			return disk.Answered(f.Decide(o))
		}}
		if f.CutsPower(host.Name) {
			if p.gates.unsynced[host.Name] == nil {
				p.gates.unsynced[host.Name] = &disk.Unsynced{}
			}
			c.Unsynced = p.gates.unsynced[host.Name]
		}
		var err error
		if g, err = disk.New(c); err != nil {
			return nil, err
		}
		p.gates.byServer[key] = g
	}
	return g.Argv(p.c.Kit.expand.Netsplit, argv...), nil
}

// realDir is the host's directory without symbolic links, as disk gates name what is in it.
func (p *Processes) realDir(h model.NodeID) string {
	if dir, err := filepath.EvalSymlinks(p.dirOf(h)); err == nil {
		return dir
	}
	return p.dirOf(h)
}

func below(dir, path string) string {
	rel, is := strings.CutPrefix(path, dir+"/")
	if !is {
		return path
	}
	return cmp.Or(rel, "./")
}

// mayNeedRings is what to add to what a server said last that ended as it started, if it is
// held. The caller holds mu.
func (p *Processes) mayNeedRings(h model.NodeID, name string) string {
	if p.gates.byServer[gateKey(h, name)] == nil {
		return ""
	}
	return "; the disk gate of this run refuses it io_uring and the kernel's asynchronous I/O: if it needs them, its disk cannot fail here"
}

func gateKey(h model.NodeID, name string) string { return string(h) + " " + name }

// FilesUnseen says what the disk gates could not see or do so far.
func (p *Processes) FilesUnseen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, g := range p.gates.byServer {
		errs = append(errs, g.Err())
	}
	return errors.Join(errs...)
}

// closeGates ends the gates, once the servers have ended.
func (p *Processes) closeGates() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gates.byServer {
		_ = g.Close() // what it says was asked for before servers were killed
	}
	for _, u := range p.gates.unsynced {
		u.Close()
	}
	p.gates = gates{}
}

// ErrNeverStarted: no server of the host was started, so nobody knows what it did not sync.
var ErrNeverStarted = errors.New("none of its servers was started")

// PowerCut takes from the files of a host what was not synced. Its servers have been killed,
// and start again after it.
func (p *Processes) PowerCut(h model.NodeID) ([]model.FileDamage, error) {
	p.mu.Lock()
	u := p.gates.unsynced[h]
	p.mu.Unlock()
	if u == nil {
		return nil, fmt.Errorf("what host %s did not sync is not known: %w", h, ErrNeverStarted)
	}
	losses, err := u.PowerCut()
	var out []model.FileDamage
	for _, l := range losses {
		out = append(out, model.FileDamage{Path: below(p.realDir(h), l.Path), Size: l.Size, Kept: l.Kept, Restored: l.Restored})
	}
	return out, err
}

// Corrupt changes bytes of the file that was written last, of those of a host whose kind the
// pattern matches. Its servers have been killed. The seed chooses the bytes.
func (p *Processes) Corrupt(h model.NodeID, pattern string, bytes int, seed uint64) (model.FileDamage, error) {
	d, path, err := p.newest(h, pattern)
	if err != nil {
		return d, err
	}
	changes, err := disk.Corrupt(disk.Corruption{Path: path, Length: int(d.Size), Bytes: int(min(int64(bytes), d.Size)), Seed: seed})
	for _, c := range changes {
		d.Changed = append(d.Changed, c.Offset)
	}
	return d, errors.Join(err, p.onDisk(h, path))
}

// Tear cuts bytes off the end of such a file, all of them if it has fewer; 0: the second half.
func (p *Processes) Tear(h model.NodeID, pattern string, bytes int) (model.FileDamage, error) {
	d, path, err := p.newest(h, pattern)
	if err != nil {
		return d, err
	}
	if d.Kept = d.Size / 2; bytes > 0 {
		d.Kept = max(0, d.Size-int64(bytes))
	}
	return d, errors.Join(disk.Truncate(path, d.Kept), p.onDisk(h, path))
}

// onDisk says that a file of a host was damaged on disk: no later power cut undoes it.
func (p *Processes) onDisk(h model.NodeID, path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.gates.unsynced[h]; u != nil {
		return u.Forget(path)
	}
	return nil
}

// newest is the file of a host that was written last, of those that are not empty and whose kind
// the pattern matches.
func (p *Processes) newest(h model.NodeID, pattern string) (d model.FileDamage, path string, err error) {
	var written time.Time
	dir := p.dirOf(h)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel := below(dir, path)
		fi, err := e.Info()
		if err == nil && fi.Size() > 0 && model.MatchesFile(pattern, disk.Kind(rel)) && (d.Path == "" || fi.ModTime().After(written)) {
			d.Path, d.Size, written = rel, fi.Size(), fi.ModTime()
		}
		return err
	})
	if err == nil && d.Path == "" {
		err = fmt.Errorf("host %s has no file %s that is not empty", h, pattern)
	}
	d.Kept = d.Size
	return d, filepath.Join(dir, d.Path), err
}
