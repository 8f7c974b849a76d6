package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/campaign/run"
	"netsplit/model"
)

// Host is a host of the testbed, a node of the target or a client.
type Host = model.NodeID

// Script is a running, stable target for a script to act on. Its methods are the steps of
// the script. A step returns when it is over and recorded. Steps never overlap, even if
// several goroutines call them: so there is one global order of all clients' operations. A
// step that cannot be done ends the script, and the run is unknown.
type Script struct {
	ctx  context.Context
	live live
	tell func(model.ScriptStep)
	// line is where a step of a file stands; nil: steps are calls of Go.
	line func() string

	mu     sync.Mutex // held for a whole step; guards what follows
	n      int
	cuts   int
	faults int
	halted bool // a step could not be done

	over atomic.Bool // the script has ended: no step begins any more
}

// live is the run that a script acts on: a *run.Live.
type live interface {
	Target() *model.Target
	Hosts() []model.NodeID
	Now() time.Duration
	Enter(st model.ScriptStep)
	Do(ctx context.Context, host model.NodeID, name string, args ...string) (run.OpResult, error)
	Holders(ctx context.Context, name string) (model.Holders, error)
	Period(name string) (time.Duration, error)
	Await(ctx context.Context, limit time.Duration, names []string) ([]string, error)
	Sleep(ctx context.Context, d time.Duration) error
	Node(verb model.NodeVerb, host model.NodeID, process string) ([]string, error)
	Cut(ctx context.Context, name string, p model.Partition) (model.CutProof, error)
	Heal(ctx context.Context, name string) (model.CutProof, error)
	Fault(ctx context.Context, name string, f model.MessageFault) (model.MessageFault, error)
	Acted(ctx context.Context, name string, want int, limit time.Duration) (acted, met int, err error)
	End(ctx context.Context, name string) (model.FaultProof, error)
	AwaitMessage(ctx context.Context, limit time.Duration, match model.MessageMatch) (m model.Message, ok bool, err error)
}

// play has a function act on a live target.
func play(tell func(model.ScriptStep), f func(*Script)) run.Play {
	return func(ctx context.Context, l *run.Live) error {
		return (&Script{ctx: ctx, live: l, tell: tell}).play(f)
	}
}

// play calls the script's function in a goroutine of its own: if a test gives up
// (t.FailNow), only that goroutine ends, and the run still ends in order. The script ends
// with its function. If goroutines of the function are left, play waits for the step that
// one of them is in; each of them ends at its next step.
func (s *Script) play(f func(*Script)) error {
	end := make(chan error, 1)
	go func() {
		err := errors.New("the script gave up before its end (t.FailNow, t.Fatal or runtime.Goexit)")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the script panicked: %v\n%s", p, debug.Stack())
			}
			s.over.Store(true) // before the lock: steps that wait for it do not begin
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.halted {
				err = nil
			}
			end <- err
		}()
		f(s)
		err = nil
	}()
	return <-end
}

// errNot marks an assertion that does not hold.
type errNot string

func (e errNot) Error() string { return string(e) }

func (s *Script) step(do, text string, act func() (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		runtime.Goexit()
	}
	if s.halted = s.halted || s.ctx.Err() != nil; s.halted {
		runtime.Goexit()
	}
	s.n++
	st := model.ScriptStep{Num: s.n, Do: do, Text: text, Where: s.where(), Began: s.live.Now(), Outcome: model.StepDone}
	result, err := act()
	st.Result = result
	var not errNot
	switch {
	case errors.As(err, &not):
		st.Outcome, st.Result = model.StepFailed, string(not)
	case err != nil:
		st.Outcome, st.Result = model.StepStuck, err.Error()
	}
	s.live.Enter(st)
	if s.tell != nil {
		s.tell(st)
	}
	if s.halted = st.Outcome == model.StepStuck; s.halted {
		runtime.Goexit()
	}
}

// named counts what a script begins of a kind, and returns its name: its number if it has none.
func (s *Script) named(count *int, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	return cmp.Or(name, fmt.Sprint(*count))
}

// Target is the target with its settings filled in.
func (s *Script) Target() *model.Target { return s.live.Target() }

// Hosts is a group of hosts. The script ends if the target lacks one.
func (s *Script) Hosts(hosts ...Host) []Host {
	for _, h := range hosts {
		if !slices.Contains(s.live.Hosts(), h) {
			s.step("hosts", "hosts "+names(hosts), func() (string, error) {
				return "", fmt.Errorf("no host %q: the target has %s", h, names(s.live.Hosts()))
			})
		}
	}
	return slices.Clone(hosts)
}

// Rest are all hosts of the target that are in none of the groups.
func (s *Script) Rest(groups ...[]Host) []Host {
	var out []Host
	for _, h := range s.live.Hosts() {
		if !slices.ContainsFunc(groups, func(g []Host) bool { return slices.Contains(g, h) }) {
			out = append(out, h)
		}
	}
	return out
}

// Role is the one host that has a role of the target now. If no host or several have it, the
// script ends. To wait for a host, use AwaitRole.
func (s *Script) Role(role string) (h Host) {
	s.step("role", "who has role "+role, func() (string, error) {
		who, err := s.live.Holders(s.ctx, role)
		if err == nil && len(who.Have) > 1 {
			err = fmt.Errorf("%s have role %s, but one host is expected", names(who.Have), role)
		}
		if err != nil {
			return "", err
		}
		h = who.Have[0]
		return string(h), nil
	})
	return h
}

// Holders are all hosts that have a role of the target now, maybe none.
func (s *Script) Holders(role string) (have []Host) {
	s.step("role", "all who have role "+role, func() (string, error) {
		who, err := s.live.Holders(s.ctx, role)
		if errors.Is(err, model.ErrUnavailable) {
			return "nobody", nil
		}
		have = who.Have
		return names(have), err
	})
	return have
}

// AwaitRole waits until a host has a role, one of those named if any are, and
// returns the first of them. The script ends if none has within the limit.
func (s *Script) AwaitRole(limit time.Duration, role string, among ...Host) (h Host) {
	text := "await that a host has role " + role
	if len(among) > 0 {
		text = fmt.Sprintf("await that one of %s has role %s", names(among), role)
	}
	s.step("await", text, func() (string, error) {
		var last error
		ok, err := s.poll(limit, func() bool {
			var who model.Holders
			if who, last = s.live.Holders(s.ctx, role); last != nil {
				return false
			}
			for _, x := range who.Have {
				if len(among) == 0 || slices.Contains(among, x) {
					h = x
					return true
				}
			}
			last = fmt.Errorf("%s has it", names(who.Have))
			return false
		})
		if err == nil && !ok {
			err = fmt.Errorf("not within %v: %w", limit, last)
		}
		return string(h), err
	})
	return h
}

// Await waits until the named conditions of the target (stable in its file)
// hold at once; without a name, all of them. The script ends if they do not
// within the limit.
func (s *Script) Await(limit time.Duration, conditions ...string) {
	text := "await " + strings.Join(conditions, ", ")
	if len(conditions) == 0 {
		text = "await that the target is stable"
	}
	s.step("await", text, func() (string, error) {
		began := time.Now()
		pending, err := s.live.Await(s.ctx, limit, conditions)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("not within %v: %s", limit, strings.Join(pending, "; "))
		}
		return fmt.Sprintf("after %.3f s", time.Since(began).Seconds()), err
	})
}

// pollEvery is the pause between two looks at what is waited for.
const pollEvery = 50 * time.Millisecond

// poll calls so, at least once, until it is true or the limit is over.
func (s *Script) poll(limit time.Duration, so func() bool) (bool, error) {
	end := time.Now().Add(limit)
	for !so() {
		if !time.Now().Before(end) {
			return false, nil
		}
		if err := s.live.Sleep(s.ctx, pollEvery); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Period is how long a period of the target is (periods in its file), under its
// settings. The script ends if it has none of that name.
func (s *Script) Period(name string) time.Duration {
	d, err := s.live.Period(name)
	if err != nil {
		s.step("period", "period "+name, func() (string, error) { return "", err })
	}
	return d
}

// Sleep lets time pass. Say how much in the target's own terms: see Period.
func (s *Script) Sleep(d time.Duration) {
	s.step("sleep", fmt.Sprintf("sleep %v", d), func() (string, error) { return "", s.live.Sleep(s.ctx, d) })
}

// SleepPeriods lets a number of a period pass, which may be less than one.
func (s *Script) SleepPeriods(n float64, name string) {
	d := time.Duration(n * float64(s.Period(name)))
	s.step("sleep", fmt.Sprintf("sleep %v %s", n, name), func() (string, error) { return d.String(), s.live.Sleep(s.ctx, d) })
}

// Crash kills the servers of a host, or the named ones, at once (SIGKILL).
func (s *Script) Crash(h Host, process ...string) { s.node("crash", h, process, model.NodeKill) }

// Stop asks them to end, as an operator does (SIGTERM).
func (s *Script) Stop(h Host, process ...string) { s.node("stop", h, process, model.NodeStop) }

// Start starts those that do not run.
func (s *Script) Start(h Host, process ...string) { s.node("start", h, process, model.NodeStart) }

// Restart is Stop and Start.
func (s *Script) Restart(h Host, process ...string) {
	s.node("restart", h, process, model.NodeStop, model.NodeStart)
}

// Pause freezes them (SIGSTOP), as a long collection of garbage does.
func (s *Script) Pause(h Host, process ...string) { s.node("pause", h, process, model.NodePause) }

// Resume lets them go on (SIGCONT).
func (s *Script) Resume(h Host, process ...string) { s.node("resume", h, process, model.NodeResume) }

func (s *Script) node(do string, h Host, process []string, verbs ...model.NodeVerb) {
	s.step(do, strings.TrimSpace(fmt.Sprintf("%s %s %s", do, h, strings.Join(process, ", "))), func() (string, error) {
		var did []string
		for _, verb := range verbs {
			each := process
			if len(each) == 0 {
				each = []string{""}
			}
			for _, p := range each {
				names, err := s.live.Node(verb, h, p)
				if err != nil {
					return "", err
				}
				did = append(did, names...)
			}
		}
		slices.Sort(did)
		return strings.Join(slices.Compact(did), ", "), nil
	})
}

func names(hosts []Host) string {
	var out []string
	for _, h := range hosts {
		out = append(out, string(h))
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, ", ")
}
