package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"netsplit/model"
	"netsplit/sut/nodes"
)

// servers acts on the servers of the target; nodes.Processes.
type servers interface {
	ActNow(a model.NodeAction) (model.NodeAction, error)
	Act(a model.NodeAction) error
	Runs(h model.NodeID, process string) bool
}

// nodeFaults is what a session keeps for the steps that crash or pause servers.
type nodeFaults struct {
	procs servers
	names map[model.NodeID][]string // the servers of a host, in the order of the target file
	on    map[int][]string          // by step: the servers that are down or paused
	down  map[model.NodeID]int      // crashed hosts, by step
	slips map[int]int               // by step, see model.StepResult
	// lacked says of steps that began, by place, why they did nothing.
	lacked map[int]string
	// starting counts the steps whose servers are being started again.
	starting atomic.Int64
}

func (n *nodeFaults) begin() {
	if n.on == nil {
		n.on, n.down, n.slips = map[int][]string{}, map[model.NodeID]int{}, map[int]int{}
	}
}

// slipped counts a packet with payload from a host whose servers have crashed. The caller
// holds mu.
func (n *nodeFaults) slipped(from model.NodeID, payload int) {
	if step := n.down[from]; step != 0 && payload > 0 {
		n.slips[step]++
	}
}

// node does to servers what a step decided, and returns what was done. Packets wait
// meanwhile, so a start, which takes long, is left to others. The caller holds mu.
func (s *session) node(d model.Decision) (done []model.NodeAction) {
	s.scn = s.engine.Scenario()
	f, n := s.scn.Steps[d.Step-1].Do.Node, &s.nodes
	n.begin()
	names := n.on[d.Step]
	if d.Verb == f.Verb {
		names = slices.DeleteFunc(slices.Clone(n.names[f.Host]), func(p string) bool {
			return f.Process != "" && p != f.Process || f.Process == "" && !n.procs.Runs(f.Host, p)
		})
		if len(names) == 0 && s.scn.Steps[d.Step-1].Do.IfRunning {
			return nil
		}
		if len(names) == 0 {
			verb, _, _ := strings.Cut(f.String(), " ")
			s.incomplete = append(s.incomplete, fmt.Sprintf("step %d (%s): no server of %s runs that it could %s: it has ended already, or was never started", d.Step, f, f.Host, verb))
		}
		slices.Reverse(names)
		n.on[d.Step] = slices.Clone(names)
	} else {
		slices.Reverse(names)
		if n.down[f.Host] == d.Step {
			delete(n.down, f.Host)
		}
		delete(n.on, d.Step)
		names = slices.DeleteFunc(names, func(p string) bool { return s.killed(f.Host, p) || s.paused(f.Host, p) })
	}
	if d.Verb == model.NodeStart {
		s.lifted.Add(1)
		n.starting.Add(1)
		go func() {
			defer s.lifted.Done()
			defer n.starting.Add(-1)
			for _, p := range names {
				if n.procs.Runs(f.Host, p) {
					s.Note("step %d (%s): %s was started again by others", d.Step, f, p)
					continue
				}
				if err := n.procs.Act(model.NodeAction{Verb: d.Verb, Process: p, Host: f.Host}); err != nil {
					s.Fail("step %d (%s): %s could not be started again: %v", d.Step, f, p, err)
				}
			}
		}()
		return nil
	}
	for _, p := range names {
		a, err := n.procs.ActNow(model.NodeAction{Verb: d.Verb, Process: p, Host: f.Host})
		if s.spares(d.Step, err) {
			n.on[d.Step] = slices.DeleteFunc(n.on[d.Step], func(q string) bool { return q == p })
			continue
		}
		if d.Verb == model.NodeKill {
			n.down[f.Host] = d.Step
		}
		if err != nil {
			s.incomplete = append(s.incomplete, fmt.Sprintf("step %d (%s): %s of %s: %v", d.Step, f, d.Verb, p, err))
			continue
		}
		done = append(done, a)
	}
	return done
}

// lacks says that a decision is of a step without anything to act on: its host, whoever had its
// role, is a client. The step counts as one that did not begin. A machine that dies is no such
// step: the engine has cut it off. The caller holds mu.
func (s *session) lacks(d model.Decision) bool {
	if d.Step == 0 || d.Ask != "" || d.Verb == "" && d.Disk == "" {
		return false
	}
	if s.nodes.lacked[d.Step] != "" {
		return true
	}
	host, do := model.NodeID(""), &s.engine.Scenario().Steps[d.Step-1].Do
	switch {
	case do.Cut != nil:
		return false
	case do.Node != nil:
		host = do.Node.Host
	case do.Disk != nil:
		host = do.Disk.Host
	}
	if len(s.nodes.names[host]) > 0 {
		return false
	}
	for _, r := range s.engine.Result().Steps[d.Step-1].Roles {
		if slices.Contains(r.Have, host) {
			if s.nodes.lacked == nil {
				s.nodes.lacked = map[int]string{}
			}
			s.nodes.lacked[d.Step] = fmt.Sprintf("%s was %s, without servers", r.Role, host)
			return true
		}
	}
	return false
}

// stepResults are the results of steps with what the session knows of them. The caller holds mu.
func (s *session) stepResults(steps []model.StepResult) []model.StepResult {
	for i := range steps {
		st := &steps[i]
		st.Slip = s.nodes.slips[st.Step]
		if why := s.nodes.lacked[st.Step]; why != "" {
			st.By, st.Lacked = "", why
		}
	}
	return steps
}

// spares says that a step with IfRunning leaves a server alone that an action did not reach: it
// is being started or stopped, or has just ended.
func (s *session) spares(step int, err error) bool {
	return s.scn.Steps[step-1].Do.IfRunning && (errors.Is(err, nodes.ErrBusy) || errors.Is(err, nodes.ErrNotRunning))
}

// enterActions enters what was done to servers, once the packet that waited is decided. The
// caller holds mu.
func (s *session) enterActions(done []model.NodeAction) {
	damaged := s.disks.damaged
	s.disks.damaged = nil
	for _, a := range done {
		s.nodeDone(s.now(), a)
	}
	s.enterDamage(damaged)
}

func (s *session) nodeDone(at time.Duration, a model.NodeAction) {
	if a.EndsMemory() {
		s.table.Restarted(a.Host)
	}
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventNode, Node: &a}))
}
