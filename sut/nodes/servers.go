package nodes

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/testbed/proc"
)

// How long a process may take to end when asked to; how much longer than the workload phase
// a workload may run before it counts as hung; how long a final workload may take.
const (
	stopLimit  = 3 * time.Second
	HangLimit  = 5 * time.Second // where timing.hang is not set
	finalLimit = 30 * time.Second
)

func (p *Processes) server(h model.NodeID, name string) error {
	if p.hooked() {
		_, err := p.hookedServer(h, name)
		return err
	}
	last := new(lastLine)
	pr, err := p.spawn(h, name, last)
	if err != nil {
		return err
	}
	one := &server{Proc: pr, host: h, name: name, last: last}
	mayExit := slices.ContainsFunc(p.c.Kit.Target.Processes, func(q model.Process) bool { return q.Name == name && q.MayExit })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing { // too late: the servers have been stopped, and this one would stay
		_, err := pr.Kill()
		return errors.Join(errOver, err)
	}
	p.servers = append(p.servers, one)
	p.wg.Go(func() {
		<-pr.Done()
		x, num := pr.Status(), p.c.Journal.Number()
		if x.Lost {
			p.lose(one)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.gone != nil && !p.closing && !one.requested && !(mayExit && status(x) == 0) {
			p.gone(fmt.Errorf("%s on %s %w: %s; it printed %q; all output is in %s%s", name, h, errEnded, x, one.last.String(), p.logPath(h, name), mayLack(p.rights(name), one.last.String())+p.mayNeedRings(h, name)))
		}
		p.ended = append(p.ended, record.Exit{Num: num, Host: h, Process: name, At: x.At.Sub(p.c.Start), Status: status(x),
			Expected: p.closing || one.requested || mayExit && status(x) == 0, LastLine: one.last.String()})
	})
	return nil
}

// lose is about a server whose connection broke: nobody knows whether it runs, so
// the run cannot be judged, and it is stopped where that can be.
func (p *Processes) lose(s *server) {
	p.mu.Lock()
	over := p.closing
	if p.gone != nil && !over {
		p.gone(fmt.Errorf("the connection to host %s %w: the state of %s is unknown", s.host, errBroke, s.name))
	}
	p.mu.Unlock()
	if !over {
		p.c.Journal.Fail("the connection to host %s broke: the state of %s there is unknown; its output is in %s", s.host, s.name, rundir.LogsDir)
	}
	if _, err := s.Kill(); err != nil {
		p.c.Journal.Note("%v", err)
	}
}

// writeFile writes a file of a process, which may be a script, below the host's directory
// dir. It gives the file and its folders to the user that r asks for, because servers
// rewrite their files. It replaces the file whole: another process may be reading it. It
// follows no link that leads out of dir.
func writeFile(dir, file, text string, r model.Rights) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	uid, gid, err := ids(r.User)
	if err != nil {
		return err
	}
	give := func(name string) error {
		if os.Geteuid() != 0 {
			return nil
		}
		return root.Lchown(name, uid, gid)
	}
	folder := filepath.Dir(file)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for f := folder; f != "."; f = filepath.Dir(f) {
		if err := give(f); err != nil {
			return err
		}
	}
	tmp := filepath.Join(folder, ".new-"+rand.Text())
	err = root.WriteFile(tmp, []byte(text), 0o755)
	if err == nil {
		err = errors.Join(root.Chmod(tmp, 0o755), give(tmp))
	}
	if err == nil {
		err = root.Rename(tmp, file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w (is the disk full?)", filepath.Join(dir, file), err), root.RemoveAll(tmp))
	}
	return nil
}

func (p *Processes) spawn(h model.NodeID, name string, last *lastLine) (*proc.Proc, error) {
	plan := p.plans[h]
	i := slices.IndexFunc(plan.Processes, func(q model.Process) bool { return q.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("process %s has no plan for host %s", name, h)
	}
	spec := plan.Processes[i]
	dir := p.dirOf(h)
	host, ok := p.c.Testbed.Testbed.Host(h)
	if !ok {
		return nil, fmt.Errorf("the testbed has no host %q", h)
	}
	rights := rightsOf(p.c.Kit.Target, spec.Rights)
	for file, text := range spec.Files {
		path := filepath.Join(dir, file)
		if err := writeFile(dir, filepath.Clean(file), text, rights); err != nil {
			return nil, err
		}
		if err := p.place(host, path); err != nil {
			return nil, err
		}
	}
	run, err := p.spec(host, name, spec.Env, rights, spec.Command)
	if err != nil {
		return nil, err
	}
	if !spec.Once {
		if run.Argv, err = p.gated(host, name, run.Argv); err != nil {
			return nil, err
		}
	}
	run.Sweep = spec.Once
	run.LogPath = p.logPath(h, name)
	run.OnLine = func(at time.Time, line string) {
		line = plain(line)
		last.enter(line)
		p.logs.line(record.LogLine{Host: h, Process: name, At: at.Sub(p.c.Start)}, line)
	}
	pr, err := proc.Start(run)
	if err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", name, h, err)
	}
	return pr, nil
}

// status is the exit status as a shell tells it: 128 + number for a signal.
func status(x proc.Status) int {
	if x.Signal != 0 {
		return 128 + int(x.Signal)
	}
	return x.Code
}

func ended(p *proc.Proc) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// Exits returns the exits so far and the workloads that hung, sorted; exits
// from here on are expected.
func (p *Processes) Exits() ([]record.Exit, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
	slices.SortFunc(p.ended, func(a, b record.Exit) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return bytes.Compare([]byte(a.Process), []byte(b.Process))
	})
	slices.Sort(p.hung)
	return slices.Clone(p.ended), slices.Clone(p.hung)
}

// close makes exits expected from now on. The caller holds p.mu.
func (p *Processes) close() {
	p.closing = true
	p.closedAt.Store(int64(p.now()))
}

// keepLine adds a line to a file of the record. Lines that servers print while they are all
// stopped at the end are netsplit's doing, so they stay in the logs only. keepLine takes no
// lock, because a caller that ends a process waits for the last line.
func (p *Processes) keepLine(file string, l record.LogLine) {
	closed := time.Duration(p.closedAt.Load())
	if over := closed > 0 && l.At > closed; !p.building && !over {
		p.c.Record.Append(file, l)
	}
}

// StopAll ends every server process and removes the target's data. The error
// says which log files could not be read, so that nobody can judge the run.
func (p *Processes) StopAll() error {
	p.stopServers(0) // all is recorded: nobody waits for an orderly end
	p.closeGates()
	if p.control != nil {
		p.control.close()
	}
	if p.stop != nil {
		p.stop()
	}
	p.tails.Wait()
	if p.logs != nil {
		p.logs.flush()
	}
	p.clearRemote()
	os.RemoveAll(p.work())
	p.cacheAfter()
	return errors.Join(p.unread...)
}

func (p *Processes) stopServers(limit time.Duration) {
	p.mu.Lock()
	if !p.closing {
		p.close()
	}
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			if s.Proc == nil {
				if err := p.endHooked(s); err != nil {
					p.c.Journal.Note("%v", err)
				}
			} else if _, err := s.Stop(limit); err != nil {
				p.c.Journal.Note("%v", err)
			}
		})
	}
	wg.Wait()
	p.wg.Wait()
}
