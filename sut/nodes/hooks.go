package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed/config"
	"netsplit/testbed/proc"
)

// hookLimit is how long a hook may take if the testbed file does not say.
const hookLimit = 30 * time.Second

// hooked says whether the testbed's hooks run the target's servers.
func (p *Processes) hooked() bool { return p.c.Testbed.Testbed.Hooks.Start != "" }

// hook runs the testbed's hook for a verb to its end, and returns what it said,
// which is kept in the run's logs, too.
func (p *Processes) hook(verb model.NodeVerb, h model.NodeID, process string) (string, error) {
	hooks := p.c.Testbed.Testbed.Hooks
	text := hooks.Of(verb)
	if text == "" {
		return "", fmt.Errorf("the testbed file has no hook for it: add %s under hooks", verb.Hook())
	}
	host, ok := p.c.Testbed.Testbed.Host(h)
	if !ok {
		return "", fmt.Errorf("the testbed has no host %q", h)
	}
	vars := config.HookVars{Host: string(h), Address: host.IP.String(), Process: process, Labels: host.Labels, Run: filepath.Base(p.c.Dir)}
	if plan := p.plans[h]; plan != nil {
		if i := slices.IndexFunc(plan.Processes, func(q model.Process) bool { return q.Name == process }); i >= 0 {
			vars.Command = quoted(plan.Processes[i].Command)
		}
	}
	line, err := config.ExpandHook(text, vars)
	if err != nil {
		return "", err
	}
	limit := hooks.Timeout
	if limit == 0 {
		limit = hookLimit
	}
	began := time.Now()
	said, err := proc.OutputLeaving(context.Background(), []string{"sh", "-c", "exec 2>&1\n" + line}, limit)
	said = strings.TrimSpace(said)
	p.keepHook(verb, h, process, line, said, time.Since(began), err)
	switch {
	case err == nil:
		return said, nil
	case time.Since(began) >= limit:
		return said, fmt.Errorf("hook %q was killed because it did not end within %v; its output: %q", line, limit, last(said))
	}
	return said, fmt.Errorf("hook %q failed (%v); its output: %q", line, cause(err), last(said))
}

// cause is the innermost error: what sh ended with, without the line once more.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// last is the end of what a hook said, enough for an error.
func last(said string) string { return said[max(0, len(said)-500):] }

func (p *Processes) keepHook(verb model.NodeVerb, h model.NodeID, process, line, said string, took time.Duration, err error) {
	p.hooking.Lock()
	defer p.hooking.Unlock()
	end := "ok"
	if err != nil {
		end = cause(err).Error()
	}
	text := fmt.Sprintf("%s %s %s after %s, took %s: %s\n$ %s\n", verb, process, h, p.now().Round(time.Millisecond), took.Round(time.Millisecond), end, line)
	if said != "" {
		text += said + "\n"
	}
	path := filepath.Join(p.c.Dir, rundir.LogsDir, p.prefix()+string(h)+"-hooks.log")
	f, ferr := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if ferr == nil {
		_, ferr = f.WriteString(text)
		ferr = errors.Join(ferr, f.Close())
	}
	if ferr != nil {
		p.c.Journal.Note("the output of a hook could not be kept: %v", ferr)
	}
}

// quoted is a command as a line for a POSIX shell.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = model.Quoted(w)
	}
	return strings.Join(words, " ")
}

// freshen has the hooks bring every node back to where a run starts.
func (p *Processes) freshen() error {
	if !p.hooked() || p.c.Testbed.Testbed.Hooks.Reset == "" {
		return nil
	}
	errs := make([]error, len(p.c.Kit.Target.Nodes))
	var wg sync.WaitGroup
	for i, h := range p.c.Kit.Target.Nodes {
		wg.Go(func() {
			if _, err := p.hook(model.NodeReset, h, ""); err != nil {
				errs[i] = fmt.Errorf("reset of %s: %w", h, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// hookedServer starts a server by its hook. Nobody is told when it ends. One whose
// hook failed may run all the same: it is stopped with the others. One whose hook
// ends after the run did is stopped here.
func (p *Processes) hookedServer(h model.NodeID, name string) (string, error) {
	s := &server{host: h, name: name, down: true, starting: true}
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return "", errOver
	}
	p.servers = append(p.servers, s)
	p.wg.Add(1) // which the end of the run waits for
	defer p.wg.Done()
	p.mu.Unlock()
	said, err := p.hook(model.NodeStart, h, name)
	p.mu.Lock()
	s.starting, s.down, s.doubtful = false, err != nil, err != nil
	for _, x := range p.servers {
		if x != s && x.Proc == nil && x.host == h && x.name == name {
			x.doubtful = false // it is this one now
		}
	}
	closing := p.closing
	p.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("start %s on %s: %w", name, h, err)
	}
	if closing {
		if eerr := p.endHooked(s); eerr != nil {
			p.c.Journal.Note("%v", eerr)
		}
		err = errors.Join(errOver, err)
	}
	return said, err
}

// errOver refuses what comes too late.
var errOver = errors.New("the run is over")

// hookedAct does something to a server by its hook; the server's turn is held.
func (p *Processes) hookedAct(s *server, verb model.NodeVerb) (string, error) {
	said, err := p.hook(verb, s.host, s.name)
	if err != nil {
		return said, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.paused = verb == model.NodePause
	if verb == model.NodeStop || verb == model.NodeKill {
		s.down, s.doubtful = true, false
	}
	return said, nil
}

// hookedRequested does what a workload or a script asks for.
func (p *Processes) hookedRequested(s *server, verb model.NodeVerb) (string, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	p.mu.Lock()
	ending := s.ending
	p.mu.Unlock()
	if ending {
		return "", errOver
	}
	return p.hookedAct(s, verb)
}

// over says whether a server has ended, as far as is known.
func (p *Processes) over(s *server) bool {
	if s.Proc != nil {
		return ended(s.Proc)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.down
}

// endHooked ends a server that may run, at the end of a run: by stop, and where that fails or
// there is none, by crash. One that is paused is resumed first, if that can be. Whoever
// comes second waits for the first, and does nothing: a server that was stopped cannot be
// stopped again.
func (p *Processes) endHooked(s *server) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	p.mu.Lock()
	over, paused := s.starting || s.ending || s.down && !s.doubtful, s.paused
	if !over {
		s.ending = true
	}
	p.mu.Unlock()
	if over { // or whoever starts it ends it
		return nil
	}
	var errs []error
	if paused {
		_, err := p.hook(model.NodeResume, s.host, s.name)
		errs = append(errs, err)
	}
	for _, verb := range []model.NodeVerb{model.NodeStop, model.NodeKill} {
		if p.c.Testbed.Testbed.Hooks.Of(verb) == "" {
			continue
		}
		_, err := p.hookedAct(s, verb)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s on %s may still run: %w", s.name, s.host, errors.Join(errs...))
}
