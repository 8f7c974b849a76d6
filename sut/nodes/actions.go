package nodes

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"netsplit/model"
)

// actionLimit is how long a server may take to stop when a workload asks.
const actionLimit = 20 * time.Second

// action is what is being done to a server.
type action struct {
	sync.Mutex
	stops atomic.Bool // it was asked to stop, and that is waited for
}

func (p *Processes) action(a model.NodeAction) *action {
	one, _ := p.acting.LoadOrStore(string(a.Host)+" "+a.Process, new(action))
	return one.(*action)
}

// Act does something to a server process and enters it in the record. Actions
// on one server wait for one another.
func (p *Processes) Act(a model.NodeAction) error {
	began := time.Now()
	one := p.action(a)
	one.Lock()
	defer one.Unlock()
	s, err := p.find(a)
	if err != nil {
		return err
	}
	running := s != nil && !p.over(s)
	switch a.Verb {
	case model.NodeStart:
		if running {
			return fmt.Errorf("it runs already")
		}
		if p.hooked() {
			var err error
			if a.Output, err = p.hookedServer(a.Host, a.Process); err != nil {
				return err
			}
			break
		}
		if err := p.server(a.Host, a.Process); err != nil {
			return err
		}
	case model.NodeStop, model.NodeKill, model.NodePause, model.NodeResume:
		if !running {
			return fmt.Errorf("it does not run")
		}
		if s.Proc == nil {
			var err error
			if a.Output, err = p.hookedRequested(s, a.Verb); err != nil {
				return err
			}
			break
		}
		one.stops.Store(a.Verb == model.NodeStop)
		err := p.signal(s, a.Verb)
		one.stops.Store(false)
		if err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown verb: use start, stop, kill, pause or resume")
	}
	a.Took = time.Since(began)
	p.c.Journal.NodeDone(a)
	return nil
}

// Why ActNow did nothing to a server: it is being started or stopped, or it has ended.
var (
	ErrBusy       = errors.New("something else is being done to it")
	ErrNotRunning = errors.New("it does not run")
)

// ActNow kills, pauses or resumes a server and returns what is to be entered in the record.
// It waits for nobody and enters nothing: who calls it may hold what the journal takes. A server
// that is stopping may be killed.
func (p *Processes) ActNow(a model.NodeAction) (model.NodeAction, error) {
	began := time.Now()
	switch one := p.action(a); {
	case one.TryLock():
		defer one.Unlock()
	case a.Verb != model.NodeKill || !one.stops.Load():
		return a, ErrBusy
	}
	switch s, err := p.find(a); {
	case err != nil:
		return a, err
	case s == nil || p.over(s):
		return a, ErrNotRunning
	case s.Proc == nil:
		return a, errors.New("hooks of the testbed act on servers there, and take too long while packets wait: use a script")
	default:
		err := p.signal(s, a.Verb)
		a.Took = time.Since(began)
		return a, err
	}
}

// find is the server that is meant, the last one started; nil: none ever was.
func (p *Processes) find(a model.NodeAction) (s *server, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return nil, errOver
	}
	if !slices.ContainsFunc(p.c.Kit.Target.Processes, func(q model.Process) bool {
		return q.Name == a.Process && slices.Contains(q.Hosts, a.Host) && !q.Once
	}) {
		return nil, fmt.Errorf("target %s has no such server there", p.c.Kit.Target.Name)
	}
	for _, x := range p.servers {
		if x.host == a.Host && x.name == a.Process {
			s = x
		}
	}
	return s, nil
}

func (p *Processes) signal(s *server, verb model.NodeVerb) error {
	switch verb {
	case model.NodePause:
		return s.Signal(syscall.SIGSTOP)
	case model.NodeResume:
		return s.Signal(syscall.SIGCONT)
	}
	p.mu.Lock()
	s.requested = true
	p.mu.Unlock()
	if verb == model.NodeKill {
		_, err := s.Kill()
		return err
	}
	began := time.Now()
	x, err := s.Stop(actionLimit)
	if err == nil && status(x) == 128+int(syscall.SIGKILL) && time.Since(began) >= actionLimit { // as it is told from a remote host, too
		p.c.Journal.Note("%s on %s did not stop within %v and was killed", s.name, s.host, actionLimit)
	}
	return err
}

// Runs says whether a server process runs, paused or not.
func (p *Processes) Runs(h model.NodeID, name string) bool {
	p.mu.Lock()
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	return slices.ContainsFunc(servers, func(s *server) bool { return s.host == h && s.name == name && !p.over(s) })
}
