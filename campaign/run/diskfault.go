package run

import (
	"errors"
	"fmt"
	"slices"

	"netsplit/explorer/engine"
	"netsplit/model"
	"netsplit/sut/nodes"
)

// maxFiles bounds the file operations of a run that are recorded, those aside that a step
// waits for: a server may try again and again on a disk that is gone.
const maxFiles = 50_000

// diskFaults is what a session keeps for the steps about files.
type diskFaults struct {
	recorded int
	left     int                // operations that were not recorded
	damaged  []model.DiskDamage // not entered yet
	// waiting are operations that came while the session asks who has a role; nil: none is held.
	waiting chan waitingFile
}

// waitingFile is an operation that waits for whoever has the session's lock.
type waitingFile struct {
	o      model.FileOperation
	answer chan model.FileAnswer
}

// damager does to files of killed servers what disk faults do; nodes.Processes.
type damager interface {
	PowerCut(h model.NodeID) ([]model.FileDamage, error)
	Corrupt(h model.NodeID, pattern string, bytes int, seed uint64) (model.FileDamage, error)
	Tear(h model.NodeID, pattern string, bytes int) (model.FileDamage, error)
}

// files says which servers are started under a disk gate; nil: none.
func (r *run) files() *nodes.Files {
	sc := &r.c.Scenario
	if !sc.Files && !slices.ContainsFunc(sc.Steps, func(st model.Step) bool { return st.AboutFiles() }) {
		return nil
	}
	r.s.disks.waiting = make(chan waitingFile)
	return &nodes.Files{
		Holds: func(h model.NodeID, process string) bool {
			return sc.Files && slices.Contains(r.target.Nodes, h) || engine.HoldsFiles(sc, h, process)
		},
		CutsPower: func(h model.NodeID) bool { return engine.CutsPower(sc, h) },
		Decide:    r.s.File,
	}
}

// File enters a file operation that waits, and decides it.
func (s *session) File(o model.FileOperation) model.FileAnswer {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		return s.file(o)
	}
	locked := make(chan struct{})
	go func() {
		s.mu.Lock()
		close(locked)
	}()
	w := waitingFile{o, make(chan model.FileAnswer, 1)}
	select {
	case <-locked:
		defer s.mu.Unlock()
		return s.file(o)
	case s.disks.waiting <- w:
		answer := <-w.answer
		go func() {
			<-locked
			s.mu.Unlock()
		}()
		return answer
	}
}

// ask asks who has a role. Operations on files go on meanwhile: a server may have to write
// before it answers. The caller holds mu.
func (s *session) ask(role string) (who model.Holders, err error) {
	if s.disks.waiting == nil {
		return s.holders(role)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		who, err = s.holders(role)
	}()
	for {
		select {
		case <-answered:
			return who, err
		case w := <-s.disks.waiting:
			w.answer <- s.file(w.o)
		}
	}
}

// file is File for who holds mu. Operations are entered from the start of the workload on:
// nothing is decided before.
func (s *session) file(o model.FileOperation) (answer model.FileAnswer) {
	if s.broken != nil || !s.armed || s.over || s.killed(o.Host, o.Process) {
		return answer
	}
	defer s.guard("decided a file operation", o.Host, nil)
	if s.disks.recorded >= maxFiles && !s.engine.Awaits(&o) {
		s.disks.left++
		return s.engine.Lasting(&o)
	}
	s.disks.recorded++
	at := s.now()
	ds := s.event(at, model.Event{Kind: model.EventFile, File: &o})
	s.carryOut(at, nil, ds)
	for _, d := range ds {
		if d.File != nil {
			return *d.File
		}
	}
	return answer
}

// killed says whether a step has killed the server, so that nothing comes of what it had asked
// for. The caller holds mu.
func (s *session) killed(host model.NodeID, process string) bool {
	return s.held(process, func(do *model.Fault) bool {
		return do.Node != nil && do.Node.Verb == model.NodeKill && do.Node.Host == host || do.Disk != nil && do.Disk.Kills() && do.Disk.Host == host
	})
}

// paused says whether a step has paused the server. The caller holds mu.
func (s *session) paused(host model.NodeID, process string) bool {
	return s.held(process, func(do *model.Fault) bool {
		return do.Node != nil && do.Node.Verb == model.NodePause && do.Node.Host == host
	})
}

// held says whether a step with such a fault lasts that has acted on the process.
func (s *session) held(process string, such func(*model.Fault) bool) bool {
	for step, names := range s.nodes.on {
		if such(&s.scn.Steps[step-1].Do) && slices.Contains(names, process) {
			return true
		}
	}
	return false
}

// disk does to servers and files what a disk fault does at its begin and at its end, and
// returns what was done to servers. Files are damaged while packets wait: little is written.
// The caller holds mu.
func (s *session) disk(d model.Decision) (done []model.NodeAction) {
	s.scn = s.engine.Scenario()
	f, n := s.scn.Steps[d.Step-1].Do.Disk, &s.nodes
	n.begin()
	if d.Verb == model.NodeStart {
		names := n.on[d.Step]
		delete(n.on, d.Step)
		if n.down[f.Host] == d.Step {
			delete(n.down, f.Host)
		}
		s.startAgain(d, f.String(), f.Host, names)
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(n.names[f.Host]), func(p string) bool { return !f.Of(f.Host, p) || !n.procs.Runs(f.Host, p) })
	n.on[d.Step] = names
	if d.Verb != model.NodeKill {
		return nil
	}
	trouble := func(format string, args ...any) {
		s.incomplete = append(s.incomplete, fmt.Sprintf("step %d (%s): %s", d.Step, f, fmt.Sprintf(format, args...)))
	}
	for i, p := range slices.Backward(names) {
		a, err := n.procs.ActNow(model.NodeAction{Verb: d.Verb, Process: p, Host: f.Host})
		if s.spares(d.Step, err) { // and so the host keeps what it wrote
			n.on[d.Step] = names[i+1:]
			return done
		}
		n.down[f.Host] = d.Step
		if err != nil {
			trouble("kill of %s: %v", p, err)
			return done
		}
		done = append(done, a)
	}
	damage := model.DiskDamage{Kind: f.Kind, Host: f.Host, Step: d.Step, Files: make([]model.FileDamage, 1)}
	var err error
	switch f.Kind {
	case model.DiskPowerCut:
		damage.Files, err = s.damager.PowerCut(f.Host)
	case model.DiskTorn:
		damage.Files[0], err = s.damager.Tear(f.Host, f.Path, f.Bytes)
	default:
		damage.Files[0], err = s.damager.Corrupt(f.Host, f.Path, max(f.Bytes, 1), s.scn.Seed+uint64(d.Step))
	}
	if errors.Is(err, nodes.ErrNeverStarted) && s.scn.Steps[d.Step-1].Do.IfRunning {
		return done
	}
	if err != nil {
		trouble("%v", err)
		return done
	}
	s.disks.damaged = append(s.disks.damaged, damage)
	return done
}

// startAgain starts servers of a host that do not run, except those that another step has
// down, without keeping anybody waiting. The caller holds mu.
func (s *session) startAgain(d model.Decision, what string, host model.NodeID, names []string) {
	n := &s.nodes
	var ended []string
	for _, p := range names {
		if !n.procs.Runs(host, p) && !s.killed(host, p) {
			ended = append(ended, p)
		}
	}
	s.lifted.Add(1)
	go func() {
		defer s.lifted.Done()
		for _, p := range ended {
			if err := n.procs.Act(model.NodeAction{Verb: model.NodeStart, Process: p, Host: host}); err != nil {
				s.Fail("step %d (%s): %s could not be started again: %v", d.Step, what, p, err)
			}
		}
	}()
}

// enterDamage enters what was done to files. The caller holds mu.
func (s *session) enterDamage(damaged []model.DiskDamage) {
	for _, d := range damaged {
		at := s.now()
		s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventDisk, Disk: &d}))
	}
}

// filesHeld says what was not seen of files, and what was not recorded.
func (r *run) filesHeld() {
	if err := r.procs.FilesUnseen(); err != nil {
		r.s.Fail("%v", err)
	}
	r.s.mu.Lock()
	left := r.s.disks.left
	r.s.mu.Unlock()
	if left > 0 {
		r.s.Note("%d file operations that no step waits for are not recorded: a run records %d", left, maxFiles)
	}
}
